package wire

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmaxmax/go-sse"
)

// kept is a frame that outlives its feed.
type kept struct {
	Event, Data string
	Oversize    bool
}

func frames(framing Framing, limit int, body string, step int) []kept {
	var all []kept
	s := NewSplitter(framing, limit)
	take := func(f Frame) { all = append(all, kept{string(f.Event), string(f.Data), f.Oversize}) }
	for len(body) > 0 {
		n := min(step, len(body))
		lent := []byte(body[:n])
		s.Feed(lent, take)
		for i := range lent {
			lent[i] = '#'
		}
		body = body[n:]
	}
	s.Close(take)
	return all
}

func TestSplitterKeepsTheRulesOfSSE(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       []kept
	}{
		{"one data line", "data: a\n\n", []kept{{Data: "a"}}},
		{"no space behind the colon", "data:a\n\n", []kept{{Data: "a"}}},
		{"only the first space is taken off", "data:  a\n\n", []kept{{Data: " a"}}},
		{"several data lines → joined by a line feed", "data: a\ndata: b\ndata\ndata: c\n\n", []kept{{Data: "a\nb\n\nc"}}},
		{"event name", "event: x\ndata: a\n\n", []kept{{Event: "x", Data: "a"}}},
		{"event name after the data", "data: a\nevent: x\n\n", []kept{{Event: "x", Data: "a"}}},
		{"the last event name holds", "event: x\nevent: y\ndata: a\n\n", []kept{{Event: "y", Data: "a"}}},
		{"a name does not carry over", "event: x\ndata: a\n\ndata: b\n\n", []kept{{Event: "x", Data: "a"}, {Data: "b"}}},
		{"an event without data is none", "event: x\n\ndata: b\n\n", []kept{{Data: "b"}}},
		{"empty data is an event", "data\n\n", []kept{{Data: ""}}},
		{"comments", ": PING\n\n:\ndata: a\n: in between\n\n", []kept{{Data: "a"}}},
		{"id and retry are fields", "id: 1\nretry: 5\ndata: a\n\n", []kept{{Data: "a"}}},
		{"unknown fields", "x: 1\ndatax: 2\ndata: a\n\n", []kept{{Data: "a"}}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []kept{{Event: "x", Data: "a"}, {Data: "b"}}},
		{"CR alone", "data: a\r\rdata: b\r\r", []kept{{Data: "a"}, {Data: "b"}}},
		{"line ends mixed", "data: a\r\ndata: b\rdata: c\n\r\n", []kept{{Data: "a\nb\nc"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []kept{{Data: "a"}}},
		{"byte order mark only at the start", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []kept{{Data: "a"}}},
		{"UTF-8 cut between reads", "data: 你好🌊\n\n", []kept{{Data: "你好🌊"}}},
		{"no blank line at the end → no event", "data: a\n\ndata: b\n", []kept{{Data: "a"}}},
		{"data cut in the midst of a line", "data: a\n\ndata: b", []kept{{Data: "a"}}},
	} {
		for step := 1; step <= len(row.body)+1; step++ {
			if diff := cmp.Diff(row.want, frames(SSE, 0, row.body, step)); diff != "" {
				t.Errorf("%s, %d bytes at a time:\n%s", row.name, step, diff)
				break
			}
		}
	}
}

func TestSplitterCutsArrays(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       []kept
	}{
		{"elements with commas and lines between", "[{\"a\":1}\r\n,\r\n{\"b\":[1,{}]}]", []kept{{Data: `{"a":1}`}, {Data: `{"b":[1,{}]}`}}},
		{"brackets and quotes in strings", `[{"a":"]}\"{["}]`, []kept{{Data: `{"a":"]}\"{["}`}}},
		{"an array that is not closed", `[{"a":1},{"b":`, []kept{{Data: `{"a":1}`}}},
		{"empty array", `[]`, nil},
		{"one document instead", ` {"error":{"code":429}}`, []kept{{Data: `{"error":{"code":429}}`}}},
	} {
		for step := 1; step <= len(row.body); step++ {
			if diff := cmp.Diff(row.want, frames(JSONArray, 0, row.body, step)); diff != "" {
				t.Errorf("%s, %d bytes at a time:\n%s", row.name, step, diff)
				break
			}
		}
	}
}

