package generator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/store/call"
)

const chained = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 200, "max": 400}, "output_tokens": {"min": 1, "max": 2},
  "turns": {"min": 6, "max": 6}, "think_seconds": {"distribution": "constant", "value": 0.5}}],
  "target_qps": 4, "duration_seconds": 30, "arrivals": {"process": "constant"}}}`

// What a plan asks for is the same whatever answers it: an endpoint that is slow,
// or that fails, cannot lower what it is held against.
func TestThePlannedRateIsThePlansWhateverTheEndpointDoes(t *testing.T) {
	for _, row := range []struct {
		name   string
		takes  time.Duration
		fail   bool
		missed bool
	}{
		{"quick → kept", time.Millisecond, false, false},
		{"slow → missed", 10 * time.Second, false, true},
		{"every call fails → missed", time.Millisecond, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, result, _, _ := play(t, chained, row.takes, func(r *Run) {
					if trip := r.transport; row.fail {
						r.transport = failing{trip}
					}
				})
				// Sessions start every 1.5 s, from 0.75 s on: the last but one ends its
				// turns after 30.25 s, the last one has two of six within the 30 s.
				const want = 20*6 - 1 - 4
				if result.PlannedInTime != want || result.PlannedRate != want/30.0 {
					t.Errorf("planned %d, %.3f/s; want %d in 30 s", result.PlannedInTime, result.PlannedRate, want)
				}
				said := strings.Contains(strings.Join(result.Notes(), "\n"), "the plan's rate was missed: by its own times 3.83/s were to be sent")
				if said != row.missed || row.missed == (result.SentInTime > want*9/10) {
					t.Errorf("%d of %d sent in time, notes %q", result.SentInTime, want, result.Notes())
				}
			})
		})
	}
}

// failing refuses every call.
type failing struct{ http.RoundTripper }

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

// A turn is due at the planned end of the one before it: what this client was
// late by is in the response times of all the turns after it, too.
func TestALateTurnIsNotForgivenInTheTurnsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Second
		recorded := &recorder{}
		c := &clockwork{takes: takes, turns: map[string][]time.Time{}}
		// Two sessions at once and one place: the second's first turn is late.
		m := decode(t, chained).Scaled(3 * time.Second)
		r := &Run{Plan: &Plan{Model: m, Seed: 1}, Target: Target{BaseURL: "http://endpoint"}, Tracer: recorded.tracer(), MaxInFlight: 1, transport: c}
		if _, err := r.Do(context.Background(), context.Background()); err != nil {
			t.Fatal(err)
		}
		bySession := map[string][]*call.Call{}
		for _, c := range recorded.calls(t) {
			bySession[c.Session] = append(bySession[c.Session], c)
		}
		late := time.Duration(0)
		for id, calls := range bySession {
			for i := 1; i < len(calls); i++ {
				before, after := calls[i-1], calls[i]
				want := before.Due + (before.Done - before.Arrived) + call.Instant(500*time.Millisecond)
				if after.Due != want {
					t.Errorf("session %s: turn %d is due %s after what the plan says", id, i+1, time.Duration(after.Due-want))
				}
				late = max(late, time.Duration(before.Arrived-before.Due))
			}
		}
		if len(bySession) < 2 || late < takes/10 {
			t.Errorf("%d sessions, late by %s: nothing was there to be forgiven", len(bySession), late)
		}
	})
}
