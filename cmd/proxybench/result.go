package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// What weir may cost.
const (
	maxCPURatio    = 1.25                   // of ReverseProxy's CPU per event
	maxAddedTTFT   = 150 * time.Microsecond // p50, over ReverseProxy's
	maxStreamBytes = 64 << 10               // an open stream
)

// result is what a run of the benchmark found.
type result struct {
	size
	names     []string
	samples   map[string][]sample // by subject, a round each
	perStream map[string]float64  // bytes, by subject; empty when not measured
	sent      int                 // streams that went through weir
	recorded  int                 // those that its database holds
	bad       []string            // streams through weir that were not whole
	notes     []string
}

// verdict is one limit and what was measured against it.
type verdict struct {
	text  string
	holds bool
}

func (r *result) verdicts() []verdict {
	var v []verdict
	ratio := r.ratio(weirSubject)
	v = append(v, verdict{fmt.Sprintf("CPU per event %.2f × ReverseProxy's; at most %.2f", ratio, maxCPURatio), ratio <= maxCPURatio})
	added := r.overReverse(weirSubject)
	v = append(v, verdict{fmt.Sprintf("TTFT p50 %+.0f µs over ReverseProxy's; at most %.0f", micros(added), micros(maxAddedTTFT)), added <= maxAddedTTFT})
	if bytes, measured := r.perStream[weirSubject]; measured {
		v = append(v, verdict{fmt.Sprintf("memory %.1f KiB an open stream at %d; at most %d", bytes/1024, r.Open, maxStreamBytes>>10), bytes <= maxStreamBytes})
	}
	v = append(v, verdict{fmt.Sprintf("%d of %d streams recorded", r.recorded, r.sent), r.recorded == r.sent})
	for _, bad := range r.bad {
		v = append(v, verdict{bad, false})
	}
	return v
}

// holds says whether weir kept every limit.
func (r *result) holds() bool {
	return !slices.ContainsFunc(r.verdicts(), func(v verdict) bool { return !v.holds })
}

// write prints the table, and each limit beside what was measured.
func (r *result) write(w io.Writer) {
	fmt.Fprintf(w, "%d streams at a time, %d events a stream %s apart, medians of %d rounds\n\n", r.Streams, r.Events, r.Gap, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tCPU/event\tuser\tsystem\t× ReverseProxy\tTTFT p50\tp99\tadded p50\tadded p99\tmemory/stream\t")
	for _, name := range r.names {
		row := []string{name, "–", "–", "–", "–",
			us(r.ttft(name, 0.5)), us(r.ttft(name, 0.99)), "–", "–", "–"}
		if name != direct {
			row[1] = fmt.Sprintf("%.1fµs", r.median(name, sample.cpu))
			row[2] = fmt.Sprintf("%.1fµs", r.median(name, func(s sample) float64 { return s.user }))
			row[3] = fmt.Sprintf("%.1fµs", r.median(name, func(s sample) float64 { return s.system }))
			row[4] = fmt.Sprintf("%.2f", r.ratio(name))
			row[7] = us(r.over(name, direct, 0.5))
			row[8] = us(r.over(name, direct, 0.99))
		}
		if bytes, measured := r.perStream[name]; measured {
			row[9] = fmt.Sprintf("%.1fKiB", bytes/1024)
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
	fmt.Fprintln(w)
	for _, v := range r.verdicts() {
		mark := "✓"
		if !v.holds {
			mark = "✗"
		}
		fmt.Fprintln(w, mark, v.text)
	}
	for _, note := range r.notes {
		fmt.Fprintln(w, "!", note)
	}
}

// ratio is a subject's CPU per event in ReverseProxy's of the same round.
func (r *result) ratio(name string) float64 {
	var all []float64
	for i, s := range r.samples[name] {
		if of := r.samples[reverse][i].cpu(); of > 0 {
			all = append(all, s.cpu()/of)
		}
	}
	return median(all)
}

func (r *result) median(name string, figure func(sample) float64) float64 {
	var all []float64
	for _, s := range r.samples[name] {
		all = append(all, figure(s))
	}
	return median(all)
}

func (r *result) ttft(name string, q float64) time.Duration {
	return time.Duration(r.median(name, func(s sample) float64 { return float64(quantile(s.ttft, q)) }))
}

// over is how much later a subject's first event comes than another's of the
// same round.
func (r *result) over(name, than string, q float64) time.Duration {
	var all []float64
	for i, s := range r.samples[name] {
		all = append(all, float64(quantile(s.ttft, q)-quantile(r.samples[than][i].ttft, q)))
	}
	return time.Duration(median(all))
}

func (r *result) overReverse(name string) time.Duration { return r.over(name, reverse, 0.5) }

// quantile is by nearest rank; 0 of nothing.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func us(d time.Duration) string { return fmt.Sprintf("%.0fµs", micros(d)) }
