package generator

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"weir/generator/corpus"
	"weir/store/call"
)

// counter gives what counts the tokens of a model's prompts. Where it is not
// public, it is an estimate.
func (p *Plan) counter(model string) (c corpus.Counter, public bool) {
	t, public := corpus.ForModel(model)
	if r := p.Rates[model]; r != nil && !public {
		return r, false
	}
	return t, public
}

// Learned is what a run's usage tells of a model's tokens.
type Learned struct {
	Model string
	Rates *corpus.Rates
	Off   float64 // 95th percentile of how far the prompts were from their planned tokens, as a part of what was reported
}

func (l *Learned) note(run string) string {
	note := fmt.Sprintf("weir lacks the tokenizer of %q: 95%% of its prompts came within %.1f%% of their planned tokens, by its own usage of %d",
		l.Model, 100*l.Off, l.Rates.Samples)
	if l.Off > l.Rates.Residual {
		note += fmt.Sprintf("; it would be %.1f%% at %s; --tokens-of run:%s counts so", 100*l.Rates.Residual, l.Rates.PerToken(), run)
	}
	return note
}

// SampleOf gives what a call tells of its model's tokens; false where it does not.
func SampleOf(c *call.Call) (corpus.Sample, bool) {
	usage := trusted(c)
	if c.Text == (call.Text{}) || c.UsageSource != call.UsageReported || !usage.Input.Known {
		return corpus.Sample{}, false
	}
	t := c.Text
	return corpus.Sample{
		Characters: corpus.Characters{Words: t.Words, Letters: t.Letters, Digits: t.Digits, Ideographs: t.Ideographs, Others: t.Others},
		Overhead:   t.Overhead, Tokens: int(usage.Input.N),
	}, true
}

// learner keeps an even choice of a run's samples, by model. It is safe for
// concurrent use, and the zero value is ready.
type learner struct {
	mu     sync.Mutex
	models map[string]*lesson
}

type lesson struct {
	samples []corpus.Sample
	planned []float64 // tokens of the samples' prompts
	seen    int
	rng     *rand.Rand
}

// mostLessons of a model are kept: more make rates no better.
const mostLessons = 1000

func (l *learner) add(c *call.Call) {
	sample, ok := SampleOf(c)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.models[c.Request.Model]
	if m == nil {
		if l.models == nil {
			l.models = map[string]*lesson{}
		}
		m = &lesson{rng: rand.New(rand.NewPCG(1, 1))} //nolint:gosec // an even choice, and the same in each run
		l.models[c.Request.Model] = m
	}
	m.seen++
	at := len(m.samples)
	switch {
	case at < mostLessons:
		m.samples, m.planned = append(m.samples, sample), append(m.planned, 0)
	default:
		if at = m.rng.IntN(m.seen); at >= mostLessons {
			return
		}
	}
	m.samples[at], m.planned[at] = sample, float64(c.ExpectedInput.N)
}

// fit gives what was learned of the models of which there were enough samples.
func (l *learner) fit() []Learned {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Learned
	for _, model := range slices.Sorted(maps.Keys(l.models)) {
		m := l.models[model]
		rates, err := corpus.FitRates(m.samples)
		if err != nil {
			continue
		}
		off := make([]float64, len(m.samples))
		for i, s := range m.samples {
			off[i] = math.Abs(m.planned[i]/float64(s.Tokens) - 1)
		}
		list = append(list, Learned{Model: model, Rates: rates, Off: corpus.Percentile95(off)})
	}
	return list
}
