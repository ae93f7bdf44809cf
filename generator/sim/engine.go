package sim

import (
	"context"
	"sync"
	"time"
)

// engine is the serving engine: one batch of sequences that take steps
// together. It keeps an absolute clock: a step ends when the one before it
// ended plus what it takes, however late the machine was, so that the model's
// times are the engine's and not the scheduler's.
type engine struct {
	EngineConfig
	cache *prefixCache

	mu      sync.Mutex
	waiting []*sequence // in order of arrival
	wake    chan struct{}
	stopped chan struct{}
	running []*sequence // the loop's own
	kv      int         // tokens that running sequences hold or will
}

// sequence is one request in the engine.
type sequence struct {
	input  int // prompt tokens
	output int // tokens to generate
	blocks []uint64

	// steps gives the tokens of each step that generated some; it is closed
	// when the sequence has ended. It has room for all of them, so that a slow
	// reader never holds the batch up.
	steps    chan int
	admitted chan admission // gives one value

	unread    int // prompt tokens that must still be read
	generated int
	gone      bool // cancelled; guarded by the engine's mutex
}

// admission is what a sequence is told when it gets its place.
type admission struct {
	at     time.Time
	cached int // prompt tokens that the prefix cache holds
}

func newEngine(c EngineConfig) *engine {
	e := &engine{EngineConfig: c, cache: newPrefixCache(c.CacheTokens), wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	return e
}

// submit queues a sequence. Cancel it when its client leaves.
func (e *engine) submit(input, output int, blocks []uint64) *sequence {
	output = max(output, 1)
	s := &sequence{
		input: input, output: output, blocks: blocks,
		steps:    make(chan int, (output+e.TokensPerStep-1)/e.TokensPerStep),
		admitted: make(chan admission, 1),
	}
	e.mu.Lock()
	e.waiting = append(e.waiting, s)
	e.mu.Unlock()
	e.stir()
	return s
}

// cancel frees the place of a sequence at the next step.
func (e *engine) cancel(s *sequence) {
	e.mu.Lock()
	s.gone = true
	e.mu.Unlock()
	e.stir()
}

func (e *engine) stir() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run takes steps until ctx ends.
func (e *engine) run(ctx context.Context) {
	defer close(e.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	clock := time.Now()
	for {
		e.admit(clock)
		if len(e.running) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.wake:
				clock = time.Now()
				continue
			}
		}
		took := e.step()
		clock = clock.Add(took)
		timer.Reset(time.Until(clock))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e.deliver()
	}
}

// admit gives places to those who wait, in their order, while there is room in
// the batch and for their tokens. Those whose clients have left make room.
func (e *engine) admit(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.running[:0]
	for _, s := range e.running {
		if s.gone {
			e.leave(s)
			continue
		}
		kept = append(kept, s)
	}
	clear(e.running[len(kept):])
	e.running = kept
	for len(e.waiting) > 0 {
		s := e.waiting[0]
		need := s.input + s.output
		switch {
		case s.gone:
			close(s.steps)
		case len(e.running) >= e.Slots, e.kv+need > e.KVTokens && len(e.running) > 0:
			return
		default:
			hits := e.cache.take(s.blocks)
			cached := 0
			if len(s.blocks) > 0 {
				// At least one token is always read: the answer starts from it.
				cached = min(int(float64(s.input)*float64(hits)/float64(len(s.blocks))), s.input-1)
			}
			s.unread = s.input - cached
			e.kv += need
			e.running = append(e.running, s)
			s.admitted <- admission{now, cached}
		}
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
	}
}

func (e *engine) leave(s *sequence) {
	e.kv -= s.input + s.output
	close(s.steps)
}

// step plans the next step: prompts are read in the order of arrival, up to a
// chunk, beside the decoding of all sequences whose prompt is read.
func (e *engine) step() time.Duration {
	room, decoding := e.Chunk, 0
	for _, s := range e.running {
		if s.unread == 0 {
			decoding++
			continue
		}
		n := min(s.unread, room)
		room -= n
		s.unread -= n
		if s.unread == 0 && n > 0 {
			decoding++ // the step that ends a prompt gives its first tokens
		}
	}
	return e.Step + time.Duration(decoding)*e.PerSequence + time.Duration(e.Chunk-room)*e.PerToken
}

// deliver ends a step: each sequence whose prompt is read gets its tokens.
func (e *engine) deliver() {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.running[:0]
	for _, s := range e.running {
		if s.unread > 0 {
			kept = append(kept, s)
			continue
		}
		n := min(e.TokensPerStep, s.output-s.generated)
		s.generated += n
		s.steps <- n
		if s.generated < s.output {
			kept = append(kept, s)
			continue
		}
		e.leave(s)
	}
	clear(e.running[len(kept):])
	e.running = kept
}
