package shaper

import "math"

// estimate is what a scenario's calls to a model have used so far, by which
// the next one's use is guessed before it is known.
type estimate struct {
	input  average // tokens reported for one that was guessed
	cached average // share of the input that came from a cache
	output average // tokens
}

// reservation is what a call is guessed to use.
type reservation struct{ input, cachedShare, output float64 }

// firstOutput is guessed where nothing is known of how long answers are.
const firstOutput = 1000

func (e *estimate) reserve(a *Ask) reservation {
	r := reservation{input: float64(a.InputTokens), cachedShare: e.cached.mean, output: firstOutput}
	if e.input.n > 0 {
		r.input *= e.input.mean
	}
	if e.output.n > 0 {
		r.output = e.output.mean
	}
	if a.OutputTokens > 0 {
		r.output = math.Min(r.output, float64(a.OutputTokens))
	}
	return r
}

// inputCost is what the input counts when a cached token counts so much.
func (r reservation) inputCost(weight float64) float64 {
	return r.input * (1 - r.cachedShare*(1-weight))
}

// Expects is the tokens that the call was guessed to use when it was admitted,
// as its provider counts them.
func (p *Permit) Expects() (input, output float64) {
	return p.reserved.inputCost(p.ask.CachedWeight), p.reserved.output
}

func (e *estimate) learn(a *Ask, s *Settlement) {
	if s.InputTokens.Known && a.InputTokens > 0 {
		e.input.add(float64(s.InputTokens.N) / float64(a.InputTokens))
	}
	if s.InputTokens.Known && s.CachedTokens.Known && s.InputTokens.N > 0 {
		e.cached.add(math.Min(float64(s.CachedTokens.N)/float64(s.InputTokens.N), 1))
	}
	if s.OutputTokens.Known {
		e.output.add(float64(s.OutputTokens.N))
	}
}

// used is what a call cost, by what is known of it; what is not known is taken
// as it was reserved.
func (s *Settlement) used(t *taken, weight float64) (input, output float64) {
	if !s.Used {
		return 0, 0
	}
	input, output = t.input, t.output
	if s.InputTokens.Known {
		cached := float64(0)
		if s.CachedTokens.Known {
			cached = math.Min(float64(s.CachedTokens.N), float64(s.InputTokens.N))
		}
		input = float64(s.InputTokens.N) - cached*(1-weight)
	}
	if s.OutputTokens.Known {
		output = float64(s.OutputTokens.N)
	}
	return input, output
}
