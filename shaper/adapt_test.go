package shaper

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// endpoint is one that refuses what is more than it can have in flight.
type endpoint struct {
	mu       sync.Mutex
	limit    int
	inFlight int
	rng      *rand.Rand
	slow     func(inFlight int) time.Duration // TTFT; nil: 100 ms

	served, refused int
}

// serve takes a call's part with the endpoint and says whether it was served.
func (e *endpoint) serve(ctx context.Context, p *Permit) bool {
	e.mu.Lock()
	if e.inFlight >= e.limit {
		e.refused++
		e.mu.Unlock()
		p.Heard(Answer{Status: 429, Wait: time.Second, Why: "429"})
		p.Release(Settlement{})
		return false
	}
	e.inFlight++
	takes := 500*time.Millisecond + time.Duration(e.rng.ExpFloat64()*float64(1500*time.Millisecond)) // long answers are no congestion
	ttft := 100 * time.Millisecond
	if e.slow != nil {
		ttft = e.slow(e.inFlight)
	}
	e.mu.Unlock()
	p.Heard(Answer{Status: 200})
	select {
	case <-time.After(ttft + takes):
	case <-ctx.Done():
	}
	e.mu.Lock()
	e.inFlight--
	e.served++
	e.mu.Unlock()
	p.Release(Settlement{Used: true, InputTokens: Tokens{1000, true}, CachedTokens: Tokens{0, true}, OutputTokens: Tokens{300, true}, TTFT: ttft})
	return true
}

// press has more callers than the endpoint can serve go through a shaper.
func press(ctx context.Context, s *Shaper, e *endpoint, callers int) *sync.WaitGroup {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if p, err := s.Admit(ctx, Ask{InputTokens: 1000}); err == nil {
					e.serve(ctx, p)
				}
			}
		})
	}
	return &all
}

// goodput is what an endpoint serves in five minutes behind a rule, in calls.
func goodput(t *testing.T, rule string, e *endpoint) int {
	var served int
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		press(ctx, newShaper(t, rule), e, 30).Wait()
		served = e.served
	})
	return served
}

func hidden(limit int) *endpoint {
	return &endpoint{limit: limit, rng: rand.New(rand.NewPCG(1, 6))}
}

func TestAdaptiveFindsAHiddenLimit(t *testing.T) {
	for _, limit := range []int{2, 8, 25} {
		best := 0
		for _, fixed := range []string{"concurrency=1", "concurrency=2", "concurrency=7", "concurrency=8", "concurrency=9", "concurrency=24", "concurrency=25"} {
			best = max(best, goodput(t, fixed, hidden(limit)))
		}
		e := hidden(limit)
		got := goodput(t, "concurrency=adaptive", e)
		t.Logf("a hidden limit of %d: adaptive served %d calls and %d were refused; the best fixed setting served %d", limit, got, e.refused, best)
		if float64(got) < 0.95*float64(best) {
			t.Errorf("a hidden limit of %d: adaptive served %d calls, the best fixed setting %d: below 95 %%", limit, got, best)
		}
	}
}

func TestAdaptiveBacksOffWhenTheLimitHalvesAndComesBackWhenItRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e := hidden(8)
		s := newShaper(t, "concurrency=adaptive")
		all := press(ctx, s, e, 30)
		level := func() int { return *s.Lanes()[0].MostInFlight }
		time.Sleep(3 * time.Minute)
		if n := level(); n < 7 || n > 9 {
			t.Errorf("with a hidden limit of 8 it has found %d", n)
		}
		e.mu.Lock()
		e.limit = 4
		e.mu.Unlock()
		time.Sleep(2 * time.Second)
		if n := level(); n > 4 {
			t.Errorf("2 s after the limit fell to 4 it is at %d", n)
		}
		time.Sleep(time.Minute)
		if n := level(); n < 3 || n > 5 {
			t.Errorf("a minute after the limit fell to 4 it is at %d", n)
		}
		e.mu.Lock()
		e.limit = 8
		e.mu.Unlock()
		time.Sleep(4 * time.Minute)
		if n := level(); n < 7 {
			t.Errorf("4 minutes after the limit rose to 8 it is at %d", n)
		}
		stop()
		all.Wait()
	})
}

func TestAdaptiveGoesByTheTimeToFirstToken(t *testing.T) {
	for _, row := range []struct {
		sentence string
		slow     func(inFlight int) time.Duration
		low, top int
	}{
		{"the first token is ten times as late above 6 → it stays about there", func(n int) time.Duration {
			if n > 6 {
				return time.Second
			}
			return 100 * time.Millisecond
		}, 4, 9},
		{"it is always late → that is what is usual, and no congestion", func(int) time.Duration { return 5 * time.Second }, 20, 30},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				e := hidden(1000)
				e.slow = row.slow
				s := newShaper(t, "concurrency=adaptive:30")
				all := press(ctx, s, e, 60)
				time.Sleep(time.Minute)
				var sum, n float64
				for range 60 {
					time.Sleep(time.Second)
					sum += float64(*s.Lanes()[0].MostInFlight)
					n++
				}
				if mean := sum / n; mean < float64(row.low) || mean > float64(row.top) {
					t.Errorf("on average %.1f may be in flight, want %d to %d", mean, row.low, row.top)
				}
				stop()
				all.Wait()
			})
		})
	}
}
