package main

import (
	"fmt"
	"time"

	"github.com/mattn/go-runewidth"

	"weir/generator"
)

// watch shows how a run stands: a few lines drawn again and again on a
// terminal, a plain line every ten seconds elsewhere.
type watch struct {
	a    *app
	live *live         // nil without a terminal
	last time.Duration // when the last plain line was written
}

func (a *app) watch(run *generator.Run) *watch {
	w := &watch{a: a}
	if columns, tty := terminal(a.err); tty {
		w.live = &live{w: a.err, columns: columns}
		run.ProgressEvery = 500 * time.Millisecond
	}
	run.OnProgress = w.show
	return w
}

// end takes the lines away.
func (w *watch) end() {
	if w.live != nil {
		w.live.clear()
	}
}

const plainEvery = 10 * time.Second

func (w *watch) show(p generator.Progress) {
	if w.live != nil {
		w.live.draw(progressLines(p))
		return
	}
	if p.Elapsed-w.last < plainEvery {
		return
	}
	w.last = p.Elapsed
	fmt.Fprintln(w.a.err, progressLine(p))
}

// progressLine is how a run stands, in one line.
func progressLine(p generator.Progress) string {
	ok, failed := 0, 0
	for _, s := range p.Scenarios {
		ok += s.OK
		for _, n := range s.Failed {
			failed += n
		}
	}
	what := fmt.Sprintf("%s of %s", p.Elapsed.Round(time.Second), p.Length.Round(time.Second))
	if p.Draining {
		what = "draining"
	}
	if p.Elapsed < 0 {
		what = "starting"
	}
	planned := ""
	if p.Planned > 0 { // a closed loop plans none
		planned = fmt.Sprintf("planned %.1f/s ", p.PlannedRate)
	}
	warm := ""
	if p.WarmUp > 0 {
		warm = fmt.Sprintf("%d to warm up, ", p.WarmUp)
	}
	return fmt.Sprintf("run %s  %s  %ssent %.1f/s  %s%d sent, %d in flight, %d ok, %d failed  lag p99 %s",
		p.RunID, what, planned, p.SentRate, warm, p.Sent-p.WarmUp, p.InFlight, ok, failed, tenths(p.LagP99))
}

// progressLines are a run's line and one for each scenario.
func progressLines(p generator.Progress) []string {
	lines := []string{progressLine(p)}
	name := 8
	for _, s := range p.Scenarios {
		name = max(name, min(runewidth.StringWidth(s.Scenario), 24))
	}
	for _, s := range p.Scenarios {
		failed := 0
		for _, n := range s.Failed {
			failed += n
		}
		line := fmt.Sprintf("  %s  %5d sent  %5d ok", runewidth.FillRight(runewidth.Truncate(s.Scenario, name, "…"), name), s.Sent, s.OK)
		if s.TTFT.N > 0 {
			line += fmt.Sprintf("  ttft p50 %7s  p95 %7s", tenths(s.TTFT.P50), tenths(s.TTFT.P95))
		}
		if failed > 0 {
			line += fmt.Sprintf("  ✗ %d failed", failed)
		}
		lines = append(lines, line)
	}
	return lines
}

// tenths writes a duration in milliseconds.
func tenths(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond))
}
