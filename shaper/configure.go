package shaper

import (
	"cmp"
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

// configure brings lanes, lines and permits in line with new rules. A queue stays
// as it is, with who has been served how much, and a line stays in the one that
// it stands in as long as its calls pass that lane.
func (s *Shaper) configure(rules []Rule) {
	now := s.now()
	if slices.EqualFunc(s.rules, rules, Rule.same) {
		return
	}
	s.rules, s.written = rules, nil
	for _, r := range rules {
		s.written = append(s.written, r.Select.String())
	}
	s.relimit(now)
	var homeless []*line
	for _, ln := range s.lines {
		switch {
		case ln.n == 0:
			s.forget(ln)
		case !s.redirect(ln, now):
			homeless = append(homeless, ln)
		}
	}
	s.adopt(now)
	slices.SortFunc(homeless, func(a, b *line) int { return cmp.Compare(a.first.permit.seq, b.first.permit.seq) })
	for _, ln := range homeless {
		s.place(ln, now)
	}
	for _, l := range s.lanes {
		s.open(l)
	}
	s.run(now)
	s.look(now)
}

// same says whether two rules are written alike.
func (r Rule) same(other Rule) bool { return r.String() == other.String() }

// relimit gives lanes the limits of the rules, makes those that are new, and
// takes those away that have no rule.
func (s *Shaper) relimit(now time.Duration) {
	for key, l := range s.lanes {
		i := slices.Index(s.written, l.selector)
		switch {
		case i >= 0:
			l.rule = i
			if limit := s.rules[i].Limit; limit.String() != l.limit.String() {
				s.change(l, limit, now)
			}
		case l.endpoint:
			l.rule = len(s.rules)
		default:
			if l.keeps != nil {
				s.unclaim(l.keeps)
			}
			delete(s.lanes, key)
		}
	}
	for i := range s.rules {
		if r := &s.rules[i]; !r.Select.each() {
			s.lane(s.written[i], i, now)
		}
	}
}

// change gives a lane another limit. Its queue keeps its order, also where calls
// begin or cease to weigh what they cost in tokens.
func (s *Shaper) change(l *lane, limit Limit, now time.Duration) {
	if l.keeps != nil {
		s.unclaim(l.keeps) // it was taken by the old limit
	}
	budgeted := l.budgeted()
	l.configure(limit, now)
	if l.budgeted() == budgeted {
		return
	}
	by := 0.0 // nobody waits: there is no order to keep
	if n := l.waiters(); n > 0 {
		if by = max(l.demand/float64(n), 1); budgeted {
			by = 1 / by
		}
	}
	l.queue.scale(by)
}

// redirect finds the lanes that the calls of a line pass now. Where it stands in
// the queue of one of them it stays there; else it says false, and the line
// stands in none.
func (s *Shaper) redirect(ln *line, now time.Duration) bool {
	was, to := ln.route, s.wayOf(&ln.first.permit.ask, now)
	if slices.Equal(was.path, to.path) && was.class == to.class {
		ln.route = to
		ln.session.of.of.member(ln.key.scenario, ln.share)
		return true
	}
	s.unclaim(ln)
	for w := ln.first; w != nil; w = w.next {
		w.permit.account = s.account(w.permit, ln.at, now)
		ln.expects(&w.permit.reserved, &w.permit.ask, -1)
	}
	at := ln.at
	stays := slices.Contains(to.path, at)
	if !stays || was.class != to.class {
		at.queue.remove(ln)
	}
	for _, l := range was.path {
		l.lines--
	}
	for _, l := range to.path {
		l.lines++
	}
	ln.route = to
	ln.turns = slices.DeleteFunc(ln.turns, func(l *lane) bool { return !slices.Contains(to.path, l) })
	for w := ln.first; w != nil; w = w.next {
		ln.expects(&w.permit.reserved, &w.permit.ask, 1)
		w.heldBefore = ln.held(now)
	}
	if stays && ln.at == nil {
		at.queue.add(ln, at, now)
	}
	return stays
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
			p.took = append(p.took, taken{lane: l, era: int32(l.adapt.era)})
		}
		for _, t := range had {
			if !slices.Contains(p.line.path, t.lane) {
				t.lane.inFlight--
			}
		}
	}
}

// wayOf finds the way of the calls that are like this one.
func (s *Shaper) wayOf(a *Ask, now time.Duration) *route {
	var to route
	var few [4]*lane
	to.path = few[:0]
	hold := true
	for i := range s.rules {
		r := &s.rules[i]
		name, ok := r.Select.lane(a)
		if !ok {
			continue
		}
		to.path = append(to.path, s.lane(name, i, now))
		if to.class == 0 {
			to.class = r.Limit.Priority
		}
		if to.share == 0 {
			to.share = r.Limit.Share
		}
		if wait := r.Limit.Wait; wait > 0 && (to.wait == 0 || wait < to.wait) {
			to.wait = wait
		}
		to.tries = max(to.tries, r.Limit.Retries)
		hold = hold && !r.Limit.NoHold
	}
	if len(s.rules) > 0 && hold {
		to.path = append(to.path, s.lane(endpointName(a), len(s.rules), now))
	}
	if to.class == 0 {
		to.class = Normal
	}
	if to.share == 0 {
		to.share = 1
	}
	if to.wait == 0 {
		to.wait = defaultWait
	}
	if s.last == nil || !s.last.same(&to) {
		kept := to
		kept.path = slices.Clone(to.path)
		s.last = &kept
	}
	return s.last
}

// guess finds what is known of the use of calls like this one.
func (s *Shaper) guess(a *Ask) *estimate {
	pair := [2]string{a.Scenario, a.Model}
	e := s.guesses[pair]
	if e == nil {
		if len(s.guesses) > fewLines {
			clear(s.guesses)
		}
		e = &estimate{}
		s.guesses[pair] = e
	}
	return e
}

// lane finds the lane of a name that a rule gives, or makes it. Behind the last
// rule come the endpoints.
func (s *Shaper) lane(name string, rule int, now time.Duration) *lane {
	key := laneKey{name: name}
	if rule < len(s.rules) {
		key.selector = s.written[rule]
	}
	l := s.lanes[key]
	if l == nil {
		l = &lane{name: name, rule: rule, selector: key.selector, endpoint: rule == len(s.rules), rate: meter{from: now}}
		l.queue.begin()
		if !l.endpoint {
			l.each = s.rules[rule].Select.each()
			l.configure(s.rules[rule].Limit, now)
		}
		s.lanes[key] = l
	}
	return l
}

// fewLines is how many lines, lanes and guesses are remembered without looking
// which are needed.
const fewLines = 1024

// tidyAtATime is how many lines and lanes are looked at for a new one.
const tidyAtATime = 4

// tidy forgets lines that nobody waits in and, of the lanes that are made as
// calls come, those that are as good as new. It looks at a few, as chance has
// it, so that no call pays for many.
func (s *Shaper) tidy(now time.Duration) {
	if len(s.lines) >= fewLines {
		n := 0
		for _, ln := range s.lines {
			if ln.n == 0 {
				s.forget(ln)
			}
			if n++; n == tidyAtATime {
				break
			}
		}
	}
	if len(s.lanes) >= fewLines {
		n := 0
		for key, l := range s.lanes {
			if (l.each || l.endpoint) && l.lines == 0 && l.idle(now) {
				delete(s.lanes, key)
			}
			if n++; n == tidyAtATime {
				break
			}
		}
	}
}

// forget forgets a line that nobody waits in.
func (s *Shaper) forget(ln *line) {
	delete(s.lines, ln.key)
	for _, l := range ln.path {
		l.lines--
	}
}
