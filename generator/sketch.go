package generator

import (
	"math"
	"time"
)

// sketch counts durations in buckets 1 % apart, so that a run of any length
// takes the same memory. The zero sketch is empty.
type sketch struct {
	n       int
	max     time.Duration
	buckets [sketchBuckets]uint32
}

const (
	sketchStep    = 1.01
	sketchLeast   = time.Microsecond
	sketchBuckets = 2560 // up to some 32 hours
)

var logStep = math.Log(sketchStep)

func (s *sketch) add(d time.Duration) {
	i := 0
	if d > sketchLeast {
		i = min(1+int(math.Log(float64(d)/float64(sketchLeast))/logStep), sketchBuckets-1)
	}
	s.n++
	s.max = max(s.max, d)
	s.buckets[i]++
}

// quantile is the value at nearest rank, to within half a step; 0 when empty.
func (s *sketch) quantile(p float64) time.Duration {
	rank := int(math.Ceil(p * float64(s.n)))
	if s.n == 0 {
		return 0
	}
	for i, n := range s.buckets {
		if rank -= int(n); rank <= 0 && n > 0 {
			if i == 0 {
				return min(sketchLeast, s.max)
			}
			return min(time.Duration(float64(sketchLeast)*math.Pow(sketchStep, float64(i)-0.5)), s.max)
		}
	}
	return s.max
}

func (s *sketch) quantiles() Quantiles {
	return Quantiles{N: s.n, P50: s.quantile(0.5), P95: s.quantile(0.95), P99: s.quantile(0.99), Max: s.max}
}

// merge adds another's durations.
func (s *sketch) merge(o *sketch) {
	s.n += o.n
	s.max = max(s.max, o.max)
	for i, n := range o.buckets {
		s.buckets[i] += n
	}
}
