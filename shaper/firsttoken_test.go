package shaper

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// levels has 100 callers go through an adaptive lane to an endpoint that refuses
// nobody, and gives how many may be in flight, each half minute.
func levels(t *testing.T, rule string, long time.Duration, ttft func(a *Ask, rng *rand.Rand, inFlight int, at time.Duration) time.Duration, models ...string) (seen []int) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, rule)
		ctx, stop := context.WithCancel(t.Context())
		start := time.Now()
		var mu sync.Mutex
		inFlight := 0
		var all sync.WaitGroup
		for i := range 100 {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			a := Ask{Model: models[i%len(models)], InputTokens: 1000}
			all.Go(func() {
				for ctx.Err() == nil {
					p, err := s.Admit(ctx, a)
					if err != nil {
						continue
					}
					p.Heard(Answer{Status: 200})
					mu.Lock()
					inFlight++
					first := ttft(&a, rng, inFlight, time.Since(start))
					mu.Unlock()
					time.Sleep(first + 2*time.Second)
					mu.Lock()
					inFlight--
					mu.Unlock()
					p.Release(Settlement{Used: true, TTFT: first, InputTokens: Tokens{1000, true}, OutputTokens: Tokens{50, true}})
				}
			})
		}
		for time.Since(start) < long {
			time.Sleep(30 * time.Second)
			seen = append(seen, *s.Lanes()[0].MostInFlight)
		}
		stop()
		all.Wait()
	})
	return seen
}

// lognormal is how times vary: 1 s in the middle, and by so much.
func lognormal(rng *rand.Rand, sigma float64) time.Duration {
	return time.Duration(math.Exp(sigma*rng.NormFloat64()) * float64(time.Second))
}

func TestAdaptiveTellsNoiseFromCongestion(t *testing.T) {
	const forLong, forEver = 10 * time.Minute, time.Hour
	for _, row := range []struct {
		sentence string
		long     time.Duration
		models   []string
		ttft     func(a *Ask, rng *rand.Rand, inFlight int, at time.Duration) time.Duration
		low, top float64 // of the mean, in the second half
	}{
		{"times vary little, and nothing is wrong → all the way up", forLong, []string{"m"},
			func(_ *Ask, rng *rand.Rand, _ int, _ time.Duration) time.Duration { return lognormal(rng, 0.4) }, 63, 64},
		{"they vary by as much as their mean → likewise", forEver, []string{"m"},
			func(_ *Ask, rng *rand.Rand, _ int, _ time.Duration) time.Duration { return lognormal(rng, 0.83) }, 60, 64},
		{"and by more → likewise", forLong, []string{"m"},
			func(_ *Ask, rng *rand.Rand, _ int, _ time.Duration) time.Duration { return lognormal(rng, 1) }, 60, 64},
		{"one model takes 20 times as long as the other → likewise", forLong, []string{"small", "large"},
			func(a *Ask, rng *rand.Rand, _ int, _ time.Duration) time.Duration {
				if a.Model == "large" {
					return 4 * lognormal(rng, 0.3)
				}
				return lognormal(rng, 0.3) / 5
			}, 63, 64},
		{"times vary and are ten times as long above 20 → about there, for hours", forEver, []string{"m"},
			func(_ *Ask, rng *rand.Rand, inFlight int, _ time.Duration) time.Duration {
				if inFlight > 20 {
					return 10 * lognormal(rng, 0.5)
				}
				return lognormal(rng, 0.5)
			}, 14, 26},
		{"one of two models is congested above 20 → about there", forLong, []string{"small", "large"},
			func(a *Ask, rng *rand.Rand, inFlight int, _ time.Duration) time.Duration {
				if a.Model == "large" && inFlight > 20 {
					return 10 * lognormal(rng, 0.3)
				}
				return lognormal(rng, 0.3)
			}, 12, 28},
		{"the first are slow, as where a model is loaded → no harm", forLong, []string{"m"},
			func(_ *Ask, rng *rand.Rand, _ int, at time.Duration) time.Duration {
				if at < 20*time.Second {
					return 10 * lognormal(rng, 0.4)
				}
				return lognormal(rng, 0.4)
			}, 63, 64},
		{"it becomes ten times slower of itself → that is usual in the end", forEver, []string{"m"},
			func(_ *Ask, rng *rand.Rand, _ int, at time.Duration) time.Duration {
				if at > 5*time.Minute {
					return 10 * lognormal(rng, 0.4)
				}
				return lognormal(rng, 0.4)
			}, 45, 64},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			seen := levels(t, "concurrency=adaptive:64 wait=100h", row.long, row.ttft, row.models...)
			sum := 0.0
			half := seen[len(seen)/2:]
			for _, n := range half {
				sum += float64(n)
			}
			if mean := sum / float64(len(half)); mean < row.low || mean > row.top {
				t.Errorf("in the second half %.1f may be in flight, want %g to %g; each half minute: %v", mean, row.low, row.top, seen)
			}
		})
	}
}

// A prompt of seven times the work takes seven times as long where nothing is
// wrong, and what is cached is no work.
func TestFirstTokensAreHeldAgainstTheirUncachedTokens(t *testing.T) {
	const usual, longer = time.Second, 7 * time.Second
	for _, row := range []struct {
		sentence      string
		input, cached int64
		ttft          time.Duration
		slow          bool
	}{
		{"as many tokens, as fast → as usual", 1000, 0, usual, false},
		{"as many tokens, seven times as long → slow", 1000, 0, longer, true},
		{"seven times the tokens, and as long → as usual", 10_000, 0, longer, false},
		{"ten times the tokens, nine tenths cached, as fast → as usual", 10_000, 9000, usual, false},
		{"ten times the tokens, nine tenths cached, seven times as long → slow", 10_000, 9000, longer, true},
		{"as many tokens uncached beside a huge cache, seven times as long → slow", 101_000, 100_000, longer, true},
	} {
		var f firstTokens
		hear := func(at, input, cached int64, ttft time.Duration) bool {
			fewer, _ := f.heard(time.Duration(at)*time.Second, &Ask{Model: "m", InputTokens: input},
				&Settlement{TTFT: ttft, InputTokens: Tokens{input, true}, CachedTokens: Tokens{cached, true}}, 8)
			return fewer
		}
		for at := range int64(200) {
			if hear(at, 1000, 0, usual) {
				t.Fatalf("%s: what is usual is called slow", row.sentence)
			}
		}
		slow := false
		for at := range int64(16) {
			slow = hear(200+at, row.input, row.cached, row.ttft) || slow
		}
		if slow != row.slow {
			t.Errorf("%s: slow %v", row.sentence, slow)
		}
	}
}
