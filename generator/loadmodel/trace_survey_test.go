package loadmodel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSurveyNotesWhatIsOdd(t *testing.T) {
	var turns, drift strings.Builder
	for i := range 40 {
		fmt.Fprintf(&turns, `{"chat_id": %d, "parent_chat_id": %d, "timestamp": %d, "input_length": 10, "output_length": 10, "turn": %d}`+"\n", i, i-1, i, i+1)
	}
	drift.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 400 {
		fmt.Fprintf(&drift, "2023-01-01 00:00:%02d.%03d,%d,%d\n", i/10, i%10*100, 100+i, 5)
	}
	for range 200 {
		drift.WriteString("2023-01-01 00:01:10,500,7\n")
	}
	var got strings.Builder
	for _, row := range []struct {
		name, path string
		o          TraceOptions
	}{
		{"a quiet trace", "testdata/traces/azure_conv_300.csv", TraceOptions{Limit: 90}},
		{"a coarse clock", "testdata/traces/mooncake_200.jsonl", TraceOptions{}},
		{"a coarse clock, verbatim", "testdata/traces/mooncake_200.jsonl", TraceOptions{Times: Verbatim}},
		{"no tokens, and back in time", write(t, "odd.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,0,1\n2023-01-01 00:00:09,5,1\n"), TraceOptions{}},
		{"images", write(t, "images.csv", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2025-01-01 00:00:09,2,900,1\n2025-01-01 00:00:10,0,5,1\n"), TraceOptions{}},
		{"calls of no size", write(t, "blank.json", `[{"span_id": "a", "start_time": "2026-01-01T00:00:00Z", "attributes": {"gen_ai.operation.name": "chat"}},
			{"span_id": "b", "start_time": "2026-01-01T00:00:02Z", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2}},
			{"span_id": "c", "start_time": "2026-01-01T00:00:03Z", "attributes": {"gen_ai.operation.name": "execute_tool"}}]`), TraceOptions{}},
		{"failures", write(t, "burst.csv", "Timestamp,Model,Request tokens,Response tokens\n1,a,2,0\n2,a,2,2\n"), TraceOptions{}},
		{"turns without history", write(t, "turns.jsonl", turns.String()), TraceOptions{}},
		{"drift", write(t, "drift.csv", drift.String()), TraceOptions{}},
	} {
		trace, err := OpenTrace(row.path, row.o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := trace.Survey()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s: %d rows in %v\n", row.name, s.Rows, s.Span)
		for _, n := range s.Notes {
			got.WriteString("  " + n + "\n")
		}
	}
	golden(t, "testdata/survey.golden", got.String())
}

func FuzzTrace(f *testing.F) {
	for _, name := range []string{"azure_conv_300.csv", "mooncake_200.jsonl"} {
		b, err := os.ReadFile("testdata/traces/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:2000])
	}
	f.Add([]byte("Timestamp,Model,Request tokens,Response tokens,Session ID\n1,a,2,3,x\n2,\"b\",2,0,x\n"))
	f.Add([]byte(`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 32, "output_length": 4}`))
	f.Add([]byte(`{"timestamp": 1, "input_length": 2147483647, "output_length": 4, "session_id": ""}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"", "azure", "burstgpt", "mooncake", "bailian", "servegen", "otel", "weir"} {
			trace, err := OpenTrace(path, TraceOptions{Format: format})
			if err != nil {
				continue
			}
			var last time.Duration
			rows := 0
			for row, err := range trace.Rows() {
				if err != nil {
					break
				}
				if row.At < last || row.Input < 0 || row.Output < 0 || row.Turn < 0 {
					t.Fatalf("%s: row %+v after %v", trace.Format, row, last)
				}
				last = row.At
				rows++
			}
			if s, err := trace.Survey(); err == nil && s.Rows != rows {
				t.Fatalf("%s: %d rows read, %d surveyed", trace.Format, rows, s.Rows)
			}
		}
	})
}
