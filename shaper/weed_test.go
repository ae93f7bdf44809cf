package shaper

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends are when calls were refused, and the last refusal; and how many were
// admitted.
type ends struct {
	mu       sync.Mutex
	refused  []time.Duration // after they came
	last     *Refusal
	admitted int
	all      sync.WaitGroup
}

// come has n calls come at once.
func (e *ends) come(t *testing.T, s *Shaper, n int, a Ask) {
	for range n {
		e.all.Go(func() {
			start := time.Now()
			p, err := s.Admit(t.Context(), a)
			e.mu.Lock()
			defer e.mu.Unlock()
			var r *Refusal
			if errors.As(err, &r) {
				e.refused, e.last = append(e.refused, since(start)), r
				return
			}
			e.admitted++
			p.Release(Settlement{})
		})
	}
	synctest.Wait()
}

// at says of all that were refused that it was then.
func (e *ends) at(t *testing.T, n int, want time.Duration) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refused) != n {
		t.Errorf("%d were refused, want %d", len(e.refused), n)
	}
	for _, at := range e.refused {
		if at != want {
			t.Errorf("one was refused after %v, want %v", at, want)
			return
		}
	}
}

func TestAHoldRefusesThoseWhoWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 wait=60s")
		p := admit(t, s, Ask{})
		var e ends
		e.come(t, s, 10, Ask{})
		time.Sleep(time.Second)
		p.Heard(Answer{Status: 429, Wait: time.Hour, Why: "429"})
		e.all.Wait()
		e.at(t, 10, time.Second)
		if want := time.Hour - time.Minute + time.Second; e.last.RetryAfter != want {
			t.Errorf("told to come again after %v, want %v: %v", e.last.RetryAfter, want, e.last)
		}
		if e.last.Account.Limit != limitHold || e.last.Account.Refusal != HopelessWait || e.last.Account.ExpectedWait != time.Hour {
			t.Errorf("account %+v", e.last.Account)
		}
		p.Release(Settlement{})
	})
}

func TestALimitThatFallsRefusesThoseWhoWaitInVainAndLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=10 wait=60s")
		var e ends
		e.come(t, s, 100, Ask{})
		time.Sleep(1050 * time.Millisecond) // 11 have gone
		if _, _, err := s.Change("all rps=0.1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		e.at(t, 84, 1050*time.Millisecond) // the next 5 go in 10, 20 … 50 s
		e.all.Wait()
		e.at(t, 84, 1050*time.Millisecond)
		if e.admitted != 16 {
			t.Errorf("%d were admitted, want 16", e.admitted)
		}
	})
}

func TestAPatientCallIsNotRefusedForALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 wait=60s")
		p := admit(t, s, Ask{})
		var e ends
		e.come(t, s, 1, Ask{Patient: true})
		p.Heard(Answer{Status: 429, Wait: time.Hour, Why: "429"})
		p.Release(Settlement{})
		e.all.Wait()
		e.at(t, 0, 0)
	})
}

func TestTheWaitIsExpectedByShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all rps=10 wait=20s", "scenario=small share=0.1", "scenario=big share=1")
		loop := newLoop(t, s)
		loop.feed(150, Ask{Scenario: "big"}, 0)
		time.Sleep(30 * time.Second)
		var e ends
		e.come(t, s, 40, Ask{Scenario: "small"}) // one goes in 1.1 s
		e.mu.Lock()
		if n := len(e.refused); n < 20 || n > 24 {
			t.Errorf("%d were refused at once, want about 22", n)
		}
		e.mu.Unlock()
		e.all.Wait()
		late := 0
		for _, at := range e.refused {
			if at > 10*time.Second {
				late++
			}
		}
		if late > 2 || e.admitted < 16 {
			t.Errorf("%d were admitted, and %d refused only after they had waited", e.admitted, late)
		}
		loop.run(0)
	})
}

func TestHigherClassesThatLeaveNothingRefuseBeforeTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all rps=10 wait=20s", "scenario=lo priority=low", "scenario=hi priority=high")
		loop := newLoop(t, s)
		loop.feed(12, Ask{Scenario: "hi"}, 0)
		time.Sleep(5 * time.Second)
		var early ends
		early.come(t, s, 1, Ask{Scenario: "lo"})
		early.all.Wait()
		if at := early.refused; len(at) != 1 || at[0] > 10*time.Second {
			t.Errorf("refused after %v, want when it was clear that nothing would be left, about 7 s", at)
		}
		time.Sleep(20 * time.Second)
		var late ends
		late.come(t, s, 1, Ask{Scenario: "lo"})
		late.all.Wait()
		late.at(t, 1, 0)
		loop.run(0)
	})
}

// However many wait, no call pays for a look at all of them.
func TestWhoHearsOfAHoldDoesNotLookAtAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 wait=60s queue=100000")
		p := admit(t, s, Ask{})
		var e ends
		e.come(t, s, 1000, Ask{})
		s.mu.Lock()
		endpoint := s.lanes[laneKey{name: "endpoint"}]
		s.hold(endpoint, p, Answer{Status: 429, Wait: time.Hour, Why: "429"}, true, s.now())
		if endpoint.refused > 0 {
			t.Errorf("the call that heard of the hold refused %d others itself", endpoint.refused)
		}
		s.mu.Unlock()
		e.all.Wait()
		e.at(t, 1000, 0)
		p.Release(Settlement{})
	})
}

// And who comes while it is under way need not wait for its end.
func TestALookStopsForThoseWhoWantTheLock(t *testing.T) {
	var l lock
	const tries = 100
	had := 0
	for range tries {
		var got bool
		var all sync.WaitGroup
		l.Lock()
		all.Go(func() {
			l.Lock()
			got = true
			l.Unlock()
		})
		for l.wanted.Load() == 0 {
			runtime.Gosched()
		}
		l.pause()
		if got {
			had++
		}
		l.Unlock()
		all.Wait()
	}
	if had < tries/2 {
		t.Errorf("who waited for the lock had it in %d of %d pauses", had, tries)
	}
}

// Many sessions come and go, and yet each has one lane, that of its calls that
// are under way.
func TestALaneInUseIsNotForgottenForAllThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "session=each concurrency=1 queue=none")
		var held []*Permit
		for i := range 50 {
			held = append(held, admit(t, s, Ask{Session: fmt.Sprint("held ", i)}))
		}
		for i := range 20 * fewLines {
			admit(t, s, Ask{Session: fmt.Sprint(i)}).Release(Settlement{})
		}
		for i, p := range held {
			refusal(t, s, Ask{Session: fmt.Sprint("held ", i)})
			p.Release(Settlement{})
			admit(t, s, Ask{Session: fmt.Sprint("held ", i)}).Release(Settlement{})
		}
		if n, m := len(s.lines), len(s.lanes); n > 2*fewLines || m > 2*fewLines {
			t.Errorf("%d lines and %d lanes are remembered", n, m)
		}
	})
}
