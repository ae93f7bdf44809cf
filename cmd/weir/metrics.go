package main

import (
	"time"

	"weir/shaper"
	"weir/store"
)

// laneStates are the shaper's lanes as the metrics tell of them.
func laneStates(s *shaper.Shaper) []store.Lane {
	var lanes []store.Lane
	for _, l := range s.Lanes() {
		lanes = append(lanes, store.Lane{
			Name: l.Name, Waiting: l.Waiting, InFlight: l.InFlight, MostInFlight: l.MostInFlight,
			Admitted: l.Admitted, Refused: l.Refused, EndpointRefused: l.EndpointRefused,
			Held: time.Duration(l.HeldMS * float64(time.Millisecond)), TokensLeft: l.TokensLeft,
		})
	}
	return lanes
}
