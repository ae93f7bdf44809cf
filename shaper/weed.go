package shaper

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// weedEvery is how often waiters are looked at, while calls come. A hold and a
// change of the limits have them looked at in any case.
const weedEvery = time.Second

// atATime is how many waiters are looked at without a pause for those who want
// to be admitted meanwhile; one that is refused is as much work as so many.
const (
	atATime     = 16
	refusalWork = 4
)

// look has the waiters looked at that wait in vain by now. It does not wait for
// that: with many waiters it takes longer than a call may be kept from its lane.
func (s *Shaper) look(now time.Duration) {
	s.weedAt = now + weedEvery
	if s.weeding {
		s.weedAgain = true
		return
	}
	s.weeding = true
	go s.weed()
}

// weed refuses the waiters whose wait has become longer than they may wait: the
// endpoint's word holds them, a limit has fallen, or others go before them.
func (s *Shaper) weed() {
	for again := true; again; {
		turns := s.turns()
		queues := map[*lane][]int{}
		for i := range turns {
			queues[turns[i].at] = append(queues[turns[i].at], i)
		}
		for l, queue := range queues {
			queues[l] = inOrder(turns, queue)
		}
		s.mu.Lock()
		for l, queue := range queues {
			s.refuseVain(l, turns, queue)
		}
		again, s.weedAgain = s.weedAgain, false
		s.weeding = again
		s.mu.Unlock()
	}
}

// walk shows all who wait, a few at a time: others are admitted, come and go
// meanwhile. Who comes meanwhile may be left out; one may be shown twice.
func (s *Shaper) walk(show func(*waiter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// From the end, for the last one takes the place of one that goes.
	for i := len(s.waiters) - 1; i >= 0; i = min(i, len(s.waiters)) - 1 {
		show(s.waiters[i])
		if i%atATime == 0 {
			s.mu.pause()
		}
	}
}

// refuseVain refuses those of a lane's waiters, whose turns are in the order in
// which they go, that wait in vain.
func (s *Shaper) refuseVain(l *lane, turns []turn, order []int) {
	stay, work := 0, 0
	now := s.now()
	for _, i := range order {
		w := turns[i].w
		if w.permit.waits != w {
			continue // it has gone meanwhile
		}
		if r := s.vain(w, l, stay, now); r != nil {
			s.turnAway(w, r, now)
			work += refusalWork
		} else {
			stay++
		}
		if work++; work >= atATime {
			work = 0
			s.mu.pause()
			now = s.now()
		}
	}
}

// turnAway ends a wait by a refusal.
func (s *Shaper) turnAway(w *waiter, r *Refusal, now time.Duration) {
	w.refusal = r
	s.drop(w, now)
	close(w.ready)
}

// vain says why a waiter of a lane, with so many before it, waits in vain; nil
// where it need not.
func (s *Shaper) vain(w *waiter, at *lane, before int, now time.Duration) *Refusal {
	ln, left := w.permit.line, w.deadline-now
	if ln.at != at || w.permit.ask.Patient {
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
	r := s.refuse(ln, by, limit, HopelessWait, tooLong(wait, " more", left), now, 0)
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

// turn is a waiter's place in a queue, by how things stood when it was looked at.
type turn struct {
	w                 *waiter
	at                *lane
	seq               uint64
	class             Priority
	scenario, session string
	served, hadServed float64 // the tags of the session and of the scenario
	share             float64
	cost              float64
	tag               float64
}

// turns are those of all who wait.
func (s *Shaper) turns() []turn {
	s.mu.Lock()
	n := len(s.waiters)
	s.mu.Unlock()
	turns := make([]turn, 0, n)
	s.walk(func(w *waiter) {
		p := w.permit
		at, session := p.line.at, p.line.session
		turns = append(turns, turn{
			w: w, at: at, seq: p.seq, class: p.line.class,
			scenario: session.of.name, session: session.name,
			served: session.service, hadServed: session.of.service, share: session.of.share,
			cost: at.cost(p.reserved, p.ask.CachedWeight),
		})
	})
	return turns
}

// inOrder puts the turns of a lane's waiters into the order in which they would
// go if nobody else came: a session's one after the other, then the sessions of
// a scenario by their tags, then the scenarios of a class.
func inOrder(turns []turn, order []int) []int {
	byScenario := func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.class, b.class), strings.Compare(a.scenario, b.scenario))
	}
	bySession := func(a, b *turn) int { return cmp.Or(byScenario(a, b), strings.Compare(a.session, b.session)) }
	byTag := func(a, b *turn) int { return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq)) }
	sort := func(by ...func(a, b *turn) int) {
		slices.SortFunc(order, func(i, j int) int {
			for _, by := range by {
				if c := by(&turns[i], &turns[j]); c != 0 {
					return c
				}
			}
			return 0
		})
	}
	// One after the other begins where the party's tag is.
	follow := func(same func(a, b *turn) int, start func(*turn) float64, cost func(*turn) float64) {
		for k, i := range order {
			t := &turns[i]
			t.tag = start(t)
			if k == 0 {
				continue
			}
			if before := &turns[order[k-1]]; same(before, t) == 0 {
				t.tag = before.tag + cost(before)
			}
		}
	}
	sort(bySession, byTag)
	order = slices.CompactFunc(order, func(i, j int) bool { return turns[i].w == turns[j].w })
	follow(bySession, func(t *turn) float64 { return t.served }, func(t *turn) float64 { return t.cost })
	sort(byScenario, byTag)
	follow(byScenario, func(t *turn) float64 { return t.hadServed }, func(t *turn) float64 { return t.cost / t.share })
	sort(func(a, b *turn) int { return cmp.Compare(a.class, b.class) }, byTag)
	return order
}
