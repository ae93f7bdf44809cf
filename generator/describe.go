package generator

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/generator/corpus"
)

// Description is what a plan would do, found by playing it without sending.
type Description struct {
	Seed      uint64
	Length    time.Duration
	Sessions  int
	Requests  int
	WarmUp    int     // of Requests
	PeakRate  float64 // session starts in the busiest second; later turns come on top
	Input     int64   // tokens of all prompts
	Output    int64   // tokens of all answers, at most
	Tokenizer string
	Estimated bool // the model's own tokenizer is not public

	Scenarios []ScenarioDescription // in the model's order

	Problem error // why the plan ends early, which only a trace's can; nil else
}

// ScenarioDescription is one scenario's part. Share is of requests, 0 to 1.
type ScenarioDescription struct {
	Scenario      string
	API           string
	Model         string // several: joined by ", "
	Sessions      int
	Requests      int
	Share         float64
	Input, Output Spread // tokens a request
	Turns         Spread // requests a session
}

// Spread is how values are spread, by nearest rank.
type Spread struct{ Min, P50, P95, Max int }

// gathered is what is kept of a scenario while its plan is played: how often
// each value came, which stays small where the values themselves do not.
type gathered struct {
	ScenarioDescription
	models               []string
	input, output, turns map[int]int
}

// Describe plays the plan without sending, to its end or until ctx ends.
func Describe(ctx context.Context, p *Plan) *Description {
	d := &Description{Seed: p.Seed, Length: p.Length()}
	all := map[string]*gathered{}
	names := p.scenarios()
	for _, name := range names {
		all[name] = &gathered{input: map[int]int{}, output: map[int]int{}, turns: map[int]int{}}
		all[name].Scenario = name
	}
	var second time.Duration
	inSecond := 0
	for s, err := range p.Sessions() {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			d.Problem = err
			break
		}
		if now := s.Due.Truncate(time.Second); now != second {
			second, inSecond = now, 0
		}
		inSecond++
		d.PeakRate = max(d.PeakRate, float64(inSecond))
		d.Sessions++
		d.Requests += len(s.Turns)
		if d.Tokenizer == "" {
			tok, known := corpus.ForModel(s.Model)
			d.Tokenizer, d.Estimated = tok.Name(), !known
		}
		for _, t := range s.Turns {
			d.Input += int64(t.Input)
			d.Output += int64(t.Output)
		}
		if s.WarmUp {
			d.WarmUp += len(s.Turns)
			continue
		}
		all[s.Scenario].add(&s)
	}
	for _, name := range names {
		g := all[name]
		if n := d.Requests - d.WarmUp; n > 0 {
			g.Share = float64(g.Requests) / float64(n)
		}
		g.Model = strings.Join(g.models, ", ")
		g.Input, g.Output, g.Turns = spread(g.input), spread(g.output), spread(g.turns)
		d.Scenarios = append(d.Scenarios, g.ScenarioDescription)
	}
	return d
}

func (g *gathered) add(s *Session) {
	g.API = string(s.API)
	if s.Model != "" && !slices.Contains(g.models, s.Model) {
		g.models = append(g.models, s.Model)
	}
	g.Sessions++
	g.Requests += len(s.Turns)
	g.turns[len(s.Turns)]++
	for _, t := range s.Turns {
		g.input[t.Input]++
		g.output[t.Output]++
	}
}

// spread reads the ranks off counts of values.
func spread(counts map[int]int) Spread {
	var values []int
	n := 0
	for v, c := range counts {
		values = append(values, v)
		n += c
	}
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	at := func(p float64) int {
		rank := int(p*float64(n) + 0.999999)
		for _, v := range values {
			if rank -= counts[v]; rank <= 0 {
				return v
			}
		}
		return values[len(values)-1]
	}
	return Spread{values[0], at(0.5), at(0.95), values[len(values)-1]}
}
