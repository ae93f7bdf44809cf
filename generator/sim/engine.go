package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

// engine is the serving engine: one batch of sequences that take steps
// together. It keeps an absolute clock: a step ends when the one before it
// ended plus what it takes, however late the machine was, so that the model's
// times are the engine's and not the scheduler's. An engine that is late takes
// its steps without a pause until it has caught up, and until then sees only
// those requests that had come by its own clock.
type engine struct {
	EngineConfig
	wake    chan struct{}
	stopped chan struct{}

	// The loop's own.
	clock   time.Time   // when the last step ended
	running []*sequence // in order of admission
	kv      int         // tokens that running sequences hold or will

	mu      sync.Mutex
	cache   *prefixCache
	waiting []*sequence // in order of arrival
}

func newEngine(c EngineConfig) *engine {
	return &engine{EngineConfig: c, cache: newPrefixCache(c.CacheTokens), wake: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// submit queues a sequence. Cancel it when its client leaves.
func (e *engine) submit(d demand) *sequence {
	s := newSequence(d)
	e.mu.Lock()
	s.arrived = time.Now()
	e.waiting = append(e.waiting, s)
	e.mu.Unlock()
	e.stir()
	return s
}

// cached is how many of a prompt's tokens the prefix cache holds now.
func (e *engine) cached(p prompt, input int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return p.tokens(e.cache.holds(p.blocks), input)
}

// cancel takes a sequence out: at once while it waits; the place in the batch
// is free from the next step on. It may have ended already.
func (e *engine) cancel(s *sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.gone.Store(true)
	if i := slices.Index(e.waiting, s); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		s.end()
	}
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
	e.clock = time.Now()
	for {
		e.dismiss()
		e.admit()
		if len(e.running) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.wake:
			}
			continue
		}
		e.clock = e.clock.Add(e.step())
		timer.Reset(time.Until(e.clock))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e.deliver()
	}
}

// dismiss frees the places of those whose clients have left.
func (e *engine) dismiss() {
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool {
		if !s.gone.Load() {
			return false
		}
		e.leave(s)
		return true
	})
}

// admit gives places to those who wait, in their order, while there is room in
// the batch and for their tokens. An idle engine begins when the first comes.
// What a sequence may come to hold is set aside at once, so that none must
// ever be put out; one that is larger than the budget runs alone.
func (e *engine) admit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.running) == 0 && len(e.waiting) > 0 && e.clock.Before(e.waiting[0].arrived) {
		e.clock = e.waiting[0].arrived
	}
	n := 0
	for _, s := range e.waiting {
		full := len(e.running) >= e.Slots || e.kv+s.holds() > e.KVTokens && len(e.running) > 0
		if full || s.arrived.After(e.clock) {
			break
		}
		cached := s.prompt.tokens(e.cache.begins(s.prompt.blocks), s.input)
		s.unread = s.input - cached
		e.kv += s.holds()
		e.running = append(e.running, s)
		s.admitted <- admission{e.clock, cached}
		n++
	}
	e.waiting = slices.Delete(e.waiting, 0, n)
}

func (e *engine) leave(s *sequence) {
	e.kv -= s.holds()
	s.end()
}

// step plans the next step and gives what it takes. Prefill is chunked: up to
// Chunk prompt tokens are read, in the order of admission, beside the decoding
// of all sequences whose prompt is read. The step that reads a prompt's last
// token gives its first ones.
func (e *engine) step() time.Duration {
	room, decoding, context := e.Chunk, 0, 0
	for _, s := range e.running {
		n := min(s.unread, room)
		room -= n
		s.unread -= n
		if s.decodes = s.unread == 0 && !s.rests(e.clock); s.decodes {
			decoding++
			context += s.input + s.generated
		}
	}
	return e.Step + time.Duration(decoding)*e.PerSequence + time.Duration(context)*e.PerKVToken + time.Duration(e.Chunk-room)*e.PerToken
}

// deliver ends a step: each sequence that decoded gets its tokens, and prompts
// that are read are known to the cache.
func (e *engine) deliver() {
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool {
		if s.unread == 0 && !s.kept {
			s.kept = true
			e.mu.Lock()
			e.cache.keep(s.prompt.blocks)
			e.mu.Unlock()
		}
		if !s.decodes {
			return false
		}
		s.generated += min(e.TokensPerStep, s.output-s.generated)
		s.tell()
		if s.generated < s.output {
			return false
		}
		e.leave(s)
		return true
	})
}
