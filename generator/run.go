// Package generator runs a plan: it draws sessions and requests from a load
// model or a trace, prepares their prompts ahead of time, sends each at its
// instant of one absolute schedule, and says whether what it measured can be
// trusted.
package generator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Run is one run of a plan against a target. Plan, Target.BaseURL and Tracer are
// required; every other field's zero value works.
type Run struct {
	ID     string // empty: NewRunID
	Plan   *Plan
	Target Target
	Tracer trace.Tracer // a client span each call

	Labels      map[string]string
	MaxInFlight int           // calls at once; 0: the plan's model's, which may be no limit
	Timeout     time.Duration // of one call, send to end; 0: the plan's model's, which may be none

	// OnProgress, when set, gets a snapshot every ProgressEvery (0: a second),
	// one at a time, and one at the end.
	OnProgress    func(Progress)
	ProgressEvery time.Duration
}

// Do sends the plan and returns when every call has ended. When ctx ends, no
// more is sent and what is under way is awaited; when hard ends, that is broken
// off too. Both give the result so far, marked Partial. The error is of a run
// that could not begin; what went wrong with calls is in the result.
func (r *Run) Do(ctx, hard context.Context) (*Result, error) { panic("not yet") }

// Preflight proves base URL, key, model id, streaming and usage with one small
// request of each API and model of the plan, outside any run. The error says
// which of these it is and what to do; warnings name what works but not fully.
func (r *Run) Preflight(ctx context.Context) (warnings []string, err error) { panic("not yet") }

// Limits says where this machine's limits (open files, ephemeral ports) are too
// low for the plan; nil when they are not.
func (r *Run) Limits() (warnings []string) { panic("not yet") }

// NewRunID gives a run's name: 8 hex digits, unlikely to come twice.
func NewRunID() string { panic("not yet") }
