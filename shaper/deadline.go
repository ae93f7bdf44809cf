package shaper

import "time"

// deadlines are those who wait, first who has to be admitted soonest. One timer
// for all takes less of each than one for each.
type deadlines []*waiter

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline < d[j].deadline }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i]; d[i].due, d[j].due = i, j }
func (d *deadlines) Push(x any)        { w := x.(*waiter); w.due = len(*d); *d = append(*d, w) }
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return w
}

// watch has the next one refused whose time is up, when it is.
func (s *Shaper) watch(now time.Duration) {
	if len(s.deadlines) == 0 {
		return
	}
	next := s.deadlines[0].deadline
	if s.watched > 0 && s.watched <= next {
		return // one that has gone since, perhaps
	}
	s.watched = next
	if s.watcher != nil {
		s.watcher.Reset(next - now)
		return
	}
	s.watcher = time.AfterFunc(next-now, s.expire)
}

// expire refuses the waiters whose time is up.
func (s *Shaper) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for n := 1; len(s.deadlines) > 0 && s.deadlines[0].deadline <= now; n++ {
		w := s.deadlines[0]
		at := w.permit.line.at
		r := s.refuse(w.permit.line, at, at.full, Deadline, "the call has waited as long as it may", now, 0)
		r.Account = s.account(w.permit, at, now)
		r.Account.Refusal = Deadline
		s.turnAway(w, r, now)
		if n%(atATime/refusalWork) == 0 {
			s.mu.pause()
		}
	}
	s.watched = 0
	s.watch(s.now())
}
