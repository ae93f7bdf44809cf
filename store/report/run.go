package report

import (
	"fmt"
	"strconv"
	"time"

	"weir/generator/loadmodel"
	"weir/store"
)

// Run is a load run that the calls belong to, with its verdict.
type Run struct {
	ID        string    `json:"run"`
	Model     string    `json:"load_model"`
	Target    string    `json:"target"`
	Seed      string    `json:"seed"` // decimal: a 64-bit seed does not fit a JSON number
	Started   time.Time `json:"started_at"`
	Duration  Num       `json:"duration_s"` // to the end of the last call
	Verdict   string    `json:"verdict"`    // "valid", "invalid: client"; empty when it never ended
	Partial   bool      `json:"partial"`    // it was broken off
	Reasons   []string  `json:"reasons"`
	Planned   Num       `json:"planned_per_s"`
	Achieved  Num       `json:"achieved_per_s"`
	LagP50    Num       `json:"lag_p50_ms"`
	LagP99    Num       `json:"lag_p99_ms"`
	LagMax    Num       `json:"lag_max_ms"`
	NotSent   int       `json:"not_sent_calls"`
	Scenarios []string  `json:"scenarios"` // as the load model lists them
	Notes     []string  `json:"notes"`     // how to read its figures, a sentence each

	wants  map[string][]loadmodel.Want // of the load model, by scenario
	lagFew bool                        // requests, too few for the lag's 99th percentile
}

// RunOf is a stored run as a report tells it.
func RunOf(r store.Run) Run {
	run := Run{
		ID: r.ID, Model: r.Name, Target: r.Target, Seed: strconv.FormatUint(r.Seed, 10), Started: r.Started.UTC(),
		Verdict: r.Verdict, Partial: r.Partial, Reasons: append([]string{}, r.Reasons...), NotSent: r.NotSent,
		Scenarios: append([]string{}, r.Scenarios...), Notes: append([]string{}, r.Notes...),
	}
	if r.Shards > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("shard %d of %d (from 0): a part of the plan; weir merge puts the parts together", r.Shard, r.Shards))
	}
	if len(r.Model) > 0 {
		run.wants = wanted(r.Model)
	}
	if !r.Ended.IsZero() {
		run.Duration = N(r.Ended.Sub(r.Started).Seconds())
	}
	if r.Verdict != "" { // else it has not ended: what is known is of those of its shards that have
		if r.PlannedRate > 0 {
			run.Planned = N(r.PlannedRate)
		}
		if r.PlannedRate > 0 || r.SentRate > 0 { // a closed loop plans no rate
			run.Achieved = N(r.SentRate)
		}
	}
	if r.Sent > 0 && r.Verdict != "" {
		run.LagP50, run.LagP99, run.LagMax = Ms(r.LagP50), Ms(r.LagP99), Ms(r.LagMax)
		run.lagFew = r.Sent < leastForP99
	}
	return run
}
