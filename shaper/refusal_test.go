package shaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill has n calls wait, each in its place, and ends them with the test.
func fill(t *testing.T, s *Shaper, n int, a Ask) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if p, err := s.Admit(ctx, a); err == nil {
				p.Release(Settlement{Used: true})
			}
		})
		synctest.Wait()
	}
	t.Cleanup(func() { cancel(); all.Wait() })
}

// refusal is what a call is told that is not admitted.
func refusal(t *testing.T, s *Shaper, a Ask) *Refusal {
	t.Helper()
	p, err := s.Admit(t.Context(), a)
	var r *Refusal
	if p != nil || !errors.As(err, &r) {
		t.Fatalf("permit %v, error %v: want a refusal", p, err)
	}
	return r
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		sentence string
		rule     string
		holding  int // calls in flight
		waiting  int
		ask      Ask
		after    time.Duration // for which it waited
		says     string
		limit    string
		refusal  string
		retry    time.Duration
	}{
		{"a full queue refuses at once, and says when a place is free", "rps=0.25 queue=2 wait=1h", 1, 2, Ask{},
			0, "its queue is full", limitRequests, FullQueue, 5 * time.Second},
		{"no queue refuses who would have to wait", "concurrency=1 queue=none", 1, 0, Ask{},
			0, "its queue is full", limitInFlight, FullQueue, 0},
		{"a wait that would pass its deadline is refused at once, and says when it would not", "rps=0.1 wait=35s", 1, 3, Ask{},
			0, "it would have to wait for 40s, and may for 35s", limitRequests, HopelessWait, 6 * time.Second},
		{"the deadline counts from the arrival", "rps=0.1 wait=35s", 1, 2, Ask{Age: 10 * time.Second},
			0, "it would have to wait for 30s, and may for 25s", limitRequests, HopelessWait, 6 * time.Second},
		{"a slot of which nobody knows when it comes is waited for, as long as one may", "concurrency=1 wait=20s", 1, 0, Ask{},
			20 * time.Second, "the call has waited as long as it may", limitInFlight, Deadline, 0},
		{"a debt that nobody can wait for is refused", "tpm=60 wait=10s", 1, 0, Ask{},
			0, "it would have to wait for 16m40s, and may for 10s", limitTokens, HopelessWait, 991 * time.Second},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, row.rule)
				for range row.holding {
					admit(t, s, Ask{InputTokens: 1, OutputTokens: 999, CachedWeight: 1})
				}
				fill(t, s, row.waiting, Ask{})
				start := time.Now()
				r := refusal(t, s, row.ask)
				if got := since(start); got != row.after {
					t.Errorf("refused after %v, want %v", got, row.after)
				}
				if !strings.Contains(r.Error(), row.says) || !strings.Contains(r.Error(), "lane all (") {
					t.Errorf("it says %q, want %q and the lane", r, row.says)
				}
				if r.Account.Refusal != row.refusal {
					t.Errorf("the reason is %q, want %q", r.Account.Refusal, row.refusal)
				}
				if r.Account.Limit != row.limit || r.Account.Lane != "all" || r.RetryAfter != row.retry {
					t.Errorf("limit %q of lane %q, retry after %v; want %q, all, %v", r.Account.Limit, r.Account.Lane, r.RetryAfter, row.limit, row.retry)
				}
			})
		})
	}
}

func TestWhoAsksAgainWhenToldIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=0.1 wait=35s")
		fill(t, s, 4, Ask{})
		r := refusal(t, s, Ask{})
		time.Sleep(r.RetryAfter)
		admit(t, s, Ask{}).Release(Settlement{})
	})
}

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all rps=1 wait=1h", "scenario=urgent priority=high", "scenario=batch priority=low")
		admit(t, s, Ask{})
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		for _, name := range []string{"batch", "batch", "chat", "urgent", "chat", "urgent"} {
			all.Go(func() {
				p := admit(t, s, Ask{Scenario: name})
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				p.Release(Settlement{})
			})
			synctest.Wait()
		}
		all.Wait()
		if want := []string{"urgent", "urgent", "chat", "chat", "batch", "batch"}; !slices.Equal(order, want) {
			t.Errorf("admitted %v, want %v", order, want)
		}
	})
}

func TestSharesOfScenarios(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all rps=10 wait=1h queue=10000", "scenario=big share=3")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for _, name := range []string{"big", "small"} {
			for range 700 {
				all.Go(func() {
					if p, err := s.Admit(ctx, Ask{Scenario: name}); err == nil {
						mu.Lock()
						got[name]++
						mu.Unlock()
						p.Release(Settlement{})
					}
				})
			}
		}
		all.Wait()
		if ratio := float64(got["big"]) / float64(got["small"]); ratio < 2.9 || ratio > 3.1 {
			t.Errorf("%v: the ratio is %.2f, want 3", got, ratio)
		}
	})
}

func TestWhoComesNewSharesFromThenOn(t *testing.T) {
	for _, by := range []string{"session", "scenario"} {
		t.Run(by, func(t *testing.T) { newcomer(t, by == "scenario") })
	}
}

func newcomer(t *testing.T, byScenario bool) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=10 wait=1h")
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		queue := func(session string, n int) {
			a := Ask{Session: session}
			if byScenario {
				a = Ask{Scenario: session}
			}
			for range n {
				all.Go(func() {
					p := admit(t, s, a)
					mu.Lock()
					order = append(order, session)
					mu.Unlock()
					p.Release(Settlement{})
				})
			}
			synctest.Wait()
		}
		queue("old", 500)
		time.Sleep(30 * time.Second)
		mu.Lock()
		order = nil
		mu.Unlock()
		queue("new", 100)
		all.Wait()
		n := 0
		for _, session := range order[:40] {
			if session == "new" {
				n++
			}
		}
		if n < 19 || n > 21 {
			t.Errorf("of the first 40 that were admitted after it came, the new session had %d, want 20", n)
		}
	})
}

