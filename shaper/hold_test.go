package shaper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Ten calls that were under way together are refused one after the other: that is
// one word of the endpoint's, not ten in a row.
func TestRefusalsOfWhatWasUnderWayAreOneInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := Ask{Upstream: "openai", Model: "gpt"}
		s := newShaper(t, "concurrency=10")
		var under []*Permit
		for range 10 {
			under = append(under, admit(t, s, ask))
		}
		for _, p := range under {
			time.Sleep(10 * time.Millisecond)
			p.Heard(Answer{Status: 429, Why: "429"})
			p.Release(Settlement{})
		}
		start := time.Now()
		admit(t, s, ask)
		if waited := since(start); waited != time.Second-90*time.Millisecond {
			t.Errorf("the next waited %v, want a second from the first refusal", waited)
		}
	})
}

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
		{"429 with a time → the endpoint's lane is held for it", "rps=100", []Answer{{Status: 429, Wait: 7 * time.Second, Why: "429"}}, ask, 7 * time.Second, "429"},
		{"429 without one → a second", "rps=100", []Answer{{Status: 429, Wait: 0, Why: "429"}}, ask, time.Second, "429"},
		{"429 that asks to come again at once → free", "concurrency=9", []Answer{{Status: 429, AtOnce: true, Why: "429"}}, ask, 0, ""},
		{"529 → likewise", "rps=100", []Answer{{Status: 529, Wait: 0, Why: "529"}}, ask, time.Second, "529"},
		{"503 → likewise", "rps=100", []Answer{{Status: 503, Wait: 2 * time.Second, Why: "503"}}, ask, 2 * time.Second, "503"},
		{"429 with a time without end → it is asked again after a day", "rps=100 wait=2000h", []Answer{{Status: 429, Wait: 1<<63 - 1, Why: "429"}}, ask, 24 * time.Hour, "429"},
		{"a week, as a subscription's window has → likewise", "rps=100 wait=2000h", []Answer{{Status: 200, Wait: 7 * 24 * time.Hour, Why: "unified used up"}}, ask, 24 * time.Hour, "unified used up"},
		{"500 → no word about limits", "rps=100", []Answer{{Status: 500, Wait: 0, Why: ""}}, ask, 10 * time.Millisecond, ""},
		{"an answer that says nothing is left → held until there is", "rps=100", []Answer{{Status: 200, Wait: 3 * time.Second, Why: "requests used up"}}, ask, 3 * time.Second, "requests used up"},
		{"a shorter word after a longer one → the longer holds", "rps=100 concurrency=9", []Answer{{Status: 429, Wait: 7 * time.Second, Why: "429"}, {Status: 200, Wait: time.Second, Why: "tokens used up"}}, ask, 7 * time.Second, "429"},
		{"another model of the key → free", "rps=100", []Answer{{Status: 429, Wait: 7 * time.Second, Why: "429"}}, Ask{Upstream: "openai", Model: "small", Key: "k1"}, 10 * time.Millisecond, ""},
		{"another key → free", "rps=100", []Answer{{Status: 429, Wait: 7 * time.Second, Why: "429"}}, Ask{Upstream: "openai", Model: "gpt", Key: "k2"}, 10 * time.Millisecond, ""},
		{"hold=off → the endpoint may say what it likes", "rps=100 hold=off", []Answer{{Status: 429, Wait: 7 * time.Second, Why: "429"}}, ask, 10 * time.Millisecond, ""},
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

// A hold needs no limit of the call's own, once there is any; without one
// nobody is held, but what was said is not forgotten.
func TestTheEndpointIsHeardWithoutALimit(t *testing.T) {
	rag, chat := Ask{Scenario: "rag", Model: "gpt"}, Ask{Scenario: "chat", Model: "gpt"}
	for _, row := range []struct {
		sentence string
		rules    []string
		told     Ask    // who hears of the hold
		then     string // a limit that is set later
		next     Ask
		wait     time.Duration
		lane     string // that the next is said to have waited in
	}{
		{"no limit at all → nobody waits", nil, chat, "", chat, 0, ""},
		{"a limit that comes later → what was said before holds", nil, chat, "scenario=rag rps=100", rag, 7 * time.Second, "endpoint  gpt"},
		{"told to one without a limit → one with a limit waits", []string{"scenario=rag rps=100"}, chat, "", rag, 7 * time.Second, "endpoint  gpt"},
		{"and one without", []string{"scenario=rag rps=100"}, chat, "", chat, 7 * time.Second, "endpoint  gpt"},
		{"told to one with a limit → one without waits", []string{"scenario=rag rps=100"}, rag, "", chat, 7 * time.Second, "endpoint  gpt"},
		{"told to one that passes over it → the others wait", []string{"scenario=rag hold=off"}, rag, "", chat, 7 * time.Second, "endpoint  gpt"},
		{"and it does not", []string{"scenario=rag hold=off"}, chat, "", rag, 0, "scenario=rag"},
		{"another endpoint → free, and in no lane", []string{"scenario=rag rps=100"}, chat, "", Ask{Scenario: "chat", Model: "small"}, 0, ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, row.rules...)
				p := admit(t, s, row.told)
				if p.Heard(Answer{Status: 429, Wait: 7 * time.Second, Why: "429"}) {
					t.Error("it may be sent again, without retry in a rule")
				}
				p.Release(Settlement{})
				if row.then != "" {
					if _, _, err := s.Change(row.then); err != nil {
						t.Fatal(err)
					}
				}
				lanes := s.Lanes()
				if l := lanes[len(lanes)-1]; l.Name != "endpoint  gpt" || l.HeldMS != 7000 || l.HoldReason != "429" || l.EndpointRefused != 1 {
					t.Errorf("what was said is kept as %+v", l)
				}
				start := time.Now()
				p = admit(t, s, row.next)
				if got := since(start); got != row.wait || p.Account().Lane != row.lane {
					t.Errorf("the next was admitted after %v by the lane %q, want %v and %q", got, p.Account().Lane, row.wait, row.lane)
				}
				p.Release(Settlement{})
			})
		})
	}
}

func TestAHoldOfCallsWithoutALimitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "scenario=rag rps=100")
		admit(t, s, Ask{Scenario: "chat"}).Heard(Answer{Status: 429, Wait: time.Hour, Why: "429"})
		if r := refusal(t, s, Ask{Scenario: "chat"}); r.Account.Limit != limitHold || r.RetryAfter != time.Hour-defaultWait+time.Second {
			t.Errorf("a wait of an hour is refused with %+v", r)
		}
		time.Sleep(time.Hour - time.Minute)
		fill(t, s, defaultQueue, Ask{Scenario: "chat"})
		if r := refusal(t, s, Ask{Scenario: "chat"}); r.Account.Limit != limitHold {
			t.Errorf("one more than may wait is refused with %+v", r)
		}
	})
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
		admit(t, s, Ask{}).Heard(Answer{Status: 429, Wait: 4 * time.Second, Why: "429"})
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
		admit(t, s, Ask{Model: "gpt"}).Heard(Answer{Status: 429, Wait: time.Hour, Why: "429"})
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
			if !p.Heard(Answer{Status: http.StatusTooManyRequests, Wait: []time.Duration{5 * time.Second, 3 * time.Second}[i], Why: "429"}) {
				t.Fatalf("attempt %d may not be sent again", i+1)
			}
			if err := p.Again(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if got := since(start); got != want {
				t.Errorf("attempt %d went after %v, want %v", i+2, got, want)
			}
		}
		if p.Heard(Answer{Status: http.StatusTooManyRequests, Wait: 0, Why: "429"}) {
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
		if p.Heard(Answer{Status: 429, Wait: 11 * time.Second, Why: "429"}) {
			t.Error("it may be sent again after its deadline")
		}
		p.Release(Settlement{})
		time.Sleep(11 * time.Second)
		p = admit(t, s, Ask{})
		if !p.Heard(Answer{Status: 429, Wait: 5 * time.Second, Why: "429"}) {
			t.Error("it may not be sent again within its deadline")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Again(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
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
		holder.Heard(Answer{Status: 429, Wait: 2 * time.Second, Why: "429"})
		time.Sleep(10 * time.Second)
		holder.Heard(Answer{Status: 529, Wait: 3 * time.Second, Why: "529"})
		time.Sleep(10 * time.Second)
		holder.Release(Settlement{})
		all.Wait()
	})
}

func TestARefusedCallGoesOnWithAnotherKeyWithoutWaitingForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 retry=1 wait=10s")
		start := time.Now()
		p := admit(t, s, Ask{Key: "k1"})
		if !p.Heard(Answer{Status: 429, Wait: time.Hour, Why: "429", OtherKey: true}) {
			t.Fatal("it may not be sent again, with another key at hand")
		}
		if err := p.Again(t.Context(), "k2"); err != nil || since(start) != 0 {
			t.Errorf("it went on after %v: %v", since(start), err)
		}
		p.Release(Settlement{})
		if r := refusal(t, s, Ask{Key: "k1"}); r.Account.Limit != limitHold {
			t.Errorf("the first key is not held: %+v", r)
		}
		admit(t, s, Ask{Key: "k2", Age: 9 * time.Second}).Release(Settlement{})
	})
}

func TestEndpointsThatOnlyEverRefusedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t)
		for i := range 20 * fewLines {
			p := admit(t, s, Ask{Key: fmt.Sprint(i)})
			p.Heard(Answer{Status: 429, Why: "429"})
			p.Release(Settlement{})
			time.Sleep(time.Second)
		}
		if n := len(s.Lanes()); n > 3*fewLines {
			t.Errorf("%d endpoints are remembered", n)
		}
	})
}
