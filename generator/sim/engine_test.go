package sim

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plainEngine has round numbers: a step takes 10 ms, each decoding sequence
// adds 1 ms, each prompt token 10 µs.
var plainEngine = EngineConfig{Slots: 4, Step: 10 * time.Millisecond, PerSequence: time.Millisecond, PerToken: 10 * time.Microsecond,
	Chunk: 1000, TokensPerStep: 1, KVTokens: 100_000, CacheTokens: 10_000}

func withEngine(t *testing.T, c EngineConfig, test func(e *engine)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(c)
		ctx, stop := context.WithCancel(t.Context())
		go e.run(ctx)
		synctest.Wait()
		test(e)
		stop()
		<-e.stopped
	})
}

// together submits several before the engine can look at the first.
func together(e *engine, demands ...demand) []*sequence {
	var all []*sequence
	e.mu.Lock()
	for _, d := range demands {
		s := newSequence(d)
		s.arrived = time.Now()
		e.waiting = append(e.waiting, s)
		all = append(all, s)
	}
	e.mu.Unlock()
	e.stir()
	return all
}

// arrivals are when a sequence's steps come, since from.
func arrivals(s *sequence, from time.Time) []time.Duration {
	var at []time.Duration
	for !s.over() {
		for s.take(1<<20) > 0 {
			at = append(at, time.Since(from))
		}
		if !s.over() {
			<-s.news
		}
	}
	return at
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func asked(input, output int) demand { return demand{input: input, output: output} }

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
			time.Sleep(ms(3.3)) // idle engines keep no rhythm
			start := time.Now()
			got := arrivals(e.submit(asked(row.input, 3)), start)
			want := []time.Duration{row.want, row.want + ms(11), row.want + 2*ms(11)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s:\n%s", row.name, diff)
			}
		})
	}
}

// lastGap is the time between the last two steps of the first of n sequences
// that decode together.
func lastGap(t *testing.T, c EngineConfig, n, input, output int) (gap time.Duration) {
	withEngine(t, c, func(e *engine) {
		start := time.Now()
		e.submit(asked(100, 1)) // all come during its step, and so begin together
		synctest.Wait()
		var all []*sequence
		for range n {
			all = append(all, e.submit(asked(input, output)))
		}
		at := arrivals(all[0], start)
		gap = at[len(at)-1] - at[len(at)-2]
	})
	return gap
}

func TestStepGrowsWithTheBatch(t *testing.T) {
	loaded := plainEngine
	loaded.PerKVToken = time.Microsecond
	for _, row := range []struct {
		name      string
		engine    EngineConfig
		sequences int
		want      time.Duration
	}{
		{"two sequences → 10 + 2 ms", plainEngine, 2, ms(12)},
		{"twice as many → 2 ms more", plainEngine, 4, ms(14)},
		{"a cost of context → 4 × (100 of prompt + 19 generated) µs more", loaded, 4, ms(14) + 4*119*time.Microsecond},
	} {
		if got := lastGap(t, row.engine, row.sequences, 100, 20); got != row.want {
			t.Errorf("%s: steps of %v", row.name, got)
		}
	}
}

func TestStepGivesSeveralTokensAtOnce(t *testing.T) {
	c := plainEngine
	c.TokensPerStep = 4
	withEngine(t, c, func(e *engine) {
		s := e.submit(asked(100, 10))
		time.Sleep(time.Second) // the reader is late, and gets the steps one by one
		var got []int
		for !s.over() {
			got = append(got, s.take(c.TokensPerStep))
		}
		if want := []int{4, 4, 2}; !slices.Equal(got, want) {
			t.Errorf("steps of %v tokens, want %v", got, want)
		}
	})
}

func TestPrefillOfOneSlowsTheDecodingOfAnother(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		start := time.Now()
		first := e.submit(asked(100, 10)) // at 12 ms its first token; from then on 11 ms a step
		time.Sleep(ms(11))                // the second gets its place when that step has ended
		e.submit(asked(2500, 1))
		got := arrivals(first, start)[:5]
		// Chunks of 1000, 1000 and 500 tokens; the last step decodes two.
		want := []time.Duration{ms(12), ms(12 + 21), ms(12 + 21 + 21), ms(12 + 21 + 21 + 17), ms(12 + 21 + 21 + 17 + 11)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFifthSequenceWaitsForASlotOfFour(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		start := time.Now()
		four := asked(100, 5)
		fifth := together(e, four, four, four, four, asked(100, 1))[4]
		// The four are read together (10 + 4 + 4 ms) and take four steps more.
		admitted := <-fifth.admitted
		if got, want := admitted.at.Sub(start), ms(18+4*14); got != want {
			t.Errorf("the fifth got its place after %v, want %v", got, want)
		}
	})
}

