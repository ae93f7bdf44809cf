package shaper

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// waitFor has n calls wait behind a lane that nobody passes, each of a session
// of its own, and gives what ends them.
func waitFor(tb testing.TB, s *Shaper, n int) (end func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if p, err := s.Admit(ctx, Ask{Scenario: fmt.Sprint("s", i%4), Session: fmt.Sprint(i), InputTokens: 1000}); err == nil {
				p.Release(Settlement{})
			}
		})
	}
	for {
		s.mu.Lock()
		waiting := 0
		for _, ln := range s.lines {
			waiting += ln.n
		}
		s.mu.Unlock()
		if waiting == n {
			return func() { cancel(); all.Wait() }
		}
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkAdmit is what a call costs that need not wait: admitted and released
// again, by the number of its lanes.
func BenchmarkAdmit(b *testing.B) {
	for _, row := range []struct {
		name  string
		rules []string
	}{
		{"no lane", nil},
		{"one lane", []string{"concurrency=1000 rps=1000000000"}},
		{"three lanes with tokens", []string{"all concurrency=1000 rps=1000000000", "scenario=rag tpm=1e12", "key=each concurrency=100"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			s := newShaper(b, row.rules...)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				p, err := s.Admit(ctx, Ask{Scenario: "rag", Upstream: "openai", Model: "gpt", Key: "0a1b2c3d", Session: "s", InputTokens: 1000, OutputTokens: 100})
				if err != nil {
					b.Fatal(err)
				}
				p.Release(Settlement{Used: true})
			}
		})
	}
}

// parked has n calls wait behind a lane that one call fills, without anybody who
// waits for them, and gives that one.
func parked(b *testing.B, n int) (s *Shaper, held *Permit) {
	b.Helper()
	s = newShaper(b, "concurrency=1 queue=1000000 wait=10h")
	held, err := s.Admit(b.Context(), Ask{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		join(s, Ask{Scenario: fmt.Sprint("s", i%4), Session: fmt.Sprint(i), InputTokens: 1000})
	}
	return s, held
}

// join is what Admit does until the call waits.
func join(s *Shaper, a Ask) *waiter {
	p := &Permit{s: s, ask: a}
	s.mu.Lock()
	defer s.mu.Unlock()
	w, refusal := s.join(p, s.now(), false)
	if w == nil || refusal != nil {
		panic("it does not wait")
	}
	return w
}

// BenchmarkJoin is what a call costs that goes through a queue of ten thousand:
// it joins the queue, another one ends, and the best is admitted. Once in so
// many calls, as once a second, those are looked for who wait in vain. The
// slowest of as many calls is told for the middle and for the best of such
// rounds: a busy machine has a hand in the others.
func BenchmarkJoin(b *testing.B) {
	const round = 5000
	for _, sessions := range []int{1, 100, 20_000} {
		b.Run(fmt.Sprint(sessions, " sessions come"), func(b *testing.B) {
			s, held := parked(b, 10_000)
			lane := s.lanes[laneKey{all, all}]
			b.ReportAllocs()
			var slowest []time.Duration // by round
			n := 0
			for b.Loop() {
				if n%round == 0 {
					slowest = append(slowest, 0)
					s.mu.Lock()
					s.weedAt = 0
					s.mu.Unlock()
				}
				n++
				start := time.Now()
				join(s, Ask{Scenario: "s1", Session: fmt.Sprint(n % sessions), InputTokens: 1000})
				worst := &slowest[len(slowest)-1]
				*worst = max(*worst, time.Since(start))
				s.mu.Lock()
				best := lane.queue.best().first.permit
				s.giveBack(held, Settlement{Used: true}, s.now())
				s.mu.Unlock()
				if !best.held || lane.waiters() != 10_000 {
					b.Fatal("the first was not admitted")
				}
				held = best
			}
			slices.Sort(slowest)
			b.ReportMetric(float64(slowest[len(slowest)/2])/1e3, "µs-slowest")
			b.ReportMetric(float64(slowest[0])/1e3, "µs-slowest-best-round")
		})
	}
}

// BenchmarkLeave is what it costs that one joins a queue of ten thousand and
// leaves it.
func BenchmarkLeave(b *testing.B) {
	s, _ := parked(b, 10_000)
	for b.Loop() {
		w := join(s, Ask{Scenario: "s1", Session: "new"})
		s.mu.Lock()
		s.drop(w, s.now())
		s.mu.Unlock()
	}
}

// waitersTake is the memory of calls that wait, each in its goroutine. What the
// goroutines take by themselves is not in the heap's, for who has calls has those
// anyway: their stacks are told apart, and the rest of them is there before.
func waitersTake(tb testing.TB, n int) (heap, stacks float64) {
	tb.Helper()
	var there, over sync.WaitGroup
	leave := make(chan struct{})
	there.Add(n)
	for range n {
		over.Go(func() { there.Done(); <-leave })
	}
	there.Wait()
	close(leave)
	over.Wait()
	s := newShaper(tb, "concurrency=1 queue=1000000 wait=10h")
	admit(tb, s, Ask{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	end := waitFor(tb, s, n)
	defer end()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc), float64(after.StackInuse) - float64(before.StackInuse)
}

// BenchmarkWaiters is the memory of ten thousand calls that wait.
func BenchmarkWaiters(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		heap, stacks := waitersTake(b, n)
		b.ReportMetric(heap/1e6, "MB-heap")
		b.ReportMetric(heap/n, "B/waiter")
		b.ReportMetric(stacks/1e6, "MB-stacks")
	}
}

func TestTenThousandWaitersTakeLittle(t *testing.T) {
	if heap, _ := waitersTake(t, 10_000); heap > 16e6 || heap < 5e6 {
		t.Errorf("ten thousand waiters take %.1f MB, want 16 MB at most and something at all", heap/1e6)
	}
}

// BenchmarkChange is what a change of the limits costs, for which ten thousand
// waiters are looked at, and one that changes nothing.
func BenchmarkChange(b *testing.B) {
	for _, row := range []struct {
		name  string
		rules [2]string // in turns
	}{
		{"the rate of the lane", [2]string{"all rps=5", "all rps=6"}},
		{"another lane's", [2]string{"model=other rps=5", "model=other rps=6"}},
		{"nothing", [2]string{"all queue=1000000", "all queue=1000000"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			s, _ := parked(b, 10_000)
			n := 0
			for b.Loop() {
				n++
				if _, _, err := s.Change(row.rules[n%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
