package shaper

import (
	"fmt"
	"slices"
	"time"
)

// Configure gives the shaper its rules, in the place of those it had. Streams
// under way go on and are counted, and waiters keep their place and the time
// that they may wait. It fails on two rules with one selector, and then changes
// nothing.
func (s *Shaper) Configure(rules []Rule) error {
	for i, r := range rules {
		if slices.ContainsFunc(rules[:i], func(other Rule) bool { return other.Select == r.Select }) {
			return fmt.Errorf("limit %q: %s has two limits; put them into one", r, r.Select)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configure(slices.Clone(rules))
	return nil
}

// Rules are the rules that hold now.
func (s *Shaper) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rules)
}

// Change sets parts of one rule as "scenario=rag rps=2 concurrency=off" says,
// and makes the rule if there is none. It gives the rule as it was and as it
// is; one that was not there, or has no limit any more and is gone, has the
// zero Limit.
func (s *Shaper) Change(text string) (old, now Rule, err error) {
	asked, set, err := parseRule(text)
	if err != nil {
		return Rule{}, Rule{}, err
	}
	if len(set) == 0 {
		return Rule{}, Rule{}, fmt.Errorf("limit %q: what is the limit? as in %s rps=2", text, asked.Select)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := slices.Clone(s.rules)
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Select == asked.Select })
	old, now = Rule{Select: asked.Select}, Rule{Select: asked.Select}
	if i >= 0 {
		old, now = rules[i], rules[i]
	}
	for _, part := range set {
		if err := now.Limit.Set(part[0], part[1]); err != nil {
			return Rule{}, Rule{}, err
		}
	}
	switch {
	case now.Limit == (Limit{}) && i >= 0:
		rules = slices.Delete(rules, i, i+1)
	case i >= 0:
		rules[i] = now
	case now.Limit != (Limit{}):
		rules = append(rules, now)
	}
	s.configure(rules)
	return old, now, nil
}

// configure brings lanes, lines and permits in line with new rules.
func (s *Shaper) configure(rules []Rule) {
	now := s.now()
	s.rules = rules
	for _, ln := range s.lines {
		s.unclaim(ln)
		ln.turns = nil
	}
	for key, l := range s.lanes {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Select.String() == l.selector })
		switch {
		case i >= 0:
			l.rule = i
			l.configure(rules[i].Limit, now)
		case !l.endpoint:
			delete(s.lanes, key)
		default:
			l.rule = len(rules)
		}
		l.waiting, l.demand = [Low]int{}, 0
	}
	for i := range rules {
		if r := &rules[i]; !r.Select.each() {
			s.lane(r.Select.String(), i, now)
		}
	}
	// Lines, in the order in which their firsts would go.
	var waiting []*line
	for key, ln := range s.lines {
		if ln.n == 0 {
			delete(s.lines, key)
			continue
		}
		waiting = append(waiting, ln)
	}
	slices.SortFunc(waiting, func(a, b *line) int { return int(a.first.permit.seq) - int(b.first.permit.seq) })
	for _, ln := range waiting {
		for w := ln.first; w != nil; w = w.next {
			w.permit.account = s.account(w.permit, ln.at, now)
		}
		if ln.at != nil {
			ln.at.queue.remove(ln)
		}
	}
	for _, ln := range waiting {
		s.direct(ln, &ln.first.permit.ask, now)
		for w := ln.first; w != nil; w = w.next {
			p := w.permit
			for _, l := range ln.path {
				l.waiting[ln.class-1]++
				l.demand += p.reserved.inputCost(p.ask.CachedWeight) + p.reserved.output
			}
			w.heldBefore = ln.held(now)
		}
	}
	s.adopt(now)
	for _, ln := range waiting {
		s.place(ln, now)
	}
	s.run(now)
	s.weed(now)
}