func TestASessionForEachCallIsNoWayToComeFirst(t *testing.T) {
	for _, by := range []string{"session", "scenario"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, "rps=10 wait=1h")
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				var all sync.WaitGroup
				steady := 0
				call := func(a Ask) bool {
					p, err := s.Admit(ctx, a)
					if err == nil {
						p.Release(Settlement{})
					}
					return err == nil
				}
				for i := range 20 {
					all.Go(func() {
						for n := 0; ; n++ {
							a := Ask{Session: fmt.Sprint(i, " ", n)}
							if by == "scenario" {
								a = Ask{Scenario: a.Session}
							}
							if !call(a) {
								return
							}
						}
					})
				}
				all.Go(func() {
					for call(Ask{Session: "steady"}) {
						steady++
					}
				})
				all.Wait()
				if steady < 20 { // of 600, among 21 who wait
					t.Errorf("the steady session had %d of 600 calls, want its turns, about 28", steady)
				}
			})
		})
	}
}

// A new session among greedy ones is not taken for the last of all who wait.
func TestTheWaitIsExpectedByFairTurnsNotByTheQueuesLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=1 wait=20s")
		fill(t, s, 20, Ask{Session: "greedy"})
		start := time.Now()
		refusal(t, s, Ask{Session: "greedy"})
		admit(t, s, Ask{Session: "polite"}).Release(Settlement{})
		if got := since(start); got > 3*time.Second {
			t.Errorf("it waited %v behind a greedy session", got)
		}
	})
}

// A waiter for one lane holds nothing of another.
func TestAWaiterForTokensHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all concurrency=1", "scenario=rag tpm=60")
		admit(t, s, Ask{Scenario: "rag", InputTokens: 10, OutputTokens: 10, CachedWeight: 1}).Release(Settlement{Used: true})
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			p := admit(t, s, Ask{Scenario: "rag"})
			if got := since(start); got != 20*time.Second {
				t.Errorf("the waiter for tokens was admitted after %v, want 20s", got)
			}
			if a := p.Account(); a.Lane != "scenario=rag" || a.Limit != limitTokens || a.Position != 1 {
				t.Errorf("account %+v", a)
			}
			p.Release(Settlement{})
		})
		synctest.Wait()
		for range 3 {
			admit(t, s, Ask{Scenario: "chat"}).Release(Settlement{Used: true})
		}
		if got := since(start); got != 0 {
			t.Errorf("the others were admitted after %v: the waiter held the slot", got)
		}
		all.Wait()
	})
}

func TestNestedLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "key=each concurrency=2", "scenario=rag concurrency=1", "session=each rps=1")
		a := admit(t, s, Ask{Scenario: "rag", Key: "k1", Session: "s1"})
		b := admit(t, s, Ask{Scenario: "chat", Key: "k1", Session: "s2"})
		c := admit(t, s, Ask{Scenario: "chat", Key: "k2", Session: "s3"})
		var got []string
		for _, l := range s.Lanes() {
			if l.InFlight > 0 && !strings.HasPrefix(l.Name, "endpoint") {
				got = append(got, fmt.Sprintf("%s:%d", l.Name, l.InFlight))
			}
		}
		if want := []string{"key=k1:2", "key=k2:1", "scenario=rag:1", "session=s1:1", "session=s2:1", "session=s3:1"}; !slices.Equal(got, want) {
			t.Errorf("in flight %v, want %v", got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Admit(ctx, Ask{Scenario: "rag", Key: "k2", Session: "s4"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call of the scenario: %v, want that it waits", err)
		}
		for _, p := range []*Permit{a, b, c} {
			p.Release(Settlement{Used: true})
		}
		for _, l := range s.Lanes() {
			if l.InFlight != 0 || l.Waiting != 0 {
				t.Errorf("after all have ended: %+v", l)
			}
		}
	})
}

func TestACallThatIsCancelledAsItIsAdmittedGivesItsPermitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=1 concurrency=1 tpm=60000")
		p := admit(t, s, Ask{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Admit(ctx, Ask{}); err == nil {
				t.Error("it was admitted after it had left")
			}
		})
		time.Sleep(2 * time.Second)
		s.mu.Lock() // both happen while it cannot look
		cancel()
		s.giveBack(p, Settlement{}, s.now())
		s.mu.Unlock()
		all.Wait()
		start := time.Now()
		admit(t, s, Ask{})
		if got := since(start); got != 0 {
			t.Errorf("the next was admitted after %v, want at once: nothing was sent", got)
		}
	})
}

func TestARefusalCountsInTheLaneThatRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "all rps=100", "scenario=rag concurrency=1 queue=none")
		p := admit(t, s, Ask{Scenario: "rag"})
		refusal(t, s, Ask{Scenario: "rag"})
		p.Release(Settlement{})
		got := map[string]int64{}
		for _, l := range s.Lanes() {
			got[l.Name] = l.Refused
		}
		if diff := cmp.Diff(map[string]int64{"all": 0, "scenario=rag": 1, "endpoint": 0}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// One call that has ended says when a place may be free.
func TestARefusalForSlotsGoesByTheCallsThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=2 queue=none")
		first := admit(t, s, Ask{})
		admit(t, s, Ask{})
		time.Sleep(9 * time.Second)
		first.Release(Settlement{Used: true})
		admit(t, s, Ask{})
		_, err := s.Admit(t.Context(), Ask{})
		var r *Refusal
		if !errors.As(err, &r) || r.RetryAfter != 5*time.Second {
			t.Errorf("%v, want a place of two within 9 s: in 5", err)
		}
	})
}
