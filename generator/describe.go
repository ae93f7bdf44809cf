package generator

import "time"

// Description is what a plan would do, found by playing it without sending.
type Description struct {
	Seed      uint64
	Length    time.Duration
	Sessions  int
	Requests  int
	WarmUp    int     // of Requests
	PeakRate  float64 // request starts a second in the busiest second, not counting later turns
	Input     int64   // tokens of all prompts
	Output    int64   // tokens of all answers, at most
	Tokenizer string
	Estimated bool // the model's own tokenizer is not public

	Scenarios []ScenarioDescription // in the model's order
}

// ScenarioDescription is one scenario's part. Share is of requests, 0 to 1.
type ScenarioDescription struct {
	Scenario      string
	API           string
	Model         string // several: joined by ", "
	Sessions      int
	Requests      int
	Share         float64
	Input, Output Spread // tokens a request
	Turns         Spread // requests a session
}

// Spread is how values are spread, by nearest rank.
type Spread struct{ Min, P50, P95, Max int }

// Describe plays the plan to its end without sending.
func Describe(p *Plan) *Description { panic("not yet") }
