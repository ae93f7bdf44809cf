// Package shaper decides when a call may go to the endpoint. A call asks with
// what is known of it and gets a Permit, which it holds to the end of its
// stream, or a Refusal.
//
// There are no lanes yet: every call is admitted at once.
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

	InputTokens  int64 // estimated; 0 when unknown
	OutputTokens int64 // the most that the call may generate; 0 when unknown
}

// Shaper admits calls. The zero Shaper admits all of them at once.
type Shaper struct{}

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

// Settlement is what a call turned out to be, told to the shaper at its end.
type Settlement struct {
	Status       int           // of the response; 0 when there was none
	RetryAfter   time.Duration // as the endpoint asked; 0 when it did not
	InputTokens  int64         // as reported; 0 when unknown
	OutputTokens int64
}

// Release gives the permit back with what the call turned out to be. It is
// called once, when the stream has ended, failed or been cancelled.
func (p *Permit) Release(Settlement) {}

// Refusal says that a call may not be sent now.
type Refusal struct {
	Reason     string
	RetryAfter time.Duration // when it is worth asking again; 0 when unknown
}

func (r *Refusal) Error() string {
	if r.RetryAfter > 0 {
		return fmt.Sprintf("refused: %s; try again in %s", r.Reason, r.RetryAfter)
	}
	return "refused: " + r.Reason
}
