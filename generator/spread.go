package generator

import (
	"math"
	"math/bits"
	"slices"
)

// Spread is how values are spread, by nearest rank.
type Spread struct {
	Min, P50, P95, P99, Max int
	// About says that too many values were unlike to tell all of them apart:
	// those between Min and Max are right to one part in 4,096.
	About bool
}

// values count how often each value came, which stays small where the values
// themselves do not: where too many are unlike, each is rounded down to its
// leading bits. The zero values are empty.
type values struct {
	counts  map[int]int
	most    int // ever
	rounded bool
}

const (
	mostValues  = 1 << 16 // told apart
	leadingBits = 13
)

// kept is what a value counts as.
func (v *values) kept(n int) int {
	if !v.rounded {
		return n
	}
	return leading(n)
}

// leading is a value's leading bits; its others are 0.
func leading(n int) int {
	if over := bits.Len(uint(n)) - leadingBits; over > 0 { //nolint:gosec // none is negative
		return n >> over << over
	}
	return n
}

func (v *values) add(n int) {
	if v.counts == nil {
		v.counts = map[int]int{}
	}
	v.most = max(v.most, n)
	v.counts[v.kept(n)]++
	if len(v.counts) > mostValues && !v.rounded {
		v.rounded = true
		all := v.counts
		v.counts = map[int]int{}
		for value, n := range all {
			v.counts[leading(value)] += n
		}
	}
}

// takeBack undoes an add of a value that is not the largest.
func (v *values) takeBack(n int) {
	n = v.kept(n)
	if v.counts[n]--; v.counts[n] == 0 {
		delete(v.counts, n)
	}
}

// spread reads the ranks off the counts.
func (v *values) spread() Spread {
	var each []int
	n := 0
	for value, c := range v.counts {
		each = append(each, value)
		n += c
	}
	if n == 0 {
		return Spread{}
	}
	slices.Sort(each)
	at := func(p float64) int {
		rank := int(math.Ceil(p*float64(n) - 1e-6))
		for _, value := range each {
			if rank -= v.counts[value]; rank <= 0 {
				return value
			}
		}
		return v.most
	}
	return Spread{each[0], at(0.5), at(0.95), at(0.99), v.most, v.rounded}
}
