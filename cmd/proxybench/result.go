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
	// The forward door, beside the reverse one: no more, as far as the noise of
	// a run lets it be told.
	maxForwardRatio = 1.05
	// What weir's CPU is made of, at the most: to record calls, and to send them on.
	maxRecordingShare = 0.05
)

// result is what a run of the benchmark found.
type result struct {
	size
	names     []string
	samples   map[string][]sample // by subject, a round each
	perStream map[string]float64  // bytes, by subject; empty when not measured
	sent      int                 // streams that went through weir
	recorded  int                 // those that its database holds
	toExport  int                 // those through the weir that sends them on
	exported  int                 // spans that its collector has
	bad       []string            // streams through weir that were not whole
	notes     []string

	machine               string
	loadBefore, loadAfter string // average of a minute, at the run's two ends; empty when unknown
}

// verdict is one limit and what was measured against it.
type verdict struct {
	text  string
	holds bool
}

func (r *result) verdicts() []verdict {
	if !slices.Contains(r.names, weirSubject) {
		return nil
	}
	var v []verdict
	ratio := r.ratio(weirSubject)
	v = append(v, verdict{fmt.Sprintf("CPU per event %s × ReverseProxy's; at most %.2f", spread(r.ratios(weirSubject), "%.2f"), maxCPURatio), ratio <= maxCPURatio})
	added := r.overReverse(weirSubject)
	v = append(v, verdict{fmt.Sprintf("TTFT p50 %s µs over ReverseProxy's; at most %.0f", spread(r.overs(weirSubject, reverse, 0.5), "%+.0f"), micros(maxAddedTTFT)), added <= maxAddedTTFT})
	if bytes, measured := r.perStream[weirSubject]; measured {
		v = append(v, verdict{fmt.Sprintf("memory %.1f KiB an open stream at %d; at most %d", bytes/1024, r.Open, maxStreamBytes>>10), bytes <= maxStreamBytes})
	}
	if slices.Contains(r.names, forward) {
		ratio := r.ratio(forward) / r.ratio(weirSubject)
		v = append(v, verdict{fmt.Sprintf("the forward door's CPU %.2f × the reverse door's; at most %.2f", ratio, maxForwardRatio), ratio <= maxForwardRatio})
	}
	if slices.Contains(r.names, exporting) && slices.Contains(r.names, unrecorded) {
		shares := r.shares(exporting, unrecorded)
		v = append(v, verdict{fmt.Sprintf("recording and exporting are %s %% of weir's CPU; at most %.0f", spread(shares, "%.1f"), 100*maxRecordingShare), len(shares) > 0 && median(shares) <= 100*maxRecordingShare},
			verdict{fmt.Sprintf("%d of %d streams exported", r.exported, r.toExport), r.exported == r.toExport})
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
	fmt.Fprintf(w, "%d streams at a time, %d events a stream %s apart, medians of %d rounds (least to most)\n%s; load average %s before, %s after\n\n",
		r.Streams, r.Events, r.Gap, r.Rounds, r.machine, r.loadBefore, r.loadAfter)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tCPU/event\tuser\tsystem\t× ReverseProxy\tTTFT p50\tp99\tadded p50\tp99\tmemory/stream\t")
	for _, name := range r.names {
		row := []string{name, "–", "–", "–", "–",
			us(r.ttft(name, 0.5)), us(r.ttft(name, 0.99)), "–", "–", "–"}
		if name != direct {
			row[1] = fmt.Sprintf("%.1fµs", r.median(name, sample.cpu))
			row[2] = fmt.Sprintf("%.1fµs", r.median(name, func(s sample) float64 { return s.user }))
			row[3] = fmt.Sprintf("%.1fµs", r.median(name, func(s sample) float64 { return s.system }))
			row[4] = spread(r.ratios(name), "%.2f")
			row[7] = spread(r.overs(name, direct, 0.5), "%.0f") + "µs"
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

// ratios are a subject's CPU per event in ReverseProxy's of the same round.
func (r *result) ratios(name string) []float64 {
	var all []float64
	for i, s := range r.samples[name] {
		if of := r.samples[reverse][i].cpu(); of > 0 {
			all = append(all, s.cpu()/of)
		}
	}
	return all
}

// shares are what a subject's CPU is more than another's of the same round, in
// percent of its own.
func (r *result) shares(name, than string) []float64 {
	var all []float64
	for i, s := range r.samples[name] {
		if of := s.cpu(); of > 0 {
			all = append(all, 100*(of-r.samples[than][i].cpu())/of)
		}
	}
	return all
}

func (r *result) ratio(name string) float64 { return median(r.ratios(name)) }

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

// overs are the µs that a subject's first event comes later than another's of
// the same round.
func (r *result) overs(name, than string, q float64) []float64 {
	var all []float64
	for i, s := range r.samples[name] {
		all = append(all, micros(quantile(s.ttft, q)-quantile(r.samples[than][i].ttft, q)))
	}
	return all
}

func (r *result) over(name, than string, q float64) time.Duration {
	return time.Duration(median(r.overs(name, than, q)) * float64(time.Microsecond))
}

// spread is the median of all rounds, and the least and the most of them.
func spread(all []float64, format string) string {
	if len(all) == 0 {
		return "–"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", median(all), slices.Min(all), slices.Max(all))
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
