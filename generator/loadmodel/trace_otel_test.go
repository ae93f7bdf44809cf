package loadmodel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSpansAreRead(t *testing.T) {
	const s = time.Second
	for _, row := range []struct {
		sentence, text string
		want           []Row
	}{
		{
			"spans in the order of their ends → rows in that of their starts; what is no model call is left out",
			`{"schema": "x", "spans": [
				{"span_id": "b", "start_time": "2026-01-01T00:00:02Z", "end_time": "2026-01-01T00:00:03Z", "name": "chat m", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2, "gen_ai.request.model": "m"}},
				{"span_id": "t", "start_time": "2026-01-01T00:00:02Z", "name": "execute_tool", "attributes": {"gen_ai.operation.name": "execute_tool"}},
				{"span_id": "d", "start_time": "2026-01-01T00:00:00Z", "name": "SELECT", "attributes": {"db.system": "sqlite"}},
				{"span_id": "a", "start_time": "2026-01-01T00:00:01.5Z", "name": "chat m", "attributes": {"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 1}},
				{"span_id": "p", "start_time": "2026-01-01T00:00:00Z", "name": "invoke_agent", "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 30}}
			]}`,
			[]Row{{Input: 10, Output: 1}, {At: s / 2, Input: 20, Output: 2, Model: "m"}},
		},
		{
			"OTLP, several documents: integers are texts, times are nanoseconds",
			`{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{},"spans":[{"spanId":"a","startTimeUnixNano":"1700000000000000000","name":"chat","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"12"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":3}},{"key":"gen_ai.conversation.id","value":{"stringValue":"c"}}]}]}]}]}
			 {"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"b","startTimeUnixNano":1700000001000000000,"name":"chat","attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"40"}},{"key":"error.type","value":{"stringValue":"429"}},{"key":"gen_ai.conversation.id","value":{"stringValue":"c"}}]}]}]}]}`,
			[]Row{{Input: 12, Output: 3, Session: "c", Turn: 1}, {At: s, Input: 40, Session: "c", Turn: 2, Failed: true}},
		},
		{
			"a client's span and its proxy's → one call",
			`{"spans": [
				{"span_id": "p", "parent_span_id": "c", "start_time": "2026-01-01T00:00:01.001Z", "attributes": {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2}},
				{"span_id": "c", "parent_span_id": "agent", "start_time": "2026-01-01T00:00:01Z", "attributes": {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2}}
			]}`,
			[]Row{{Input: 20, Output: 2}},
		},
		{
			"a list of spans by themselves, of operations by other names; what cannot be a count is none, and Anthropic's cache stands beside its input",
			`[
				{"context": {"span_id": "0xa"}, "start_time": 1767225601000, "attributes": {"gen_ai.operation.name": "responses", "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": -2}},
				{"context": {"span_id": "0xb"}, "parent_id": "0xa", "start_time": 1767225602, "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 20}},
				{"span_id": "c", "start_time": "2026-01-01T00:00:03", "status": {"code": "ERROR"}, "attributes": {"gen_ai.operation.name": "chat", "gen_ai.system": "anthropic", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read_input_tokens": 90, "gen_ai.usage.output_tokens": 1}},
				{"span_id": "d", "start_time": "2026-01-01T00:00:04", "attributes": {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 10}}
			]`,
			[]Row{{Input: 20}, {At: 2 * s, Input: 100, Output: 1, Failed: true}},
		},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			path := write(t, "spans.json", row.text)
			trace, err := OpenTrace(path, TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if trace.Format != "otel" || !LooksLikeTrace(path) {
				t.Errorf("taken for %s", trace.Format)
			}
			if diff := cmp.Diff(row.want, all(t, trace), cmpopts.IgnoreFields(Row{}, "HashIDs")); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfSpans(t *testing.T) {
	const good = `{"spans": [{"span_id": "a", "start_time": "2026-01-01T00:00:02Z", "attributes": {"gen_ai.usage.input_tokens": 20}}`
	for _, row := range []struct{ sentence, text, want string }{
		{"the file breaks off", good, "unexpected EOF"},
		{"something behind the document", good + "]} ]", "invalid character ']'"},
		{"a span that is none", good + ", 5]}", "at byte "},
		{"no model call", `{"spans": [{"span_id": "a", "attributes": {}}]}`, "has no rows"},
	} {
		_, err := OpenTrace(write(t, "spans.json", row.text), TraceOptions{})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it to say: %s", row.sentence, err, row.want)
		}
	}
}

// However many spans there are, so many are held and no more; as long as none
// is further behind, the order is right.
func TestManySpansAreSorted(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"spans": [`)
	const held, n = 4000, 20_000
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		// Every second one began 1000 places earlier.
		at := time.Unix(1_700_000_000+int64(i-1000*(i%2)), 0).UTC()
		fmt.Fprintf(&b, `{"span_id":"%d","start_time":"%s","attributes":{"gen_ai.usage.output_tokens":1}}`, i, at.Format(time.RFC3339))
	}
	b.WriteString("]}")
	trace, err := OpenTrace(write(t, "spans.json", b.String()), TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace.spans = held
	s, err := trace.Survey()
	if err != nil || s.Rows != n {
		t.Fatalf("%d rows, %v", s.Rows, err)
	}
	for _, note := range s.Notes {
		if strings.Contains(note, "back in time") {
			t.Error(note)
		}
	}
}
