package shaper

import (
	"container/heap"
	"slices"
	"time"
)

// waiter is a call that waits.
type waiter struct {
	permit     *Permit // that it will have
	ready      chan struct{}
	refusal    *Refusal // that ended its wait
	deadline   time.Duration
	entered    time.Duration
	heldBefore time.Duration // for which its endpoint had been held when it came

	prev, next *waiter // in its line
	index      int     // in the shaper's waiters
	due        int     // in its deadlines
}

// line is the calls that are alike in all by which lanes are chosen: a session's
// calls to a model. They go in the order in which they came.
type line struct {
	key lineKey
	*route
	known *estimate

	first, last *waiter
	n           int
	at          *lane // in whose queue it stands; nil: in none
	session     *party
	turns       []*lane // where its first has had its turn in vain
	holds       []*lane // where a place is kept for it
	index       int     // in session.lines
}

// route is how a line's calls are let pass. Lines have it in common.
type route struct {
	path  []*lane // in the order of the rules, and the endpoint's last
	class Priority
	share float64 // of its scenario
	wait  time.Duration
	tries int // retries of a refused call
}

func (r *route) same(as *route) bool {
	return slices.Equal(r.path, as.path) && r.class == as.class && r.share == as.share && r.wait == as.wait && r.tries == as.tries
}

type lineKey struct{ scenario, upstream, model, key, session string }

func (ln *line) push(w *waiter) {
	w.prev, w.next = ln.last, nil
	if ln.last == nil {
		ln.first = w
	} else {
		ln.last.next = w
	}
	ln.last = w
	ln.n++
}

func (ln *line) pushFirst(w *waiter) {
	w.prev, w.next = nil, ln.first
	if ln.first == nil {
		ln.last = w
	} else {
		ln.first.prev = w
	}
	ln.first = w
	ln.n++
}

