package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The reader says of each event what ParseEvent says of it alone.
func TestReaderReadsWhatParseEventReads(t *testing.T) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		var frames []Frame
		NewSplitter(SSE, 0).Feed(streamOf(api, 20), func(f Frame) {
			frames = append(frames, Frame{Event: bytes.Clone(f.Event), Data: bytes.Clone(f.Data)})
		})
		compareReader(t, api, frames)
	}
}

// hello is a chat event with words, some of which stand twice in it.
func hello(words string) Frame {
	return Frame{Data: []byte(`{"id":"c1","choices":[{"index":0,"delta":{"content":` + words + `,"x":"a"}}]}`)}
}

func TestReaderIsNotMisled(t *testing.T) {
	for name, frames := range map[string][]Frame{
		"a quote ends the words":       {hello(`"a"`), hello(`"b","role":"c"`), hello(`"d"`)},
		"an escaped quote does not":    {hello(`"a"`), hello(`"b\"c"`), hello(`"d"`)},
		"escapes are undone":           {hello(`"a\nb"`), hello(`"c\nd"`), hello(`"e"`), hello(`"\u4e00"`)},
		"empty words are no output":    {hello(`"a"`), hello(`""`), hello(`"b"`), hello(`null`), hello(`"c"`)},
		"parts are put together":       {hello(`[{"text":"a"},{"text":"b"}]`), hello(`[{"text":"c"},{"text":"b"}]`), hello(`[{"text":"d"}]`), hello(`[{"text":"e"}]`)},
		"a broken event after a whole": {hello(`"a"`), hello(`"b`), hello(`"c"`), {Data: []byte(`{`)}, hello(`"d"`)},
		"before and after overlap":     {hello(`"aa"`), {Data: []byte(`{"id":"c1","choices":[{"index":0,"delta":{"content":","x":"a"}}]}`)}},
		"another name":                 {{Event: []byte("a"), Data: hello(`"a"`).Data}, {Event: []byte("error"), Data: hello(`"b"`).Data}},
		"reasoning, then words": {{Data: []byte(`{"choices":[{"delta":{"content":null,"reasoning_content":"a"}}]}`)},
			{Data: []byte(`{"choices":[{"delta":{"content":null,"reasoning_content":"b"}}]}`)}, hello(`"c"`), hello(`"d"`)},
		"the same words twice": {{Data: []byte(`{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a"}}]}`)},
			{Data: []byte(`{"choices":[{"delta":{"reasoning":"b","reasoning_content":"b"}}]}`)}, {Data: []byte(`{"choices":[{"delta":{"reasoning":"b","reasoning_content":"c"}}]}`)}},
		"oversize": {hello(`"a"`), {Data: hello(`"b"`).Data, Oversize: true}, hello(`"c"`)},
	} {
		t.Run(name, func(t *testing.T) { compareReader(t, Chat, frames) })
	}
}

func compareReader(t *testing.T, api API, frames []Frame) {
	t.Helper()
	r := EventReader{Format: For(api)}
	for i, f := range frames {
		var want Event
		wantErr := For(api).ParseEvent(&want, f)
		err := r.Read(f)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("event %d: error %v, want %v", i, err, wantErr)
		}
		if err == nil {
			if diff := cmp.Diff(want, r.Event, sameEvent); diff != "" {
				t.Fatalf("event %d, %s (-alone +reader):\n%s", i, f.Data, diff)
			}
		}
	}
}

// A reader that learns nothing from a stream stops trying, and one that does
// keeps reading by likeness.
func TestReaderKeepsEventsOnlyWhileThatHelps(t *testing.T) {
	r := EventReader{Format: For(Chat)}
	for range 10 {
		for _, words := range []string{`"a"`, `"b"`} {
			if err := r.Read(hello(words)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.words == nil || r.vain != 0 || string(r.Event.Text) != "b" {
		t.Errorf("of like events: words %v, %d in vain", r.words, r.vain)
	}
	r = EventReader{Format: For(Chat)}
	for i := range byte(10) {
		if err := r.Read(hello(`"a","n":"` + string('a'+i) + `"`)); err != nil {
			t.Fatal(err)
		}
	}
	if r.words != nil || r.vain != mostVain {
		t.Errorf("of unlike events: words %v, %d in vain", r.words, r.vain)
	}
}

func FuzzEventReader(f *testing.F) {
	for i, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		var all [][]byte
		NewSplitter(SSE, 0).Feed(streamOf(api, 3), func(fr Frame) { all = append(all, bytes.Clone(fr.Data)) })
		f.Add(bytes.Join(all, []byte("\n")), uint8(i))
	}
	f.Add([]byte(`{"choices":[{"delta":{"content":"a"}}]}`+"\n"+`{"choices":[{"delta":{"content":"b","content":"c"}}]}`), uint8(0))
	f.Fuzz(func(t *testing.T, lines []byte, kind uint8) {
		var frames []Frame
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			frames = append(frames, Frame{Data: line})
		}
		compareReader(t, []API{Chat, Completions, Responses, Messages, Gemini}[kind%5], frames)
	})
}
