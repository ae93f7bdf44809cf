// Package shaper decides when a call may go to the endpoint. A call asks with
// what is known of it and gets a Permit, which it holds to the end of its
// stream, or a Refusal. Between them stand lanes: who shares a limit, and what
// the limit is.
package shaper

import (
	"context"
	"fmt"
	"time"
)

// Ask is what the shaper knows of a call that wants to be sent.
type Ask struct {
	Scenario string
	Upstream string
	Model    string
	Key      string // fingerprint of the caller's key, never the key
	Session  string

	Arrived time.Time // from when its wait is counted; zero: now

	InputTokens  int64 // estimated; 0 when unknown
	OutputTokens int64 // the most that the call may generate; 0 when unknown

	// CachedWeight is how much of a token the provider counts for an input
	// token from its cache, 0 to 1.
	CachedWeight float64
}

// Shaper admits calls. The zero Shaper admits all of them at once.
type Shaper struct{}

// Configure gives the shaper its rules, in the place of those it had. Streams
// under way go on and are counted, and waiters keep their place. It fails on
// two rules with one selector, and then changes nothing.
func (s *Shaper) Configure(rules []Rule) error { return nil }

// Rules are the rules that hold now.
func (s *Shaper) Rules() []Rule { return nil }

// Change sets parts of one rule as "scenario=rag rps=2 concurrency=off" says,
// and makes the rule if there is none. It gives the rule as it was and as it
// is; a rule that was not there, or is gone, has the zero Limit.
func (s *Shaper) Change(text string) (old, now Rule, err error) { return Rule{}, Rule{}, nil }

// Lanes tells the state of all lanes, in the order of their rules and then by
// name.
func (s *Shaper) Lanes() []LaneState { return nil }

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

// Admit waits until the call may be sent. It returns a *Refusal when it may not,
// and the context's error when the caller leaves first; then no permit is held.
func (s *Shaper) Admit(ctx context.Context, a Ask) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &Permit{}, nil
}

// Permit is the right to have one call in flight, and what the shaper did with
// it: what the call's span says of its lane.
type Permit struct{}

// Account is what the shaper did with a call.
type Account struct {
	Lane                      string        // that it waited in last, or the first that it passed; empty: none
	Limit                     string        // of that lane, what it waited for last: "requests", "tokens", "input tokens", "output tokens", "in flight", "hold"; empty: it did not wait
	Position                  int           // in that lane when it came, from 1; 0: it did not wait
	InputTokens, OutputTokens int64         // reserved; meaningful where Reserved
	Reserved                  bool          // a lane has a budget of tokens
	Held                      time.Duration // of its wait: while the endpoint's word held the lane
	HoldReason                string
}

// Account tells what was done with the call so far.
func (p *Permit) Account() Account { return Account{} }

// Answer is what the endpoint said of its limits, known when the head of its
// response came.
type Answer struct {
	Status int           // of the response
	Wait   time.Duration // that it asks for; 0 when it does not
	Why    string        // what Wait rests on: "429", "requests used up"
}

// Heard tells the shaper what the endpoint said, and says whether the call may
// be sent again by Again: it was refused, and its lanes allow another attempt.
func (p *Permit) Heard(a Answer) (again bool) { return false }

// Again gives back what the refused attempt held and waits until the call may
// be sent once more, before those who have not been refused yet. Its errors are
// Admit's; the permit is then released.
func (p *Permit) Again(ctx context.Context) error { return nil }

// Settlement is what a call turned out to be, told to the shaper at its end.
type Settlement struct {
	Used bool // the endpoint worked on it, so that tokens whose number is unknown were used all the same

	InputTokens, CachedTokens, OutputTokens Tokens // as reported

	// TTFT is from the request's last byte to the first token; 0 when there was
	// none.
	TTFT time.Duration
}

// Tokens are a number of tokens that may be unknown.
type Tokens struct {
	N     int64
	Known bool
}

// Release gives the permit back with what the call turned out to be. It is
// called once, when the stream has ended, failed or been cancelled.
func (p *Permit) Release(Settlement) {}

// Refusal says that a call may not be sent now.
type Refusal struct {
	Reason     string
	Account    Account
	RetryAfter time.Duration // when it is worth asking again; 0 when unknown
}

func (r *Refusal) Error() string {
	if r.RetryAfter > 0 {
		return fmt.Sprintf("refused: %s; try again in %s", r.Reason, r.RetryAfter)
	}
	return "refused: " + r.Reason
}
