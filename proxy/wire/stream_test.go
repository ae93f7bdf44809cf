package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what a stream says, put together.
type said struct {
	Text, Reasoning, Tool, Arguments, Finish string
	ID, Model                                string
	Usage                                    Usage
	Terminal                                 bool
	Unknown, Errors                          int
}

func hear(t *testing.T, f Format, framing Framing, body []byte, step int) said {
	t.Helper()
	var s said
	var ev Event
	split := NewSplitter(framing, 0)
	take := func(fr Frame) {
		if err := f.ParseEvent(&ev, fr); err != nil {
			t.Fatalf("%q: %v", fr.Data, err)
		}
		s.Text += string(ev.Text)
		s.Reasoning += string(ev.Reasoning)
		for _, d := range ev.Tools {
			s.Tool += string(d.Name)
			s.Arguments += string(d.Arguments)
		}
		if len(ev.Finish) > 0 {
			s.Finish = string(ev.Finish)
		}
		if len(ev.ID) > 0 {
			s.ID, s.Model = string(ev.ID), string(ev.Model)
		}
		s.Usage.Merge(ev.Usage)
		s.Terminal = s.Terminal || ev.Terminal
		if ev.Unknown {
			s.Unknown++
		}
		if ev.Err != nil {
			s.Errors++
		}
	}
	for len(body) > 0 {
		n := min(step, len(body))
		piece := append([]byte(nil), body[:n]...)
		split.Feed(piece, take)
		for i := range piece {
			piece[i] = 'X' // what was fed is only lent
		}
		body = body[n:]
	}
	split.Close(take)
	return s
}

func TestWriterSaysWhatItWasTold(t *testing.T) {
	usage := Usage{Input: N(120), CacheRead: N(20), Output: N(34), Reasoning: N(4)}
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		for _, framing := range []Framing{SSE, JSONArray} {
			if framing == JSONArray && api != Gemini {
				continue
			}
			f := For(api)
			w := NewWriter(f, "id-1", "model-x", Usage{Input: N(120), CacheRead: N(20)}, WriterOptions{Framing: framing, Usage: true})
			b := w.Open(nil)
			b = w.Reasoning(b, "let me \"think\"")
			b = w.Ping(b)
			b = w.Text(b, "你好,\n")
			b = w.Text(b, "world 🌊")
			b = w.Tool(b, "call_1", "grep", `{"q":`)
			b = w.Tool(b, "", "", `"a"}`)
			b = w.Close(b, "tool", usage)
			want := said{Text: "你好,\nworld 🌊", Reasoning: `let me "think"`, Tool: "grep", Arguments: `{"q":"a"}`,
				Finish: FinishWord(api, "tool"), ID: "id-1", Model: "model-x", Usage: usage, Terminal: true}
			if api == Completions {
				want.Reasoning, want.Tool, want.Arguments = "", "", ""
			}
			if api == Messages {
				want.Usage.Fresh = N(100)
			}
			for _, step := range []int{1, 2, 3, 7, 64, 1 << 20} {
				if diff := cmp.Diff(want, hear(t, f, framing, b, step)); diff != "" {
					t.Errorf("%s in steps of %d:\n%s\n%s", api, step, diff, b)
					break
				}
			}
		}
	}
}
