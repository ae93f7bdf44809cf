package shaper

import (
	"context"
	"time"
)

// Permit is the right to have one call in flight, and what the shaper did with
// it: what the call's span says of its lane. Its methods are for one goroutine
// at a time.
type Permit struct {
	s        *Shaper
	ask      Ask
	line     *line
	waits    *waiter // while it is not had
	held     bool
	refused  int32  // attempts
	seq      uint64 // the order in which calls came; one that is sent again keeps it
	arrived  time.Duration
	admitted time.Duration
	reserved reservation
	took     []taken
	few      [3]taken // what took holds, unless there are more
	account  Account

	prev, next *Permit // of those that are held
}

// Account is what the shaper did with a call.
type Account struct {
	Lane     string // that it waited in last, or the first of a rule that it passed; empty: none
	Limit    string // of that lane, what it waited for last: "requests", "tokens", "input tokens", "output tokens", "in flight", "hold"; empty: it did not wait
	Position int    // in that lane when it came, from 1; 0: it did not wait

	Reserved                  bool // a lane has a budget of tokens, and these were reserved
	InputTokens, OutputTokens int64

	Refusal      string        // why it was refused: FullQueue, HopelessWait or Deadline; empty: it was not
	ExpectedWait time.Duration // that was hopeless; 0 for every other call

	Held       time.Duration // of its wait: while the endpoint's word held the lane
	HoldReason string
}

// Account tells what was done with the call so far.
func (p *Permit) Account() Account { return p.account }

// Answer is what the endpoint said of its limits, known when the head of its
// response came.
type Answer struct {
	Status int           // of the response
	Wait   time.Duration // that it asks for; 0 when it does not, or AtOnce
	AtOnce bool          // it asks to come again without a wait
	Why    string        // what Wait rests on: "429", "requests used up"

	OtherKey bool // the call can be sent with another key, to which Wait does not apply
}

// Heard tells the shaper what the endpoint said, and says whether the call may
// be sent again by Again: it was refused, its lanes allow another attempt, and
// there is time for one.
func (p *Permit) Heard(a Answer) (again bool) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.held {
		return false
	}
	now := s.now()
	refused := refuses(a.Status)
	for i := range p.took {
		t := &p.took[i]
		if t.lane.limit.Adaptive && (refused || !t.accepted) {
			if t.accepted { // it is refused inside the stream that it got
				t.lane.adapt.left()
			}
			t.lane.adapt.heard(now, refused, t.lane.inFlight, int(t.era))
			t.accepted = !refused
		}
		if refused && !t.lane.endpoint {
			t.lane.endpointRefused++
		}
		s.unhold(t, !refused)
	}
	defer s.run(now)
	endpoint := s.endpoint(p, refused || a.Wait > 0, now)
	if endpoint == nil {
		return false
	}
	s.hold(endpoint, p, a, refused, now)
	if !refused || int(p.refused) >= p.line.tries {
		return false
	}
	return a.OtherKey && p.arrived+p.line.wait > now || p.arrived+p.line.wait > max(endpoint.hold.until, now)
}

// unhold tells the lane of a call's endpoint that the call was heard of.
func (s *Shaper) unhold(t *taken, took bool) {
	t.lane.hold.heard(t.round, took)
	t.round = 0
	s.open(t.lane)
}

// hold shuts the endpoint's lane as the endpoint says.
func (s *Shaper) hold(l *lane, p *Permit, a Answer, refused bool, now time.Duration) {
	if refused {
		l.endpointRefused++
	}
	wait := min(a.Wait, longestHold)
	switch {
	case refused && wait == 0 && !a.AtOnce:
		if p.admitted < l.hold.from && l.hold.from > 0 {
			return // what was under way when the hold began says nothing new
		}
		wait = l.hold.backoff()
	case !refused:
		l.hold.strikes = 0
	}
	if wait > 0 {
		before := max(l.hold.until, now)
		l.hold.add(now, now+wait+time.Duration(s.Random()*float64(jitter(wait))), a.Why)
		if l.waiters() > 0 && l.hold.until-before >= weedEvery {
			s.look(now)
		}
	}
}

// Again gives back what the refused attempt held and waits until the call may
// be sent once more, with the key of a fingerprint and before the others of its
// session. Its errors are Admit's; then the permit is released.
func (p *Permit) Again(ctx context.Context, key string) error {
	s := p.s
	s.mu.Lock()
	if !p.held {
		s.mu.Unlock()
		return context.Canceled
	}
	s.giveBack(p, Settlement{}, s.now())
	p.refused++
	p.ask.Key = key
	s.mu.Unlock()
	return s.enter(ctx, p, true)
}

// Settlement is what a call turned out to be, told to the shaper at its end.
type Settlement struct {
	Used bool // the endpoint worked on it, so that tokens whose number is unknown were used all the same

	InputTokens, CachedTokens, OutputTokens Tokens // as reported

	// TTFT is from the request's last byte to the first token; 0 when there was
	// none.
	TTFT time.Duration
}

// Tokens are a number of tokens that may be unknown.
type Tokens struct {
	N     int64
	Known bool
}

// Release gives the permit back with what the call turned out to be, when the
// stream has ended, failed or been cancelled. Only the first Release counts.
func (p *Permit) Release(st Settlement) {
	s := p.s
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.held {
		s.giveBack(p, st, s.now())
	}
}

// giveBack takes back what a permit holds, and lets others have it.
func (s *Shaper) giveBack(p *Permit, st Settlement, now time.Duration) {
	p.held = false
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
	if st.Used {
		p.line.known.learn(&p.ask, &st)
	}
	for i := range p.took {
		t := &p.took[i]
		l := t.lane
		weight := p.ask.CachedWeight
		if l.limit.CachedWeight != nil {
			weight = *l.limit.CachedWeight
		}
		slots := l.slots()
		full := slots > 0 && l.inFlight >= slots
		input, output := st.used(t, weight)
		l.give(t, input, output)
		s.unhold(t, false)
		if t.accepted {
			l.adapt.left()
		}
		if st.Used {
			l.took.add((now - p.admitted).Seconds())
			if l.limit.Adaptive {
				l.adapt.ended(now, &p.ask, &st, full, int(t.era))
			}
		}
	}
	p.took = nil
	s.run(now)
}

// fresh is the input that no cache held, as far as that is known.
func fresh(a *Ask, st *Settlement) int64 {
	if !st.InputTokens.Known {
		return a.InputTokens
	}
	return max(st.InputTokens.N-st.CachedTokens.N, 0)
}
