package generator

import (
	"container/heap"
	"iter"
	"time"
)

// leastCall is what a call takes at least where a loop is told before: without
// it a loop of calls that take no time would never get on.
const leastCall = time.Millisecond

// assumedLoop are the sessions of a closed loop whose calls take the assumed
// latency, in the order of their starts.
func (p *Plan) assumedLoop() iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		shares, _ := p.Model.SessionShares()
		var users turns
		for number := range p.Model.Concurrency {
			if p.Shard.has(number) {
				users = append(users, userTurn{number: number, at: p.userStart(number), session: p.userSession(shares, number, 0)})
			}
		}
		heap.Init(&users)
		for length := p.Length(); len(users) > 0; {
			u := &users[0]
			if u.at >= length {
				heap.Pop(&users)
				continue
			}
			s := u.session
			s.Due, s.WarmUp = u.at, u.at < p.Model.WarmUp
			for i, t := range s.Turns {
				if i > 0 {
					u.at += t.Think
				}
				u.at += max(p.Assumed.of(t.Output), leastCall)
			}
			u.n++
			u.session = p.userSession(shares, u.number, u.n)
			u.at += u.session.Turns[0].Think
			heap.Fix(&users, 0)
			if !yield(s, nil) {
				return
			}
		}
	}
}

// userTurn is a user and its next session.
type userTurn struct {
	number, n int
	at        time.Duration
	session   Session
}

type turns []userTurn

func (h turns) Len() int { return len(h) }
func (h turns) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h turns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turns) Push(x any)   { *h = append(*h, x.(userTurn)) }
func (h *turns) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
