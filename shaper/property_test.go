package shaper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever calls do and whatever happens to limits meanwhile: no lane has more
// in flight than it may (but for what was in flight when the limit fell), every
// call is admitted, refused or gone, once, and in the end all that was taken is
// back.
func TestPermitsAreConservedUnderAnySchedule(t *testing.T) {
	schedules := 10_000
	if testing.Short() {
		schedules = 500
	}
	var admitted, refused, left, retried atomic.Int64
	for seed := range schedules {
		synctest.Test(t, func(t *testing.T) {
			one := schedule{t: t, rng: rand.New(rand.NewPCG(uint64(seed), 4))}
			one.run()
			admitted.Add(one.admitted.Load())
			refused.Add(one.refused.Load())
			left.Add(one.left.Load())
			retried.Add(one.retried.Load())
			if t.Failed() {
				t.Fatalf("by the schedule %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d schedules: %d calls admitted, %d refused, %d left, %d sent again", schedules, admitted.Load(), refused.Load(), left.Load(), retried.Load())
	for what, n := range map[string]int64{"admitted": admitted.Load(), "refused": refused.Load(), "left": left.Load(), "sent again": retried.Load()} {
		if n < int64(schedules)/10 {
			t.Errorf("only %d calls were %s: the schedules test too little", n, what)
		}
	}
}

// schedule is one course of events.
type schedule struct {
	t   *testing.T
	rng *rand.Rand
	s   *Shaper
	mu  sync.Mutex // of rng, which calls ask too

	changed bool // under the shaper's lock

	admitted, refused, left, retried atomic.Int64
}

func (c *schedule) pick(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *schedule) some(most time.Duration) time.Duration {
	return time.Duration(c.pick(int(most/time.Millisecond)+1)) * time.Millisecond
}

var scheduledRules = [][]string{
	{"rps=5", "concurrency=2", "tpm=6000"},
	{"rps=20 burst=3 concurrency=3 retry=2 wait=5s"},
	{"key=each concurrency=2", "scenario=a concurrency=1", "scenario=b rps=3 priority=high queue=2"},
	{"session=each concurrency=1", "all concurrency=adaptive:5 tpm=60000 retry=1"},
	{"all concurrency=3 queue=4", "model=m1 input_tpm=3000 wait=3s", "scenario=b share=3"},
	{"scenario=a concurrency=1", "model=m1 rps=4", "session=s1 concurrency=1", "scenario=b concurrency=2 priority=low"},
}

var scheduledChanges = []string{
	"concurrency=1", "concurrency=4", "concurrency=off", "rps=2", "rps=50", "rps=off", "tpm=600", "tpm=off",
	"scenario=a rps=1", "scenario=a rps=off", "session=each concurrency=1", "session=each concurrency=off",
	"key=each concurrency=1", "priority=low", "scenario=b priority=high concurrency=2",
}

func (c *schedule) run() {
	rules := scheduledRules[c.pick(len(scheduledRules))]
	c.s = &Shaper{Random: func() float64 { return 0.5 }}
	for _, text := range rules {
		if _, _, err := c.s.Change(text); err != nil {
			c.t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	calls := 5 + c.pick(15)
	for i := range calls {
		all.Go(func() { c.call(i) })
	}
	for range c.pick(4) {
		time.Sleep(c.some(2 * time.Second))
		c.s.mu.Lock()
		c.changed = true // a limit may fall below what is in flight
		c.s.mu.Unlock()
		if c.pick(4) == 0 { // the same limits, in another order
			rules := c.s.Rules()
			slices.Reverse(rules)
			if err := c.s.Configure(rules); err != nil {
				c.t.Error(err)
			}
		} else if _, _, err := c.s.Change(scheduledChanges[c.pick(len(scheduledChanges))]); err != nil {
			c.t.Error(err)
		}
		c.check()
	}
	all.Wait()
	if n := c.admitted.Load() + c.refused.Load() + c.left.Load(); n != int64(calls) {
		c.t.Errorf("%d calls came, and %d had an end", calls, n)
	}
	c.atRest()
}

func (c *schedule) call(i int) {
	time.Sleep(c.some(time.Second))
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	if c.pick(4) == 0 {
		leaves := time.AfterFunc(c.some(3*time.Second), cancel)
		defer leaves.Stop()
	}
	key := fmt.Sprint("k", c.pick(2))
	p, err := c.s.Admit(ctx, Ask{
		Scenario: string(rune('a' + c.pick(2))), Model: fmt.Sprint("m", c.pick(2)), Key: key, Session: fmt.Sprint("s", c.pick(4)),
		Age: c.some(100 * time.Millisecond), InputTokens: int64(c.pick(300)), OutputTokens: int64(c.pick(300)),
	})
	for {
		var r *Refusal
		switch {
		case errors.As(err, &r):
			if r.RetryAfter < time.Second && r.Account.Limit != limitInFlight { // of which nobody may know
				c.t.Errorf("call %d: refused without a time: %+v", i, r)
			}
			c.refused.Add(1)
			return
		case err != nil:
			c.left.Add(1)
			return
		}
		c.check()
		time.Sleep(c.some(200 * time.Millisecond))
		answer := Answer{Status: 200}
		if c.pick(5) == 0 {
			answer = Answer{Status: 429, Wait: c.some(time.Second), Why: "429", OtherKey: c.pick(2) == 0}
		}
		if !p.Heard(answer) {
			break
		}
		c.retried.Add(1)
		if answer.OtherKey {
			key = fmt.Sprint("k", c.pick(2))
		}
		err = p.Again(ctx, key)
	}
	time.Sleep(c.some(time.Second))
	st := Settlement{Used: c.pick(4) > 0, TTFT: c.some(time.Second)}
	if c.pick(3) > 0 {
		st.InputTokens, st.CachedTokens, st.OutputTokens = Tokens{int64(c.pick(400)), true}, Tokens{int64(c.pick(200)), true}, Tokens{int64(c.pick(400)), true}
	}
	p.Release(st)
	if c.pick(4) == 0 {
		p.Release(st)
	}
	c.admitted.Add(1)
	c.check()
}

// check holds the lanes against the permits and the lines.
func (c *schedule) check() {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	inFlight, waiting, queued, lines := map[*lane]int{}, map[*lane]int{}, map[*lane]int{}, map[*lane]int{}
	all := 0
	for p := s.live.next; p != &s.live; p = p.next {
		for _, t := range p.took {
			inFlight[t.lane]++
		}
	}
	for _, ln := range s.lines {
		n := 0
		for w := ln.first; w != nil; w = w.next {
			n++
			if s.waiters[w.index] != w || w.permit.waits != w || w.permit.line != ln {
				c.t.Errorf("a waiter of %v is not where it is said to be", ln.key)
			}
		}
		all += n
		if n != ln.n || (n > 0) != (ln.at != nil) {
			c.t.Errorf("a line of %d counts %d, and stands in %v", n, ln.n, ln.at)
		}
		for _, l := range ln.path {
			waiting[l] += n
			lines[l]++
			if s.lanes[laneKey{l.selector, l.name}] != l {
				c.t.Errorf("the lane %s of a line is not the one that others pass", l.name)
			}
		}
		if ln.at != nil {
			queued[ln.at]++
		}
	}
	if all != len(s.waiters) {
		c.t.Errorf("%d wait, and %d are known", all, len(s.waiters))
	}
	for _, l := range s.lanes {
		if l.lines != lines[l] {
			c.t.Errorf("lane %s counts %d lines that pass it, there are %d", l.name, l.lines, lines[l])
		}
		if l.inFlight != inFlight[l] || l.waiters() != waiting[l] || l.queue.n != queued[l] {
			c.t.Errorf("lane %s counts %d in flight, %d waiting, %d lines; there are %d, %d, %d",
				l.name, l.inFlight, l.waiters(), l.queue.n, inFlight[l], waiting[l], queued[l])
		}
		if n := l.slots(); n > 0 && l.inFlight+l.kept > n && !l.limit.Adaptive && !c.changed {
			c.t.Errorf("lane %s has %d in flight, and may have %d", l.name, l.inFlight, n)
		}
		if k := l.keeps; k != nil && (k.n == 0 || !slices.Contains(k.path, l) || len(k.holds) == 0) || (l.kept > 0) != (k != nil && slices.Contains(k.holds, l)) {
			c.t.Errorf("lane %s keeps %d for the line %+v", l.name, l.kept, k)
		} else if l.kept > 0 && (k.at == l || k.at.keeps != k) {
			c.t.Errorf("lane %s keeps a place for a line that waits for %s, which has none for it", l.name, k.at.name)
		}
		if l.queue.n > 0 {
			// Who waits does so for a reason, or until a timer tells.
			if limit, until := l.closed(now); limit == "" && l.wakes == 0 {
				c.t.Errorf("lane %s is open, and %d lines wait for it", l.name, l.queue.n)
			} else if until > 0 && l.wakes == 0 {
				c.t.Errorf("lane %s opens in %v, and nobody will look", l.name, until-now)
			}
		}
	}
}

// atRest says that nothing is left of calls that are over.
func (c *schedule) atRest() {
	c.check()
	for _, l := range c.s.Lanes() {
		if l.InFlight != 0 || l.Waiting != 0 {
			c.t.Errorf("all calls are over: %+v", l)
		}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, l := range c.s.lanes {
		if l.demand > 1e-6 {
			c.t.Errorf("lane %s expects %g tokens of nobody", l.name, l.demand)
		}
		if l.queue.n != 0 {
			c.t.Errorf("lane %s has %d lines of nobody", l.name, l.queue.n)
		}
	}
}

// No budget is lost or made by calls that end in whatever way.
func TestTokensAreConservedUnderAnySchedule(t *testing.T) {
	for seed := range 300 {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			s := newShaper(t, "tpm=0.000001 burst_tokens=100000000") // nothing comes back by time
			level := func() float64 { return *s.Lanes()[0].TokensLeft }
			before, used := level(), 0.0
			var held []*Permit
			for range 200 {
				if len(held) == 0 || rng.IntN(2) == 0 {
					held = append(held, admit(t, s, Ask{InputTokens: rng.Int64N(1000), OutputTokens: 1 + rng.Int64N(1000), CachedWeight: 1}))
					continue
				}
				i := rng.IntN(len(held))
				p := held[i]
				held = append(held[:i], held[i+1:]...)
				if rng.IntN(3) == 0 {
					p.Release(Settlement{})
					continue
				}
				in, out := rng.Int64N(2000), rng.Int64N(2000)
				used += float64(in + out)
				p.Release(Settlement{Used: true, InputTokens: Tokens{in, true}, OutputTokens: Tokens{out, true}})
			}
			for _, p := range held {
				p.Release(Settlement{})
			}
			if got := before - level(); got < used-1 || got > used+1 {
				t.Errorf("seed %d: %g tokens are gone, %g were used", seed, got, used)
			}
		})
	}
}
