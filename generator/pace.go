package generator

import (
	"container/heap"
	"time"

	"weir/store/call"
)

// pace holds a plan's own times against what was sent. The plan's times are those
// at which its requests would go to an endpoint whose answers take no time, as
// weir plan plays it: they hold whatever the endpoint does, so that a slow or
// failing one cannot lower what it is held against. Turns of sessions lie ahead,
// and wait in a heap: it holds what is under way, not the plan.
type pace struct {
	ahead                  coming
	came                   int          // of the plan's requests, whose time has come
	cameInTime, sentInTime int          // within the plan's length, warm-up left out
	measured               call.Instant // when the first session is due that is no warm-up; 0: not yet
	chained                bool         // some sessions had later turns
}

// request is one whose time is to come.
type request struct {
	at   call.Instant
	warm bool // of a warm-up
}

// coming are a heap, the earliest first.
type coming []request

func (h coming) Len() int           { return len(h) }
func (h coming) Less(i, j int) bool { return h[i].at < h[j].at }
func (h coming) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *coming) Push(x any)        { *h = append(*h, x.(request)) }
func (h *coming) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// planned takes a session whose first request is due at an instant.
func (t *tally) planned(s *Session, due call.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pace.chained = t.pace.chained || len(s.Turns) > 1
	if !s.WarmUp && t.pace.measured == 0 {
		t.pace.measured = due
	}
	for i, turn := range s.Turns {
		if i > 0 {
			due += call.Instant(turn.Think)
		}
		heap.Push(&t.pace.ahead, request{due, s.WarmUp})
	}
	t.comesDue(call.Now())
}

// comesDue counts the requests whose time has come. It needs the lock.
func (t *tally) comesDue(now call.Instant) {
	if t.stopped != 0 {
		now = min(now, t.stopped)
	}
	for len(t.pace.ahead) > 0 && t.pace.ahead[0].at <= now {
		r := heap.Pop(&t.pace.ahead).(request)
		t.pace.came++
		if !r.warm && time.Duration(r.at-t.start) <= t.length {
			t.pace.cameInTime++
		}
	}
}

// kept fills in the rates. It needs the lock.
func (t *tally) kept(r *Result) {
	over := t.length
	if t.stopped != 0 {
		over = min(over, time.Duration(t.stopped-t.start))
	}
	t.comesDue(t.start + call.Instant(over)) // turns that no longer wait for their time: one before them failed
	r.chained, r.PlannedInTime, r.SentInTime = t.pace.chained, t.pace.cameInTime, t.pace.sentInTime
	if s := (over - t.warmUp()).Seconds(); s > 0 {
		r.PlannedRate, r.SentRate = float64(r.PlannedInTime)/s, float64(r.SentInTime)/s
	}
}

// warmUp is how long the run warms up: a model says so, of a dataset it is told by
// its first session that is none. It needs the lock.
func (t *tally) warmUp() time.Duration {
	if t.warming > 0 || t.warm == 0 || t.pace.measured == 0 {
		return t.warming
	}
	return time.Duration(t.pace.measured - t.start)
}
