package generator

import (
	"container/heap"
	"errors"
	"iter"
	"time"
)

// leastCall is what a call takes at least where a loop is told before: without
// it a loop of calls that take no time would never get on.
const leastCall = time.Millisecond

// foreseen are the sessions of the plan. When those of a closed loop start rests
// on how long calls take: they can be told where that is stated.
func (p *Plan) foreseen(l Latency) iter.Seq2[Session, error] {
	if !p.closed() {
		return p.Sessions()
	}
	return func(yield func(Session, error) bool) {
		if !l.Known {
			yield(Session{}, errors.New("a closed loop (concurrency) sends as fast as it is answered; state how fast that is: weir plan MODEL --latency 'ttft 500ms, tpot 20ms'"))
			return
		}
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
				u.at += max(l.of(t.Output), leastCall)
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
