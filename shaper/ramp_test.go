package shaper

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// behindAHold has calls wait behind a hold of 2 s, and gives what became of them:
// each is sent again when it is refused. answer gives a call's status and the
// wait that is asked for, and after how long it comes.
func behindAHold(t *testing.T, calls int, answer func(now time.Duration) (a Answer, head time.Duration)) (refused int, last time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=1000 retry=1000 wait=1h")
		first := admit(t, s, Ask{})
		first.Heard(Answer{Status: 429, Wait: 2 * time.Second, Why: "429"})
		start := time.Now().Add(2 * time.Second)
		var mu sync.Mutex
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				p := admit(t, s, Ask{})
				for {
					mu.Lock()
					a, head := answer(since(start))
					if last = since(start); a.Status == http.StatusTooManyRequests {
						refused++
					}
					mu.Unlock()
					time.Sleep(head)
					if !p.Heard(a) {
						break
					}
					if err := p.Again(t.Context(), ""); err != nil {
						t.Error(err)
						return
					}
				}
				if a := p.Account(); a.HoldReason != "429" || a.Limit != limitHold {
					t.Errorf("account %+v, want the hold", a)
				}
				p.Release(Settlement{})
			})
		}
		all.Wait()
		first.Release(Settlement{})
		for _, l := range s.lanes {
			if l.inFlight != 0 || l.hold.unheard != 0 {
				t.Errorf("left behind in %s: %d in flight, %d unheard", l.name, l.inFlight, l.hold.unheard)
			}
		}
	})
	return refused, last
}

func TestWhoWaitedBehindAHoldIsLetGoAsTheEndpointTakesThem(t *testing.T) {
	const calls = 100
	ok := Answer{Status: http.StatusOK}
	everySecond := func() func(time.Duration) (Answer, time.Duration) {
		next := time.Duration(0)
		return func(now time.Duration) (Answer, time.Duration) {
			if now < next {
				return Answer{Status: 429, Wait: next - now, Why: "429"}, 10 * time.Millisecond
			}
			next = now + time.Second
			return ok, 100 * time.Millisecond
		}
	}
	for _, row := range []struct {
		sentence    string
		answer      func(time.Duration) (Answer, time.Duration)
		mostRefused int
		within      time.Duration // all have gone, after the hold's end
	}{
		{"an endpoint that takes one a second → about one refusal for each, and none of the rate is lost", everySecond(), calls, calls * 1050 * time.Millisecond},
		{"one that takes all again → all go in a few round trips", func(time.Duration) (Answer, time.Duration) { return ok, 200 * time.Millisecond }, 0, 1500 * time.Millisecond},
		{"one whose answers begin after minutes → its silence is no refusal", func(time.Duration) (Answer, time.Duration) { return ok, 3 * time.Minute }, 0, 7 * time.Second},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			refused, last := behindAHold(t, calls, row.answer)
			t.Logf("%d refused, the last went after %v", refused, last)
			if refused > row.mostRefused || last > row.within {
				t.Errorf("%d refused, and the last went %v after the hold's end; want %d and %v at most", refused, last, row.mostRefused, row.within)
			}
		})
	}
}

// A call that fails before it is answered says nothing, and nobody waits for it.
func TestACallThatEndsUnheardMakesRoomForTheNextAfterAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "concurrency=9")
		admit(t, s, Ask{}).Heard(Answer{Status: 429, Wait: 2 * time.Second, Why: "429"})
		probe := admit(t, s, Ask{})
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			admit(t, s, Ask{})
			if got := since(start); got != 300*time.Millisecond {
				t.Errorf("the next went after %v, want 300ms: as the first had failed", got)
			}
		})
		time.Sleep(300 * time.Millisecond)
		probe.Release(Settlement{})
		all.Wait()
	})
}
