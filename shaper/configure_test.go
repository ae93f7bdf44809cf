package shaper

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func change(t *testing.T, s *Shaper, text string) (old, now Rule) {
	t.Helper()
	old, now, err := s.Change(text)
	if err != nil {
		t.Fatal(err)
	}
	return old, now
}

// queued is n calls that wait, in this order, and when each was admitted.
type queued struct {
	all  sync.WaitGroup
	mu   sync.Mutex
	at   map[int]time.Duration
	took []int
}

func inLine(t *testing.T, s *Shaper, n int, a Ask) *queued {
	t.Helper()
	q := &queued{at: map[int]time.Duration{}}
	start := time.Now()
	for i := range n {
		q.all.Go(func() {
			p := admit(t, s, a)
			q.mu.Lock()
			q.at[i] = since(start)
			q.took = append(q.took, i)
			q.mu.Unlock()
			p.Release(Settlement{Used: true})
		})
		synctest.Wait()
	}
	return q
}

func TestAChangedRateHoldsForThoseWhoWaitAndTheyKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=0.1 wait=1h")
		q := inLine(t, s, 5, Ask{})
		time.Sleep(5 * time.Second)
		if old, now := change(t, s, "rps=1"); old.Limit.Requests != 0.1 || now.Limit.Requests != 1 || now.Limit.Wait != time.Hour {
			t.Errorf("changed from %v to %v", old, now)
		}
		q.all.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(q.took, want) {
			t.Errorf("they went in the order %v", q.took)
		}
		if q.at[1] != 5*time.Second || q.at[4] != 8*time.Second {
			t.Errorf("they went at %v; want the second at 5s, as the last went 5s before, and the last at 8s", q.at)
		}
	})
}

func TestALaneThatIsTakenAwayLetsItsWaitersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "rps=0.1 wait=1h")
		q := inLine(t, s, 5, Ask{})
		time.Sleep(5 * time.Second)
		if _, now := change(t, s, "rps=off wait=off"); now.Limit != (Limit{}) || len(s.Rules()) != 0 {
			t.Errorf("left: %v, rules %v", now, s.Rules())
		}
		q.all.Wait()
		if q.at[4] != 5*time.Second {
			t.Errorf("they went at %v, want 5s", q.at)
		}
	})
}

func TestANewLaneCountsTheStreamsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t)
		var streams []*Permit
		for range 3 {
			streams = append(streams, admit(t, s, Ask{Scenario: "rag"}))
		}
		change(t, s, "scenario=rag concurrency=2")
		q := inLine(t, s, 1, Ask{Scenario: "rag"})
		time.Sleep(time.Second)
		streams[0].Release(Settlement{Used: true})
		time.Sleep(time.Second)
		streams[1].Release(Settlement{Used: true})
		q.all.Wait()
		if q.at[0] != 2*time.Second {
			t.Errorf("it went after %v, want 2s: when one was left", q.at[0])
		}
		streams[2].Release(Settlement{Used: true})
		if l := s.Lanes()[0]; l.InFlight != 0 {
			t.Errorf("%+v", l)
		}
	})
}

func TestALowerLimitWaitsForStreamsToEndAndEndsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=3")
		var streams []*Permit
		for range 3 {
			streams = append(streams, admit(t, s, Ask{}))
		}
		q := inLine(t, s, 1, Ask{})
		change(t, s, "concurrency=1")
		for range 2 {
			time.Sleep(time.Second)
			streams[0].Release(Settlement{})
			streams = streams[1:]
		}
		time.Sleep(time.Second)
		streams[0].Release(Settlement{})
		q.all.Wait()
		if q.at[0] != 3*time.Second {
			t.Errorf("the waiter went after %v, want 3s", q.at[0])
		}
	})
}

func TestAStreamOfALaneThatIsGoneGivesBackNothingToItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1")
		old := admit(t, s, Ask{})
		if err := s.Configure(nil); err != nil {
			t.Fatal(err)
		}
		change(t, s, "concurrency=1")
		q := inLine(t, s, 1, Ask{})
		time.Sleep(time.Second)
		old.Release(Settlement{})
		q.all.Wait()
		if l := s.Lanes()[0]; q.at[0] != time.Second || l.InFlight != 0 {
			t.Errorf("went at %v, lane %+v", q.at[0], l)
		}
	})
}

func TestTwoRulesForOneLaneAreRefused(t *testing.T) {
	s := newShaper(t, "rps=1")
	err := s.Configure([]Rule{{Limit: Limit{Requests: 1}}, {Limit: Limit{InFlight: 1}}})
	if err == nil || !strings.Contains(err.Error(), "all has two limits") || len(s.Rules()) != 1 {
		t.Errorf("error %v, rules %v", err, s.Rules())
	}
}

func TestChangesThatMeanNothingAreRefused(t *testing.T) {
	s := newShaper(t, "rps=1")
	for text, want := range map[string]string{
		"scenario=rag": "what is the limit?",
		"rps=fast":     "want a number above 0",
		"speed=2":      "is no limit; want one of",
	} {
		if _, _, err := s.Change(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if got := s.Rules(); len(got) != 1 || got[0].String() != "all rps=1" {
		t.Errorf("rules %v", got)
	}
}

func TestLanesOfSessionsThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "session=each concurrency=1 rps=1")
		for i := range 10_000 {
			admit(t, s, Ask{Session: string(rune('a'+i%26)) + time.Duration(i).String()}).Release(Settlement{})
			time.Sleep(time.Second)
		}
		if n := len(s.Lanes()); n > 2*fewLines+2 {
			t.Errorf("%d lanes are remembered", n)
		}
	})
}

func TestAStreamIsTakenOutOfAnEndpointsLaneThatItNoLongerPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "scenario=rag rps=1")
		p := admit(t, s, Ask{Scenario: "rag", Model: "m"})
		change(t, s, "scenario=rag hold=off")
		p.Release(Settlement{Used: true})
		for _, l := range s.Lanes() {
			if l.InFlight != 0 {
				t.Errorf("left behind: %+v", l)
			}
		}
	})
}

// A waiter's endpoint counts from when the waiter came under it.
func TestAHoldIsCountedAcrossAChangeOfRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1 wait=1h")
		holder := admit(t, s, Ask{})
		holder.Heard(Answer{Status: 429, Wait: 20 * time.Second, Why: "429"})
		var all sync.WaitGroup
		all.Go(func() {
			p := admit(t, s, Ask{})
			if a := p.Account(); a.Held != 20*time.Second {
				t.Errorf("held for %v, want 20s", a.Held)
			}
			p.Release(Settlement{})
		})
		time.Sleep(5 * time.Second)
		change(t, s, "concurrency=2")
		all.Wait()
		holder.Release(Settlement{})
	})
}
