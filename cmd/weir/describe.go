package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-runewidth"

	"weir/generator"
)

// describe prints what a plan would send.
func (a *app) describe(d *generator.Description) {
	fmt.Fprintf(a.out, "%d requests in %d sessions over %s, seed %d, at most %.1f session starts a second\n",
		d.Requests, d.Sessions, d.Length.Round(100*time.Millisecond), d.Seed, d.PeakRate)
	if d.WarmUp > 0 {
		fmt.Fprintf(a.out, "%d of them warm-up, left out of figures\n", d.WarmUp)
	}
	estimated := ""
	if d.Estimated {
		estimated = ", as an estimate: the model's own is not public"
	}
	fmt.Fprintf(a.out, "%d prompt tokens, at most %d answer tokens; counted by %s%s\n\n", d.Input, d.Output, d.Tokenizer, estimated)
	name := runewidth.StringWidth("scenario")
	for _, s := range d.Scenarios {
		name = max(name, runewidth.StringWidth(s.Scenario))
	}
	// The writer counts characters, not columns of the screen: it aligns the
	// figures, and the names, which may be Chinese, are put before them.
	var names []string
	var figures strings.Builder
	t := tabwriter.NewWriter(&figures, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(scenario string, cells ...string) {
		names = append(names, runewidth.FillRight(scenario, name))
		fmt.Fprintf(t, "%s\t\n", strings.Join(cells, "\t"))
	}
	row("scenario", "api", "model", "requests", "share", "turns", "input p50", "p95", "max", "output p50", "p95", "max")
	for _, s := range d.Scenarios {
		model := s.Model
		if model == "" {
			model = "–"
		}
		row(s.Scenario, s.API, model, fmt.Sprint(s.Requests), fmt.Sprintf("%.1f%%", 100*s.Share), fmt.Sprintf("%d–%d", s.Turns.Min, s.Turns.Max),
			fmt.Sprint(s.Input.P50), fmt.Sprint(s.Input.P95), fmt.Sprint(s.Input.Max), fmt.Sprint(s.Output.P50), fmt.Sprint(s.Output.P95), fmt.Sprint(s.Output.Max))
	}
	t.Flush()
	for i, line := range strings.Split(strings.TrimSuffix(figures.String(), "\n"), "\n") {
		fmt.Fprintln(a.out, names[i]+line)
	}
}
