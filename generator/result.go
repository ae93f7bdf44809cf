package generator

import (
	"time"

	"weir/store/call"
)

// Verdict says whether the figures of a run can be trusted.
type Verdict string

// The verdicts.
const (
	Valid         Verdict = "valid"
	InvalidClient Verdict = "invalid: client"
)

// Result is what a run says of itself. The figures of its calls are in the
// store.
type Result struct {
	RunID   string
	Verdict Verdict
	Reasons []string // why it is invalid; empty when it is valid
	Partial bool     // it was broken off
	Stopped string   // why it ended itself before its plan's end; empty if it did not
	Users   int      // of a closed loop; 0 in an open one
	Seed    uint64

	Started time.Time
	Length  time.Duration // planned: over which sessions start
	Took    time.Duration // to the end of the last call

	// Requests. Planned = Sent + NotSent. A request is not sent when a turn
	// before it failed, or when the run was broken off before it was due to go;
	// what a broken-off run had not drawn yet is in neither.
	Planned int
	Sent    int
	NotSent int // warm-up left out
	Late    int // sent more than LateAfter after they were due, warm-up left out
	WarmUp  int // of Sent

	// Unsent says why requests were not sent: the outcome of the turn before them
	// that failed, or "stopped".
	Unsent map[string]int

	// Overfull later turns had contexts over 2 % larger than planned, since the
	// model's answers before them had filled more than the plan's growth.
	Overfull int

	// What the plan's own times put into Length, or up to when the run was broken
	// off, and what was sent in that time, warm-up left out of both; the rates are
	// by the second behind it. The plan's times are those to which an endpoint would be
	// sent whose answers take no time: neither slow answers nor failed turns lower
	// them. A closed loop plans none: 0.
	PlannedInTime, SentInTime int
	PlannedRate, SentRate     float64
	chained                   bool // some sessions had later turns

	Lag        Quantiles // send − due, warm-up left out
	TTFT       Quantiles // first token − sent, successful streamed calls, warm-up left out
	Response   Quantiles // first token − due, the same calls
	Connect    Quantiles // of the connections that were set up: send → connection in hand; in no TTFT from send's end
	CPU        float64   // this process's share of the cores it may use, 0 to 1
	CapWaits   int       // requests that waited for a place among MaxInFlight
	InFlightHi int       // most calls at once

	Learned []Learned // of models whose tokenizer weir lacks, in the order of their names

	PerScenario []ScenarioResult // in the model's order
}

// LateAfter is the lag above which a request counts as late.
const LateAfter = 10 * time.Millisecond

// ScenarioResult is the same for one scenario, warm-up left out.
type ScenarioResult struct {
	Scenario string
	Sent     int
	NotSent  int
	OK       int
	Failed   map[call.Outcome]int
	TTFT     Quantiles
	Response Quantiles
}

// Quantiles of a set of durations, to within 1 %. N is how many there were; the
// others are absent when it is 0.
type Quantiles struct {
	N                  int
	P50, P95, P99, Max time.Duration
}

// Progress is how a run stands.
type Progress struct {
	RunID    string
	Elapsed  time.Duration // since the start; negative before it
	Length   time.Duration
	Draining bool // nothing more starts; calls under way are awaited

	Planned  int // requests that the plan's own times put before now; of a closed loop 0
	Sent     int
	WarmUp   int // of Sent
	NotSent  int
	InFlight int

	PlannedRate float64 // a second, over the time since the snapshot before
	SentRate    float64

	LagP99    time.Duration // 0 before the first send
	Scenarios []ScenarioResult
}
