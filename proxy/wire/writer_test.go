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

// What clients that read strictly hold a stream to: Responses numbers its
// events without a gap; Messages opens, feeds and closes its blocks in order,
// one at a time; both name each event twice and alike.
func TestWriterNumbersWhatItWrites(t *testing.T) {
	type numbered struct {
		Type           string `json:"type"`
		SequenceNumber *int   `json:"sequence_number"`
		Index          *int   `json:"index"`
		OutputIndex    *int   `json:"output_index"`
	}
	read := func(api API, body []byte) (all []numbered) {
		s := NewSplitter(SSE, 0)
		s.Feed(body, func(f Frame) {
			var n numbered
			if err := json.Unmarshal(f.Data, &n); err != nil {
				t.Fatalf("%s: %v: %s", api, err, f.Data)
			}
			if n.Type != string(f.Event) {
				t.Errorf("%s: event %q has the type %q", api, f.Event, n.Type)
			}
			all = append(all, n)
		})
		return all
	}

	failed := func(api API) []byte {
		w := NewWriter(For(api), "id-1", "model-x", Usage{}, WriterOptions{})
		b := w.Text(w.Open(nil), "a")
		return w.Error(b, &Error{Type: "overloaded_error", Message: "m"})
	}
	for _, body := range [][]byte{writeStream(Responses, SSE), failed(Responses)} {
		open := -1
		for i, n := range read(Responses, body) {
			if n.SequenceNumber == nil || *n.SequenceNumber != i {
				t.Errorf("event %d (%s) has another number", i, n.Type)
			}
			switch {
			case n.OutputIndex == nil:
			case n.Type == "response.output_item.added":
				if open++; *n.OutputIndex != open {
					t.Errorf("event %d opens item %d, want %d", i, *n.OutputIndex, open)
				}
			case *n.OutputIndex != open:
				t.Errorf("event %d (%s) is of item %d, and %d is under way", i, n.Type, *n.OutputIndex, open)
			}
		}
	}
	for _, body := range [][]byte{writeStream(Messages, SSE), failed(Messages)} {
		next, open := 0, false
		for i, n := range read(Messages, body) {
			if n.Index == nil {
				continue
			}
			if n.Type == "content_block_start" {
				if open {
					t.Errorf("event %d opens a block in a block", i)
				}
				open = true
			}
			if !open || *n.Index != next {
				t.Errorf("event %d (%s) is of block %d; open: %v, next: %d", i, n.Type, *n.Index, open, next)
			}
			if n.Type == "content_block_stop" {
				open = false
				next++
			}
		}
	}
}
