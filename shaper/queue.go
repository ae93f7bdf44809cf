package shaper

import (
	"container/heap"
	"time"
)

// waiter is a call that waits.
type waiter struct {
	permit     *Permit // that it will have
	ready      chan struct{}
	admitted   bool
	seq        uint64
	entered    time.Duration
	heldBefore time.Duration // for which its endpoint had been held when it came

	line       *line
	prev, next *waiter
}

// line is the calls that are alike in all by which lanes are chosen: a session's
// calls to a model. They go in the order in which they came. One that is empty
// is kept for a while, for it remembers what it had.
type line struct {
	key   lineKey
	path  []*lane // in the order of the rules, and the endpoint's last
	class Priority
	share float64 // of its scenario
	wait  time.Duration
	tries int // retries of a refused call
	known *estimate

	first, last *waiter
	n           int
	at          *lane // in whose queue it stands; nil: in none
	part        *part
	index       int     // in part.lines
	service     float64 // that it had, in the measure of servedIn
	servedIn    *lane
}

type lineKey struct{ scenario, upstream, model, key, session string }

func (l *line) push(w *waiter) {
	w.line, w.prev, w.next = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.n++
}

func (l *line) pushFirst(w *waiter) {
	w.line, w.prev, w.next = l, nil, l.first
	if l.first == nil {
		l.last = w
	} else {
		l.first.prev = w
	}
	l.first = w
	l.n++
}

func (l *line) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.n--
}

// held is for how long the line's endpoint has been held so far.
func (l *line) held(now time.Duration) time.Duration {
	if len(l.path) == 0 {
		return 0
	}
	return l.path[len(l.path)-1].hold.so(now)
}

// queue is the lines that wait for a lane. Classes go strictly one before the
// other. Within a class the scenarios have equal parts, or such as their
// shares say, and within a scenario its lines have equal parts: by start-time
// fair queueing (Goyal, Vin, Cheng 1996), in which each has a tag, the service
// it has had, and the least goes next. Who comes new, or again after a pause,
// starts as if it had just been served beside the one that was served last: so
// nobody saves up, and nobody comes first by being somebody new each time.
type queue struct {
	n       int // lines
	classes [Low]class
}

type class struct {
	parts parts
	named map[string]*part
	now   float64 // the tag of the part that was served last
}

// part is a scenario's lines in a queue.
type part struct {
	name    string
	index   int // in class.parts; -1: it has no lines
	service float64
	lines   lines
	now     float64 // the tag of the line that was served last
}

func (q *queue) add(ln *line, in *lane) {
	w := ln.first.permit
	cost := in.cost(w.reserved, w.ask.CachedWeight)
	c := &q.classes[ln.class-1]
	if c.named == nil {
		c.named = map[string]*part{}
	}
	p := c.named[ln.key.scenario]
	if p == nil {
		p = &part{name: ln.key.scenario, index: -1}
		c.named[p.name] = p
	}
	if ln.servedIn != in {
		ln.service, ln.servedIn = 0, in
	}
	ln.service = max(ln.service, p.now+cost)
	ln.at, ln.part = in, p
	heap.Push(&p.lines, ln)
	if p.index < 0 {
		p.service = max(p.service, c.now+cost/ln.share)
		heap.Push(&c.parts, p)
	} else {
		heap.Fix(&c.parts, p.index) // its first may be another
	}
	q.n++
}

func (q *queue) remove(ln *line) {
	c, p := &q.classes[ln.class-1], ln.part
	heap.Remove(&p.lines, ln.index)
	if len(p.lines) == 0 {
		heap.Remove(&c.parts, p.index)
		if len(c.named) > manyParts {
			delete(c.named, p.name)
		}
	} else {
		heap.Fix(&c.parts, p.index)
	}
	ln.at, ln.part = nil, nil
	q.n--
}

// manyParts is how many scenarios a queue remembers.
const manyParts = 256

// best is the line that goes next; nil when there is none.
func (q *queue) best() *line {
	for i := range q.classes {
		if parts := q.classes[i].parts; len(parts) > 0 {
			return parts[0].lines[0]
		}
	}
	return nil
}

// served takes down that the first of a line goes, at some cost; remove or moved
// follows, when it has gone.
func (q *queue) served(ln *line, cost float64) {
	c, p := &q.classes[ln.class-1], ln.part
	c.now, p.now = max(c.now, p.service), max(p.now, ln.service)
	p.service += cost / ln.share
	ln.service += cost
}

// moved sees to the order after a line's first has changed.
func (q *queue) moved(ln *line) {
	c, p := &q.classes[ln.class-1], ln.part
	heap.Fix(&p.lines, ln.index)
	heap.Fix(&c.parts, p.index)
}

type lines []*line

func (l lines) Len() int { return len(l) }
func (l lines) Less(i, j int) bool {
	if l[i].service != l[j].service {
		return l[i].service < l[j].service
	}
	return l[i].first.seq < l[j].first.seq
}
func (l lines) Swap(i, j int) { l[i], l[j] = l[j], l[i]; l[i].index, l[j].index = i, j }
func (l *lines) Push(x any)   { ln := x.(*line); ln.index = len(*l); *l = append(*l, ln) }
func (l *lines) Pop() any {
	last := len(*l) - 1
	ln := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return ln
}

type parts []*part

func (p parts) Len() int { return len(p) }
func (p parts) Less(i, j int) bool {
	if p[i].service != p[j].service {
		return p[i].service < p[j].service
	}
	return p[i].lines[0].first.seq < p[j].lines[0].first.seq
}
func (p parts) Swap(i, j int) { p[i], p[j] = p[j], p[i]; p[i].index, p[j].index = i, j }
func (p *parts) Push(x any)   { q := x.(*part); q.index = len(*p); *p = append(*p, q) }
func (p *parts) Pop() any {
	last := len(*p) - 1
	q := (*p)[last]
	(*p)[last], q.index = nil, -1
	*p = (*p)[:last]
	return q
}
