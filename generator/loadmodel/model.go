// Package loadmodel holds the load model: per scenario what belongs to it, how
// its requests arrive and what they are like. One file says it for the proxy,
// the generator and the report, so that they cannot disagree. The package also
// reads recorded traces, which can stand in for a model.
package loadmodel

import (
	"encoding/json"
	"time"

	"weir/proxy/wire"
	"weir/shaper"
)

// Model is a load model as its file says it.
type Model struct {
	Name        string
	Description string
	Scenarios   []Scenario

	// How much is sent, and when, is said in one of five ways: a target and its
	// time, phases, rates, a closed loop with its time, or a trace. What belongs
	// to another way is zero.
	TargetQPS   float64       // request starts a second
	Duration    time.Duration // over which requests start, at the target or in a closed loop
	RampUp      time.Duration // at its beginning: the rate grows from 0 to the target
	Phases      []Phase
	Rates       []Rate
	Concurrency int // sessions at once, each followed by the next: a closed loop
	Trace       *TraceSpec
	Arrivals    Arrivals // of a target, phases or rates

	Seed    uint64
	HasSeed bool // the file gives one

	API    wire.API // empty: chat
	Model  string   // empty with Models, or when it is given elsewhere
	Models []Share

	WarmUp      time.Duration              // before the run: sent, marked, left out of figures
	MaxInFlight int                        // 0: no limit
	Timeout     time.Duration              // of one request; 0: none
	Budget      Budget                     // the run stops where it is used up; zero: none
	ExtraBody   map[string]json.RawMessage // fields for every request's body, as they stand in the file

	Limit  shaper.Limit  // of all calls; zero: none
	Limits []shaper.Rule // of what no scenario's Limit says, as of a model or of each key

	Source []byte // the document as it was read
}

// Scenario is one kind of traffic.
type Scenario struct {
	ID          string
	Description string
	Weight      float64 // share of requests, not of sessions

	InputTokens  Dist // of the whole prompt; zero with Joint, or where a trace says it
	OutputTokens Dist // as InputTokens
	Turns        Dist // of a session; constant 1 when the file does not say; zero where Joint says it
	ThinkSeconds Dist // between a turn's end and the next; constant 0 when not said; zero where Joint says it
	Joint        *Joint
	Prefix       Prefix // that prompts share; zero: none

	API       wire.API // empty: the model's
	Model     string   // empty: the model's
	Flattened bool     // a session is one request with made-up history
	Corpus    string   // "prose", "rag", "agent", "code"; guessed from the id when not said
	Language  string   // "en", "zh", "mixed"; "en" when not said
	Tools     int      // tool definitions
	Stream    bool     // true when not said
	Match     string   // an expression; empty: nothing real belongs here

	Limit  shaper.Limit        // of its calls; zero: none
	Impair []shaper.Impairment // what befalls its calls on purpose
	Want   []Want              // what is good enough; each must hold

	match matcher
}

// Share is a model's name and its share of the requests.
type Share struct {
	Name  string
	Share float64
	API   wire.API // that the model is asked through; empty: the load model's
}

// Prefix is text at the beginning of prompts which is the same for all sessions
// of a group, as a system prompt is. A session belongs to one group by chance.
type Prefix struct {
	Tokens int // of the prompt's own, not on top of them; 0: no prefix
	Pool   int // groups
}

// Budget is what a run may use at most. The zero Budget has no limits.
type Budget struct {
	Tokens int64   // of prompts and answers; 0: no limit
	USD    float64 // by the prices the run is given; 0: no limit
}

// TraceSpec names a recorded trace that gives times and lengths.
type TraceSpec struct {
	File   string  // a relative path has been put behind the load model's folder
	Format string  // as TraceOptions.Format
	Speed  float64 // as TraceOptions.Speed
	Limit  int     // as TraceOptions.Limit
}

// Options are the trace's options, for chance from the seed.
func (t *TraceSpec) Options(seed uint64) TraceOptions {
	return TraceOptions{Format: t.Format, Speed: t.Speed, Limit: t.Limit, Seed: seed}
}

// Length is the time over which requests start; 0 when a trace says it.
func (m *Model) Length() time.Duration {
	sum := m.Duration
	for _, p := range m.Phases {
		sum += p.Length
	}
	for _, w := range m.Rates {
		sum += w.Length
	}
	return sum
}

// Scaled is the model played in another time: duration, ramp, phases and rates'
// windows are shortened or lengthened in proportion. Rates stay what they are, and so does
// the warm-up, which comes before.
func (m *Model) Scaled(to time.Duration) *Model {
	scaled := *m
	factor := float64(to) / float64(m.Length())
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	scaled.Duration, scaled.RampUp = stretch(m.Duration), stretch(m.RampUp)
	scaled.Phases = append([]Phase(nil), m.Phases...)
	for i := range scaled.Phases {
		scaled.Phases[i].Length = stretch(scaled.Phases[i].Length)
	}
	scaled.Rates = append([]Rate(nil), m.Rates...)
	for i := range scaled.Rates {
		scaled.Rates[i].Length = stretch(scaled.Rates[i].Length)
	}
	return &scaled
}

// AtQPS is the model at another rate: the target, or with phases or rates the
// highest of them, becomes qps, and the rest changes in proportion. A closed
// loop becomes an open one at that rate.
func (m *Model) AtQPS(qps float64) *Model {
	scaled := *m
	scaled.Concurrency = 0
	if len(m.Phases) == 0 && len(m.Rates) == 0 {
		scaled.TargetQPS = qps
		return &scaled
	}
	factor := qps / m.PeakQPS()
	scaled.Phases = append([]Phase(nil), m.Phases...)
	for i := range scaled.Phases {
		scaled.Phases[i].FromQPS *= factor
		scaled.Phases[i].ToQPS *= factor
	}
	scaled.Rates = append([]Rate(nil), m.Rates...)
	for i := range scaled.Rates {
		scaled.Rates[i].QPS *= factor
	}
	return &scaled
}

// PeakQPS is the highest rate of request starts; 0 of a closed loop and of a
// trace, whose rate is not known before.
func (m *Model) PeakQPS() float64 {
	peak := m.TargetQPS
	for _, p := range m.Phases {
		peak = max(peak, p.FromQPS, p.ToQPS)
	}
	for _, w := range m.Rates {
		peak = max(peak, w.QPS)
	}
	return peak
}

// AtPeak is the model at its highest rate for a time, and nothing before or
// after it: what a warm-up is.
func (m *Model) AtPeak(length time.Duration) *Model {
	steady := *m
	steady.TargetQPS, steady.Duration, steady.RampUp = m.PeakQPS(), length, 0
	steady.Phases, steady.Rates = nil, nil
	return &steady
}

// SessionShares are the scenarios' shares of session starts, in their order,
// and the mean number of requests that one session start brings. Weights are
// shares of requests, so a scenario whose sessions have k turns starts k times
// more seldom.
func (m *Model) SessionShares() (shares []float64, requestsPerStart float64) {
	shares = make([]float64, len(m.Scenarios))
	var sum float64
	for i := range m.Scenarios {
		s := &m.Scenarios[i]
		shares[i] = s.Weight / s.RequestsPerSession()
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares, 1 / sum
}

// RequestsPerSession is the mean number of requests of a session: its turns,
// or 1 when it is flattened.
func (s *Scenario) RequestsPerSession() float64 {
	switch {
	case s.Flattened:
		return 1
	case s.Joint != nil && s.Joint.HasTurns:
		return s.Joint.requestsPerSession()
	}
	return s.Turns.MeanInt()
}
