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

	"weir/generator"
	"weir/store/report"
)

// chartColumns is how wide the chart of a plan is at most, and chartWords what
// stands beside it.
const (
	chartColumns = 60
	chartWords   = 54
)

// outlookText prints what a plan would send.
func outlookText(w io.Writer, o *generator.Outlook, style report.Style) {
	say := func(format string, a ...any) { sentence(w, fmt.Sprintf(format, a...), style) }
	say("%s in %s over %s, seed %d, at most %.0f starts a second",
		counted(o.Requests, "request"), bound("at most ", o.SessionsAtMost)+counted(o.Sessions, "session"), o.Length.Round(100*time.Millisecond), o.Seed, o.PeakRate)
	if o.WarmUp > 0 {
		say("%d of them warm-up, left out of the table", o.WarmUp)
	}
	held := ""
	if o.Unrecorded {
		held = " (what they share the trace does not record, so weir lets them share nothing)"
	} else if o.Input > 0 {
		held = fmt.Sprintf(" (%s%s of them a perfect prefix cache would hold)", bound("at least ", o.HeldAtLeast), portion(o.Held, o.Input))
	}
	say("%s prompt tokens%s, %s; counted by %s", thousands(o.Input), held, answerTokens(o), tokenizers(o))
	if o.Cost.Priced > 0 {
		cached := ""
		if o.Cost.HeldKnown() && o.Held > 0 {
			cached = fmt.Sprintf("; %s%s if a perfect prefix cache held what it could", bound("at most ", o.HeldAtLeast), dollars(o.Cost.Held))
		}
		of := "cost"
		if o.Cost.Priced < o.Requests-o.Unlimited {
			of = fmt.Sprintf("cost of the %s of %s that have a price", thousands(int64(o.Cost.Priced)), thousands(int64(o.Requests)))
		}
		switch {
		case o.Cost.DearCache:
			cached = strings.Replace(cached, "at most", "at least", 1)
			say("%s %s if no prompt token is read from a cache%s%s", of, dollars(o.Cost.Uncached), cached, withoutUnlimited(o))
		case o.Unlimited > 0:
			say("%s %s%s%s", of, dollars(o.Cost.Uncached), cached, withoutUnlimited(o))
		default:
			say("%s at most %s%s", of, dollars(o.Cost.Uncached), cached)
		}
	}
	fmt.Fprintln(w)
	outlookChart(w, o, style)
	outlookTable(w, o, style)
	if len(o.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range o.Warnings {
		where := ""
		if n.Scenario != "" {
			where = n.Scenario + ": "
		}
		report.Paragraph(w, style.Symbol(report.Odd)+" ", where+n.Text, 2, style)
	}
}

// answerTokens says how many there are at most, where that has a limit.
func answerTokens(o *generator.Outlook) string {
	switch o.Unlimited {
	case 0:
		return "at most " + thousands(o.Output) + " answer tokens"
	case o.Requests:
		return "no limit to the answers"
	}
	return fmt.Sprintf("at most %s answer tokens of %s, and no limit to the answers of %d", thousands(o.Output), counted(o.Requests-o.Unlimited, "request"), o.Unlimited)
}

func withoutUnlimited(o *generator.Outlook) string {
	if o.Unlimited == 0 {
		return ""
	}
	return "; what answers without a limit cost is not in it"
}

// tokenizers names those that counted, each with its part where there are
// several.
func tokenizers(o *generator.Outlook) string {
	var all []string
	for _, t := range o.Tokenizers {
		name := t.Name
		if len(o.Tokenizers) > 1 {
			name += " (" + portion(t.Input, o.Input) + ")"
		}
		if t.Estimated {
			name += ", as an estimate: weir lacks the model's own"
		}
		all = append(all, name)
	}
	return cmp.Or(strings.Join(all, "; "), "no tokenizer")
}

// sentence writes text that hangs by two columns where it is wrapped.
func sentence(w io.Writer, text string, style report.Style) {
	report.Paragraph(w, "", text, 2, style)
}

// outlookChart draws the plan's course: the starts, and where a latency was
// stated the calls in flight.
func outlookChart(w io.Writer, o *generator.Outlook, style report.Style) {
	if len(o.Moments) < 2 {
		return
	}
	columns := chartColumns
	if style.Width > 0 {
		columns = max(min(columns, style.Width-chartWords), 10)
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
	draw := func(name string, values []float64, words string) {
		line, most := report.Sparkline(values)
		line, words = fmt.Sprintf("%-9s %s", name, line), fmt.Sprintf(words, most)
		if all := line + "  " + words; style.Width <= 0 || screenWidth.StringWidth(all) <= style.Width {
			fmt.Fprintln(w, all)
			return
		}
		fmt.Fprintln(w, line)
		report.Paragraph(w, "  ", words, 2, style)
	}
	draw("starts", starts, fmt.Sprintf("a column is %s, at most %%.1f/s", time.Duration(each)*o.Every))
	if o.Latency.Known {
		words, after := "a column's mean is at most %.0f", o.MostAt.Round(time.Second)
		said := fmt.Sprintf("at ttft %s, tpot %s: ", o.Latency.TTFT, o.Latency.TPOT)
		if o.MostAtLeast {
			words = "the highest column's mean is at least %.0f"
			said += fmt.Sprintf("at least %s in flight at once, after %s; how many more, and on average, is unknown, as %s no limit to the answer",
				counted(o.Most, "call"), after, partly(o.Unlimited, o.Requests, "request", "sets", "set"))
		} else {
			said += fmt.Sprintf("%.1f calls in flight on average, at most %d at once, after %s", o.InFlight, o.Most, after)
		}
		draw("in flight", flying, words)
		sentence(w, said, style)
	}
	fmt.Fprintln(w)
}

// The ranks of the columns of an outlook's table: what a narrow screen shows
// first.
const (
	rankRequests = 1 + iota
	rankPrompt
	rankAnswer
	rankReuse
	rankCost
	rankTurns
	rankSessions
	rankTail
	rankAPI
	rankModel
)

// outlookColumn is a column of it.
type outlookColumn struct {
	report.Column
	cell func(*generator.ScenarioOutlook) string
}

// outlookTable has a row for each scenario. API and model stand above it where
// they are the same for all.
func outlookTable(w io.Writer, o *generator.Outlook, style report.Style) {
	type scenario = generator.ScenarioOutlook
	apart := slices.ContainsFunc(o.Scenarios, func(s scenario) bool { return s.API != o.Scenarios[0].API || s.Model != o.Scenarios[0].Model })
	if !apart && len(o.Scenarios) > 0 {
		sentence(w, fmt.Sprintf("api %s, model %s", cmp.Or(o.Scenarios[0].API, "–"), cmp.Or(o.Scenarios[0].Model, "–")), style)
	}
	columns := []outlookColumn{{report.Column{Head: "scenario", Left: true}, func(s *scenario) string { return s.Scenario }}}
	if apart {
		columns = append(columns,
			outlookColumn{report.Column{Head: "api", Left: true, Rank: rankAPI}, func(s *scenario) string { return cmp.Or(s.API, "–") }},
			outlookColumn{report.Column{Head: "model", Left: true, Rank: rankModel}, func(s *scenario) string { return cmp.Or(s.Model, "–") }})
	}
	figures := func(over, head string, rank int, of func(*scenario) *generator.Spread, v func(*generator.Spread) int) {
		columns = append(columns, outlookColumn{report.Column{Over: over, Head: head, Rank: rank}, func(s *scenario) string { return figure(*of(s), v(of(s))) }})
	}
	p50 := func(s *generator.Spread) int { return s.P50 }
	p95 := func(s *generator.Spread) int { return s.P95 }
	p99 := func(s *generator.Spread) int { return s.P99 }
	most := func(s *generator.Spread) int { return s.Max }
	columns = append(columns,
		outlookColumn{report.Column{Head: "requests", Rank: rankRequests}, func(s *scenario) string { return strconv.Itoa(s.Requests) }},
		outlookColumn{report.Column{Head: "share", Rank: rankRequests}, func(s *scenario) string { return portion(int64(math.Round(s.Share*1e6)), 1e6) }},
		outlookColumn{report.Column{Head: "sessions", Rank: rankSessions}, func(s *scenario) string { return bound("≤", o.SessionsAtMost) + strconv.Itoa(s.Sessions) }})
	turns := func(s *scenario) *generator.Spread { return &s.Turns }
	figures("turns", "p50", rankTurns, turns, p50)
	figures("turns", "max", rankTurns, turns, most)
	for _, sizes := range []struct {
		over string
		rank int
		of   func(*scenario) *generator.Spread
	}{
		{"prompt tokens", rankPrompt, func(s *scenario) *generator.Spread { return &s.Input }},
		{"answer tokens", rankAnswer, func(s *scenario) *generator.Spread { return &s.Output }},
	} {
		figures(sizes.over, "p50", sizes.rank, sizes.of, p50)
		figures(sizes.over, "p95", rankTail, sizes.of, p95)
		figures(sizes.over, "p99", sizes.rank, sizes.of, p99)
		figures(sizes.over, "max", rankTail, sizes.of, most)
	}
	columns = append(columns, outlookColumn{report.Column{Over: "prefix", Head: "reuse", Rank: rankReuse}, func(s *scenario) string {
		if o.Unrecorded {
			return "–"
		}
		return bound("≥", o.HeldAtLeast) + portion(s.HeldTokens, s.InputTokens)
	}})
	if o.Cost.Priced > 0 {
		columns = append(columns, outlookColumn{report.Column{Head: "cost", Rank: rankCost}, func(s *scenario) string {
			if s.Cost.Priced == 0 {
				return "–"
			}
			if s.Cost.Priced < s.Requests {
				return dollars(s.Cost.Uncached) + " of " + thousands(int64(s.Cost.Priced)) // the others have no price
			}
			return dollars(s.Cost.Uncached)
		}})
	}
	var heads []report.Column
	for _, c := range columns {
		heads = append(heads, c.Column)
	}
	var rows [][]string
	for i := range o.Scenarios {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(&o.Scenarios[i]))
		}
		rows = append(rows, row)
	}
	report.FoldedTable(w, heads, rows, style)
}

