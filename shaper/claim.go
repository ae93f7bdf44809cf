package shaper

import (
	"slices"
	"time"
)

// A line that has to pass two lanes goes when both have room at once. Where
// others need only one of them, these may always be there first. So a line that
// has had its turn twice in a lane, and in vain, claims: the lane keeps the
// place for it, and each other lane on its way gives it the next place. A lane
// keeps for one line at a time, and a claim is for all lanes of a line or none,
// so that no two lines can wait for what the other has; and the older takes it
// from the younger, so that every line comes to be the oldest. What a claim
// costs the others is one place of a lane, for as long as the next lane takes to
// have one.

// claim has a lane keep a place for a line that waits for another.
func (s *Shaper) claim(ln *line, at *lane, now time.Duration) {
	for _, l := range ln.path {
		if k := l.keeps; k != nil && k != ln && k.first.permit.seq < ln.first.permit.seq {
			return
		}
	}
	for _, l := range ln.path {
		if k := l.keeps; k != nil && k != ln {
			s.unclaim(k)
		}
		l.keeps = ln
	}
	at.kept = 1
	at.pace.take(now, ln.first.entered)
	ln.holds = append(ln.holds, at)
}

// unclaim gives back what lanes keep for a line.
func (s *Shaper) unclaim(ln *line) {
	for _, l := range ln.holds {
		l.pace.giveBack()
		s.open(l)
	}
	ln.redeem()
}

// redeem ends a line's claim: it has what it claimed.
func (ln *line) redeem() {
	for _, l := range ln.path {
		if l.keeps == ln {
			l.keeps, l.kept = nil, 0
		}
	}
	ln.holds = ln.holds[:0]
}

// keeper is a lane that keeps a line from going, though it has come to the front
// of another one; nil where there is none. Where it has had its turn before, it
// need not queue again.
func (ln *line) keeper(at *lane, now time.Duration) *lane {
	for _, l := range ln.path {
		if l == at || slices.Contains(ln.holds, l) {
			continue
		}
		if l.queue.n > 0 && (!slices.Contains(ln.turns, l) || l.keeps != nil && l.keeps != ln && l.keeps.at == l) {
			return l
		}
		if limit, _ := l.closed(now); limit != "" {
			l.full = limit
			return l
		}
	}
	return nil
}

// pass has a line that is first in one lane's queue go to that of another, which
// keeps it.
func (s *Shaper) pass(ln *line, from, to *lane, now time.Duration) {
	limit, _ := to.closed(now)
	switch {
	case limit != "" && !soon(limit):
		s.unclaim(ln)
	case limit != "" && slices.Contains(ln.turns, from):
		if best := to.queue.best(); best == nil || best.class >= ln.class {
			s.claim(ln, from, now)
		}
	}
	if !slices.Contains(ln.turns, from) {
		ln.turns = append(ln.turns, from)
	}
	from.queue.remove(ln)
	to.queue.add(ln, to, now)
	s.open(to) // it may be open by now, and if not, a timer is set
}

// soon says whether a limit has a place again before long, so that one may be
// kept elsewhere meanwhile.
func soon(limit string) bool { return limit == limitInFlight || limit == limitRequests }

// next is the line that goes next in a lane; nil when none waits.
func (l *lane) next() *line {
	if k := l.keeps; k != nil && k.at == l {
		return k
	}
	return l.queue.best()
}
