package report

import (
	"slices"
	"time"
)

// Percentiles summarise one latency figure of successful calls, by nearest
// rank on the raw values: each figure is one that a call really had. With N of
// 0 all are absent.
type Percentiles struct {
	N    int `json:"n_calls"`
	Mean Num `json:"mean_ms"`
	P50  Num `json:"p50_ms"`
	P90  Num `json:"p90_ms"`
	P95  Num `json:"p95_ms"`
	P99  Num `json:"p99_ms"`
	Max  Num `json:"max_ms"`

	// Unreliable names the percentiles for which N is too small to be within
	// their rank with 99 % confidence.
	Unreliable []string `json:"unreliable"`
}

// leastForP99 is the n of the 99th percentile.
const leastForP99 = 662

// A percentile is reliable from this many values on: the least n at which the
// tail beyond it is seen with 99 % confidence.
var reliableFrom = []struct {
	name string
	n    int
}{{"p50", 11}, {"p90", 64}, {"p95", 130}, {"p99", leastForP99}}

// summarise sorts values, which it may reorder, and reads their percentiles.
func summarise(values []time.Duration) Percentiles {
	p := Percentiles{N: len(values), Unreliable: []string{}}
	if len(values) == 0 {
		return p
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	p.Mean = N(sum / float64(len(values)) / float64(time.Millisecond))
	p.P50 = Ms(nearestRank(values, 500))
	p.P90 = Ms(nearestRank(values, 900))
	p.P95 = Ms(nearestRank(values, 950))
	p.P99 = Ms(nearestRank(values, 990))
	p.Max = Ms(values[len(values)-1])
	for _, r := range reliableFrom {
		if len(values) < r.n {
			p.Unreliable = append(p.Unreliable, r.name)
		}
	}
	return p
}

// nearestRank is the value of rank ⌈n·permille/1000⌉ of the sorted values,
// which are at least one.
func nearestRank(sorted []time.Duration, permille int) time.Duration {
	rank := (len(sorted)*permille + 999) / 1000
	return sorted[max(rank, 1)-1]
}
