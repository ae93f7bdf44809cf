package generator

import (
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// Plan is a stream of sessions, the same for the same model (or trace) and
// seed. It holds none of them: a plan takes no more memory for being long.
type Plan struct {
	// Model says what is sent. With Trace it may be nil or without scenarios.
	Model *loadmodel.Model
	// Trace, when set, gives times and lengths; all else comes from the first
	// scenario of Model, or else is streamed English prose, each row a request
	// of its own in a scenario named after the file.
	Trace *loadmodel.Trace
	// Dataset, when set, gives whole requests, and times unless new ones are put
	// in their place. Of Model only what is no scenario's counts.
	Dataset *Dataset
	Seed    uint64
}

// Session is one planned session: one request, or several of which each
// carries on the conversation of the one before.
type Session struct {
	Index    int    // in the order of their starts, from 0; the warm-up's are negative
	ID       string // empty for a session of one request
	Scenario string
	WarmUp   bool
	Due      time.Duration // of the first request, since the run's start

	API      wire.API
	Model    string
	Stream   bool
	Corpus   string // as loadmodel.Scenario.Corpus
	Language string
	Tools    int

	Turns []Turn // at least one
	// Flattened is the number of turns of made-up history that the session's
	// only request holds; 0 when it is live.
	Flattened int
	// Messages are what a dataset says in each of Turns; nil where the corpus
	// writes it.
	Messages []Said
}

// Turn is one planned request.
type Turn struct {
	Input  int           // tokens of the whole prompt
	Output int           // tokens at most
	Think  time.Duration // between the end of the turn before and this one, at least leastThink; 0 for the first
}

// leastThink is what any client takes to read an answer and to write the next
// request. A plan that gave no time for it could not be kept: each turn would
// be late by it, and the next one by as much again.
const leastThink = 5 * time.Millisecond

// Streams of random numbers. Each session has one of its own, so that its
// choices do not depend on how many were drawn before.
const (
	streamStarts = uint64(iota) + 1
	streamOrder
	streamSession
	streamText
)

// rng gives the n-th generator of one stream.
func (p *Plan) rng(stream uint64, n int) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed, mix(stream<<56^uint64(n))))
}

// mix spreads the bits of a number (splitmix64), so that neighbours share none.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sessions gives the plan in the order of the sessions' starts. Each session's
// choices come from the run's seed and its own index alone. An error, which
// only a trace can give, ends the plan.
func (p *Plan) Sessions() iter.Seq2[Session, error] {
	if p.Trace != nil {
		return p.traced()
	}
	if p.Dataset != nil {
		return p.Dataset.sessions(p)
	}
	return func(yield func(Session, error) bool) {
		m := p.Model
		warm := p.warmUp()
		if warm != nil && !p.draw(warm, -1, 0, func(s Session) bool { s.WarmUp = true; return yield(s, nil) }) {
			return
		}
		p.draw(m, 1, m.WarmUp, func(s Session) bool { return yield(s, nil) })
	}
}

// warmUp is the model of the time before the run: its highest rate, evenly.
func (p *Plan) warmUp() *loadmodel.Model {
	if p.Model.WarmUp <= 0 {
		return nil
	}
	warm := *p.Model
	warm.TargetQPS, warm.Duration, warm.RampUp, warm.Phases = p.Model.PeakQPS(), p.Model.WarmUp, 0, nil
	return &warm
}

// draw gives the sessions of one model from the instant begin on. sign is 1 or,
// for the warm-up, -1: no session of it is one of the run's.
func (p *Plan) draw(m *loadmodel.Model, sign int, begin time.Duration, yield func(Session) bool) bool {
	shares, perStart := m.SessionShares()
	n := 0
	for at := range m.Starts(p.rng(streamStarts, sign), perStart) {
		index := n
		if sign < 0 {
			index = -1 - n
		}
		s := p.session(m, index, p.scenario(shares, index))
		s.Due = begin + at
		if !yield(s) {
			return false
		}
		n++
	}
	return true
}

// block is how many sessions are shuffled together.
const block = 64

