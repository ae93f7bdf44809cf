// Package shaper decides when a call may go to the endpoint. A call asks with
// what is known of it and gets a Permit, which it holds to the end of its
// stream, or a Refusal. Between them stand lanes: who shares a limit, and what
// the limit is.
package shaper

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Ask is what the shaper knows of a call that wants to be sent.
type Ask struct {
	Scenario string
	Upstream string
	Model    string
	Key      string // fingerprint of the caller's key, never the key
	Session  string

	Age     time.Duration // since the call arrived, from when its wait is counted
	Patient bool          // it waits as long as it takes, however many do

	InputTokens  int64 // estimated; 0 when unknown
	OutputTokens int64 // the most that the call may generate; 0 when unknown

	// CachedWeight is how much of a token the provider counts for an input
	// token from its cache, 0 to 1.
	CachedWeight float64
}

// Shaper admits calls. The zero Shaper has no rules and admits all of them at
// once.
type Shaper struct {
	// Random gives numbers from 0 to 1, by which holds end a little later than
	// the endpoint said; nil is chance.
	Random func() float64

	mu      lock
	base    time.Time // by which time is counted
	rules   []Rule
	written []string // their selectors
	lanes   map[laneKey]*lane
	lines   map[lineKey]*line
	waiters []*waiter // in no order
	last    *route    // that was found
	guesses map[[2]string]*estimate
	live    Permit // head of the ring of permits that are held
	seq     uint64
	opened  []*lane // whose queues are to be looked at

	deadlines deadlines
	watcher   *time.Timer
	watched   time.Duration // when the watcher fires; 0: it does not

	weedAt    time.Duration // from when waiters are looked at again
	weeding   bool          // they are looked at now
	weedAgain bool          // and have to be looked at once more
}

// now is the time since the shaper's first call.
func (s *Shaper) now() time.Duration {
	if s.base.IsZero() {
		s.base = time.Now()
		s.lanes, s.lines, s.guesses = map[laneKey]*lane{}, map[lineKey]*line{}, map[[2]string]*estimate{}
		s.live.next, s.live.prev = &s.live, &s.live
		if s.Random == nil {
			s.Random = rand.Float64
		}
	}
	return time.Since(s.base)
}

// Admit waits until the call may be sent. It returns a *Refusal when it may not,
// and a *Departure with the context's error when the caller leaves first; then
// no permit is held.
func (s *Shaper) Admit(ctx context.Context, a Ask) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Departure{Err: err}
	}
	p := &Permit{s: s, ask: a}
	if err := s.enter(ctx, p, false); err != nil {
		return nil, err
	}
	return p, nil
}

// enter has a permit admitted, or waits for it.
func (s *Shaper) enter(ctx context.Context, p *Permit, first bool) error {
	s.mu.Lock()
	now := s.now()
	w, refusal := s.join(p, now, first)
	s.mu.Unlock()
	switch {
	case refusal != nil:
		return refusal
	case w == nil:
		return nil
	}
	return s.wait(ctx, w)
}

// join has a permit admitted, or gives what waits for it, or says why that is in
// vain.
func (s *Shaper) join(p *Permit, now time.Duration, first bool) (*waiter, *Refusal) {
	ln := s.line(&p.ask, now)
	p.line = ln
	if !first {
		p.arrived = now - p.ask.Age
		s.seq++
		p.seq = s.seq
	}
	blocked := s.blocked(ln.path, now)
	if blocked == nil {
		s.admit(p, now, now)
		return nil, nil
	}
	deadline := p.arrived + ln.wait
	if p.ask.Patient {
		deadline = now + farAway
	} else if refusal := s.hopeless(ln, now, deadline, first); refusal != nil {
		return nil, refusal
	}
	w := s.park(p, blocked, now, deadline, first)
	s.open(ln.at)
	s.run(now)
	if now >= s.weedAt {
		s.look(now)
	}
	return w, nil
}

// wait waits for what is decided of a waiter.
func (s *Shaper) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.ready:
		if w.refusal != nil {
			return w.refusal
		}
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	p := w.permit
	switch {
	case w.refusal != nil:
		return w.refusal
	case p.waits == w:
		gone := &Departure{Account: s.account(p, p.line.at, now), Err: ctx.Err()}
		s.drop(w, now)
		for _, l := range p.line.path {
			l.left++
		}
		return gone
	}
	// It was admitted while it left, so that nothing was sent.
	for _, t := range p.took {
		t.lane.pace.giveBack()
	}
	s.giveBack(p, Settlement{}, now)
	return &Departure{Account: p.account, Err: ctx.Err()}
}

// line finds the line of a call.
func (s *Shaper) line(a *Ask, now time.Duration) *line {
	key := lineKey{a.Scenario, a.Upstream, a.Model, a.Key, a.Session}
	ln := s.lines[key]
	if ln == nil {
		s.tidy(now)
		ln = &line{key: key, route: s.wayOf(a, now), known: s.guess(a)}
		for _, l := range ln.path {
			l.lines++
		}
		s.lines[key] = ln
	}
	return ln
}

// blocked is the first lane of a path that a call cannot pass now: it is
// closed, or others wait for it. It is nil where there is none.
func (s *Shaper) blocked(path []*lane, now time.Duration) *lane {
	for _, l := range path {
		if l.queue.n > 0 {
			return l
		}
		if limit, _ := l.closed(now); limit != "" {
			l.full = limit
			return l
		}
	}
	return nil
}

