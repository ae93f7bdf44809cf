package shaper

import (
	"fmt"
	"math"
	"time"
)

// Refusal says that a call may not be sent now.
type Refusal struct {
	Reason     string
	Account    Account
	RetryAfter time.Duration // when it is worth asking again; 0 when unknown
}

// Why calls are refused, as a call's span says it.
const (
	FullQueue    = "full queue"    // as many waited as may
	HopelessWait = "hopeless wait" // it would have passed the call's deadline
	Deadline     = "deadline"      // the call had waited as long as it may
)

func (r *Refusal) Error() string {
	if r.RetryAfter > 0 {
		return fmt.Sprintf("refused: %s; try again in %s", r.Reason, r.RetryAfter)
	}
	return "refused: " + r.Reason
}

// Departure says that the caller left while its call waited.
type Departure struct {
	Account Account
	Err     error // the context's
}

func (d *Departure) Error() string { return "left while waiting: " + d.Err.Error() }

func (d *Departure) Unwrap() error { return d.Err }

// hopeless says why a call had better not wait: a queue that is full, or a wait
// that would pass its deadline.
func (s *Shaper) hopeless(ln *line, now, deadline time.Duration, first bool) *Refusal {
	for _, l := range ln.path {
		longest := l.limit.Queue
		if longest == 0 {
			longest = defaultQueue
		}
		if (!l.endpoint || len(ln.path) == 1) && !first && l.waiters() >= max(longest, 0) {
			return s.refuse(ln, l, l.full, FullQueue, "its queue is full", now, 0)
		}
	}
	wait, at, limit := s.expect(ln, now, first)
	if now+wait >= deadline {
		r := s.refuse(ln, at, limit, HopelessWait, tooLong(wait, "", deadline-now), now, wait-(deadline-now))
		r.Account.ExpectedWait = wait
		return r
	}
	return nil
}

// expect is how long a call of a line would have to wait, if it joined now, and
// what for.
func (s *Shaper) expect(ln *line, now time.Duration, first bool) (wait time.Duration, at *lane, limit string) {
	for _, l := range ln.path {
		ahead := 0
		if !first {
			ahead = l.ahead(ln, now)
		}
		w, by := l.expect(now, ahead)
		if w += l.pressed(ln.class, w, now); at == nil || w > wait {
			wait, at, limit = w, l, by
		}
	}
	return wait, at, limit
}

// ahead is how many calls go before one that joins a line, about: all of the
// higher classes, of its scenario those of its session and as many of each other
// session, and of the other scenarios as many as their shares say.
// The other scenarios are expected to come for as long again as they have.
func (l *lane) ahead(ln *line, now time.Duration) int {
	n := 0
	for c := range ln.class - 1 {
		n += l.waiting[c]
	}
	class := &l.queue.classes[ln.class-1]
	own, calls, others := 0, 0, class.shares
	if scenario := class.named[ln.key.scenario]; scenario != nil && scenario.index >= 0 {
		session := 0
		if p := scenario.named[ln.key.session]; p != nil {
			session = p.calls
		}
		calls = scenario.calls
		own = min(calls, (session+1)*len(scenario.members))
		others -= scenario.share
	}
	if ln.at != l {
		own = max(own, ln.n) // they stand elsewhere, and come first here too
	}
	beside, waiting := math.Ceil(float64(own+1)*others/ln.share), float64(class.calls-calls)
	if beside > waiting {
		beside = math.Min(beside, waiting+l.rate.perSecond(now)*(now-l.queue.since[ln.class-1]).Seconds())
	}
	return n + own + int(beside)
}

// refuse makes a refusal, by a lane and a limit; why says it in words. after is when it is worth asking
// again; 0 stands for when the next place will be free.
func (s *Shaper) refuse(ln *line, at *lane, limit, kind, why string, now, after time.Duration) *Refusal {
	at.refused++
	if after <= 0 {
		wait, longest, _ := s.expect(ln, now, false)
		if after = wait - ln.wait; after <= 0 {
			after = wait / time.Duration(longest.waiters()+1)
		}
	}
	r := &Refusal{Reason: at.describe() + ": " + why, Account: Account{Lane: at.name, Limit: limit, Refusal: kind}}
	if after <= 0 && limit == limitInFlight {
		if at.took.n == 0 {
			return r // nobody knows when a place will be free
		}
		after = time.Duration(at.took.mean / float64(at.slots()) * float64(time.Second)) // of the few calls there were
	}
	r.RetryAfter = max(after, 0).Truncate(time.Second) + time.Second // whole seconds, as the header wants, and later rather than too soon
	return r
}

// tooLong says that a call would have to wait for longer than it may.
func tooLong(would time.Duration, more string, may time.Duration) string {
	left := about(max(may, 0))
	if about(would) == left {
		return fmt.Sprintf("it would have to wait for longer than the %s%s that it may", left, more)
	}
	return fmt.Sprintf("it would have to wait for %s%s, and may for %s", about(would), more, left)
}

// describe names a lane and its limit, as "lane scenario=rag (rps=2)".
func (l *lane) describe() string {
	if l.endpoint {
		return l.name
	}
	return fmt.Sprintf("lane %s (%s)", l.name, l.limit)
}

// about is a time as one says it.
func about(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	return spell(d)
}
