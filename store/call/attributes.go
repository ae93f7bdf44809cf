package call

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// fieldOf finds a field by its key.
var fieldOf = func() map[string]*field {
	m := make(map[string]*field, len(fields))
	for i := range fields {
		m[fields[i].key] = &fields[i]
	}
	return m
}()

// SpanName is "{operation} {model}", by the GenAI conventions.
func (c *Call) SpanName() string {
	if c.Request.Model == "" {
		return string(c.Operation)
	}
	return string(c.Operation) + " " + c.Request.Model
}

// SpanStatus is the status of the call's span: an error, with its message, for
// every outcome but ok.
func (c *Call) SpanStatus() (codes.Code, string) {
	if c.Outcome == OK || c.Outcome == "" {
		return codes.Unset, ""
	}
	return codes.Error, c.ErrorMessage
}

// Properties are the keys and values of all that is known of a call but its
// ids and Arrived: what its span's attributes are made of. Values are string,
// int64, float64, bool or []string; instants are nanoseconds since Arrived.
func (c *Call) Properties() iter.Seq2[string, any] { return c.properties(fields) }

func (c *Call) properties(list []field) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range list {
			if v := list[i].get(c); v != nil && !yield(list[i].key, v) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
			if !yield(labelKey+name, c.Labels[name]) {
				return
			}
		}
	}
}

// SetProperty puts back what Properties gave; Arrived must be set before. It
// takes numbers as JSON reads them too, and passes over unknown keys.
func (c *Call) SetProperty(key string, value any) {
	if f := fieldOf[key]; f != nil {
		f.set(c, value)
		return
	}
	if name, ok := strings.CutPrefix(key, labelKey); ok {
		if s, ok := value.(string); ok {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[name] = s
		}
	}
}

// StartAttributes are those that the conventions want at a span's creation,
// and those by which a call in flight is listed.
func (c *Call) StartAttributes() []attribute.KeyValue {
	return attributes(c.properties(startFields), len(startFields))
}

// Attributes are all of them; FromSpan reads them back. Beside the properties
// there is the conventions' time to the first chunk, which is not the first
// token.
func (c *Call) Attributes() []attribute.KeyValue {
	list := attributes(c.Properties(), 64)
	if d, ok := between(c.Sent, c.FirstEvent.Received); ok && c.Streamed {
		list = append(list, attribute.Float64("gen_ai.response.time_to_first_chunk", d.Seconds()))
	}
	return list
}

func attributes(properties iter.Seq2[string, any], size int) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, size)
	for key, value := range properties {
		switch v := value.(type) {
		case string:
			list = append(list, attribute.String(key, v))
		case int64:
			list = append(list, attribute.Int64(key, v))
		case float64:
			list = append(list, attribute.Float64(key, v))
		case bool:
			list = append(list, attribute.Bool(key, v))
		case []string:
			list = append(list, attribute.StringSlice(key, v))
		}
	}
	return list
}

// FromSpan reads a call from a span that weir made; ok is false for a span of
// another kind. A span that has not ended gives what is known so far.
func FromSpan(s sdktrace.ReadOnlySpan) (c *Call, ok bool) {
	c = &Call{
		TraceID:    s.SpanContext().TraceID(),
		SpanID:     s.SpanContext().SpanID(),
		ParentSpan: s.Parent().SpanID(),
		Instants:   Instants{Arrived: At(s.StartTime())},
	}
	for _, kv := range s.Attributes() {
		c.SetProperty(string(kv.Key), kv.Value.AsInterface())
	}
	return c, c.Side != ""
}
