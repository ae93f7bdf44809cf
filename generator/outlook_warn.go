package generator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Warning is what to know before a plan is sent. Value and Limit are the figure
// that was measured and the one that it was held against.
type Warning struct {
	Kind     string // "short_prompts", "few_for_p99", …, as store/report/PLAN.md lists them
	Scenario string // empty: of the whole plan
	Value    float64
	Limit    float64
	Text     string
}

// What the two recorded traces of chat traffic show that PLAN.md names: Azure's
// conversations of 2023 (19,366 requests) and Mooncake's (12,031). A limit lies
// beyond what either shows.
const (
	shortPrompt   = 512  // tokens: 39 % of Azure's prompts are shorter, none of Mooncake's
	shortLimit    = 0.5  // of requests
	historyLimit  = 0.1  // 39 % of Mooncake's requests go on with what was said before
	simplePrompt  = 1000 // tokens: with simpleAnswer, 42 % of Azure's requests and 5 % of Mooncake's
	simpleAnswer  = 256  // tokens
	simpleLimit   = 0.6  // of requests
	flatLimit     = 2    // p99 by p50: Azure's 4.1 and 4.7, Mooncake's 12.4 and 3.2, and less than 2 in any uniform
	steadyLimit   = 2    // dispersion by the minute: 20.6 and 2.9; by ten seconds: 4.0 and 2.1
	keptLimit     = 0.9  // of a distribution between its ends
	noRoomLimit   = 0.05 // of later turns: what a run calls overfull
	noThinkLimit  = 0.9  // of later turns
	enoughForBias = 20   // requests, for a share to mean anything
)

// How many requests a percentile needs to be held for reliable.
const (
	enoughForP95 = 130
	enoughForP99 = 662
)

// biases are counts of a scenario's requests.
type biases struct {
	short, history, simple int
	later                  int // turns after a session's first
	noThink, noRoom        int // of later
	before, after          int // tokens of later turns as drawn, and as they will be
}

// add counts a turn. Its Input is as it will be; drawn is as it was drawn.
func (b *biases) add(s *Session, turn, held, drawn int) {
	t := s.Turns[turn]
	history := turn > 0 || s.Before > 0 || s.Flattened > 1 || 2*held >= t.Input
	tasked := s.Tools > 0 || s.Corpus != "" && s.Corpus != "prose"
	b.short += b2i(t.Input < shortPrompt)
	b.history += b2i(history)
	b.simple += b2i(t.Input < simplePrompt && t.Output <= simpleAnswer && !history && !tasked)
	if turn == 0 {
		return
	}
	b.later++
	b.noThink += b2i(t.Think <= leastThink)
	b.noRoom += b2i(t.Input > drawn+max(drawn/50, leastNewText))
	b.before += drawn
	b.after += t.Input
}

func (b *biases) plus(c biases) {
	b.short += c.short
	b.history += c.history
	b.simple += c.simple
}

// samples are a few of a scenario's smaller prompts, written to see whether they
// come out as they were drawn.
type samples struct {
	written, larger int
	drawn, became   int // tokens of the one that grew most
}

const mostSamples = 8

func (s *samples) add(p *Plan, of *Session) {
	drawn := of.Turns[0].Input
	if s.written >= mostSamples || of.Messages != nil || drawn > 4000 {
		return
	}
	c, err := p.compose(*of)
	if err != nil {
		return // the run will say so
	}
	s.written++
	if c.counted > drawn+max(drawn/50, 4) {
		s.larger++
		if c.counted-drawn > s.became-s.drawn {
			s.drawn, s.became = drawn, c.counted
		}
	}
}

// warn holds the outlook against what it should be.
func (f *foresight) warn() {
	f.warnBiases()
	for _, name := range f.order {
		f.warnScenario(f.scenarios[name])
	}
	for _, name := range slices.SortedFunc(maps.Keys(f.unpriced), cmp.Compare[string]) {
		if len(f.prices) > 0 {
			asked := fmt.Sprintf("for model %q", name)
			if name == "" {
				asked = "where no model is named (* is any)"
			}
			f.note("no_price", "", float64(f.unpriced[name]), 0, "no price %s: %s not in the cost; give it with --price", asked, count(f.unpriced[name], "request is", "requests are"))
		}
	}
	f.warnUnusedPrices()
	for _, p := range f.prices {
		if p.dearCache() {
			f.note("dear_cache", "", p.Cached, p.Input, "the price of %q has $%g a million cached tokens, more than $%g for others: want MODEL=INPUT,OUTPUT,CACHED", p.Model, p.Cached, p.Input)
		}
	}
	if f.Unlimited > 0 {
		f.note("no_output_limit", "", float64(f.Unlimited), 0, "%s no max_tokens: what may be generated is in no sum", count(f.Unlimited, "request sets", "requests set"))
	}
}

