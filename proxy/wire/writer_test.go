package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens anew")

// writeStream writes an answer with all that its dialect has.
func writeStream(api API, framing Framing) []byte {
	w := NewWriter(For(api), "id-1", "model-x", Usage{Input: N(120), CacheRead: N(20)}, WriterOptions{Framing: framing, Usage: true})
	b := w.Open(nil)
	b = w.Reasoning(b, "let me ")
	b = w.Reasoning(b, "think")
	b = w.Ping(b)
	b = w.Text(b, "你好,\n")
	b = w.Text(b, "\"world\" 🌊")
	b = w.Tool(b, "call_1", "grep", "")
	b = w.Tool(b, "", "", `{"q":`)
	b = w.Tool(b, "", "", `"a"}`)
	b = w.Tool(b, "call_2", "ls", `{}`)
	return w.Close(b, "tool", Usage{Input: N(120), CacheRead: N(20), Output: N(34), Reasoning: N(4)})
}

// The goldens are whole streams, to be held beside a provider's own.
func TestWriterWritesAsTheProvidersDo(t *testing.T) {
	for name, row := range map[string]struct {
		api     API
		framing Framing
	}{
		"chat": {Chat, SSE}, "completions": {Completions, SSE}, "responses": {Responses, SSE},
		"messages": {Messages, SSE}, "gemini": {Gemini, SSE}, "gemini-array": {Gemini, JSONArray},
	} {
		got := writeStream(row.api, row.framing)
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if row.framing == JSONArray && !json.Valid(got) {
			t.Errorf("%s: the array is no JSON: %s", name, got)
		}
		eachFrameIsOneLine(t, row.framing, got)
	}
}

// eachFrameIsOneLine checks that each frame is one line of JSON.
func eachFrameIsOneLine(t *testing.T, framing Framing, body []byte) {
	t.Helper()
	s := NewSplitter(framing, 0)
	s.Feed(body, func(f Frame) {
		if !json.Valid(f.Data) && !isDone(f.Data) {
			t.Errorf("a frame is not JSON: %s", f.Data)
		}
		if bytes.ContainsAny(f.Data, "\n\r") {
			t.Errorf("a frame has several lines: %q", f.Data)
		}
	})
	if s.Partial() {
		t.Errorf("the stream ends in the midst of a frame: %s", body)
	}
}