// admit takes all that a call needs, at once, which has wanted it since then.
func (s *Shaper) admit(p *Permit, now, wanted time.Duration) {
	ln := p.line
	p.reserved = ln.known.reserve(&p.ask)
	p.took = p.few[:0]
	for _, l := range ln.path {
		if !slices.Contains(ln.holds, l) {
			l.pace.take(now, wanted)
		}
		p.took = append(p.took, l.take(now, p.reserved, p.ask.CachedWeight))
		p.account.Reserved = p.account.Reserved || l.budgeted()
	}
	if len(ln.turns) > 0 {
		ln.redeem()
		ln.turns = ln.turns[:0]
	}
	if p.account.Reserved {
		p.account.InputTokens, p.account.OutputTokens = int64(p.reserved.inputCost(p.ask.CachedWeight)), int64(p.reserved.output)
	}
	if p.account.Lane == "" && len(ln.path) > 0 && !ln.path[0].endpoint {
		p.account.Lane = ln.path[0].name
	}
	p.admitted = now
	p.prev, p.next = s.live.prev, &s.live
	p.prev.next, s.live.prev = p, p
	p.held = true
}

// park puts a permit that cannot be had yet into its line, and the line into
// the queue of the lane that it cannot pass.
func (s *Shaper) park(p *Permit, at *lane, now, deadline time.Duration, first bool) *waiter {
	ln := p.line
	w := &waiter{permit: p, ready: make(chan struct{}), deadline: deadline, entered: now}
	w.heldBefore = ln.held(now)
	p.reserved = ln.known.reserve(&p.ask)
	ln.expects(&p.reserved, &p.ask, 1)
	if first {
		ln.pushFirst(w)
	} else {
		ln.push(w)
	}
	switch {
	case ln.at == nil:
		at.queue.add(ln, at, now)
	case first:
		ln.at.queue.count(ln, 1)
		ln.at.queue.moved(ln)
	default:
		ln.at.queue.count(ln, 1)
	}
	if p.account.Position == 0 {
		p.account.Position = ln.at.waiters()
	}
	p.waits = w
	w.index = len(s.waiters)
	s.waiters = append(s.waiters, w)
	heap.Push(&s.deadlines, w)
	s.watch(now)
	return w
}

// unpark takes a waiter out of its line.
func (s *Shaper) unpark(w *waiter) {
	p := w.permit
	ln := p.line
	ln.remove(w)
	if ln.at != nil {
		ln.at.queue.count(ln, -1)
	}
	switch {
	case ln.at == nil:
	case ln.n == 0:
		ln.at.queue.remove(ln)
	default:
		ln.at.queue.moved(ln)
	}
	ln.expects(&p.reserved, &p.ask, -1)
	p.waits = nil
	last := len(s.waiters) - 1
	s.waiters[w.index] = s.waiters[last]
	s.waiters[w.index].index = w.index
	s.waiters[last] = nil
	s.waiters = s.waiters[:last]
	heap.Remove(&s.deadlines, w.due)
}

// drop takes a waiter out that will not be admitted.
func (s *Shaper) drop(w *waiter, now time.Duration) {
	if ln := w.permit.line; ln.first == w {
		s.unclaim(ln)
		ln.turns = ln.turns[:0]
	}
	s.unpark(w)
	s.run(now)
}

// account is what was done with a waiter until now, in whose queue it stands.
func (s *Shaper) account(p *Permit, at *lane, now time.Duration) Account {
	a := p.account
	if at != nil {
		a.Lane, a.Limit = at.name, at.full
	}
	if w := p.waits; w != nil && len(p.line.path) > 0 {
		held := p.line.held(now) - w.heldBefore
		a.Held += held
		if held > 0 || a.Limit == limitHold { // or it waited for those who went first after the hold
			a.HoldReason = p.line.path[len(p.line.path)-1].hold.reason
		}
	}
	return a
}

// open has the queue of a lane looked at by the next run.
func (s *Shaper) open(l *lane) {
	if l.queue.n > 0 {
		s.opened = append(s.opened, l)
	}
}

// run admits who can be, in the queues of the lanes that may have opened.
func (s *Shaper) run(now time.Duration) {
	for len(s.opened) > 0 {
		last := len(s.opened) - 1
		l := s.opened[last]
		s.opened = s.opened[:last]
		s.serve(l, now)
	}
}

// serve admits who can be of those who wait for a lane. A line that another
// lane keeps goes to that one's queue.
func (s *Shaper) serve(l *lane, now time.Duration) {
	for l.queue.n > 0 {
		limit, until := l.closed(now)
		if limit != "" {
			l.full = limit
			if k := l.keeps; k != nil && k.at == l && !soon(limit) {
				s.unclaim(k)
			}
			s.wake(l, now, until)
			return
		}
		ln := l.next()
		if other := ln.keeper(l, now); other != nil {
			s.pass(ln, l, other, now)
			continue
		}
		w := ln.first
		p := w.permit
		p.account = s.account(p, l, now)
		l.queue.served(ln, l.cost(p.reserved, p.ask.CachedWeight))
		s.unpark(w)
		s.admit(p, now, w.entered)
		close(w.ready)
	}
}

// wake has a lane's queue looked at when time opens it.
func (s *Shaper) wake(l *lane, now, until time.Duration) {
	if until == 0 || l.wakes > now && l.wakes <= until {
		return
	}
	l.wakes = until
	if l.timer != nil {
		l.timer.Reset(until - now)
		return
	}
	l.timer = time.AfterFunc(until-now, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.wakes = 0
		s.open(l)
		s.run(s.now())
	})
}
