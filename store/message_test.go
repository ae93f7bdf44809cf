package store

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"weir/store/call"
)

// decoded is what the protobuf library reads of a message.
func decoded(t *testing.T, m message) []*tracepb.Span {
	t.Helper()
	text, err := proto.Marshal(m.scope())
	if err != nil {
		t.Fatal(err)
	}
	var s tracepb.ScopeSpans
	if err := proto.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Scope.GetName() != "weir" || len(s.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("the scope is %v", &s)
	}
	return s.Spans
}

func TestAMessageIsReadAsItsSpans(t *testing.T) {
	plain := example(0)
	failed := example(1)
	failed.Outcome, failed.ErrorMessage = call.ServerError, strings.Repeat("很长 ", 20)
	failed.ParentSpan, failed.TraceState = [8]byte{1}, "a=b"
	failed.Request.Stop = []string{"one", "", strings.Repeat("two", 100)}
	failed.Labels = map[string]string{"team": "x"}
	var m message
	var want []*tracepb.Span
	for i, c := range []*call.Call{plain, failed} {
		m.add(int64(i+1), c)
		s := &tracepb.Span{
			TraceId: c.TraceID[:], SpanId: c.SpanID[:], Name: c.SpanName(), Kind: tracepb.Span_SPAN_KIND_CLIENT, TraceState: c.TraceState,
			StartTimeUnixNano: uint64(c.Started().UnixNano()), EndTimeUnixNano: uint64(c.Done.Time().UnixNano()), Attributes: keyValues(c.Attributes()), Flags: 1,
		}
		for _, e := range c.SpanEvents() {
			s.Events = append(s.Events, &tracepb.Span_Event{Name: e.Name, TimeUnixNano: uint64(e.At.Time().UnixNano())})
		}
		if c == failed {
			s.ParentSpanId, s.Status = c.ParentSpan[:], &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: c.ErrorMessage}
		}
		want = append(want, s)
	}
	if d := gocmp.Diff(want, decoded(t, m), protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff(want[1:], decoded(t, m.some(m.spans[1:])), protocmp.Transform()); d != "" {
		t.Errorf("the second alone:\n%s", d)
	}
	m.undo()
	if d := gocmp.Diff(want[:1], decoded(t, m), protocmp.Transform()); d != "" {
		t.Errorf("without the second:\n%s", d)
	}
	m.reset()
	if n := len(decoded(t, m)); n != 0 {
		t.Errorf("an empty message has %d spans", n)
	}
}

func TestValuesOfEachKindAndLengthAreWrittenAsTheyAre(t *testing.T) {
	var list []attribute.KeyValue
	for _, n := range []int{0, 1, 110, 120, 130, 16_370, 16_390} { // about where a length takes a byte more
		list = append(list, attribute.String("k", strings.Repeat("x", n)))
	}
	list = append(list, attribute.Int64("k", 0), attribute.Int64("k", -1), attribute.Int64("k", 1<<62), attribute.Float64("k", 0), attribute.Float64("k", -1.5),
		attribute.Bool("k", false), attribute.Bool("k", true), attribute.StringSlice("k", nil), attribute.StringSlice("k", []string{"", "a"}))
	for i, want := range keyValues(list) {
		var got commonpb.AnyValue
		if err := proto.Unmarshal(appendValue(nil, list[i].Value), &got); err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(want.Value, &got, protocmp.Transform()); d != "" {
			t.Error(d)
		}
	}
}