// warnUnusedPrices is of prices whose name no model has.
func (f *foresight) warnUnusedPrices() {
	var models []string
	for _, name := range slices.Sorted(maps.Keys(f.models)) {
		if name != "" {
			models = append(models, name)
		}
	}
	for _, p := range f.prices {
		if f.models[p.Model] || p.Model == "*" || f.Requests == 0 {
			continue
		}
		there := "no model is named in it (* is any)"
		if len(models) > 0 {
			const most = 10
			there = "it asks for " + strings.Join(models[:min(len(models), most)], ", ")
			if more := len(models) - most; more > 0 {
				there += fmt.Sprintf(" and %d more", more)
			}
		}
		f.note("unused_price", "", 0, 1, "the price of %q is of no model of this plan: %s; names are compared as they stand", p.Model, there)
	}
}

// warnBiases is of the plan as a whole: what test plans are too often made of.
func (f *foresight) warnBiases() {
	var all biases
	n := f.Requests - f.WarmUp
	for _, name := range f.order {
		all.plus(f.scenarios[name].biases)
	}
	if n < enoughForBias {
		return
	}
	share := func(of int) float64 { return float64(of) / float64(n) }
	if v := share(all.short); v > shortLimit {
		f.note("short_prompts", "", v, shortLimit, "short prompts: %.0f%% are under %d tokens; of recorded chat traffic at most 39%% are", 100*v, shortPrompt)
	}
	if v := share(all.history); v < historyLimit {
		carry := "no request carries history"
		switch {
		case f.HeldAtLeast:
			carry = fmt.Sprintf("at least %.0f%% of requests carry history", 100*v)
		case v == 0 && f.Unrecorded:
			carry = "the trace does not record which requests carry history, and as they are sent none does"
		case v > 0:
			carry = wholePercent(v) + " of requests carry history"
		}
		f.note("single_turns", "", v, historyLimit, "single turns: %s; of a recorded hour of conversations 39%% did", carry)
	}
	if v := share(all.simple); v > simpleLimit {
		f.note("simple_tasks", "", v, simpleLimit, "simple tasks: %.0f%% are plain questions under %d tokens with answers up to %d, without tools, documents, code or history; of recorded chat traffic at most 42%%",
			100*v, simplePrompt, simpleAnswer)
	}
	if !f.plan.closed() {
		f.warnSteady()
	}
}

// warnSteady is of a rate that is too even to be real.
func (f *foresight) warnSteady() {
	for i, least := range []int{10, 20} { // windows: fewer could show 2 by chance
		d, known := f.flight.steady.windows[i].dispersion(least)
		if !known {
			continue
		}
		if d < steadyLimit {
			f.note("constant_rate", "", d, steadyLimit, "constant rate: session starts by %s vary as chance does (variance/mean %.1f); recorded traffic drifts (%s)",
				windowLengths[i].Round(time.Second), d, [...]string{"2.9 to 20.6", "2.1 to 4.0"}[i])
		}
		return
	}
}

