package shaper

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoHasToPassTwoFullLanesIsNotStarvedByThoseWhoPassOne(t *testing.T) {
	for _, row := range []struct {
		sentence string
		rules    []string
		asks     []Ask // the last one's calls pass all the lanes
		least    []int64
		takes    time.Duration
	}{
		{"two rates of five a second", []string{"scenario=a rps=5 wait=10m", "upstream=u rps=5 wait=10m"},
			[]Ask{{Scenario: "a"}, {Scenario: "b", Upstream: "u"}, {Scenario: "a", Upstream: "u"}},
			[]int64{600, 600, 500}, 0},
		{"two lanes of two slots", []string{"scenario=a concurrency=2 wait=10m", "upstream=u concurrency=2 wait=10m"},
			[]Ask{{Scenario: "a"}, {Scenario: "b", Upstream: "u"}, {Scenario: "a", Upstream: "u"}},
			[]int64{1500, 1500, 500}, 130 * time.Millisecond},
		{"a rate and a slot", []string{"scenario=a rps=5 wait=10m", "upstream=u concurrency=1 wait=10m"},
			[]Ask{{Scenario: "a"}, {Scenario: "b", Upstream: "u"}, {Scenario: "a", Upstream: "u"}},
			[]int64{600, 600, 200}, 170 * time.Millisecond},
		{"three rates", []string{"scenario=a rps=5 wait=10m", "upstream=u rps=4 wait=10m", "model=m rps=3 wait=10m"},
			[]Ask{{Scenario: "a"}, {Upstream: "u"}, {Model: "m"}, {Scenario: "a", Upstream: "u", Model: "m"}},
			[]int64{600, 500, 300, 200}, 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loop := newLoop(t, newShaper(t, row.rules...))
				var counts []*atomic.Int64
				for _, a := range row.asks {
					counts = append(counts, loop.feed(3, a, row.takes))
					time.Sleep(7 * time.Millisecond)
				}
				loop.run(5 * time.Minute)
				for i, n := range counts {
					if n.Load() < row.least[i] {
						t.Errorf("%d calls of %+v in five minutes, want %d at least", n.Load(), row.asks[i], row.least[i])
					}
				}
			})
		})
	}
}

func TestARateInsideAnotherIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := newLoop(t, newShaper(t, "scenario=rag rps=2.4 wait=10m", "all rps=5 wait=10m"))
		rag, other := loop.feed(3, Ask{Scenario: "rag"}, 0), loop.feed(3, Ask{Scenario: "b"}, 0)
		loop.run(100 * time.Second)
		if n, m := rag.Load(), other.Load(); n < 228 || n > 243 || n+m < 495 || n+m > 510 {
			t.Errorf("admitted %d and %d in 100 s, want about 240 and 260", n, m)
		}
	})
}
