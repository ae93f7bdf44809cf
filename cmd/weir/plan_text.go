package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"weir/generator"
	"weir/store/report"
)

// chartColumns is how wide the chart of a plan is at most.
const chartColumns = 60

// outlookText prints what a plan would send.
func outlookText(w io.Writer, o *generator.Outlook, style report.Style) {
	fmt.Fprintf(w, "%s in %s over %s, seed %d, at most %.0f starts a second\n",
		counted(o.Requests, "request"), counted(o.Sessions, "session"), o.Length.Round(100*time.Millisecond), o.Seed, o.PeakRate)
	if o.WarmUp > 0 {
		fmt.Fprintf(w, "%d of them warm-up, left out of the table\n", o.WarmUp)
	}
	estimated := ""
	if o.Estimated {
		estimated = ", as an estimate: the model's own is not public"
	}
	held := ""
	if o.Input > 0 {
		held = fmt.Sprintf(" (%s of them a perfect prefix cache would hold)", portion(o.Held, o.Input))
	}
	fmt.Fprintf(w, "%s prompt tokens%s, at most %s answer tokens; counted by %s%s\n", thousands(o.Input), held, thousands(o.Output),
		cmp.Or(o.Tokenizer, "no tokenizer"), estimated)
	if o.Cost.Priced > 0 {
		fmt.Fprintf(w, "cost at most %s", dollars(o.Cost.Uncached))
		if o.Cost.HeldKnown() {
			fmt.Fprintf(w, "; %s if a perfect prefix cache held what it could", dollars(o.Cost.Held))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	outlookChart(w, o, style)
	table := outlookTable(o, 0)
	for less := 1; less <= 2 && wider(table, style.Width); less++ {
		table = outlookTable(o, less)
	}
	io.WriteString(w, table)
	if len(o.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range o.Warnings {
		where := ""
		if n.Scenario != "" {
			where = n.Scenario + ": "
		}
		fmt.Fprintln(w, style.Symbol(report.Odd)+" "+where+n.Text)
	}
}

// outlookChart draws the plan's course: the starts, and where a latency was
// stated the calls in flight.
func outlookChart(w io.Writer, o *generator.Outlook, style report.Style) {
	if len(o.Moments) < 2 {
		return
	}
	columns := chartColumns
	if style.Width > 0 {
		columns = max(min(columns, style.Width-50), 10)
	}
	each := (len(o.Moments) + columns - 1) / columns
	var starts, flying []float64
	for moments := range slices.Chunk(o.Moments, each) {
		n, busy := 0, 0.0
		for _, m := range moments {
			n += m.Starts
			busy += m.Busy
		}
		span := o.Every.Seconds() * float64(len(moments))
		starts, flying = append(starts, float64(n)/span), append(flying, busy/span)
	}
	line, most := report.Sparkline(starts)
	fmt.Fprintf(w, "%-9s %s  a column is %s, at most %.1f/s\n", "starts", line, time.Duration(each)*o.Every, most)
	if o.Latency.Known {
		line, most = report.Sparkline(flying)
		fmt.Fprintf(w, "%-9s %s  at most %.0f calls in a column's mean\n", "in flight", line, most)
		fmt.Fprintf(w, "at ttft %s, tpot %s: %.1f calls in flight on average, at most %d at once, after %s\n",
			o.Latency.TTFT, o.Latency.TPOT, o.InFlight, o.Most, o.MostAt.Round(time.Second))
	}
	fmt.Fprintln(w)
}

// outlookTable has a row for each scenario. API and model stand above it where
// they are the same for all. less leaves figures out for narrow screens: 1 the
// p95, 2 also the largest and the sessions.
func outlookTable(o *generator.Outlook, less int) string {
	var w strings.Builder
	apart, priced := false, o.Cost.Priced > 0
	for _, s := range o.Scenarios {
		apart = apart || s.API != o.Scenarios[0].API || s.Model != o.Scenarios[0].Model
	}
	if !apart && len(o.Scenarios) > 0 {
		fmt.Fprintf(&w, "api %s, model %s\n", cmp.Or(o.Scenarios[0].API, "–"), cmp.Or(o.Scenarios[0].Model, "–"))
	}
	columns := []report.Column{{Head: "scenario", Left: true}}
	if apart {
		columns = append(columns, report.Column{Head: "api", Left: true}, report.Column{Head: "model", Left: true})
	}
	columns = append(columns, report.Column{Head: "requests"}, report.Column{Head: "share"})
	if less < 2 {
		columns = append(columns, report.Column{Head: "sessions"})
	}
	columns = append(columns, report.Column{Over: "turns", Head: "p50"}, report.Column{Over: "turns", Head: "max"})
	heads := [][]string{{"p50", "p95", "p99", "max"}, {"p50", "p99", "max"}, {"p50", "p99"}}[less]
	for _, over := range []string{"prompt tokens", "answer tokens"} {
		for _, head := range heads {
			columns = append(columns, report.Column{Over: over, Head: head})
		}
	}
	columns = append(columns, report.Column{Over: "prefix", Head: "reuse"})
	if priced {
		columns = append(columns, report.Column{Head: "cost"})
	}
	var rows [][]string
	for _, s := range o.Scenarios {
		row := []string{s.Scenario}
		if apart {
			row = append(row, cmp.Or(s.API, "–"), cmp.Or(s.Model, "–"))
		}
		row = append(row, strconv.Itoa(s.Requests), portion(int64(math.Round(s.Share*1e6)), 1e6))
		if less < 2 {
			row = append(row, strconv.Itoa(s.Sessions))
		}
		row = append(row, figure(s.Turns, s.Turns.P50), figure(s.Turns, s.Turns.Max))
		for _, of := range []generator.Spread{s.Input, s.Output} {
			by := map[string]int{"p50": of.P50, "p95": of.P95, "p99": of.P99, "max": of.Max}
			for _, head := range heads {
				row = append(row, figure(of, by[head]))
			}
		}
		row = append(row, portion(s.HeldTokens, s.InputTokens))
		if priced {
			cost := "–"
			if s.Cost.Priced > 0 {
				cost = dollars(s.Cost.Uncached)
			}
			row = append(row, cost)
		}
		rows = append(rows, row)
	}
	report.Table(&w, columns, rows)
	return w.String()
}

// wider says whether a text is wider than a screen; 0 columns are any number.
func wider(text string, columns int) bool {
	for line := range strings.Lines(text) {
		if columns > 0 && runewidth.StringWidth(line) > columns {
			return true
		}
	}
	return false
}

// figure writes one figure of a spread, which is absent where nothing was counted.
func figure(of generator.Spread, v int) string {
	if of.Max == 0 {
		return "–"
	}
	return strconv.Itoa(v)
}

// portion writes a share; absent when the whole is 0.
func portion(of, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(of)/float64(whole))
}

func dollars(v float64) string {
	if v > 0 && v < 0.01 {
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// counted writes a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// thousands writes a number with its thousands apart.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
