package call

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// A call and its span know of each other: the ids, the caller's trace, the name,
// the times and how it ended are the same in both.
func TestACallAndItsSpanAgree(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{1}, SpanID: [8]byte{2}, TraceState: state, Remote: true})
	for _, row := range []struct {
		name    string
		in      context.Context
		outcome Outcome
		status  codes.Code
	}{
		{"of its own", context.Background(), OK, codes.Unset},
		{"in its caller's trace, which was not sampled", trace.ContextWithSpanContext(context.Background(), caller), Truncated, codes.Error},
	} {
		t.Run(row.name, func(t *testing.T) {
			var ended []*Call
			spans := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(Ended(func(c *Call) { ended = append(ended, c) })),
				sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.ParentBased(sdktrace.AlwaysSample()))))
			tracer := provider.Tracer("test")
			c := complete[0].script.run()
			c.Request.Model, c.Outcome, c.ErrorMessage = "m-1", row.outcome, "broke"
			span := c.Begin(row.in, tracer)
			_, other := tracer.Start(row.in, "no call")
			other.End()
			if len(ended) != 0 {
				t.Fatal("the call ended before its span")
			}
			c.End(span)
			if len(ended) != 1 || ended[0] != c {
				t.Fatalf("ended: %v", ended)
			}
			s := spans.Ended()[1]
			parent := trace.SpanContextFromContext(row.in)
			type facts struct {
				Name                string
				Trace               [16]byte
				Span, Parent        [8]byte
				State               string
				Began, Ended        int64
				Status              codes.Code
				InTheCallersTrace   bool
				Kind                trace.SpanKind
				AttributesInProcess int
			}
			got := facts{s.Name(), s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID(), s.SpanContext().TraceState().String(),
				s.StartTime().UnixNano(), s.EndTime().UnixNano(), s.Status().Code, s.SpanContext().TraceID() == parent.TraceID(), s.SpanKind(), len(s.Attributes())}
			want := facts{"chat m-1", c.TraceID, c.SpanID, c.ParentSpan, c.TraceState,
				c.Arrived.Time().UnixNano(), c.Done.Time().UnixNano(), row.status, parent.IsValid(), trace.SpanKindClient, 0}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if c.TraceID == [16]byte{} || c.SpanID == [8]byte{} || c.ParentSpan != parent.SpanID() || c.TraceState != parent.TraceState().String() {
				t.Errorf("trace %x, span %x, parent %x, state %q", c.TraceID, c.SpanID, c.ParentSpan, c.TraceState)
			}
		})
	}
}
