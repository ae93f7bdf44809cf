package shaper

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// weedEvery is how often waiters are looked at, while calls come. A hold and a
// change of the limits have them looked at in any case.
const weedEvery = time.Second

// weed refuses the waiters whose wait has become longer than they may wait: the
// endpoint's word holds them, a limit has fallen, or others go before them.
func (s *Shaper) weed(now time.Duration) {
	s.weedAt = now + weedEvery
	for _, l := range s.lanes {
		if l.queue.n == 0 {
			continue
		}
		stay := 0
		for _, w := range l.queue.order(l) {
			if r := s.vain(w, l, stay, now); r != nil {
				w.refusal = r
				s.drop(w, now)
				close(w.ready)
				continue
			}
			stay++
		}
	}
	s.run(now)
}

// vain says why a waiter of a lane, with so many before it, waits in vain; nil
// where it need not.
func (s *Shaper) vain(w *waiter, at *lane, before int, now time.Duration) *Refusal {
	ln, left := w.line, w.deadline-now
	if w.admitted || w.refusal != nil || ln.at != at || w.permit.ask.Patient {
		return nil
	}
	wait, by, limit := time.Duration(0), at, ""
	for _, l := range ln.path {
		ahead := 0
		if l == at {
			ahead = before
		}
		expected, because := l.expect(now, ahead)
		if because != limitHold && because != limitRequests {
			expected /= 2 // it is a guess, and who has waited so long is not sent away for one
		}
		if expected += l.pressed(ln.class, expected, now); expected > wait {
			wait, by, limit = expected, l, because
		}
	}
	if wait < left {
		return nil
	}
	r := s.refuse(ln, by, limit, HopelessWait, fmt.Sprintf("it would have to wait for %s more, and may for %s", about(wait), about(max(left, 0))), now, 0)
	account := s.account(w.permit, at, now)
	account.Lane, account.Limit, account.Refusal, account.ExpectedWait = by.name, limit, HopelessWait, wait
	r.Account = account
	return r
}

// pressed is for how long calls of higher classes that have yet to come are
// expected to keep a call of a class from a lane that it has to wait for: for as
// long again as there have been such without a pause.
func (l *lane) pressed(class Priority, wait, now time.Duration) time.Duration {
	longest := time.Duration(0)
	for c := range class - 1 {
		if wait > 0 && len(l.queue.classes[c].members) > 0 {
			longest = max(longest, now-l.queue.since[c])
		}
	}
	return longest
}

// turn is a waiter's place in a queue, by tags.
type turn struct {
	w    *waiter
	tag  float64
	cost float64
}

func sortTurns(turns []turn) {
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.w.permit.seq, b.w.permit.seq))
	})
}

// order is a lane's waiters in the order in which they would go if nobody else
// came.
func (q *queue) order(in *lane) []*waiter {
	var all []*waiter
	for i := range q.classes {
		var class []turn
		for _, scenario := range q.classes[i].members {
			var part []turn
			for _, session := range scenario.members {
				part = append(part, session.turns(in)...)
			}
			sortTurns(part)
			tag := scenario.service
			for _, t := range part {
				t.tag = tag
				tag += t.cost / scenario.share
				class = append(class, t)
			}
		}
		sortTurns(class)
		for _, t := range class {
			all = append(all, t.w)
		}
	}
	return all
}

// turns are the turns of a session's waiters.
func (p *party) turns(in *lane) []turn {
	var turns []turn
	for _, ln := range p.lines {
		for w := ln.first; w != nil; w = w.next {
			turns = append(turns, turn{w: w, cost: in.cost(w.permit.reserved, w.permit.ask.CachedWeight)})
		}
	}
	if len(p.lines) > 1 {
		sortTurns(turns) // by their arrival
	}
	tag := p.service
	for i := range turns {
		turns[i].tag = tag
		tag += turns[i].cost
	}
	return turns
}
