package generator

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Outlook is what a plan would send, found by playing it without sending.
// store/report/PLAN.md defines its figures.
type Outlook struct {
	Seed     uint64
	Length   time.Duration // over which sessions start
	Sessions int           // by their IDs: turns of a trace at times of their own are one
	// SessionsAtMost says that there were more sessions than are remembered, so
	// that one that goes on may have counted as another.
	SessionsAtMost bool
	Requests       int
	WarmUp         int // of Requests; they are in all sums here, and in no scenario

	Input, Output int64 // tokens of all prompts, and of all answers at most
	Held          int64 // of Input: what a perfect prefix cache would hold
	HeldAtLeast   bool  // there was more to be held than is remembered
	Unlimited     int   // requests that set no limit to their answers, which Output leaves out

	Unrecorded bool // the trace does not say what its prompts share, so that Held is unknown, not 0

	Tokenizers []TokenizerShare // of all models that may be asked for, whichever were drawn; in the order of their names

	PeakRate float64 // request starts in the busiest second
	Every    time.Duration
	Moments  []Moment // one after the other, each Every long

	Latency     Latency       // as stated; the next four are absent without one
	InFlight    float64       // calls at once, on average until the last answer; 0, unknown, with MostAtLeast
	MostAt      time.Duration // when the most calls are in flight
	Most        int
	MostAtLeast bool // how long some answers take is not known, as they have no limit: they count to their first token

	Cost Cost

	Scenarios []ScenarioOutlook // in the model's order
	Warnings  []Warning

	Problem error // why the plan ends early, which only a file's can; nil else
}

// TokenizerShare is the part of a plan that one tokenizer counted.
type TokenizerShare struct {
	Name      string // an encoding, or characters and what they were learned from
	Estimated bool   // it counts for a model whose own weir lacks
	Input     int64  // tokens of prompts; 0 where no request was drawn for it
}

// Estimated says whether any part of the plan was counted by another tokenizer
// than its model's own.
func (o *Outlook) Estimated() bool {
	return slices.ContainsFunc(o.Tokenizers, func(t TokenizerShare) bool { return t.Estimated })
}

// Moment is what happens in a stretch of the plan's time.
type Moment struct {
	Starts int     // of requests
	Busy   float64 // seconds that calls are in flight in it; by Every, calls at once
}

// ScenarioOutlook is one scenario's part. Share is of requests, 0 to 1.
type ScenarioOutlook struct {
	Scenario string
	API      string
	Model    string // several: joined by ", "
	Sessions int
	Requests int
	Share    float64

	InputTokens, OutputTokens, HeldTokens int64
	Input, Output                         Spread // tokens a request
	Turns                                 Spread // requests a session
	Cost                                  Cost
}

// OutlookOptions are what is stated beside the plan. The zero value leaves out
// what needs it.
type OutlookOptions struct {
	Latency Latency
	Prices  []Price
	// OnProgress is told about once a second how far the plan was played.
	OnProgress func(Foreseen)
}

// Foreseen is how far a plan was played.
type Foreseen struct {
	At       time.Duration // the start of the last session
	Length   time.Duration // over which sessions start; 0 where it is not known
	Requests int
}

// Foresee plays the plan without sending, to its end or until ctx ends.
func Foresee(ctx context.Context, p *Plan, options OutlookOptions) *Outlook {
	f := &foresight{
		Outlook: &Outlook{Seed: p.Seed, Length: p.Length(), Latency: options.Latency}, plan: p, prices: options.Prices,
		scenarios: map[string]*gathered{}, flight: flight{latency: options.Latency}, unpriced: map[string]int{}, counters: map[string]int{}, models: map[string]bool{},
	}
	for _, d := range p.dialects() {
		f.tokenizer(d.model)
	}
	f.flight.steady.from, f.flight.steady.to = p.rampEnd(), f.Length
	for _, name := range p.scenarios() {
		f.scenario(name)
	}
	told := time.Now()
	for s, err := range p.foreseen(options.Latency) {
		if err == nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			f.Problem = err
			break
		}
		f.add(&s)
		if now := time.Now(); options.OnProgress != nil && now.Sub(told) >= time.Second {
			told = now
			options.OnProgress(Foreseen{s.Due, f.Length, f.Requests})
		}
	}
	f.close()
	return f.Outlook
}

// rampEnd is when a model's rate has reached what it is meant to be.
func (p *Plan) rampEnd() time.Duration {
	if p.recorded() || p.Model == nil || len(p.Model.Phases) > 0 {
		return 0
	}
	return p.Model.WarmUp + p.Model.RampUp
}

// foresight is an outlook as it is gathered.
type foresight struct {
	*Outlook
	plan      *Plan
	prices    []Price
	scenarios map[string]*gathered
	order     []string
	models    map[string]bool // that are asked
	counters  map[string]int  // by model: which of Tokenizers
	cache     prefixes
	flight    flight
	begun     beginnings
	unpriced  map[string]int // requests by model
}

// gathered is what is kept of a scenario while its plan is played.
type gathered struct {
	ScenarioOutlook
	apis, models         []string
	input, output, turns values
	biases
	samples
}

func (f *foresight) scenario(name string) *gathered {
	g := f.scenarios[name]
	if g == nil {
		g = &gathered{}
		g.Scenario = name
		f.scenarios[name] = g
		f.order = append(f.order, name)
	}
	return g
}

