package shaper

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHolds(t *testing.T) {
	ask := Ask{Upstream: "openai", Model: "gpt", Key: "k1"}
	for _, row := range []struct {
		sentence string
		rule     string
		answers  []Answer
		next     Ask
		wait     time.Duration
		reason   string
	}{
		{"429 with a time → the endpoint's lane is held for it", "rps=100", []Answer{{429, 7 * time.Second, "429"}}, ask, 7 * time.Second, "429"},
		{"429 without one → a second", "rps=100", []Answer{{429, 0, "429"}}, ask, time.Second, "429"},
		{"529 → likewise", "rps=100", []Answer{{529, 0, "529"}}, ask, time.Second, "529"},
		{"503 → likewise", "rps=100", []Answer{{503, 2 * time.Second, "503"}}, ask, 2 * time.Second, "503"},
		{"429 with a time without end → it is held, and nothing overflows", "rps=100 wait=2000h", []Answer{{429, 1<<63 - 1, "429"}}, ask, farAway, "429"},
		{"500 → no word about limits", "rps=100", []Answer{{500, 0, ""}}, ask, 10 * time.Millisecond, ""},
		{"an answer that says nothing is left → held until there is", "rps=100", []Answer{{200, 3 * time.Second, "requests used up"}}, ask, 3 * time.Second, "requests used up"},
		{"a shorter word after a longer one → the longer holds", "rps=100 concurrency=9", []Answer{{429, 7 * time.Second, "429"}, {200, time.Second, "tokens used up"}}, ask, 7 * time.Second, "429"},
		{"another model of the key → free", "rps=100", []Answer{{429, 7 * time.Second, "429"}}, Ask{Upstream: "openai", Model: "small", Key: "k1"}, 10 * time.Millisecond, ""},
		{"another key → free", "rps=100", []Answer{{429, 7 * time.Second, "429"}}, Ask{Upstream: "openai", Model: "gpt", Key: "k2"}, 10 * time.Millisecond, ""},
		{"hold=off → the endpoint may say what it likes", "rps=100 hold=off", []Answer{{429, 7 * time.Second, "429"}}, ask, 10 * time.Millisecond, ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, row.rule)
				p := admit(t, s, ask)
				start := time.Now()
				for _, a := range row.answers {
					if p.Heard(a) {
						t.Errorf("it may be sent again, without retry in the rule")
					}
				}
				p.Release(Settlement{})
				p = admit(t, s, row.next)
				if got := since(start); got != row.wait {
					t.Errorf("the next was admitted after %v, want %v", got, row.wait)
				}
				a := p.Account()
				if a.HoldReason != row.reason || (row.reason != "") != (a.Held > 0) {
					t.Errorf("account %+v, want the reason %q", a, row.reason)
				}
			})
		})
	}
}

func TestRefusalsInARowWaitLongerAndASuccessEndsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=9")
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			admit(t, s, Ask{}).Heard(Answer{Status: 529})
			start := time.Now()
			p := admit(t, s, Ask{})
			if got := since(start); got != want*time.Second {
				t.Errorf("after refusal %d it waited %v, want %v", i+1, got, want*time.Second)
			}
			p.Release(Settlement{})
		}
		p := admit(t, s, Ask{})
		p.Heard(Answer{Status: 200})
		p.Heard(Answer{Status: 529})
		start := time.Now()
		admit(t, s, Ask{})
		if got := since(start); got != time.Second {
			t.Errorf("after a success a refusal holds for %v, want 1s", got)
		}
	})
}

func TestHoldsEndALittleLaterThanTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=100")
		s.Random = func() float64 { return 0.5 }
		admit(t, s, Ask{}).Heard(Answer{429, 4 * time.Second, "429"})
		start := time.Now()
		admit(t, s, Ask{})
		if got := since(start); got != 4200*time.Millisecond {
			t.Errorf("held for %v, want 4s and half of a tenth", got)
		}
	})
}

func TestAHoldBeyondTheDeadlineIsARefusalWithTheTimeThatTheEndpointSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=100 wait=1m")
		admit(t, s, Ask{Model: "gpt"}).Heard(Answer{429, time.Hour, "429"})
		r := refusal(t, s, Ask{Model: "gpt"})
		if r.RetryAfter != 59*time.Minute+time.Second || r.Account.Limit != limitHold || r.Account.Lane != "endpoint  gpt" {
			t.Errorf("refusal %+v", r)
		}
	})
}

func TestARefusedCallIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 retry=2")
		start := time.Now()
		p := admit(t, s, Ask{Session: "a"})
		var all sync.WaitGroup
		all.Go(func() { // came later, and waits for the slot
			other := admit(t, s, Ask{Session: "a"})
			if got := since(start); got != 9*time.Second {
				t.Errorf("the other was admitted after %v, want 9s: behind the one that is tried again", got)
			}
			other.Release(Settlement{})
		})
		synctest.Wait()
		for i, want := range []time.Duration{5 * time.Second, 8 * time.Second} {
			if !p.Heard(Answer{http.StatusTooManyRequests, []time.Duration{5 * time.Second, 3 * time.Second}[i], "429"}) {
				t.Fatalf("attempt %d may not be sent again", i+1)
			}
			if err := p.Again(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := since(start); got != want {
				t.Errorf("attempt %d went after %v, want %v", i+2, got, want)
			}
		}
		if p.Heard(Answer{http.StatusTooManyRequests, 0, "429"}) {
			t.Error("it may be sent a fourth time, with retry=2")
		}
		if a := p.Account(); a.Held != 8*time.Second {
			t.Errorf("held for %v, want 8s", a.Held)
		}
		time.Sleep(time.Second)
		p.Release(Settlement{})
		p.Release(Settlement{}) // counts once
		all.Wait()
	})
}

func TestARetryStopsAtTheDeadlineAndWhenTheCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=2 retry=5 wait=10s")
		p := admit(t, s, Ask{})
		if p.Heard(Answer{429, 11 * time.Second, "429"}) {
			t.Error("it may be sent again after its deadline")
		}
		p.Release(Settlement{})
		time.Sleep(11 * time.Second)
		p = admit(t, s, Ask{})
		if !p.Heard(Answer{429, 5 * time.Second, "429"}) {
			t.Error("it may not be sent again within its deadline")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Again(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the caller's", err)
		}
		p.Release(Settlement{}) // a permit that is not held any more
		for _, l := range s.Lanes() {
			if l.InFlight != 0 || l.Waiting != 0 {
				t.Errorf("left behind: %+v", l)
			}
		}
	})
}

func TestEveryHoldOfOneWaitIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1")
		holder := admit(t, s, Ask{})
		var all sync.WaitGroup
		all.Go(func() {
			p := admit(t, s, Ask{})
			if a := p.Account(); a.Held != 5*time.Second || a.HoldReason != "529" || a.Limit != limitInFlight {
				t.Errorf("account %+v, want 2 s and 3 s held, the last for 529, and then the slot waited for", a)
			}
			p.Release(Settlement{})
		})
		synctest.Wait()
		holder.Heard(Answer{429, 2 * time.Second, "429"})
		time.Sleep(10 * time.Second)
		holder.Heard(Answer{529, 3 * time.Second, "529"})
		time.Sleep(10 * time.Second)
		holder.Release(Settlement{})
		all.Wait()
	})
}
