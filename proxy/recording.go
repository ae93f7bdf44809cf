package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"weir/store/call"
)

// recording makes the calls' spans beside the streams, those of some
// milliseconds in a row, so that it wakes seldom and stands in no request's
// way. Every instant was taken before. The zero recording is ready.
type recording struct {
	mu    sync.Mutex
	jobs  []func()
	works bool
}

const recordingPause = 20 * time.Millisecond

// add has a job done soon, after those that were added before.
func (r *recording) add(job func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, job)
	if !r.works {
		r.works = true
		go r.work()
	}
}

func (r *recording) work() {
	var jobs []func()
	for {
		time.Sleep(recordingPause)
		clear(jobs)
		r.mu.Lock()
		jobs, r.jobs = r.jobs, jobs[:0]
		r.works = len(jobs) > 0
		r.mu.Unlock()
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			job()
		}
	}
}

// begin asks for the call's span, in the caller's trace if it has one. What the
// span says at its start does not change any more.
func (x *exchange) begin() {
	x.spanned = true
	if x.unseen {
		return
	}
	if x.p.Propagate == PropagateReplace && x.parent == nil { // the upstream is to be told of it
		x.startSpan()
		return
	}
	x.p.recording.add(x.startSpan)
}

func (x *exchange) startSpan() { x.span = x.c.Begin(x.calledIn(), x.p.tracer) }

// calledIn is the trace that the call belongs to: that of the call by which it
// came, whose span was begun before, or the caller's.
func (x *exchange) calledIn() context.Context {
	switch {
	case x.parent != nil:
		return trace.ContextWithSpan(context.Background(), x.parent.span)
	case x.r == nil:
		return context.Background()
	}
	return propagation.TraceContext{}.Extract(context.WithoutCancel(x.r.Context()), propagation.HeaderCarrier(x.r.Header))
}

// tell logs a fault of weir's own, with the call's span; before it has one, with
// the caller's.
func (x *exchange) tell(text string, args ...any) {
	x.p.recording.add(func() {
		var ctx context.Context
		if x.span != nil {
			ctx = trace.ContextWithSpan(context.Background(), x.span)
		} else {
			ctx = x.calledIn()
		}
		x.p.Log.ErrorContext(ctx, text, args...)
	})
}

// record ends the call's span.
func (x *exchange) record() {
	defer x.p.under.end()
	reclassify(x.c)
	if x.kept != nil {
		sc := x.span.SpanContext()
		x.c.TraceID, x.c.SpanID = sc.TraceID(), sc.SpanID()
		x.kept.end(x.c)
	}
	x.c.End(x.span)
	if ctx := trace.ContextWithSpan(context.Background(), x.span); x.p.Log.Enabled(ctx, slog.LevelDebug) {
		x.p.Log.DebugContext(ctx, "a call ended", "scenario", x.c.Scenario, "model", call.Shorten(x.c.Request.Model, 256), "upstream", x.c.Upstream,
			"outcome", x.c.Outcome, "status", x.c.Status, "call", x.c.String())
	}
}