// tokenizer is the share of the one that counts for a model.
func (f *foresight) tokenizer(model string) *TokenizerShare {
	i, known := f.counters[model]
	if !known {
		tok, public := f.plan.counter(model)
		t := TokenizerShare{Name: tok.Name(), Estimated: !public}
		i = slices.IndexFunc(f.Tokenizers, func(have TokenizerShare) bool { return have.Name == t.Name && have.Estimated == t.Estimated })
		if i < 0 {
			i, f.Tokenizers = len(f.Tokenizers), append(f.Tokenizers, t)
		}
		f.counters[model] = i
	}
	return &f.Tokenizers[i]
}

// goesOn says whether a session is one that has begun, in a scenario or (with
// "") anywhere, and how many of its requests came before; from now on it has
// begun. A trace plays the turns of a session each at its own time, as sessions
// of one ID; those of a model never go on.
func (f *foresight) goesOn(scenario string, s *Session) (before int, goesOn bool) {
	if s.ID == "" || !f.plan.recorded() {
		return 0, false
	}
	return f.begun.goesOn(strconv.FormatBool(s.WarmUp)+"\x00"+scenario+"\x00"+s.ID, s.Before, len(s.Turns))
}

// beginnings are how many turns of each session came so far, of the last
// sessions at least: one that goes on after half a million others may count as
// another.
type beginnings struct{ recent[int] }

// goesOn is told of so many turns of a session, and that it had some before. It
// says how many of those came, and whether any did.
func (b *beginnings) goesOn(id string, had, turns int) (before int, goesOn bool) {
	key := xxhash.Sum64String(id)
	if had > 0 {
		before, goesOn = b.get(key)
	}
	b.put(key, before+turns)
	return before, goesOn
}

// add counts a session.
func (f *foresight) add(s *Session) {
	if _, goesOn := f.goesOn("", s); !goesOn {
		f.Sessions++
		f.flight.steady.add(s.Due)
	}
	f.Requests += len(s.Turns)
	f.flight.add(s)
	g := &gathered{}
	if !s.WarmUp {
		g = f.scenario(s.Scenario)
		before, goesOn := f.goesOn(s.Scenario, s)
		g.begin(s, before, goesOn)
	}
	f.models[s.Model] = true
	price := priceOf(f.prices, s.Model)
	drawn := s.Turns
	s.Turns = s.expected()
	for i, t := range s.Turns {
		held := f.cache.held(s, i)
		f.Input += int64(t.Input)
		f.tokenizer(s.Model).Input += int64(t.Input)
		f.Output += int64(t.Output)
		f.Held += int64(held)
		f.Cost.add(price, t, held)
		if t.Output == 0 {
			f.Unlimited++
		}
		if price == nil {
			f.unpriced[s.Model]++
		}
		if s.WarmUp {
			f.WarmUp++
			continue
		}
		g.input.add(t.Input)
		if t.Output > 0 {
			g.output.add(t.Output)
		}
		g.InputTokens += int64(t.Input)
		g.OutputTokens += int64(t.Output)
		g.HeldTokens += int64(held)
		g.Cost.add(price, t, held)
		g.biases.add(s, i, held, drawn[i].Input)
	}
	s.Turns = drawn
	if !s.WarmUp {
		g.samples.add(f.plan, s)
	}
}

// expected are the session's turns with the contexts that they will have if each
// answer is as long as planned: what was said before must find room, whatever
// was drawn.
func (s *Session) expected() []Turn {
	turns := slices.Clone(s.Turns)
	for i := 1; i < len(turns); i++ {
		if s.Messages == nil || s.Messages[i].Live {
			turns[i].Input = max(turns[i].Input, turns[i-1].Input+turns[i-1].Output+leastNewText)
		}
	}
	return turns
}

// begin counts a session, or what it goes on with after so many requests.
func (g *gathered) begin(s *Session, before int, goesOn bool) {
	if api := string(s.API); !slices.Contains(g.apis, api) {
		g.apis = append(g.apis, api)
	}
	if s.Model != "" && !slices.Contains(g.models, s.Model) {
		g.models = append(g.models, s.Model)
	}
	g.Requests += len(s.Turns)
	if goesOn {
		g.turns.takeBack(before)
	} else {
		g.Sessions++
	}
	g.turns.add(before + max(len(s.Turns), s.Flattened))
}

// close works out what needs all sessions.
func (f *foresight) close() {
	f.flight.close(f.Outlook)
	slices.SortFunc(f.Tokenizers, func(a, b TokenizerShare) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b2i(a.Estimated)-b2i(b.Estimated))
	})
	f.HeldAtLeast, f.SessionsAtMost = f.cache.forgot(), f.begun.forgot
	if f.plan.Trace != nil {
		survey, _ := f.plan.Trace.Survey() // an error is the Problem
		f.SessionsAtMost = f.SessionsAtMost || survey.Forgot
		f.Unrecorded = survey.Alone == survey.Sessions && f.Held == 0
		// Of recorded calls not all may have been kept; a short prompt of a trace
		// has no block to share.
		f.HeldAtLeast = f.HeldAtLeast || f.plan.Trace.Format == "weir" && survey.Alone > 0 && !f.Unrecorded
	}
	for _, name := range f.order {
		g := f.scenarios[name]
		if n := f.Requests - f.WarmUp; n > 0 {
			g.Share = float64(g.Requests) / float64(n)
		}
		g.API, g.Model = strings.Join(g.apis, ", "), strings.Join(g.models, ", ")
		g.Input, g.Output, g.Turns = g.input.spread(), g.output.spread(), g.turns.spread()
		f.Outlook.Scenarios = append(f.Outlook.Scenarios, g.ScenarioOutlook)
	}
	f.warn()
}
