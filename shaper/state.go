package shaper

import (
	"cmp"
	"slices"
	"time"
)

// Lanes tells the state of all lanes, in the order of their rules and then by
// name. Calls come and go while they are told.
func (s *Shaper) Lanes() []LaneState {
	oldest := s.oldest()
	type placed struct {
		rule int
		LaneState
	}
	var all []placed
	s.mu.Lock()
	for _, l := range s.lanes {
		at, waits := oldest[l]
		if !waits {
			at = s.now() // who waits has come since
		}
		all = append(all, placed{l.rule, l.state(s.now(), at)})
		if len(all)%atATime == 0 {
			s.mu.pause()
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.Name, b.Name))
	})
	states := make([]LaneState, 0, len(all))
	for _, l := range all {
		states = append(states, l.LaneState)
	}
	return states
}

// oldest is when the one came that has waited longest, by lane.
func (s *Shaper) oldest() map[*lane]time.Duration {
	first := map[*lane]time.Duration{}
	s.walk(func(w *waiter) {
		for _, l := range w.permit.line.path {
			if at, ok := first[l]; !ok || w.entered < at {
				first[l] = w.entered
			}
		}
	})
	return first
}

func (l *lane) state(now, oldest time.Duration) LaneState {
	st := LaneState{
		Name: l.name, Each: l.each, Limit: l.limit.String(), InFlight: l.inFlight, Waiting: l.waiters(),
		Admitted: l.admitted, Refused: l.refused, Left: l.left, EndpointRefused: l.endpointRefused,
	}
	if l.rate.age(now) >= time.Second {
		rate := l.rate.perSecond(now)
		st.PerS = &rate
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
	Each            bool     `json:"each"`           // one of many, made as calls come, by a rule with each
	Limit           string   `json:"limit"`          // as it is written; empty for the endpoint's
	PerS            *float64 `json:"admitted_per_s"` // over the last 10 s, or since the lane opened; nil: it is younger than a second
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