// figure writes one figure of a spread, which is absent where nothing was counted.
func figure(of generator.Spread, v int) string {
	if of.Max == 0 {
		return "–"
	}
	return bound("~", of.About && v != of.Min && v != of.Max) + strconv.Itoa(v)
}

// bound is what stands before a figure that is not exact; nothing before one
// that is.
func bound(word string, inexact bool) string {
	if inexact {
		return word
	}
	return ""
}

// portion writes a share; absent when the whole is 0.
func portion(of, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(of)/float64(whole))
}

// dollars writes a cost, rounded up: most are told as bounds.
func dollars(v float64) string {
	cents := func(v, unit float64) float64 { return math.Ceil(v*unit-1e-6) / unit }
	switch {
	case v > 0 && v < 0.0001:
		return "<$0.0001"
	case v > 0 && v < 0.01:
		return fmt.Sprintf("$%.4f", cents(v, 10_000))
	}
	return fmt.Sprintf("$%.2f", cents(v, 100))
}

// counted writes a number of things: "1 call", "2 calls", "3 addresses".
func counted[N int | int64 | uint64](n N, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		thing += "e"
	}
	return thousands(int64(n)) + " " + thing + "s"
}

// verb is the one that so many things want: "1 span waits", "2 spans wait".
func verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// partly writes a part of so many things, with its verb: "1 of 3 calls has".
func partly(n, all int, thing, one, many string) string {
	return fmt.Sprintf("%d of %s %s", n, counted(all, thing), verb(int64(n), one, many))
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
