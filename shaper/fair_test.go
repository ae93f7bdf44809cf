package shaper

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// closedLoop has so many callers ask again and again, each as soon as its call
// is over, until the test's time is up; and counts how many calls each kind had.
type closedLoop struct {
	s      *Shaper
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newLoop(t *testing.T, s *Shaper) *closedLoop {
	c := &closedLoop{s: s}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	return c
}

func (c *closedLoop) feed(callers int, a Ask, takes time.Duration) *atomic.Int64 {
	var n atomic.Int64
	for range callers {
		c.all.Go(func() {
			for {
				p, err := c.s.Admit(c.ctx, a)
				if err != nil {
					return
				}
				n.Add(1)
				time.Sleep(takes)
				p.Release(Settlement{Used: true})
			}
		})
	}
	return &n
}

func (c *closedLoop) run(d time.Duration) {
	time.Sleep(d)
	c.cancel()
	c.all.Wait()
}

func TestWhoSharesALane(t *testing.T) {
	for _, row := range []struct {
		sentence string
		callers  []Ask // each asks three times over
		want     []int64
	}{
		{"a session that uses five models has no more than one that uses one",
			[]Ask{{Session: "modest", Model: "m"}, {Session: "greedy", Model: "m"}, {Session: "greedy", Model: "m1"}, {Session: "greedy", Model: "m2"}, {Session: "greedy", Model: "m3"}},
			[]int64{300, 75, 75, 75, 75}},
		{"a session that uses two keys has no more either",
			[]Ask{{Session: "modest", Key: "k"}, {Session: "greedy", Key: "k"}, {Session: "greedy", Key: "k1"}},
			[]int64{300, 150, 150}},
		{"scenarios have equal parts, however many sessions they have",
			[]Ask{{Scenario: "a", Session: "s"}, {Scenario: "b", Session: "s1"}, {Scenario: "b", Session: "s2"}, {Scenario: "b", Session: "s3"}},
			[]int64{300, 100, 100, 100}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loop := newLoop(t, newShaper(t, "rps=10"))
				var counts []*atomic.Int64
				for _, a := range row.callers {
					counts = append(counts, loop.feed(3, a, 0))
				}
				loop.run(time.Minute)
				var got []int64
				for _, n := range counts {
					got = append(got, n.Load())
				}
				if !slices.EqualFunc(got, row.want, func(a, b int64) bool { return a-b < 10 && b-a < 10 }) {
					t.Errorf("admitted %v, want about %v", got, row.want)
				}
			})
		})
	}
}