// place puts a line into the queue of the lane that keeps it, or has it go.
func (s *Shaper) place(ln *line, now time.Duration) {
	at := s.blocked(ln.path, now)
	if at == nil && len(ln.path) > 0 {
		at = ln.path[0]
	}
	if at != nil {
		at.queue.add(ln, at, now)
		s.open(at)
		return
	}
	for ln.n > 0 { // no lane is left for it
		w := ln.first
		w.permit.account = s.account(w.permit, nil, now)
		s.unpark(w)
		s.admit(w.permit, now, w.entered)
		w.admitted = true
		close(w.ready)
	}
}

// adopt counts the calls in flight in the lanes that they belong to now.
func (s *Shaper) adopt(now time.Duration) {
	for p := s.live.next; p != &s.live; p = p.next {
		p.line = s.line(&p.ask, now)
		had := p.took
		p.took = nil
		for _, l := range p.line.path {
			if i := slices.IndexFunc(had, func(t taken) bool { return t.lane == l }); i >= 0 {
				p.took = append(p.took, had[i])
				continue
			}
			l.inFlight++
			p.took = append(p.took, taken{lane: l, era: l.adapt.era})
		}
		for _, t := range had {
			if !slices.Contains(p.line.path, t.lane) {
				t.lane.inFlight--
			}
		}
	}
}

// direct finds the lanes that a line's calls pass.
func (s *Shaper) direct(ln *line, a *Ask, now time.Duration) {
	ln.path, ln.class, ln.share, ln.wait, ln.tries = nil, 0, 0, 0, 0
	hold := true
	for i := range s.rules {
		r := &s.rules[i]
		name, ok := r.Select.lane(a)
		if !ok {
			continue
		}
		l := s.lane(name, i, now)
		if l.limit != r.Limit {
			l.configure(r.Limit, now)
		}
		ln.path = append(ln.path, l)
		if ln.class == 0 {
			ln.class = r.Limit.Priority
		}
		if ln.share == 0 {
			ln.share = r.Limit.Share
		}
		if wait := r.Limit.Wait; wait > 0 && (ln.wait == 0 || wait < ln.wait) {
			ln.wait = wait
		}
		ln.tries = max(ln.tries, r.Limit.Retries)
		hold = hold && !r.Limit.NoHold
	}
	if len(s.rules) > 0 && hold {
		ln.path = append(ln.path, s.lane(endpointName(a), len(s.rules), now))
	}
	if ln.class == 0 {
		ln.class = Normal
	}
	if ln.share == 0 {
		ln.share = 1
	}
	if ln.wait == 0 {
		ln.wait = defaultWait
	}
	pair := [2]string{a.Scenario, a.Model}
	if s.guesses[pair] == nil {
		s.guesses[pair] = &estimate{}
	}
	ln.known = s.guesses[pair]
}

// lane finds the lane of a name that a rule gives, or makes it. Behind the last
// rule come the endpoints.
func (s *Shaper) lane(name string, rule int, now time.Duration) *lane {
	key := laneKey{name: name}
	if rule < len(s.rules) {
		key.selector = s.rules[rule].Select.String()
	}
	l := s.lanes[key]
	if l == nil {
		l = &lane{name: name, rule: rule, selector: key.selector, endpoint: rule == len(s.rules)}
		if !l.endpoint {
			l.each = s.rules[rule].Select.each()
			l.configure(s.rules[rule].Limit, now)
		}
		s.lanes[key] = l
	}
	return l
}

// fewLines is how many lines are remembered without looking which are needed.
const fewLines = 1024

// sweep forgets the lines that nobody waits in and, of the lanes that are made
// as calls come, those that are as good as new.
func (s *Shaper) sweep(now time.Duration) {
	for key, ln := range s.lines {
		if ln.n == 0 {
			delete(s.lines, key)
		}
	}
	for key, l := range s.lanes {
		if (l.each || l.endpoint) && l.idle(now) {
			delete(s.lanes, key)
		}
	}
	if len(s.guesses) > fewLines {
		clear(s.guesses)
	}
	s.sweepAt = max(fewLines, 2*len(s.lines))
}
