package call

import (
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// SpanName is "{operation} {model}", by the GenAI conventions.
func (c *Call) SpanName() string { panic("call: being written") }

// StartAttributes are those that the conventions want at a span's creation,
// and those by which a call in flight is listed.
func (c *Call) StartAttributes() []attribute.KeyValue { panic("call: being written") }

// Attributes are all of them; FromSpan reads them back.
func (c *Call) Attributes() []attribute.KeyValue { panic("call: being written") }

// FromSpan reads a call from a span that weir made; ok is false for a span of
// another kind. A span that has not ended gives what is known so far.
func FromSpan(s sdktrace.ReadOnlySpan) (c *Call, ok bool) { panic("call: being written") }
