package shaper

import (
	"cmp"
	"slices"
	"time"
)

// Lanes tells the state of all lanes, in the order of their rules and then by
// name.
func (s *Shaper) Lanes() []LaneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	all := make([]*lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.name, b.name))
	})
	oldest := s.oldest()
	states := make([]LaneState, 0, len(all))
	for _, l := range all {
		states = append(states, l.state(now, oldest[l]))
	}
	return states
}

// oldest is when the one came that has waited longest, by lane.
func (s *Shaper) oldest() map[*lane]time.Duration {
	first := map[*lane]time.Duration{}
	for _, ln := range s.lines {
		for w := ln.first; w != nil; w = w.next {
			for _, l := range ln.path {
				if at, ok := first[l]; !ok || w.entered < at {
					first[l] = w.entered
				}
			}
		}
	}
	return first
}

func (l *lane) state(now, oldest time.Duration) LaneState {
	st := LaneState{
		Name: l.name, Limit: l.limit.String(), PerS: l.rate.perSecond(now), InFlight: l.inFlight, Waiting: l.waiters(),
		Admitted: l.admitted, Refused: l.refused, Left: l.left, EndpointRefused: l.endpointRefused,
	}
	if n := l.slots(); n > 0 {
		st.MostInFlight = &n
	}
	if st.Waiting > 0 {
		st.OldestMS = milliseconds(now - oldest)
		st.Full, _ = l.closed(now)
	}
	for _, b := range []*bucket{&l.tokens, &l.input, &l.output} {
		if b.perSecond > 0 {
			b.fill(now)
			if st.TokensLeft == nil || b.level < *st.TokensLeft {
				left := b.level
				st.TokensLeft = &left
			}
		}
	}
	if l.hold.until > now {
		st.HeldMS, st.HoldReason = milliseconds(l.hold.until-now), l.hold.reason
	}
	return st
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// LaneState is how things stand in a lane.
type LaneState struct {
	Name            string   `json:"name"`           // "scenario=rag", "all"; "endpoint …" for one that only the endpoint limits
	Limit           string   `json:"limit"`          // as it is written; empty for the endpoint's
	PerS            float64  `json:"admitted_per_s"` // over the last 10 s
	InFlight        int      `json:"in_flight"`
	MostInFlight    *int     `json:"in_flight_limit"` // nil: no limit; what adaptive has found
	Waiting         int      `json:"waiting"`
	OldestMS        float64  `json:"oldest_wait_ms"` // 0 where nobody waits
	Full            string   `json:"full"`           // the limit that keeps the first waiter, as in a call's span; empty: none
	TokensLeft      *float64 `json:"tokens_left"`    // of the scarcest budget, below 0 a debt; nil: no budget
	HeldMS          float64  `json:"held_for_ms"`    // from now; 0: it is not held
	HoldReason      string   `json:"hold_reason"`
	Admitted        int64    `json:"admitted_calls"`
	Refused         int64    `json:"refused_calls"` // by the shaper
	Left            int64    `json:"left_calls"`    // by themselves, while they waited
	EndpointRefused int64    `json:"endpoint_refused_calls"`
}