func TestSplitterHoldsNoMoreThanItsLimit(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, step := range []int{1, 7, 333, 5000} {
		for name, body := range map[string]string{
			"one line":      "data: " + long + "\n\ndata: b\n\n",
			"several lines": "data: " + long[:60] + "\ndata: " + long + "\n\ndata: b\n\n",
		} {
			got := frames(SSE, 100, body, step)
			if len(got) != 2 || got[1] != (kept{Data: "b"}) || len(got[0].Data) != 100 || !got[0].Oversize {
				t.Errorf("%s, %d bytes at a time: %d frames, first of %d bytes, oversize %v", name, step, len(got), len(got[0].Data), got[0].Oversize)
			}
		}
	}
}

// go-sse reads streams by the same rules, so it is the oracle. It trims the
// data of an event and wants UTF-8, which the corpus keeps clear of.
func TestSplitterAgreesWithAnotherReader(t *testing.T) {
	for _, body := range []string{
		"data: a\n\n: c\n\nevent: x\ndata: 1\ndata: 2\n\nid: 7\ndata: z\n\n",
		"event: message_start\r\ndata: {\"a\":1}\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n",
		string(streamOf(Messages, 20)), string(streamOf(Chat, 20)), string(streamOf(Responses, 20)),
	} {
		var want []kept
		for ev, err := range sse.Read(strings.NewReader(body), nil) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, kept{Event: ev.Type, Data: ev.Data})
		}
		if diff := cmp.Diff(want, frames(SSE, 0, body, 11)); diff != "" {
			t.Errorf("%.60q:\n%s", body, diff)
		}
	}
}

// Streams of lines drawn at random, with all line ends, by the same oracle.
func TestSplitterAgreesWithAnotherReaderOnAnyLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	lines := []string{"data: a", "data:b", "data: {\"x\":\"你好\"}", "event: x", "event:y", ": comment", ":", "id: 7", "foo: bar", "datax: 1", "data : no"}
	for range 3000 {
		var b strings.Builder
		end := []string{"\n", "\r\n", "\r"}[rng.IntN(3)]
		for range rng.IntN(8) + 1 {
			for range rng.IntN(5) {
				b.WriteString(lines[rng.IntN(len(lines))] + end)
			}
			b.WriteString("data: z" + end + end) // so that no event is without data, which the oracle yields
		}
		body := b.String()
		var want []kept
		for ev, err := range sse.Read(strings.NewReader(body), nil) {
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			want = append(want, kept{Event: ev.Type, Data: ev.Data})
		}
		if diff := cmp.Diff(want, frames(SSE, 0, body, rng.IntN(len(body))+1)); diff != "" {
			t.Fatalf("%q:\n%s", body, diff)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("data: a\r\ndata: b\r\n\r\n: c\n\nevent: x\ndata:1\n\n"), uint8(3), uint8(0))
	f.Add([]byte("\xef\xbb\xbfdata: a\rdata: b\n\r"), uint8(1), uint8(0))
	f.Add([]byte(`[{"a":"]"},{"b":[{}]}]`), uint8(2), uint8(1))
	f.Add([]byte(`{"a":1}`), uint8(2), uint8(2))
	f.Add([]byte(`["a{",{"\\\"":"\\\\"}]`), uint8(1), uint8(1))
	f.Add([]byte("data: 123456\n\n: a long comment\ndata: 123\ndata: 4\n\n"), uint8(4), uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, step, kind uint8) {
		framing := []Framing{SSE, JSONArray, Whole}[kind%3]
		for _, limit := range []int{0, 5} {
			whole := frames(framing, limit, string(body), len(body)+1)
			split := frames(framing, limit, string(body), int(step)%64+1)
			if diff := cmp.Diff(whole, split); diff != "" {
				t.Errorf("%q at once and %d at a time differ with limit %d:\n%s", body, int(step)%64+1, limit, diff)
			}
			for _, f := range whole {
				if limit > 0 && len(f.Data) > limit {
					t.Errorf("%q: a frame of %d bytes with limit %d", body, len(f.Data), limit)
				}
			}
		}
	})
}
