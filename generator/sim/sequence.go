package sim

import (
	"sync/atomic"
	"time"
)

// demand is what a request asks of the engine.
type demand struct {
	input  int    // prompt tokens
	output int    // tokens to generate; at least 1 is
	prompt prompt // as the prefix cache knows it; the zero prompt is unknown to it
	rest   rest   // of a fault
}

// rest is a pause of one sequence among the others: when so many tokens are
// generated, it gets no more until so much time has passed. It keeps its place.
type rest struct {
	after int
	time  time.Duration // 0: no rest
}

// sequence is one request in the engine. The engine never waits for the reader:
// it counts, and the reader takes what has been counted.
type sequence struct {
	demand
	arrived  time.Time
	admitted chan admission // gives one value when there is a place
	news     chan struct{}  // gives a value when made or ended has changed
	made     atomic.Int64   // tokens generated so far
	ended    atomic.Bool    // no more will come
	gone     atomic.Bool    // the client left

	// The engine's own.
	unread    int // prompt tokens that must still be read
	kept      bool
	decodes   bool // in this step
	until     time.Time
	generated int

	taken int // the reader's own
}

// admission is what a sequence is told when it gets its place.
type admission struct {
	at     time.Time
	cached int // prompt tokens that the prefix cache holds
}

func newSequence(d demand) *sequence {
	d.output = max(d.output, 1)
	return &sequence{demand: d, admitted: make(chan admission, 1), news: make(chan struct{}, 1)}
}

// holds is how many tokens it takes of the budget.
func (s *sequence) holds() int { return s.input + s.output }

// rests says whether it gets nothing in the step that begins at now.
func (s *sequence) rests(now time.Time) bool {
	if s.rest.time > 0 && s.generated >= s.rest.after {
		s.until, s.rest.time = now.Add(s.rest.time), 0
	}
	return now.Before(s.until)
}

func (s *sequence) tell() {
	s.made.Store(int64(s.generated))
	s.stir()
}

func (s *sequence) end() {
	s.ended.Store(true)
	s.stir()
}

func (s *sequence) stir() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// take gives the tokens of the next step that generated some, at most a step's;
// 0 when none have come since: wait for news. A reader that is late gets the
// steps one by one all the same.
func (s *sequence) take(step int) int {
	n := min(step, int(s.made.Load())-s.taken)
	s.taken += n
	return n
}

// over says that no more tokens will come than were taken.
func (s *sequence) over() bool { return s.ended.Load() && int(s.made.Load()) == s.taken }