// The numbers of the fields are the schema's.
func TestFieldsAreThoseOfTheSchema(t *testing.T) {
	for name, is := range map[string]protowire.Number{
		"ScopeSpans.spans": scopeSpans,
		"Span.trace_id":    spanTraceID, "Span.span_id": spanID, "Span.trace_state": spanTraceState, "Span.parent_span_id": spanParent, "Span.name": spanName,
		"Span.kind": spanKind, "Span.start_time_unix_nano": spanStart, "Span.end_time_unix_nano": spanEnd, "Span.attributes": spanAttributes,
		"Span.events": spanEvents, "Span.status": spanStatus, "Span.flags": spanFlags,
		"Event.time_unix_nano": eventTime, "Event.name": eventName, "Status.message": statusMessage, "Status.code": statusCode,
		"KeyValue.key": pairKey, "KeyValue.value": pairValue, "ArrayValue.values": arrayValues,
		"AnyValue.string_value": valueString, "AnyValue.bool_value": valueBool, "AnyValue.int_value": valueInt, "AnyValue.double_value": valueDouble, "AnyValue.array_value": valueArray,
	} {
		of, field, _ := strings.Cut(name, ".")
		m := map[string]proto.Message{
			"ScopeSpans": &tracepb.ScopeSpans{}, "Span": &tracepb.Span{}, "Event": &tracepb.Span_Event{}, "Status": &tracepb.Status{},
			"KeyValue": &commonpb.KeyValue{}, "AnyValue": &commonpb.AnyValue{}, "ArrayValue": &commonpb.ArrayValue{},
		}[of]
		if f := m.ProtoReflect().Descriptor().Fields().ByNumber(is); f == nil || string(f.Name()) != field {
			t.Errorf("%s is not field %d", name, is)
		}
	}
}

// What is sent while it is fresh is what is sent when it is read back.
func TestFreshSpansAreThoseOfTheDatabase(t *testing.T) {
	first, second := &collector{}, &collector{}
	url, _ := listenOn(t, first, "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "weir.db")
	db, tr, stop := tracing(t, path, setEnv(t, url))
	for i := range 50 {
		c := example(i)
		c.Labels = map[string]string{"team": "x"}
		if i%10 == 9 {
			c.Outcome, c.Status, c.ErrorMessage = call.ServerError, 500, "no \x00 \xff luck"
		}
		record(tr, context.Background(), c)
	}
	await(t, "the spans", func() bool { return len(first.ids()) == 50 })
	if tr.Outbox.fresh.taken.spans == nil {
		t.Error("the spans were read back")
	}
	again, _ := listenOn(t, second, "127.0.0.1:0")
	env := setEnv(t, again)
	everything, _ := ParseSelection([]string{"all"})
	if _, err := Resend(context.Background(), db, &everything, ResendOptions{TracingOptions: TracingOptions{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}}); err != nil {
		t.Fatal(err)
	}
	stop()
	sorted := func(spans []*tracepb.Span) []*tracepb.Span {
		for _, s := range spans {
			slices.SortFunc(s.Attributes, func(a, b *commonpb.KeyValue) int { return strings.Compare(a.Key, b.Key) })
		}
		slices.SortFunc(spans, func(a, b *tracepb.Span) int { return cmp.Compare(string(a.SpanId), string(b.SpanId)) })
		return spans
	}
	if d := gocmp.Diff(sorted(second.spans), sorted(first.spans), protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

// Only what is whole is taken: what had no room stands in the database.
func TestFreshCallsThatHaveNoRoomAreLeftToTheDatabase(t *testing.T) {
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	var f fresh
	id := int64(0)
	put := func(n int) (enough bool) {
		var batch []ended
		var ids []int64
		for i := range n {
			c := example(i)
			c.ErrorBody = strings.Repeat("x", 10_000)
			id++
			batch, ids = append(batch, ended{call: c, span: sampled}), append(ids, id)
		}
		return f.put(batch, ids)
	}
	put(2)
	m, last, ok := f.take(0)
	if !ok || last != 2 || len(m.spans) != 2 {
		t.Fatalf("%d spans up to %d, %v", len(m.spans), last, ok)
	}
	if m, last, ok = f.take(2); !ok || last != 2 || len(m.spans) != 0 {
		t.Errorf("once more: %d spans up to %d, %v", len(m.spans), last, ok)
	}
	put(3)
	if _, _, ok = f.take(1); ok { // the collector did not take the second
		t.Error("what was taken before is taken as whole")
	}
	if m, last, ok = f.take(3); !ok || last != 5 || len(m.spans) != 2 || m.spans[0].id != 4 {
		t.Errorf("behind 3: %d spans up to %d, %v", len(m.spans), last, ok)
	}
	if !put(200) {
		t.Error("so many are not enough")
	}
	if _, _, ok = f.take(5); ok {
		t.Error("200 calls of 10 kB are one message")
	}
	put(1)
	if m, last, ok = f.take(id - 1); !ok || last != id || len(m.spans) != 1 {
		t.Errorf("after them: %d spans up to %d of %d, %v", len(m.spans), last, id, ok)
	}
}
