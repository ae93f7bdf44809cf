package generator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
)

// A trace plays each turn at its own time; they are turns of one session all the
// same, as its dataset says.
func TestTurnsOfATraceAreOneSession(t *testing.T) {
	for name, text := range map[string]string{
		"otel.json": `{"spans": [
  {"span_id": "a", "start_time": "2026-01-01T00:00:01Z", "attributes": {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10, "gen_ai.conversation.id": "c1"}},
  {"span_id": "x", "start_time": "2026-01-01T00:00:02Z", "attributes": {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 10}},
  {"span_id": "b", "start_time": "2026-01-01T00:00:03Z", "attributes": {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 10, "gen_ai.conversation.id": "c1"}}]}`,
		"bailian.jsonl": `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1, "input_length": 100, "output_length": 10, "type": "text", "turn": 1, "hash_ids": [1, 2]}
{"chat_id": 7, "parent_chat_id": -1, "timestamp": 2, "input_length": 50, "output_length": 10, "type": "text", "turn": 1, "hash_ids": [5]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 3, "input_length": 200, "output_length": 10, "type": "text", "turn": 2, "hash_ids": [1, 2, 3]}
`,
		"burst.csv": `Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
1,c1,2,ChatGPT,100,10,110,Conversation log
2,,1,GPT-4,50,10,60,API log
3,c1,2,ChatGPT,200,10,210,Conversation log
`,
		"mooncake.jsonl": `{"timestamp": 1000, "input_length": 100, "output_length": 10, "session_id": "c1"}
{"timestamp": 2000, "input_length": 50, "output_length": 10, "session_id": "c2"}
{"timestamp": 3000, "input_length": 100, "output_length": 10, "session_id": "c1"}
`,
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := loadmodel.OpenTrace(path, loadmodel.TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := &Plan{Trace: trace, Seed: 1}
		sessions := func(p *Plan) string {
			o := foresee(t, p, OutlookOptions{})
			s := o.Scenarios[0]
			return fmt.Sprintf("%d in %d, scenario %d in %d, turns %v", o.Requests, o.Sessions, s.Requests, s.Sessions, s.Turns)
		}
		const want = "3 in 2, scenario 3 in 2, turns {1 1 2 2 2 false}"
		if diff := cmp.Diff(want, sessions(p)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}

		// Its dataset says the same.
		var lines bytes.Buffer
		if err := WriteDataset(t.Context(), &lines, p); err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(t.TempDir(), "dataset.jsonl")
		if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := OpenDataset(path, DatasetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Begun != 2 {
			t.Errorf("%s as a dataset: %d sessions, want 2", name, d.Begun)
		}
		if diff := cmp.Diff(want, sessions(&Plan{Model: &loadmodel.Model{}, Dataset: d, Seed: 1})); diff != "" {
			t.Errorf("%s as a dataset: %s", name, diff)
		}
	}
}

// What is remembered of sessions does not grow with the plan.
func TestMemoryOfSessionsIsBounded(t *testing.T) {
	var r recent[int]
	for h := range uint64(3 * recentHashes) {
		r.put(h, 1)
		if v, ok := r.get(0); !ok || v != 1 {
			t.Fatalf("what is asked for again and again is forgotten after %d others", h)
		}
	}
	if kept := len(r.young) + len(r.old); kept > 2*recentHashes {
		t.Errorf("%d are kept", kept)
	}
}
