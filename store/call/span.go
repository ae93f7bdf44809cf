package call

import (
	"context"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A call's span carries no attributes through this process: whoever processes
// spans is handed the call itself, and whoever sends them on makes Attributes of
// it. To write a hundred attributes and read them back with each call costs as
// much as all else that recording does.

type begunKey struct{}

// Begin begins the call's span, in the trace that ctx holds if it does. What
// StartAttributes gives must not change from now on, but for the scenario at
// the end.
func (c *Call) Begin(ctx context.Context, tracer trace.Tracer) trace.Span {
	c.ParentSpan = trace.SpanContextFromContext(ctx).SpanID()
	_, span := tracer.Start(context.WithValue(ctx, begunKey{}, c), c.SpanName(),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.Arrived.Time()))
	return span
}

// End ends the call's span. From then on the call belongs to those who process
// spans, and must not be written to.
func (c *Call) End(span trace.Span) {
	sc := span.SpanContext()
	c.TraceID, c.SpanID = sc.TraceID(), sc.SpanID()
	if state := sc.TraceState(); state.Len() > 0 {
		c.TraceState = state.String()
	}
	span.SetStatus(c.SpanStatus())
	span.End(trace.WithTimestamp(c.Done.Time()))
}

// Begun is the call whose span begins, for a span processor's OnStart, which is
// given the context; nil for a span of another kind. Until its span ends the
// call may be read for its StartAttributes alone, and only at once.
func Begun(ctx context.Context) *Call {
	c, _ := ctx.Value(begunKey{}).(*Call)
	return c
}

// Ended makes a span processor that is called with each call whose span ends,
// on the goroutine that ends it.
func Ended(f func(*Call)) sdktrace.SpanProcessor { return &listener{f: f} }

type listener struct {
	f    func(*Call)
	open sync.Map // of the calls, by their spans' ids
}

func (l *listener) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	if c := Begun(ctx); c != nil {
		l.open.Store(span.SpanContext().SpanID(), c)
	}
}

func (l *listener) OnEnd(span sdktrace.ReadOnlySpan) {
	if c, ok := l.open.LoadAndDelete(span.SpanContext().SpanID()); ok {
		l.f(c.(*Call))
	}
}

func (*listener) Shutdown(context.Context) error   { return nil }
func (*listener) ForceFlush(context.Context) error { return nil }
