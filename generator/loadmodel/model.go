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

	TargetQPS float64       // request starts a second; 0 with Phases
	Duration  time.Duration // over which requests start
	RampUp    time.Duration // at its beginning: the rate grows from 0 to the target
	Phases    []Phase       // replace the three above; empty otherwise
	Arrivals  Arrivals

	Seed    uint64
	HasSeed bool // the file gives one

	API    wire.API // empty: chat
	Model  string   // empty with Models, or when it is given elsewhere
	Models []Share

	WarmUp      time.Duration              // before the run: sent, marked, left out of figures
	MaxInFlight int                        // 0: no limit
	Timeout     time.Duration              // of one request; 0: none
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

	InputTokens  Dist
	OutputTokens Dist
	Turns        Dist // of a session; constant 1 when the file does not say
	ThinkSeconds Dist // between a turn's end and the next; constant 0 when not said

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

	match matcher
}

// Share is a model's name and its share of the requests.
type Share struct {
	Name  string
	Share float64
}

// Length is the time over which requests start.
func (m *Model) Length() time.Duration {
	if len(m.Phases) == 0 {
		return m.Duration
	}
	var sum time.Duration
	for _, p := range m.Phases {
		sum += p.Length
	}
	return sum
}

// Scaled is the model played in another time: duration, ramp and phases are
// shortened or lengthened in proportion. Rates stay what they are, and so does
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
	return &scaled
}

// AtQPS is the model at another rate: the target, or with phases the highest
// rate, becomes qps, and the rest changes in proportion.
func (m *Model) AtQPS(qps float64) *Model {
	scaled := *m
	if len(m.Phases) == 0 {
		scaled.TargetQPS = qps
		return &scaled
	}
	factor := qps / m.PeakQPS()
	scaled.Phases = append([]Phase(nil), m.Phases...)
	for i := range scaled.Phases {
		scaled.Phases[i].FromQPS *= factor
		scaled.Phases[i].ToQPS *= factor
	}
	return &scaled
}

// PeakQPS is the highest rate of request starts.
func (m *Model) PeakQPS() float64 {
	peak := m.TargetQPS
	for _, p := range m.Phases {
		peak = max(peak, p.FromQPS, p.ToQPS)
	}
	return peak
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
	if s.Flattened {
		return 1
	}
	return s.Turns.MeanInt()
}
