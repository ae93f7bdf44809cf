package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// plainEngine has round numbers: a step takes 10 ms, each decoding sequence
// adds 1 ms, each prompt token 10 µs.
var plainEngine = EngineConfig{Slots: 4, Step: 10 * time.Millisecond, PerSequence: time.Millisecond, PerToken: 10 * time.Microsecond,
	Chunk: 1000, TokensPerStep: 1, KVTokens: 100_000, CacheTokens: 10_000}

func withEngine(t *testing.T, c EngineConfig, test func(e *engine)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(c)
		ctx, stop := context.WithCancel(context.Background())
		go e.run(ctx)
		synctest.Wait()
		test(e)
		stop()
		<-e.stopped
	})
}

// arrivals are when a sequence's tokens come, since from.
func arrivals(s *sequence, from time.Time) []time.Duration {
	var at []time.Duration
	for range s.steps {
		at = append(at, time.Since(from))
	}
	return at
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func TestIdleEngineGivesTheFirstTokenAfterPrefill(t *testing.T) {
	for _, row := range []struct {
		name  string
		input int
		want  time.Duration
	}{
		{"a prompt of one chunk → one step, its tokens, one sequence", 500, ms(10 + 5 + 1)},
		{"a prompt of three chunks → three steps", 2500, ms(3*10 + 25 + 1)},
	} {
		withEngine(t, plainEngine, func(e *engine) {
			start := time.Now()
			at := arrivals(e.submit(row.input, 3, nil), start)
			if len(at) != 3 || at[0] != row.want {
				t.Errorf("%s: tokens at %v, want the first at %v", row.name, at, row.want)
			}
			if gap := at[2] - at[1]; gap != ms(11) {
				t.Errorf("%s: decoding alone takes %v a step, want 11ms", row.name, gap)
			}
		})
	}
}

func TestStepGrowsWithTheBatch(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		start := time.Now()
		var all []*sequence
		for range 4 {
			all = append(all, e.submit(100, 20, nil))
		}
		at := arrivals(all[0], start)
		if gap := at[10] - at[9]; gap != ms(14) {
			t.Errorf("four sequences decode in steps of %v, want 10 + 4 ms", gap)
		}
	})
}

func TestFifthSequenceWaitsForASlotOfFour(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		start := time.Now()
		for range 4 {
			e.submit(100, 5, nil)
		}
		fifth := e.submit(100, 1, nil)
		// The four are read together (10 + 4 + 4 ms) and take four steps more.
		admitted := <-fifth.admitted
		if got, want := admitted.at.Sub(start), ms(18+4*14); got != want {
			t.Errorf("the fifth got its place after %v, want %v", got, want)
		}
	})
}

func TestPrefixCacheSavesExactlyItsPrefill(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		prompt := make([]byte, 10*blockBytes)
		first := e.submit(800, 1, blocks(prompt))
		arrivals(first, time.Now())
		if a := <-first.admitted; a.cached != 0 {
			t.Errorf("the first prompt found %d tokens in an empty cache", a.cached)
		}
		longer := append(prompt, make([]byte, 10*blockBytes)...)
		longer[len(prompt)] = 1 // goes on in its own way
		start := time.Now()
		second := e.submit(1600-1000, 1, blocks(longer))
		at := arrivals(second, start)
		if a := <-second.admitted; a.cached != 300 {
			t.Errorf("half of the blocks are known, and %d of 600 tokens are cached", a.cached)
		}
		if want := ms(10 + 3 + 1); at[0] != want {
			t.Errorf("first token after %v, want the prefill of 300 tokens: %v", at[0], want)
		}
	})
}

func TestCacheForgetsWhatWasUsedLongestAgo(t *testing.T) {
	c := newPrefixCache(3 * blockBytes / 4)
	c.take([]uint64{1, 2, 3})
	c.take([]uint64{1})
	c.take([]uint64{9}) // makes 2 leave
	for _, row := range []struct {
		name   string
		hashes []uint64
		want   int
	}{
		{"used again → kept", []uint64{1}, 1},
		{"used longest ago → gone", []uint64{2}, 0},
	} {
		if got := c.take(row.hashes); got != row.want {
			t.Errorf("%s: %d hits, want %d", row.name, got, row.want)
		}
	}
}

func TestKVBudgetLimitsTheBatch(t *testing.T) {
	c := plainEngine
	c.KVTokens = 1000
	withEngine(t, c, func(e *engine) {
		start := time.Now()
		first := e.submit(600, 5, nil)
		second := e.submit(600, 1, nil)
		last := arrivals(first, start)
		a := <-second.admitted
		if got, want := a.at.Sub(start), last[4]; got != want {
			t.Errorf("the second was admitted after %v, want when the first had left: %v", got, want)
		}
	})
}

func TestPromptLargerThanTheBudgetIsStillServedAlone(t *testing.T) {
	c := plainEngine
	c.KVTokens = 100
	withEngine(t, c, func(e *engine) {
		if at := arrivals(e.submit(600, 2, nil), time.Now()); len(at) != 2 {
			t.Errorf("got %d tokens", len(at))
		}
	})
}

func TestCancelledSequenceFreesItsPlaceAtTheNextStep(t *testing.T) {
	c := plainEngine
	c.Slots = 1
	withEngine(t, c, func(e *engine) {
		first := e.submit(100, 10_000, nil)
		second := e.submit(100, 1, nil)
		<-first.steps
		start := time.Now()
		e.cancel(first)
		a := <-second.admitted
		if got := a.at.Sub(start); got > ms(11) {
			t.Errorf("the second got the place after %v, want within a step", got)
		}
		if e.kv < 0 {
			t.Errorf("the batch holds %d tokens", e.kv)
		}
	})
}

func TestCancelledWaiterCostsNothing(t *testing.T) {
	c := plainEngine
	c.Slots = 1
	withEngine(t, c, func(e *engine) {
		first := e.submit(100, 3, nil)
		gone := e.submit(100, 3, nil)
		third := e.submit(100, 1, nil)
		e.cancel(gone)
		start := time.Now()
		last := arrivals(first, start)
		a := <-third.admitted
		if got := a.at.Sub(start); got != last[2] {
			t.Errorf("the third got its place after %v, want when the first left: %v", got, last[2])
		}
		if _, more := <-gone.steps; more {
			t.Error("the one that left got tokens")
		}
	})
}
