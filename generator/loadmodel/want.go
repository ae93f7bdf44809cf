package loadmodel

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Want is what is good enough of a scenario, as "ttft p95 < 2s": it holds where
// the figure is below the limit.
type Want struct {
	Figure  string  // one of WantFigures
	Rank    string  // one of WantRanks; empty of ErrorRate
	OrEqual bool    // the limit itself is good enough too: <=
	Limit   float64 // milliseconds; of ErrorRate a share, 0 to 1
}

// ErrorRate is the share of calls that were not ok.
const ErrorRate = "error rate"

// WantFigures are the figures of which something can be wanted. The ttft without
// a further word is what the caller felt of it.
var WantFigures = []string{"ttft", "ttft felt", "ttft upstream", "ttft response", "ttft service", "tpot", "queued", "e2e", "e2e done", ErrorRate}

// WantRanks are what can be wanted of a time: a percentile, the mean or the
// longest.
var WantRanks = []string{"p50", "p90", "p95", "p99", "mean", "max"}

var plainPercent = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// ParseWant reads a want. Its error is one line that says what would be right.
func ParseWant(text string) (Want, error) {
	var w Want
	wrong := func(format string, a ...any) (Want, error) {
		return Want{}, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, a...))
	}
	left, right, ok := strings.Cut(text, "<")
	switch {
	case !ok && strings.Contains(text, ">"):
		return wrong("a want is an upper limit; use < or <=")
	case !ok:
		return wrong("want a figure, < and a limit, as ttft p95 < 2s or error rate < 1%%")
	}
	if rest, equal := strings.CutPrefix(right, "="); equal {
		w.OrEqual, right = true, rest
	}
	right = strings.TrimSpace(right)
	words := strings.Fields(left)
	if n := len(words); n > 1 && (slices.Contains(WantRanks, words[n-1]) || isRank(words[n-1])) {
		w.Rank, words = words[n-1], words[:n-1]
	}
	if w.Figure = strings.Join(words, " "); !slices.Contains(WantFigures, w.Figure) {
		if near := Nearest(w.Figure, WantFigures); near != "" {
			return wrong("there is no figure %q: did you mean %q?", w.Figure, near)
		}
		return wrong("there is no figure %q; want one of %s", w.Figure, strings.Join(WantFigures, ", "))
	}
	if w.Figure == ErrorRate {
		if w.Rank != "" {
			return wrong("the error rate is one number; take out %s", w.Rank)
		}
		number, percent := strings.CutSuffix(right, "%")
		number = strings.TrimSpace(number)
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || !percent || !plainPercent.MatchString(number) || f > 100 {
			return wrong("the limit of an error rate is 0%% to 100%%, as < 1%%")
		}
		w.Limit = f / 100
		return w, nil
	}
	if !slices.Contains(WantRanks, w.Rank) {
		return wrong("want one of %s behind %s, as %s p95 < 2s", strings.Join(WantRanks, ", "), w.Figure, w.Figure)
	}
	d, err := time.ParseDuration(strings.ReplaceAll(right, " ", ""))
	if err != nil || d <= 0 {
		return wrong("the limit of %s is a time above 0 with its unit, as 2s or 50ms", w.Figure)
	}
	w.Limit = float64(d) / float64(time.Millisecond)
	return w, nil
}

// isRank says whether a word is meant as a rank: p and digits.
func isRank(word string) bool {
	_, err := strconv.ParseFloat(strings.TrimPrefix(word, "p"), 64)
	return err == nil && word[0] == 'p'
}

// Holds says whether a value, in the limit's unit, is good enough.
func (w Want) Holds(value float64) bool { return value < w.Limit || w.OrEqual && value == w.Limit }

// String writes the want as ParseWant reads it.
func (w Want) String() string {
	var b strings.Builder
	b.WriteString(w.Figure)
	if w.Rank != "" {
		b.WriteString(" " + w.Rank)
	}
	b.WriteString(" <")
	if w.OrEqual {
		b.WriteString("=")
	}
	if w.Figure == ErrorRate {
		return b.String() + " " + number(w.Limit*100) + "%"
	}
	return b.String() + " " + time.Duration(w.Limit*float64(time.Millisecond)).String()
}

// wants reads ["ttft p95 < 2s", "error rate < 1%"].
func (r *reader) wants(n node, what string) []Want {
	if n.kind != "array" || len(n.items) == 0 {
		r.fail(n.at, `%s is %s; want a list, as ["ttft p95 < 2s", "error rate < 1%%"]`, what, describe(n))
		return nil
	}
	var wants []Want
	for _, item := range n.items {
		text := r.string(item, what)
		if r.err != nil {
			return nil
		}
		w, err := ParseWant(text)
		if err != nil {
			r.fail(item.at, "%s: %v", what, err)
			return nil
		}
		if slices.Contains(wants, w) {
			r.fail(item.at, "%s: %q stands twice; keep one", what, w)
		}
		wants = append(wants, w)
	}
	return wants
}
