package generator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

func TestFaultsOfDatasets(t *testing.T) {
	ok := `{"messages": [{"role":"user","content":"hi"}], "session_id": "x", "turn": 1, "at_ms": 0}` + "\n"
	for _, row := range []struct {
		name    string
		lines   string
		options DatasetOptions
		want    string
	}{
		{"no times", `{"messages": [{"role": "user", "content": "hi"}]}`, DatasetOptions{}, "its lines say no times (at_ms); say how fast to send them: --qps 5, or --for 10m"},
		{"some times", ok + `{"messages": [{"role": "user", "content": "hi"}]}`, DatasetOptions{}, ":2: some lines have at_ms and some have not"},
		{"broken JSON names its line", ok + `{"messages": [`, DatasetOptions{}, ":2: is not JSON"},
		{"a wrong type names its field", ok + `{"messages": [], "max_tokens": "9"}`, DatasetOptions{}, ":2: max_tokens: want int, not string"},
		{"messages that are a text", ok + `{"messages": "hi"}`, DatasetOptions{}, ":2: messages: want a list of at least one"},
		{"messages that are none", ok + `{"messages": []}`, DatasetOptions{}, ":2: messages: want a list of at least one"},
		{"no messages", ok + `{"prompt": "hi"}`, DatasetOptions{}, ":2: no messages"},
		{"negative time", `{"messages": [{"role": "user", "content": "hi"}], "at_ms": -1}`, DatasetOptions{}, ":1: at_ms -1: want milliseconds"},
		{"unknown API", `{"messages": [{"role": "user", "content": "hi"}], "at_ms": 1, "api": "soap"}`, DatasetOptions{}, `:1: api "soap": want chat`},
		{"a turn is missing", ok + `{"messages": [{"role": "user", "content": "hi"}], "session_id": "x", "turn": 3}`, DatasetOptions{}, ":2: turn 3 of session x, and the line before is its turn 1"},
		{"a session is torn apart", ok + `{"messages": [{"role": "user", "content": "hi"}], "session_id": "y", "turn": 2}`, DatasetOptions{}, ":2: turn 2 of session y does not follow its turn 1"},
		{"a session changes its model", ok + `{"messages": [{"role": "user", "content": "hi"}], "session_id": "x", "turn": 2, "model": "n"}`, DatasetOptions{}, ":2: session x changes its scenario, api, model or stream"},
		{"live without history", `{"messages": [{"role":"user","content":"hi"}], "at_ms": 0, "metadata": {"history": "live"}}`, DatasetOptions{}, `:1: "history": "live" is of a later turn`},
		{"live answers", ok + `{"messages": [{"role":"assistant","content":"hi"}], "session_id": "x", "turn": 2, "metadata": {"history": "live"}}`, DatasetOptions{}, ":2: with \"history\": \"live\" only the user speaks"},
		{"a header cannot hold it", `{"messages": [{"role": "user", "content": "hi"}], "at_ms": 0, "scenario_id": "a\nb"}`, DatasetOptions{}, ":1: scenario_id and session_id"},
		{"batch of embeddings", `{"custom_id": "1", "url": "/v1/embeddings", "body": {"input": "x"}}`, DatasetOptions{QPS: 1}, ":1: POST /v1/embeddings generates nothing"},
		{"batch in another API", `{"custom_id": "1", "url": "/v1/chat/completions", "body": {}}`, DatasetOptions{QPS: 1, API: wire.Gemini}, "leave --api out"},
		{"ShareGPT that breaks off", `[{"conversations": [{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}, `, DatasetOptions{QPS: 1}, "conversation 2: is not JSON"},
		{"ShareGPT without answers", `[{"conversations": [{"from":"human","value":"a"}]}]`, DatasetOptions{QPS: 1}, "holds no request that can be sent"},
		{"no dataset", `{"load_model": {}}`, DatasetOptions{}, "is no dataset"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := OpenDataset(file(t, "set.jsonl", row.lines), row.options)
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q in one line", err, row.want)
			}
		})
	}
}

// A dataset is read and a plan is written in memory that does not grow with it.
func TestDatasetsTakeConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads and writes some 100 MB")
	}
	m := decode(t, `{"load_model": {"name": "m", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 2000, "output_tokens": 10}], "target_qps": 100, "duration_seconds": 40}}`)
	text, _ := json.Marshal(strings.Repeat("word ", 2000))
	for _, row := range []struct {
		name string
		run  func(watch func())
	}{
		{"writing", func(watch func()) {
			w := writerFunc(func(b []byte) (int, error) { watch(); return len(b), nil })
			if err := WriteDataset(context.Background(), w, &Plan{Model: m, Seed: 1}); err != nil {
				t.Fatal(err)
			}
		}},
		{"reading ShareGPT", func(watch func()) {
			path := filepath.Join(t.TempDir(), "share.json")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3000 {
				sep := ","
				if i == 0 {
					sep = "["
				}
				fmt.Fprintf(f, `%s{"conversations": [{"from": "human", "value": %s}, {"from": "gpt", "value": "yes"}]}`, sep, text)
			}
			fmt.Fprint(f, "]")
			f.Close()
			n := 0
			for _, err := range opened(t, path, DatasetOptions{QPS: 1}).talks() {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n%500 == 0 {
					watch()
				}
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var least, most uint64
			row.run(func() {
				runtime.GC()
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				if least == 0 {
					least = s.HeapAlloc
				}
				most = max(most, s.HeapAlloc)
			})
			if grown := int64(most) - int64(least); grown > 8<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Whatever stands in a file, it is refused with an error or gives sessions that
// can be sent.
func FuzzDataset(f *testing.F) {
	for _, text := range []string{
		`{"messages": [{"role":"user","content":"hi"}], "session_id": 1, "turn": 1, "at_ms": 0}` + "\n" + `{"messages": [{"role":"user","content":"so"}], "session_id": 1, "turn": 2, "think_ms": 1, "metadata": {"history": "live", "expected_input_tokens": 40}}`,
		`{"messages": [{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}], "api": "gemini", "model": "g", "tools": [{"function": {"name": "f"}}]}`,
		`{"custom_id": "1", "url": "/v1/completions", "body": {"prompt": "x", "max_tokens": -4}}`,
		`[{"conversations": [{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":""}]}]`,
		`{"messages": 7, "at_ms": 1e300, "metadata": "mine", "stream": false}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "set.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := OpenDataset(path, DatasetOptions{QPS: 1})
		if err != nil {
			return
		}
		p := &Plan{Model: &loadmodel.Model{}, Dataset: d}
		n := 0
		for s, err := range p.Sessions() {
			if err != nil {
				t.Fatalf("read once and not again: %v", err)
			}
			if n += len(s.Turns); len(s.Turns) == 0 || len(s.Messages) != len(s.Turns) {
				t.Fatalf("%d turns say %d things", len(s.Turns), len(s.Messages))
			}
			c, _, err := p.converse(s)
			for turn := 1; turn < len(s.Turns) && err == nil; turn++ {
				_, err = c.next(turn, &answer{}, wire.Usage{})
			}
			if err != nil {
				t.Fatalf("taken, but cannot be sent: %v", err)
			}
		}
		if n != d.Requests {
			t.Fatalf("%d requests, and then %d", d.Requests, n)
		}
		Foresee(t.Context(), p, OutlookOptions{})
	})
}
