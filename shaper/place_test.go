package shaper

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// course has calls of three scenarios and several sessions come within the first
// seconds, more than a lane lets go meanwhile, and gives the order in which they
// were admitted. A change, if there is one, comes when a third of them have gone.
// They need different numbers of tokens, or are alike.
func course(t *testing.T, rules []string, alike bool, change func(*Shaper)) (order []string) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, rules...)
		var mu sync.Mutex
		var all sync.WaitGroup
		come := func(a Ask, calls int) {
			for i := range calls {
				all.Go(func() {
					p := admit(t, s, a)
					mu.Lock()
					order = append(order, fmt.Sprint(a.Scenario, " ", a.Session, " ", i))
					mu.Unlock()
					p.Release(Settlement{Used: true})
				})
				synctest.Wait()
			}
		}
		// Not in turns, so that the order of admission is not that of arrival.
		for round, a := range []Ask{
			{Scenario: "rag", Session: "r1"}, {Scenario: "rag", Session: "r2"}, {Scenario: "chat", Session: "c1"},
			{Scenario: "agent", Session: "a1"}, {Scenario: "agent", Session: "a2"}, {Scenario: "agent", Session: "a3", Model: "big"},
		} {
			a.InputTokens, a.OutputTokens, a.CachedWeight = int64(100*(1+round%3)), 100, 1
			if alike {
				a.InputTokens = 100
			}
			come(a, 4+round%3*4)
			time.Sleep(3310 * time.Millisecond)
		}
		if change != nil {
			change(s)
		}
		all.Wait()
	})
	return order
}

func TestWaitersKeepTheirPlaceAcrossSessionsAndScenarios(t *testing.T) {
	set := func(texts ...string) func(*testing.T, *Shaper) {
		return func(t *testing.T, s *Shaper) {
			for _, text := range texts {
				if _, _, err := s.Change(text); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	read := func(texts ...string) func(*testing.T, *Shaper) {
		return func(t *testing.T, s *Shaper) {
			var rules []Rule
			for _, text := range texts {
				r, err := ParseRule(text)
				if err != nil {
					t.Fatal(err)
				}
				rules = append(rules, r)
			}
			if err := s.Configure(rules); err != nil {
				t.Fatal(err)
			}
		}
	}
	one := []string{"all rps=1 wait=1h", "scenario=rag share=3", "scenario=other rps=1"}
	two := []string{"all rps=1 wait=1h", "scenario=agent rps=0.7", "scenario=rag priority=high", "model=big concurrency=1"}
	each := []string{"all rps=1 wait=1h", "session=each rps=0.3"}
	tokens := []string{"all tpm=12000 wait=1h"}
	many := []string{"all rps=1 tpm=1000000000 wait=1h"}
	for _, row := range []struct {
		sentence string
		rules    []string
		change   func(*testing.T, *Shaper)
		alike    bool
	}{
		{"the rate of the lane rises", one, set("all rps=2"), false},
		{"the rate of the lane falls", one, set("all rps=0.5"), false},
		{"the lane has another limit, too", one, set("all concurrency=7"), false},
		{"the rule of a lane that nobody waits for is changed", one, set("scenario=other rps=2"), false},
		{"a rule comes that speaks of nobody who waits", one, set("model=none rps=1"), false},
		{"and goes again", one, set("model=none rps=1", "model=none rps=off"), false},
		{"a rule goes that spoke of nobody who waits", one, set("scenario=other rps=off"), false},
		{"a rule comes that speaks of some who wait, and binds nobody", one, set("scenario=chat concurrency=100"), false},
		{"the file is read again, unchanged", one, read(one...), false},
		{"the file is read again, with its rules in another order", one, read(one[2], one[0], one[1]), false},
		{"the file is read again, unchanged, with several lanes on the way", two, read(two...), false},
		{"an unrelated rule, with several lanes on the way", two, set("scenario=other rps=2"), false},
		{"an unrelated rule, with a lane for each session", each, set("scenario=other rps=2"), false},
		{"a rule that binds nobody, with a lane for each session", each, set("scenario=chat concurrency=100"), false},
		{"the budget of tokens rises", tokens, set("all tpm=13000"), false},
		{"an unrelated rule, with a budget of tokens", tokens, set("scenario=other tpm=1"), false},
		{"a budget of tokens comes that binds nobody", one, set("all tpm=1000000000"), true},
		{"a budget of tokens that bound nobody goes", many, set("all tpm=off"), true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			want := course(t, row.rules, row.alike, nil)
			for turns := range 4 { // whoever's it is
				got := course(t, row.rules, row.alike, func(s *Shaper) {
					time.Sleep(time.Duration(turns) * time.Second)
					row.change(t, s)
				})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the order is another one (-without +with the change, %d s later):\n%s", turns, diff)
				}
			}
		})
	}
}
