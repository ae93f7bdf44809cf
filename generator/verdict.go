package generator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// The generator is honest about itself: a run during which it could not keep
// its plan is invalid, whatever the endpoint did. The reasons are those of a
// client that is too slow:
//
//   - Lag. The 99th percentile of send − due may be 10 ms, or 1 % of the median
//     TTFT where that is less: a lag that is small beside a TTFT of 2 s is not
//     beside one of 600 ms. But up to lagFloor it is never held against a run:
//     a process that sleeps until an instant is woken up to 1 ms late by the
//     kernel's timer, and one time slice (3 to 4 ms) later where something else
//     holds the core just then. 1 % of a TTFT of 50 ms would be half a
//     millisecond, which no run on any machine could keep. Of few requests the
//     99th percentile is one of the two or three latest, which says nothing: a
//     run of less than reliableP99 is invalid only when so many of them were
//     late that, at 99 % confidence, the percentile is above the limit.
//   - CPU. The process took over 90 % of the cores that it may use.
//   - Calls had to wait for a place among those allowed in flight.
//   - Ports or files ran out.
const (
	lagMost  = 10 * time.Millisecond
	lagShare = 0.01
	lagFloor = 5 * time.Millisecond
	cpuMost  = 0.9

	reliableP99 = 662 // as for every percentile that weir prints
)

// JudgedRank is the rank, from 1 to n, of the lag that is held against a run of n
// requests: that of its 99th percentile, or of few requests that of the
// percentile's lower bound. 0: they are so few that no lag is.
func JudgedRank(n int) int {
	if n >= reliableP99 {
		return int(math.Ceil(0.99 * float64(n)))
	}
	// The k latest of n are all above the limit by chance with the probability
	// that of n draws, of which each is so with 1 %, at least k are.
	k, atLeast := 0, 1.0
	for chance := math.Pow(0.99, float64(n)); atLeast >= 0.01; k++ {
		atLeast -= chance
		chance *= float64(n-k) / float64(k+1) * 0.01 / 0.99
	}
	return max(n-k+1, 0)
}

// judgedLag is the lag that is held against a run.
func judgedLag(lag *sketch) time.Duration {
	rank := JudgedRank(lag.n)
	if rank == 0 {
		return 0
	}
	return lag.quantile(float64(rank) / float64(lag.n))
}

// lagLimit is the lag that a run with this median TTFT may have; a run without
// one (0) may have lagMost.
func lagLimit(ttft time.Duration) time.Duration {
	if ttft <= 0 {
		return lagMost
	}
	return min(lagMost, max(lagFloor, time.Duration(lagShare*float64(ttft))))
}

// JudgeLag says why a lag is held against a run, the one at JudgedRank, whose
// 99th percentile and median TTFT (0: none) are given; empty when it is not.
func JudgeLag(lag, p99, ttft time.Duration) string {
	limit := lagLimit(ttft)
	if lag <= limit {
		return ""
	}
	why := "the most that any run may have"
	if limit < lagMost {
		why = fmt.Sprintf("1 %% of the median TTFT of %s, at least %s", round(ttft), lagFloor)
	}
	return fmt.Sprintf("lag p99 %s is above %s (%s): requests left later than planned", round(p99), round(limit), why)
}

// judge names the verdict of a run whose figures are in r.
func (u *running) judge(r *Result) {
	u.tally.mu.Lock()
	exhausted, lag := maps.Clone(u.tally.exhausted), judgedLag(&u.tally.lag)
	u.tally.mu.Unlock()
	r.Reasons = reasons(r, lag, cap(u.places), exhausted)
	r.Verdict = Valid
	if len(r.Reasons) > 0 {
		r.Verdict = InvalidClient
	}
}

// reasons are why the figures of a run cannot be trusted; none when they can.
func reasons(r *Result, lag time.Duration, places int, exhausted map[string]int) []string {
	var list []string
	if why := JudgeLag(lag, r.Lag.P99, r.TTFT.P50); why != "" {
		list = append(list, why)
	}
	if r.CPU > cpuMost {
		list = append(list, fmt.Sprintf("this process used %.0f %% of its CPU cores, above %.0f %%", 100*r.CPU, 100*cpuMost))
	}
	if r.CapWaits > 0 {
		list = append(list, fmt.Sprintf("the limit of %s in flight was reached: %s for a place", count(places, "call", "calls"), count(r.CapWaits, "request waited", "requests waited")))
	}
	for _, resource := range slices.Sorted(maps.Keys(exhausted)) {
		list = append(list, fmt.Sprintf("%s ran out: %s by it", resource, count(exhausted[resource], "call failed", "calls failed")))
	}
	return list
}

// round shortens a duration to three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
