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
		{`[]`, 0, "stands where { should"},
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
