package generator

import (
	"container/heap"
	"errors"
	"iter"
	"time"
)

// closedLoop says whether the plan sends as fast as it is answered.
func (p *Plan) closedLoop() bool {
	return p.Trace == nil && p.Dataset == nil && p.Model.Concurrency > 0
}

// foreseen are the sessions of the plan. When those of a closed loop start rests
// on how long calls take: they can be told where that is stated.
func (p *Plan) foreseen(l Latency) iter.Seq2[Session, error] {
	if !p.closedLoop() {
		return p.Sessions()
	}
	return func(yield func(Session, error) bool) {
		if !l.Known {
			yield(Session{}, errors.New("a closed loop (concurrency) sends as fast as it is answered; state how fast that is: weir plan MODEL --latency 'ttft 500ms, tpot 20ms'"))
			return
		}
		shares, _ := p.Model.SessionShares()
		free := make(happenings, p.Model.Concurrency) // each place's session starts when the one before has ended
		for n := 0; free[0].at < p.Length(); n++ {
			s := p.session(p.Model, n, p.scenario(shares, n))
			s.Due = free[0].at
			s.WarmUp = s.Due < p.Model.WarmUp
			free[0].at += s.lasts(l)
			heap.Fix(&free, 0)
			if !yield(s, nil) {
				return
			}
		}
	}
}

// lasts is how long a session takes, and at least what a client does.
func (s *Session) lasts(l Latency) time.Duration {
	sum := leastThink
	for _, t := range s.Turns {
		sum += l.of(t.Output) + t.Think
	}
	return sum
}