// scenario chooses the scenario of the session at an index. Shares are kept not
// only in the long run but over every few dozen sessions: points that divide
// the line evenly (multiples of the golden ratio) are taken in an order that
// is shuffled block by block.
func (p *Plan) scenario(shares []float64, index int) int {
	n := index
	if index < 0 {
		n = -1 - index
	}
	order := p.rng(streamOrder, index/block-b2i(index < 0)*(1<<40)).Perm(block)
	_, point := math.Modf(p.rng(streamOrder, 1<<41).Float64() + float64(n/block*block+order[n%block])*(math.Phi-1))
	for i, share := range shares {
		if point -= share; point < 0 {
			return i
		}
	}
	return len(shares) - 1
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// session draws one session of a scenario.
func (p *Plan) session(m *loadmodel.Model, index, scenario int) Session {
	sc := &m.Scenarios[scenario]
	rng := p.rng(streamSession, index)
	s := p.describe(m, sc, index, rng)
	k := max(sc.Turns.DrawInt(rng), 1)
	if sc.Flattened {
		s.Flattened = k
		k = 1
	}
	inputs := make([]int, k)
	for i := range inputs {
		inputs[i] = max(sc.InputTokens.DrawInt(rng), 1)
	}
	outputs := make([]int, k)
	for i := range outputs {
		outputs[i] = max(sc.OutputTokens.DrawInt(rng), 1)
	}
	slices.Sort(inputs)
	outputs = fitAnswers(inputs, outputs)
	s.Turns = make([]Turn, k)
	for i := range s.Turns {
		s.Turns[i] = Turn{Input: inputs[i], Output: outputs[i]}
		if i > 0 {
			s.Turns[i].Think = max(time.Duration(sc.ThinkSeconds.Draw(rng)*float64(time.Second)), leastThink)
		}
	}
	if k > 1 {
		s.ID = sessionID(index)
	}
	return s
}

// fitAnswers orders the answers of a session so that they find room: what the
// model says in one turn stands in the context of the next, so the longer
// answers go where the contexts grow more, and the longest to the last turn,
// after which nothing grows. Otherwise many contexts would be larger than
// their draws; where the draws leave too little room in all, some still are.
func fitAnswers(inputs, outputs []int) []int {
	slices.Sort(outputs)
	last := len(inputs) - 1
	byGrowth := make([]int, last)
	for i := range byGrowth {
		byGrowth[i] = i
	}
	growth := func(turn int) int { return inputs[turn+1] - inputs[turn] }
	slices.SortStableFunc(byGrowth, func(a, b int) int { return growth(a) - growth(b) })
	fitted := make([]int, len(outputs))
	for rank, turn := range byGrowth {
		fitted[turn] = outputs[rank]
	}
	fitted[last] = outputs[last]
	return fitted
}

// describe fills in what a session has from its scenario and model.
func (p *Plan) describe(m *loadmodel.Model, sc *loadmodel.Scenario, index int, rng *rand.Rand) Session {
	s := Session{Index: index, Scenario: sc.ID, API: sc.API, Model: sc.Model, Stream: sc.Stream, Corpus: sc.Corpus, Language: sc.Language, Tools: sc.Tools}
	if s.API == "" {
		s.API = m.API
	}
	if s.API == "" {
		s.API = wire.Chat
	}
	if s.Model == "" && len(m.Models) > 0 {
		u := rng.Float64()
		for _, share := range m.Models {
			s.Model = share.Name
			if u -= share.Share; u < 0 {
				break
			}
		}
	}
	if s.Model == "" {
		s.Model = m.Model
	}
	return s
}

func sessionID(index int) string {
	if index < 0 {
		return "w" + strconv.Itoa(-index)
	}
	return "s" + strconv.Itoa(index+1)
}

// Length is the time over which sessions start, the warm-up included. Sessions
// that have started finish their turns after it. That of a trace is read from
// the file, and 0 when it cannot be read.
func (p *Plan) Length() time.Duration {
	if p.Dataset != nil {
		return p.Dataset.Length()
	}
	if p.Trace == nil {
		return p.Model.WarmUp + p.Model.Length()
	}
	var last time.Duration
	for row, err := range p.Trace.Rows() {
		if err != nil {
			return last
		}
		last = row.At
	}
	return last
}

// peakQPS is the highest rate of request starts; 0 when it is not known before.
func (p *Plan) peakQPS() float64 {
	if p.Trace != nil {
		return 0
	}
	if p.Dataset != nil {
		return p.Dataset.peakQPS()
	}
	return p.Model.PeakQPS()
}

// scenarios are the names of the plan's scenarios in their order.
func (p *Plan) scenarios() []string {
	if p.Dataset != nil {
		return p.Dataset.Scenarios
	}
	if p.Trace != nil {
		_, sc := p.traceScenario()
		return []string{sc.ID}
	}
	names := make([]string, len(p.Model.Scenarios))
	for i := range names {
		names[i] = p.Model.Scenarios[i].ID
	}
	return names
}

// traceScenario is what a trace's rows are sent as.
func (p *Plan) traceScenario() (*loadmodel.Model, *loadmodel.Scenario) {
	m := p.Model
	if m == nil {
		m = &loadmodel.Model{}
	}
	if len(m.Scenarios) > 0 {
		return m, &m.Scenarios[0]
	}
	name := strings.TrimSuffix(filepath.Base(p.Trace.Path), filepath.Ext(p.Trace.Path))
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return m, &loadmodel.Scenario{ID: name, Weight: 1, Corpus: "prose", Language: "en", Stream: true}
}

// traced gives the rows of the trace as sessions of one request.
func (p *Plan) traced() iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		m, sc := p.traceScenario()
		index := 0
		for row, err := range p.Trace.Rows() {
			if err != nil {
				yield(Session{}, err)
				return
			}
			s := p.describe(m, sc, index, p.rng(streamSession, index))
			s.Due, s.ID = row.At, row.Session
			s.Turns = []Turn{{Input: max(row.Input, 1), Output: max(row.Output, 1)}}
			if !yield(s, nil) {
				return
			}
			index++
		}
	}
}