// text is a prompt of n blocks that begins with so many blocks in common with
// others; of is its own.
func text(common, n int, of byte) []byte {
	b := make([]byte, n*blockBytes)
	for i := common * blockBytes; i < len(b); i++ {
		b[i] = of
	}
	return b
}

func TestPrefixCacheSavesExactlyItsPrefill(t *testing.T) {
	for _, row := range []struct {
		name   string
		second []byte
		cached int // of 600 tokens
	}{
		{"half of its blocks known → half of its tokens", text(10, 20, 1), 300},
		{"all of it known → all but the token that the answer starts from", text(10, 10, 0), 599},
		{"known and half a block more → in proportion to the bytes", append(text(10, 10, 0), make([]byte, blockBytes/2)...), 571},
		{"nothing known → nothing", text(0, 10, 1), 0},
		{"shorter than a block → nothing", text(0, 1, 0)[:200], 0},
	} {
		withEngine(t, plainEngine, func(e *engine) {
			first := e.submit(demand{input: 800, output: 1, prompt: newPrompt(text(10, 10, 0))})
			arrivals(first, time.Now())
			if a := <-first.admitted; a.cached != 0 {
				t.Errorf("the first prompt found %d tokens in an empty cache", a.cached)
			}
			start := time.Now()
			second := e.submit(demand{input: 600, output: 1, prompt: newPrompt(row.second)})
			at := arrivals(second, start)
			if a := <-second.admitted; a.cached != row.cached {
				t.Errorf("%s: %d cached", row.name, a.cached)
			}
			if want := ms(10+1) + time.Duration(600-row.cached)*plainEngine.PerToken; at[0] != want {
				t.Errorf("%s: first token after %v, want %v", row.name, at[0], want)
			}
		})
	}
}

func TestPromptThatIsBeingReadIsNotYetKnown(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		d := demand{input: 3000, output: 1, prompt: newPrompt(text(10, 10, 0))}
		first, second := e.submit(d), e.submit(d)
		<-first.admitted
		if a := <-second.admitted; a.cached != 0 {
			t.Errorf("%d tokens came out of the cache before anyone had read them", a.cached)
		}
		arrivals(second, time.Now())
		if a := <-e.submit(d).admitted; a.cached != 2999 {
			t.Errorf("%d tokens cached after they were read", a.cached)
		}
	})
}

func TestCacheForgetsWhatIsWorthLeast(t *testing.T) {
	full := func() *prefixCache {
		c := newPrefixCache(4 * blockBytes / 4)
		c.keep([]uint64{11, 12})
		c.keep([]uint64{21, 22})
		return c
	}
	for _, row := range []struct {
		name string
		use  []uint64
		keep []uint64
		want [2]int // blocks left of 11… and 21…
	}{
		{"one block more → the end of the prompt used longest ago goes", nil, []uint64{31}, [2]int{1, 2}},
		{"two more → all of it", nil, []uint64{31, 32}, [2]int{0, 2}},
		{"found again → the other goes", []uint64{11, 12}, []uint64{31}, [2]int{2, 1}},
		{"a prompt larger than the cache → its beginning stays", nil, []uint64{31, 32, 33, 34, 35, 36}, [2]int{0, 0}},
	} {
		c := full()
		c.begins(row.use)
		c.keep(row.keep)
		got := [2]int{c.begins([]uint64{11, 12}), c.begins([]uint64{21, 22})}
		if got != row.want {
			t.Errorf("%s: %v blocks left, want %v", row.name, got, row.want)
		}
		if got := c.begins(row.keep); got != min(len(row.keep), 4) || len(c.known) != c.recent.Len() || len(c.known) > 4 {
			t.Errorf("%s: knows %d blocks of the new one, %d of 4 in all", row.name, got, len(c.known))
		}
	}
}

func TestKVBudgetLimitsTheBatch(t *testing.T) {
	c := plainEngine
	c.KVTokens = 1000
	withEngine(t, c, func(e *engine) {
		start := time.Now()
		first := e.submit(asked(600, 5))
		second := e.submit(asked(600, 1))
		third := e.submit(asked(10, 1)) // would fit, and does not overtake
		last := arrivals(first, start)
		for name, s := range map[string]*sequence{"second": second, "third": third} {
			if a := <-s.admitted; a.at.Sub(start) != last[4] {
				t.Errorf("the %s was admitted after %v, want when the first had left: %v", name, a.at.Sub(start), last[4])
			}
		}
	})
}

