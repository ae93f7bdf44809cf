package loadmodel

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpansOfBothForms(t *testing.T) {
	text := `{"runs": [1], "spans": [{"trace_id": "aa", "span_id": "bb", "parent_span_id": "cc", "trace_state": "k=v", "name": "chat m",
  "start_time": "2026-12-01T10:00:00.000000001Z", "end_time": "2026-12-01T10:00:01Z", "status": {"code": "ERROR", "message": "slow down"},
  "attributes": {"n": 9007199254740993, "f": 0.5, "b": true, "list": ["x", 1]}}]}
{"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [{"traceId": "aa", "spanId": "dd", "startTimeUnixNano": "1796119200000000001", "endTimeUnixNano": "1796119201000000000",
  "status": {"code": 2}, "attributes": [{"key": "n", "value": {"intValue": "9007199254740993"}}, {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "1"}]}}}]}, {}]}]}]}`
	start := time.Date(2026, 12, 1, 10, 0, 0, 1, time.UTC)
	end := time.Date(2026, 12, 1, 10, 0, 1, 0, time.UTC)
	want := []Span{
		{Trace: "aa", ID: "bb", Parent: "cc", TraceState: "k=v", Name: "chat m", Start: start, End: end, Failed: true, Message: "slow down",
			Attributes: map[string]any{"n": json.Number("9007199254740993"), "f": json.Number("0.5"), "b": true, "list": []any{"x", json.Number("1")}}},
		{Trace: "aa", ID: "dd", Start: start, End: end, Failed: true,
			Attributes: map[string]any{"n": json.Number("9007199254740993"), "list": []any{"x", json.Number("1")}}},
		{},
	}
	var got []Span
	for s, err := range ReadSpans(strings.NewReader(text), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, *s)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	beside := map[string]string{}
	for range ReadSpans(strings.NewReader(text), func(key string, value json.RawMessage) { beside[key] = string(value) }) {
		continue
	}
	if d := cmp.Diff(map[string]string{"runs": "[1]", "resource": "{}"}, beside); d != "" {
		t.Error(d)
	}
	for range ReadSpans(strings.NewReader(text), nil) {
		break // which asks for no more
	}
}

func TestSpansThatBreakOff(t *testing.T) {
	for _, row := range []struct {
		text  string
		spans int
		want  string
	}{
		{``, 0, ""},
		{`{"spans": [{"name": "a"},`, 1, "at byte "},
		{`{"spans": [{"name": "a"}]} x`, 1, "at byte "},
		{`{"spans": {}}`, 0, "stands where [ should"},
		{`[]`, 0, ""},
		{`[{"spans": [{"name": "a"}]}, 5]`, 1, "stands where { should"},
		{`5`, 0, "stands where { or [ should"},
		{`{"spans": [{"attributes": 1}]}`, 0, "at byte "},
	} {
		n, message := 0, ""
		for s, err := range ReadSpans(strings.NewReader(row.text), nil) {
			if err != nil {
				message = err.Error()
			}
			if s != nil {
				n++
			}
		}
		if n != row.spans || !strings.Contains(message, row.want) || (message == "") != (row.want == "") {
			t.Errorf("%s: %d spans, %q", row.text, n, message)
		}
	}
}

// What SDKs print is a span a document, with 0x before the ids, which stand in
// its context.
func TestSpansByThemselves(t *testing.T) {
	const printed = `{"name": "chat m", "context": {"trace_id": "0xaa", "span_id": "0xbb", "trace_state": "[]"}, "kind": "SpanKind.CLIENT", "parent_id": "0xcc",
  "start_time": "2026-12-01T10:00:00.5", "end_time": "2026-12-01T10:00:01Z", "status": {"status_code": "ERROR", "description": "slow down"}, "attributes": {"b": true}, "events": [], "links": [], "resource": {"attributes": {}}}`
	start := time.Date(2026, 12, 1, 10, 0, 0, 5e8, time.UTC)
	want := Span{
		Trace: "aa", ID: "bb", Parent: "cc", Name: "chat m", Start: start, End: start.Add(time.Second / 2), Zoneless: true, Failed: true, Message: "slow down",
		Attributes: map[string]any{"b": true},
	}
	for _, text := range []string{printed, "[" + printed + "]", `[{"spans": [` + printed + `]}]`, `{"spans": [` + printed + `]}`} {
		n := 0
		for s, err := range ReadSpans(strings.NewReader(text), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; cmp.Diff(want, *s) != "" {
				t.Errorf("%s:\n%s", text, cmp.Diff(want, *s))
			}
		}
		if n != 1 {
			t.Errorf("%s: %d spans", text, n)
		}
	}
}

// A number says by its size of what it is one; text without a zone is UTC.
func TestTimesOfSpans(t *testing.T) {
	at := time.Date(2026, 12, 3, 5, 0, 0, 123e6, time.UTC)
	for _, row := range []struct {
		text     string
		want     time.Time
		zoneless bool
	}{
		{`1796274000`, at.Truncate(time.Second), false},
		{`1796274000.123`, at, false},
		{`1796274000123`, at, false},
		{`"1796274000123"`, at, false},
		{`1796274000123000`, at, false},
		{`1796274000123000000`, at, false},
		{`"2026-12-03T05:00:00.123Z"`, at, false},
		{`"2026-12-03T07:00:00.123+02:00"`, at, false},
		{`"2026-12-03T05:00:00.123"`, at, true},
		{`"2026-12-03 05:00:00.123"`, at, true},
		{`0`, time.Time{}, false},
		{`-5`, time.Time{}, false},
		{`17640`, time.Time{}, false},
		{`9223372036854775807`, time.Time{}, false},
		{`1e9`, time.Time{}, false},
		{`"yesterday"`, time.Time{}, false},
		{`null`, time.Time{}, false},
	} {
		for s, err := range ReadSpans(strings.NewReader(`{"spans": [{"start_time": `+row.text+`}]}`), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if !s.Start.Equal(row.want) || s.Zoneless != row.zoneless {
				t.Errorf("%s is %v, zoneless %v; want %v", row.text, s.Start.UTC(), s.Zoneless, row.want)
			}
		}
	}
}