func (f *foresight) warnScenario(g *gathered) {
	note := func(kind string, value, limit float64, format string, a ...any) {
		f.note(kind, g.Scenario, value, limit, format, a...)
	}
	if g.Requests >= enoughForBias {
		in, out := tail(g.Input), tail(g.Output)
		switch flatIn, flatOut := in < flatLimit, out < flatLimit; {
		case flatIn && flatOut:
			note("flat_lengths", min(in, out), flatLimit, "flat distributions: p99 by median is %.1f of its prompts, %.1f of its answers; of recorded traffic 3.2 to 12.4", in, out)
		case flatIn:
			note("flat_lengths", in, flatLimit, "flat distribution: p99 by median is %.1f of its prompts; of recorded traffic 4.1 to 12.4", in)
		case flatOut:
			note("flat_lengths", out, flatLimit, "flat distribution: p99 by median is %.1f of its answers; of recorded traffic 3.2 to 4.7", out)
		}
	}
	// What was recorded is as it is: it has no field to turn.
	made, more := "drawn", "let it run %.3g times longer"
	advise := func(next string) string { return "; " + next }
	if f.plan.recorded() {
		made, more = "recorded", "take %.3g times as many"
		advise = func(string) string { return "" }
	}
	switch n := g.Requests; {
	case n == 0:
		note("no_requests", 0, 1, "no request of it is in this plan%s", advise("let it run longer, or raise its weight"))
	case n < enoughForP95:
		note("few_for_p95", float64(n), enoughForP95, "%s too few for its p95, which wants %d, and its p99 (%d); "+more+" for the p95", count(n, "request is", "requests are"), enoughForP95, enoughForP99, enoughForP95/float64(n))
	case n < enoughForP99:
		note("few_for_p99", float64(n), enoughForP99, "%d requests are too few for its p99, which wants %d; "+more, n, enoughForP99, enoughForP99/float64(n))
	}
	if later := float64(g.later); later > 0 {
		if v := float64(g.noThink) / later; v > noThinkLimit {
			note("no_think_time", v, noThinkLimit, "no think time: %.0f%% of its later turns follow the answer at once; people and tools take time%s", 100*v, advise("give it think_seconds"))
		}
		if v := float64(g.noRoom) / later; v > noRoomLimit {
			note("no_room", v, noRoomLimit, "%.0f%% of its later turns have no room for what was said and answered before: the prompts of later turns become %s larger than %s%s", 100*v, wholePercent(float64(g.after)/float64(g.before)-1), made, advise("widen input_tokens or shorten output_tokens"))
		}
	}
	if g.larger > 0 {
		note("too_small", float64(g.became), float64(g.drawn), "of %s written to try, %s out larger than %s (%d tokens where %d were): what prompts must hold takes more%s",
			count(g.written, "prompt", "prompts"), count(g.larger, "comes", "come"), made, g.became, g.drawn, advise("raise the min of input_tokens or ask for fewer tools"))
	}
	f.warnCut(g.Scenario)
}

// recorded says whether the plan's sizes and times are those of a recording,
// and not drawn.
func (p *Plan) recorded() bool { return p.Trace != nil || p.Dataset != nil }

// warnCut is of distributions of which min and max leave too little.
func (f *foresight) warnCut(scenario string) {
	if f.plan.Model == nil || f.plan.recorded() {
		return
	}
	for i := range f.plan.Model.Scenarios {
		sc := &f.plan.Model.Scenarios[i]
		if sc.ID != scenario {
			continue
		}
		for _, d := range []struct {
			name string
			kind string
			kept float64
		}{
			{"input_tokens", sc.InputTokens.Kind, sc.InputTokens.KeptInt()}, {"output_tokens", sc.OutputTokens.Kind, sc.OutputTokens.KeptInt()},
			{"turns", sc.Turns.Kind, sc.Turns.KeptInt()}, {"think_seconds", sc.ThinkSeconds.Kind, sc.ThinkSeconds.Kept()},
		} {
			if d.kept < keptLimit {
				f.note("cut_distribution", scenario, d.kept, keptLimit, "%s: only %s of its %s distribution lies between min and max; what is drawn is not what its figures say", d.name, wholePercent(d.kept), d.kind)
			}
		}
	}
}

// tail is how far a distribution reaches: its p99 by its median; infinite where
// there is none.
func tail(s Spread) float64 {
	if s.P50 == 0 {
		return math.Inf(1)
	}
	return float64(s.P99) / float64(s.P50)
}

func (f *foresight) note(kind, scenario string, value, limit float64, format string, a ...any) {
	f.Warnings = append(f.Warnings, Warning{kind, scenario, value, limit, fmt.Sprintf(format, a...)})
}

// wholePercent writes a share that is not nothing, however little it is.
func wholePercent(v float64) string {
	if v < 0.01 {
		return "under 1%"
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

// count writes a number with what it counts, which decides the verb too.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