func TestPromptLargerThanTheBudgetIsStillServedAlone(t *testing.T) {
	c := plainEngine
	c.KVTokens = 100
	withEngine(t, c, func(e *engine) {
		if at := arrivals(e.submit(asked(600, 2)), time.Now()); len(at) != 2 {
			t.Errorf("got %d tokens", len(at))
		}
	})
}

func TestCancelledSequenceFreesItsPlaceAtTheNextStep(t *testing.T) {
	c := plainEngine
	c.Slots = 1
	withEngine(t, c, func(e *engine) {
		first := e.submit(asked(100, 10_000))
		second := e.submit(asked(100, 1))
		<-first.news // at the end of a step; the next takes 11 ms
		time.Sleep(ms(4))
		start := time.Now()
		e.cancel(first)
		a := <-second.admitted
		if got := a.at.Sub(start); got != ms(7) {
			t.Errorf("the second got the place after %v, want at the end of the step under way", got)
		}
		arrivals(second, start)
		synctest.Wait()
		if e.kv != 0 || !first.ended.Load() {
			t.Errorf("the batch holds %d tokens; the first has ended: %t", e.kv, first.ended.Load())
		}
	})
}

func TestCancelledWaiterCostsNothing(t *testing.T) {
	c := plainEngine
	c.Slots = 1
	withEngine(t, c, func(e *engine) {
		start := time.Now()
		first := e.submit(asked(100, 3))
		gone := e.submit(asked(100, 3))
		third := e.submit(asked(100, 1))
		e.cancel(gone)
		if !gone.over() {
			t.Error("the one that left is not told at once that it has ended")
		}
		last := arrivals(first, start)
		a := <-third.admitted
		if got := a.at.Sub(start); got != last[2] {
			t.Errorf("the third got its place after %v, want when the first left: %v", got, last[2])
		}
		if len(gone.admitted) > 0 || gone.take(1) > 0 {
			t.Error("the one that left got a place or tokens")
		}
	})
}

func TestRestingSequenceGetsNothingAndHoldsNobodyUp(t *testing.T) {
	withEngine(t, plainEngine, func(e *engine) {
		start := time.Now()
		all := together(e, demand{input: 100, output: 4, rest: rest{0, ms(100)}}, demand{input: 100, output: 4, rest: rest{2, ms(100)}}, asked(100, 4))
		late, stalls, plain := all[0], all[1], all[2]
		heard := map[*sequence]chan []time.Duration{late: make(chan []time.Duration, 1), stalls: make(chan []time.Duration, 1)}
		for s, out := range heard {
			go func() { out <- arrivals(s, start) }()
		}
		// Two of the three decode, from the first step on.
		if diff := cmp.Diff([]time.Duration{ms(15), ms(27), ms(38), ms(49)}, arrivals(plain, start)); diff != "" {
			t.Errorf("the one without a rest:\n%s", diff)
		}
		if at := <-heard[stalls]; at[0] != ms(15) || at[1] != ms(27) || at[2]-at[1] < ms(100) || at[2]-at[1] > ms(122) || at[3]-at[2] > ms(12) {
			t.Errorf("tokens at %v, want a gap of 100 ms and a step or two after the second", at)
		}
		if at := <-heard[late]; at[0] < ms(100) || at[0] > ms(122) {
			t.Errorf("tokens at %v, want the first after 100 ms", at)
		}
	})
}

func TestLateEngineKeepsItsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(plainEngine)
		e.clock = time.Now()
		start := e.clock
		first := e.submit(asked(100, 100))
		e.admit()
		e.clock = e.clock.Add(e.step())
		time.Sleep(ms(500)) // the machine did something else; the step ended at 12 ms
		e.deliver()
		second := e.submit(asked(100, 1))
		e.admit()
		if len(second.admitted) > 0 {
			t.Error("a request that came at 500 ms got its place at 12 ms")
		}
		for e.clock.Before(second.arrived) {
			e.clock = e.clock.Add(e.step())
			e.deliver()
			e.admit()
		}
		// 12 ms and 45 steps of 11 ms have passed by the engine's clock.
		if a := <-second.admitted; a.at.Sub(start) != ms(12+45*11) {
			t.Errorf("admitted at %v of the engine's clock, want at the first step after it came", a.at.Sub(start))
		}
		if got := first.made.Load(); got != 46 {
			t.Errorf("%d tokens made meanwhile, want one a step", got)
		}
	})
}
