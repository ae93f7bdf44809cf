package generator

import (
	"iter"
	"time"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// Plan is a stream of sessions, the same for the same model (or trace) and
// seed. It holds none of them: a plan takes no more memory for being long.
type Plan struct {
	Model *loadmodel.Model
	Seed  uint64
}

// Session is one planned session: one request, or several of which each
// carries on the conversation of the one before.
type Session struct {
	Index    int    // in the order of their starts, from 0
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
}

// Turn is one planned request.
type Turn struct {
	Input  int           // tokens of the whole prompt
	Output int           // tokens at most
	Think  time.Duration // between the end of the turn before and this one; 0 for the first
}

// Sessions gives the plan in the order of the sessions' starts. Each session's
// choices come from the run's seed and its own index alone.
func (p *Plan) Sessions() iter.Seq[Session] { panic("not yet") }

// Length is the time over which sessions start, the warm-up included. Sessions
// that have started finish their turns after it.
func (p *Plan) Length() time.Duration { panic("not yet") }
