package generator

import (
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"weir/generator/corpus"
	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// Plan is a stream of sessions, the same for the same model (or trace) and
// seed. It holds none of them: a plan takes no more memory for being long.
type Plan struct {
	// Model says what is sent. With Trace it may be nil or without scenarios.
	Model *loadmodel.Model
	// Trace, when set, gives times and lengths, and what prompts share; all else
	// comes from the first scenario of Model, or else from the trace where it
	// says it, or else is streamed English prose in a scenario named after the
	// file. Each row is a request of its own, but for those that say what follows.
	Trace *loadmodel.Trace
	// Dataset, when set, gives whole requests, and times unless new ones are put
	// in their place. Of Model only what is no scenario's counts.
	Dataset *Dataset
	// Rates count the tokens of models whose tokenizer weir lacks, by the name
	// that is asked for. Models without one are counted as o200k_base does.
	Rates map[string]*corpus.Rates
	Seed  uint64
	Shard Shard // the part that is sent; zero: all of it
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
	Prefix   Prefix

	// Blocks are what the first prompt is made of, BlockTokens of text each and
	// the last cut to what is left: equal ids are equal text, so that prompts
	// share what the same ids begin them with. Empty: it begins like no other.
	Blocks      []int64
	BlockTokens int

	Turns  []Turn // at least one
	Before int    // turns of the session that were sent as sessions of their own, before these
	// Flattened is the number of turns of made-up history that the session's
	// only request holds; 0 when it is live.
	Flattened int
	// Messages are what a dataset says in each of Turns; nil where the corpus
	// writes it.
	Messages []Said
}

// Prefix is text at the beginning of a session's prompts which all sessions of
// one group share. The zero Prefix is none.
type Prefix struct {
	Group  int // of the run, from 0; no two scenarios have one in common
	Tokens int // of the turns' Input
}

// Turn is one planned request.
type Turn struct {
	Input  int           // tokens of the whole prompt
	Output int           // tokens at most
	Think  time.Duration // between the end of the turn before and this one, at least leastThink; for the first 0 or, in a closed loop, since the session before
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
	streamBlock
	streamThink
	streamPrefix
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
// choices come from the run's seed and its own index alone. An error ends the
// plan: of a trace that cannot be read on, or a model that is a closed loop,
// whose sessions start when those before them end.
func (p *Plan) Sessions() iter.Seq2[Session, error] { return p.Shard.of(p.all()) }

// all are the sessions of all shards.
func (p *Plan) all() iter.Seq2[Session, error] {
	if p.Trace != nil {
		return p.traced()
	}
	if p.Dataset != nil {
		return p.Dataset.sessions(p)
	}
	return func(yield func(Session, error) bool) {
		m := p.Model
		if p.closed() {
			yield(Session{}, errors.New("when a closed loop's sessions start depends on the endpoint's answers, so nothing can be said of them before; say what calls take, as weir plan --latency 'ttft 500ms, tpot 20ms', or give --qps for an open loop"))
			return
		}
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
	return p.Model.AtPeak(p.Model.WarmUp)
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
	if sc.Joint != nil {
		s.Turns = jointTurns(sc, &s, rng)
	} else {
		s.Turns = independentTurns(sc, &s, rng)
	}
	if len(s.Turns) > 1 {
		s.ID = sessionID(index)
	}
	// Drawn last, so that a prefix changes nothing else of a plan.
	if sc.Prefix.Tokens > 0 {
		s.Prefix = Prefix{Group: firstGroup(m, scenario) + rng.IntN(sc.Prefix.Pool), Tokens: sc.Prefix.Tokens}
	}
	return s
}

// firstGroup is the number of a scenario's first group of prefixes.
func firstGroup(m *loadmodel.Model, scenario int) int {
	first := 0
	for i := range scenario {
		first += m.Scenarios[i].Prefix.Pool
	}
	return first
}

// independentTurns draws a session's sizes each from its own distribution.
func independentTurns(sc *loadmodel.Scenario, s *Session, rng *rand.Rand) []Turn {
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
	drawn := make([]Turn, k)
	for i := range drawn {
		drawn[i] = Turn{Input: inputs[i], Output: outputs[i]}
		if i > 0 {
			drawn[i].Think = thought(sc, rng)
		}
	}
	return drawn
}

// jointTurns draws a session's turns from rows: what stands in one row stays
// together, and the contexts grow.
func jointTurns(sc *loadmodel.Scenario, s *Session, rng *rand.Rand) []Turn {
	k := 0
	if !sc.Joint.HasTurns {
		k = max(sc.Turns.DrawInt(rng), 1)
	}
	var rows []loadmodel.JointRow
	if sc.Flattened {
		rows = []loadmodel.JointRow{sc.Joint.DrawOne(rng)}
		s.Flattened = max(k, rows[0].Turns)
	} else {
		rows = sc.Joint.DrawSession(rng, k)
	}
	slices.SortStableFunc(rows, func(a, b loadmodel.JointRow) int { return a.Input - b.Input })
	drawn := make([]Turn, len(rows))
	for i, row := range rows {
		drawn[i] = Turn{Input: row.Input, Output: row.Output}
		switch {
		case i == 0:
		case sc.Joint.HasThink:
			drawn[i].Think = max(row.Think, leastThink)
		default:
			drawn[i].Think = thought(sc, rng)
		}
	}
	return drawn
}

// thought draws the time between two turns.
func thought(sc *loadmodel.Scenario, rng *rand.Rand) time.Duration {
	return max(time.Duration(sc.ThinkSeconds.Draw(rng)*float64(time.Second)), leastThink)
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
	if s.Model == "" && len(m.Models) > 0 {
		asked := drawModel(m.Models, rng)
		s.Model = asked.Name
		if s.API == "" {
			s.API = asked.API
		}
	}
	if s.API == "" {
		s.API = m.API
	}
	if s.API == "" {
		s.API = wire.Chat
	}
	if s.Model == "" {
		s.Model = m.Model
	}
	return s
}

// drawModel draws one of the models by their shares.
func drawModel(models []loadmodel.Share, rng *rand.Rand) loadmodel.Share {
	u := rng.Float64()
	for _, share := range models {
		if u -= share.Share; u < 0 {
			return share
		}
	}
	return models[len(models)-1]
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
	return p.tracedLength()
}

// warmsFor is how much of Length a model warms up.
func (p *Plan) warmsFor() time.Duration {
	if p.Dataset != nil || p.Trace != nil {
		return 0
	}
	return p.Model.WarmUp
}

// peakQPS is the highest rate of request starts, of this shard; 0 when it is not
// known before.
func (p *Plan) peakQPS() float64 {
	if p.Trace != nil {
		return 0
	}
	if p.Dataset != nil {
		return p.Dataset.peakQPS() * p.Shard.fraction()
	}
	return p.Model.PeakQPS() * p.Shard.fraction()
}

// scenarios are the names of the plan's scenarios in their order.
func (p *Plan) scenarios() []string {
	if p.Dataset != nil {
		return p.Dataset.Scenarios
	}
	if p.Trace != nil {
		return p.tracedScenarios()
	}
	names := make([]string, len(p.Model.Scenarios))
	for i := range names {
		names[i] = p.Model.Scenarios[i].ID
	}
	return names
}
