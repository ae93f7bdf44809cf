package store

import (
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"weir/store/call"
)

// message is spans on their way to a collector. They are encoded as they come:
// to build them as the messages of the protobuf library, to have those measured
// and then encoded, costs several times what the proxy spends on recording a
// call.
type message struct {
	spans   []outgoing
	encoded []byte               // of those spans, and maybe of others
	scratch []attribute.KeyValue // kept for its room
}

// outgoing is a span, its id in the database, and where its encoded form is.
type outgoing struct {
	id       int64
	trace    [16]byte
	span     [8]byte
	from, to int
}

// The fields of ScopeSpans, Span, Event, Status, KeyValue, AnyValue and
// ArrayValue, by opentelemetry-proto 1.
const (
	scopeSpans = 2

	spanTraceID    = 1
	spanID         = 2
	spanTraceState = 3
	spanParent     = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanEvents     = 11
	spanStatus     = 15
	spanFlags      = 16

	eventTime = 1
	eventName = 2

	statusMessage = 2
	statusCode    = 3

	pairKey   = 1
	pairValue = 2

	valueString = 1
	valueBool   = 2
	valueInt    = 3
	valueDouble = 4
	valueArray  = 5

	arrayValues = 1
)

// add puts a call behind the others.
func (m *message) add(id int64, c *call.Call) {
	from := len(m.encoded)
	m.scratch = c.AppendAttributes(m.scratch[:0])
	m.encoded = appendNested(m.encoded, scopeSpans, func(b []byte) []byte { return appendSpan(b, c, m.scratch) })
	m.spans = append(m.spans, outgoing{id, c.TraceID, c.SpanID, from, len(m.encoded)})
}

// undo takes the last call back.
func (m *message) undo() {
	last := len(m.spans) - 1
	m.encoded = m.encoded[:m.spans[last].from]
	m.spans = m.spans[:last]
}

// reset empties a message, and keeps its room.
func (m *message) reset() { m.spans, m.encoded = m.spans[:0], m.encoded[:0] }

// some are part of a message.
func (m message) some(spans []outgoing) message { return message{spans: spans, encoded: m.encoded} }

// scope is what the protobuf library makes of them: of what is encoded it does
// not look at a field, and writes it as it stands.
func (m message) scope() *tracepb.ScopeSpans {
	s := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "weir"}}
	if n := len(m.spans); n > 0 {
		s.ProtoReflect().SetUnknown(m.encoded[m.spans[0].from:m.spans[n-1].to])
	}
	return s
}

// appendSpan writes a call as OTLP has it.
func appendSpan(b []byte, c *call.Call, attributes []attribute.KeyValue) []byte {
	b = appendBytes(b, spanTraceID, c.TraceID[:])
	b = appendBytes(b, spanID, c.SpanID[:])
	b = appendText(b, spanTraceState, c.TraceState)
	if c.ParentSpan != [8]byte{} {
		b = appendBytes(b, spanParent, c.ParentSpan[:])
	}
	b = appendText(b, spanName, c.SpanName())
	b = appendNumber(b, spanKind, uint64(tracepb.Span_SPAN_KIND_CLIENT))
	b = appendTime(b, spanStart, c.Started())
	b = appendTime(b, spanEnd, c.Done.Time())
	for _, kv := range attributes {
		b = appendNested(b, spanAttributes, func(b []byte) []byte {
			b = appendText(b, pairKey, string(kv.Key))
			return appendNested(b, pairValue, func(b []byte) []byte { return appendValue(b, kv.Value) })
		})
	}
	for _, e := range c.SpanEvents() {
		b = appendNested(b, spanEvents, func(b []byte) []byte {
			return appendText(appendTime(b, eventTime, e.At.Time()), eventName, e.Name)
		})
	}
	if code, text := c.SpanStatus(); code == codes.Error {
		b = appendNested(b, spanStatus, func(b []byte) []byte {
			return appendNumber(appendText(b, statusMessage, text), statusCode, uint64(tracepb.Status_STATUS_CODE_ERROR))
		})
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, spanFlags, protowire.Fixed32Type), 1) // sampled
}

// appendValue writes an AnyValue. Which kind it is stands in the field that is
// there, so that even a 0 is written.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return appendNumber(b, valueBool, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return appendNumber(b, valueInt, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, valueDouble, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		return appendNested(b, valueArray, func(b []byte) []byte {
			for _, s := range v.AsStringSlice() {
				b = appendNested(b, arrayValues, func(b []byte) []byte { return appendString(b, valueString, s) })
			}
			return b
		})
	}
	return appendString(b, valueString, v.String())
}

// appendNested writes a message within a message.
func appendNested(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0) // most lengths take one byte
	start := len(b)
	b = write(b)
	length := len(b) - start
	for range protowire.SizeVarint(uint64(length)) - 1 {
		b = append(b, 0)
	}
	copy(b[len(b)-length:], b[start:start+length])
	protowire.AppendVarint(b[:start-1], uint64(length))
	return b
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendTime(b []byte, field protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(t.UnixNano()))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// appendText writes a text, unless it is empty, which is the same as none.
func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(b, field, s)
}

// fresh are the calls that this process wrote last, encoded while they are at
// hand: to read them back from the database would cost as much again. They are
// one message at most. What it has no room for, and what a collector did not
// take, is read from the database.
type fresh struct {
	mu           sync.Mutex
	next, taken  message
	behind, last int64 // next has all that was written behind the one, up to the other
}

// put adds calls that were written, with their ids, 0 for one that was not, and
// says whether it is time to send them.
func (f *fresh) put(batch []ended, ids []int64) (enough bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range batch {
		if ids[i] == 0 {
			continue
		}
		if f.last = ids[i]; e.span.IsSampled() && len(f.next.encoded) <= sendBytes {
			f.next.add(ids[i], e.call)
		}
	}
	if len(f.next.encoded) > sendBytes {
		f.next.reset()
		f.behind = f.last
		return true
	}
	return len(f.next.encoded) > sendBytes/2
}

// take gives the calls behind an id, up to last; ok is false where some of them
// stand only in the database. They are good until the next are taken.
func (f *fresh) take(behind int64) (m message, last int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if behind < f.behind {
		return message{}, 0, false
	}
	f.next, f.taken = f.taken, f.next
	f.next.reset()
	f.behind = f.last
	m = f.taken
	for len(m.spans) > 0 && m.spans[0].id <= behind { // another process has sent it
		m = m.some(m.spans[1:])
	}
	return m, max(f.last, behind), true
}