func (ln *line) remove(w *waiter) {
	if w.prev == nil {
		ln.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	ln.n--
}

// expects takes down in the lanes of a line that so many more calls like this one
// wait to pass them.
func (ln *line) expects(r *reservation, a *Ask, n int) {
	tokens := r.inputCost(a.CachedWeight) + r.output
	for _, l := range ln.path {
		l.waiting[ln.class-1] += n
		l.demand = max(l.demand+float64(n)*tokens, 0)
	}
}

// held is for how long the line's endpoint has been held so far.
func (ln *line) held(now time.Duration) time.Duration {
	if len(ln.path) == 0 {
		return 0
	}
	return ln.path[len(ln.path)-1].hold.so(now)
}

// queue is the lines that wait for a lane. Classes go strictly one before the
// other. Within a class the scenarios have equal parts, or such as their
// shares say, and within a scenario its sessions have equal parts, whatever
// models and keys they use: by start-time fair queueing (Goyal, Vin, Cheng
// 1996), in which each has a tag, the service it has had, and the least goes
// next. Who comes new, or again after a pause, starts as if it had just been
// served beside the one that was served last: so nobody saves up, and nobody
// comes first by being somebody new each time. A session's calls go in the
// order in which they came.
type queue struct {
	n       int // lines
	classes [Low]party
	groups  [Low]group         // of the classes
	since   [Low]time.Duration // when a class began to wait without a pause
}

// party is who shares a queue: a class, which its scenarios share, one of
// these, which its sessions share, or a session, which has lines.
type party struct {
	name    string
	of      *party // nil: it is a class
	share   float64
	index   int      // in of.members; -1: nobody of it waits
	service float64  // its tag
	seq     uint64   // of the call that goes next of it
	calls   int      // of it that wait here
	*group           // nil: it is a session
	lines   lines    // of a session
	one     [1]*line // what lines holds, as a rule
}

// group is what a party has whose members share what it has.
type group struct {
	now     float64 // the tag of the member that was served last
	shares  float64 // of its members, together
	members parties
	named   map[string]*party
	spare   *party // one that is gone, for the next to be made
}

// waits says whether anybody of it waits.
func (p *party) waits() bool { return len(p.lines) > 0 || p.group != nil && len(p.members) > 0 }

// member finds a member, or makes it, and gives it a share.
func (p *party) member(name string, share float64) *party {
	m := p.named[name]
	if m == nil {
		if p.named == nil {
			p.named = map[string]*party{}
		}
		if m, p.spare = p.spare, nil; m == nil {
			m = new(party)
		}
		*m = party{name: name, of: p, index: -1}
		if p.of == nil {
			m.group = &group{}
		}
		m.lines = m.one[:0]
		p.named[name] = m
	}
	if m.index >= 0 {
		p.shares += share - m.share
	}
	m.share = share
	return m
}

// fix sees to its place after what goes next of it, or its tag, has changed.
func (p *party) fix() {
	if len(p.lines) > 0 {
		p.seq = p.lines[0].first.permit.seq
	} else {
		p.seq = p.members[0].seq
	}
	heap.Fix(&p.of.members, p.index)
}

func (q *queue) begin() {
	for i := range q.classes {
		q.classes[i].group = &q.groups[i]
	}
}

func (q *queue) add(ln *line, in *lane, now time.Duration) {
	w := ln.first.permit
	cost := in.cost(w.reserved, w.ask.CachedWeight)
	session := q.classes[ln.class-1].member(ln.key.scenario, ln.share).member(ln.key.session, 1)
	ln.at, ln.session = in, session
	heap.Push(&session.lines, ln)
	if len(q.classes[ln.class-1].members) == 0 {
		q.since[ln.class-1] = now
	}
	again := slices.Contains(ln.turns, in) // it was the first here
	for p := session; p.of != nil; p = p.of {
		waits := p.index >= 0
		switch {
		case again && waits:
			p.service = min(p.service, p.of.now)
		case again:
			p.service = p.of.now
		case !waits:
			p.service = max(p.service, p.of.now+cost/p.share)
		}
		if waits {
			p.fix()
			continue
		}
		p.seq = ln.first.permit.seq
		heap.Push(&p.of.members, p)
		p.of.shares += p.share
	}
	q.count(ln, ln.n)
	q.n++
}

// count takes down that so many calls of a line have come, or gone.
func (q *queue) count(ln *line, n int) {
	for p := ln.session; p != nil; p = p.of {
		p.calls += n
	}
}

func (q *queue) remove(ln *line) {
	q.count(ln, -ln.n)
	heap.Remove(&ln.session.lines, ln.index)
	for p := ln.session; p.of != nil; p = p.of {
		if p.waits() {
			p.fix()
			continue
		}
		heap.Remove(&p.of.members, p.index)
		if p.of.shares -= p.share; len(p.of.members) == 0 {
			p.of.shares = 0 // not almost
		}
		if p == ln.session || len(p.of.named) > manyScenarios {
			delete(p.of.named, p.name)
			p.of.spare = p
		}
	}
	ln.at, ln.session = nil, nil
	q.n--
}

// manyScenarios is how many scenarios a class remembers.
const manyScenarios = 256

// best is the line that goes next; nil when there is none.
func (q *queue) best() *line {
	for i := range q.classes {
		if c := &q.classes[i]; len(c.members) > 0 {
			return c.members[0].members[0].lines[0]
		}
	}
	return nil
}

// served takes down that the first of a line goes, at some cost; remove or moved
// follows, when it has gone.
func (q *queue) served(ln *line, cost float64) {
	for p := ln.session; p.of != nil; p = p.of {
		p.of.now = max(p.of.now, p.service)
		p.service += cost / p.share
	}
}

// moved sees to the order after a line's first has changed.
func (q *queue) moved(ln *line) {
	heap.Fix(&ln.session.lines, ln.index)
	for p := ln.session; p.of != nil; p = p.of {
		p.fix()
	}
}

// scale changes the unit in which service is counted. The order stays.
func (q *queue) scale(by float64) {
	for i := range q.classes {
		class := &q.classes[i]
		for _, scenario := range class.named {
			for _, session := range scenario.named {
				session.service = scenario.now + (session.service-scenario.now)*by
			}
			heap.Init(&scenario.members) // tags that almost were alike are so now
			scenario.service = class.now + (scenario.service-class.now)*by
		}
		heap.Init(&class.members)
	}
}

type lines []*line

func (l lines) Len() int           { return len(l) }
func (l lines) Less(i, j int) bool { return l[i].first.permit.seq < l[j].first.permit.seq }
func (l lines) Swap(i, j int)      { l[i], l[j] = l[j], l[i]; l[i].index, l[j].index = i, j }
func (l *lines) Push(x any)        { ln := x.(*line); ln.index = len(*l); *l = append(*l, ln) }
func (l *lines) Pop() any {
	last := len(*l) - 1
	ln := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return ln
}

type parties []*party

func (p parties) Len() int { return len(p) }
func (p parties) Less(i, j int) bool {
	if p[i].service != p[j].service {
		return p[i].service < p[j].service
	}
	return p[i].seq < p[j].seq
}
func (p parties) Swap(i, j int) { p[i], p[j] = p[j], p[i]; p[i].index, p[j].index = i, j }
func (p *parties) Push(x any)   { m := x.(*party); m.index = len(*p); *p = append(*p, m) }
func (p *parties) Pop() any {
	last := len(*p) - 1
	m := (*p)[last]
	(*p)[last], m.index = nil, -1
	*p = (*p)[:last]
	return m
}
