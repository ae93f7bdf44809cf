package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

const (
	usageOnly = `{"id":"i","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`
	chatText  = `{"id":"i","choices":[{"index":0,"delta":{"content":"堰 \"usage\":null \n"}}]}`
)

// unaskedOf passes a stream through in pieces, which end at the places given.
func unaskedOf(stream []byte, ends ...int) string {
	var b bytes.Buffer
	u := &unasked{to: &b}
	from := 0
	for _, end := range append(ends, len(stream)) {
		u.Write(bytes.Clone(stream[from:end]))
		from = end
	}
	u.Close()
	return b.String()
}

var unaskedStreams = []struct{ name, stream, want string }{
	{"OpenAI's", "data: " + chatText + "\n\ndata: " + usageOnly + "\n\ndata: [DONE]\n\n", "data: " + chatText + "\n\ndata: [DONE]\n\n"},
	{"CRLF", "data: " + chatText + "\r\n\r\ndata: " + usageOnly + "\r\n\r\ndata: [DONE]\r\n\r\n", "data: " + chatText + "\r\n\r\ndata: [DONE]\r\n\r\n"},
	{"CR", "data: " + chatText + "\r\rdata: " + usageOnly + "\r\rdata: [DONE]\r\r", "data: " + chatText + "\r\rdata: [DONE]\r\r"},
	{"mixed ends", "data: " + usageOnly + "\r\n\rdata: 1\r\rdata: " + usageOnly + "\n\r\n\n", "data: 1\r\r\n"},
	{"no blank, no end", "data:" + usageOnly + "\n\ndata:" + usageOnly, ""},
	{"the last line without the blank one", "data: 1\n\ndata: " + usageOnly + "\n", "data: 1\n\n"},
	{"torn", "data: 1\n\ndata: " + usageOnly[:40], "data: 1\n\ndata: " + usageOnly[:40]},
	{"comments stay", ": ping\n\n: a\nid: 7\n: b\r\nevent: chunk\ndata: " + usageOnly + "\n: c\nretry: 9\n\n: d\n", ": ping\n\n: a\n: b\r\n: c\n: d\n"},
	{"fields of other events stay", "id: 7\nevent: x\ndata: {}\n\nevent: y\n\nid: 8\n", "id: 7\nevent: x\ndata: {}\n\nevent: y\n\nid: 8\n"},
	{"JSON in several lines", "data: {\"choices\": [ ],\ndata:\ndata:  \"usage\": {}\ndata: }\n\ndata: {\ndata: \"usage\":null}\n\n", "data: {\ndata: \"usage\":null}\n\n"},
	{"JSON whose lines end with a brace", "data: {\"a\":{}\ndata: ,\"choices\":[],\"usage\":{}}\n\n", ""},
	{"choices of null", `data: {"usage":{},"choices":null}` + "\n\n", ""},
	{"usage beside choices stays", "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":1}}\n\n", "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":1}}\n\n"},
	{"usage without choices stays", "data: {\"usage\":{}}\n\n", "data: {\"usage\":{}}\n\n"},
	{"empty choices without usage stay", "data: {\"choices\":[],\"prompt_filter_results\":[{\"usage\":{}}]}\n\n", "data: {\"choices\":[],\"prompt_filter_results\":[{\"usage\":{}}]}\n\n"},
	{"an error stays", "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n", "data: {\"choices\":[],\"usage\":{},\"error\":{\"message\":\"m\"}}\n\n"},
	{"what is said twice stays", "data: {\"choices\":[],\"usage\":{},\"usage\":null}\n\n", "data: {\"choices\":[],\"usage\":{},\"usage\":null}\n\n"},
	{"null at the end", "data: {\"choices\":[{\"usage\":null}],\"usage\":null}\n\n", "data: {\"choices\":[{\"usage\":null}]}\n\n"},
	{"null at the beginning", "data: { \"usage\" : null , \"choices\":[]}\n\n", "data: { \"choices\":[]}\n\n"},
	{"null in the middle", "data:{\"a\":1 , \"usage\": null ,\"choices\":[{}]}\r\n\r\n", "data:{\"a\":1  ,\"choices\":[{}]}\r\n\r\n"},
	{"null alone", "data: {\"usage\":null}\n\n", "data: {}\n\n"},
	{"no event stream", "{\"choices\":[],\"usage\":{}}\ndata\ndatax: 1\nwhatever\n", "{\"choices\":[],\"usage\":{}}\ndata\ndatax: 1\nwhatever\n"},
	{"an event that is long", "event: x\ndata: {\"a\":\"" + strings.Repeat("x", heldUnasked) + "\",\"choices\":[],\"usage\":{}}\n\ndata: " + usageOnly + "\n\n", "event: x\ndata: {\"a\":\"" + strings.Repeat("x", heldUnasked) + "\",\"choices\":[],\"usage\":{}}\n\n"},
	{"no JSON", "data: {\"choices\":[],\"usage\":\n\ndata: \ndata\n\n", "data: {\"choices\":[],\"usage\":\n\ndata: \ndata\n\n"},
	{"nothing", "", ""},
}

func TestOnlyWhatWasAskedForIsTakenOut(t *testing.T) {
	for _, row := range unaskedStreams {
		t.Run(row.name, func(t *testing.T) {
			if got := unaskedOf([]byte(row.stream)); got != row.want {
				t.Errorf("%q\nbecame %q\nwant   %q", row.stream, got, row.want)
			}
		})
	}
}

func TestAnySplitTakesOutTheSame(t *testing.T) {
	for _, row := range unaskedStreams {
		stream := []byte(row.stream)
		step := max(len(stream)/500, 1)
		for i := 0; i <= len(stream); i += step {
			for _, j := range []int{i, min(i+1, len(stream)), min(i+7, len(stream)), (i + len(stream)) / 2} {
				if got := unaskedOf(stream, i, j); got != row.want {
					t.Fatalf("%s: cut at %d and %d, it became %.300q", row.name, i, j, got)
				}
			}
		}
		var each []int
		for i := range len(stream) {
			each = append(each, i)
		}
		if got := unaskedOf(stream, each...); got != row.want {
			t.Errorf("%s: byte by byte, it became %.300q", row.name, got)
		}
	}
}

// frames are a stream's events as a client sees them: "name|data".
func frames(stream []byte, atEnd bool) []string {
	var all []string
	split := wire.NewSplitter(wire.SSE, 0)
	take := func(f wire.Frame) { all = append(all, fmt.Sprintf("%s|%s", f.Event, f.Data)) }
	split.Feed(stream, take)
	if atEnd {
		split.Close(take)
	}
	return all
}

// wanted are those that the client did ask for, with "usage": null taken out
// of the JSON in them; decided by another decoder.
func wanted(all []string) []string {
	var own []string
	for _, f := range all {
		if !onlyUsage(f) {
			own = append(own, f)
		}
	}
	return own
}

func onlyUsage(frame string) bool {
	_, data, _ := strings.Cut(frame, "|")
	var chunk map[string]json.RawMessage
	if json.Unmarshal([]byte(data), &chunk) != nil {
		return false
	}
	choices, said := chunk["choices"]
	var list []json.RawMessage
	failure := chunk["error"]
	return said && json.Unmarshal(choices, &list) == nil && len(list) == 0 && bytes.HasPrefix(bytes.TrimSpace(chunk["usage"]), []byte{'{'}) &&
		(failure == nil || string(failure) == "null")
}

// withoutNull makes texts that differ by a null of usage alike.
func withoutNull(all []string) []string {
	for i, f := range all {
		name, data, _ := strings.Cut(f, "|")
		var chunk map[string]any
		if json.Unmarshal([]byte(data), &chunk) != nil || chunk == nil {
			continue
		}
		if v, said := chunk["usage"]; said && v == nil {
			delete(chunk, "usage")
		}
		b, _ := json.Marshal(chunk)
		all[i] = name + "|" + string(b)
	}
	return all
}

// A client that reads events gets each with the read that ended it, whatever is
// taken out before or behind.
func TestEachEventPassesWithTheReadThatEndsIt(t *testing.T) {
	for _, row := range unaskedStreams {
		if strings.Contains(row.name, "twice") || strings.Contains(row.name, "long") {
			continue // which pass whole
		}
		var got bytes.Buffer
		u := &unasked{to: &got}
		stream := []byte(row.stream)
		for i := range stream {
			u.Write(stream[i : i+1])
			if i%97 > 0 && stream[i] != '\n' && stream[i] != '\r' {
				continue
			}
			want := withoutNull(wanted(frames(stream[:i+1], false)))
			if diff := cmp.Diff(want, withoutNull(frames(got.Bytes(), false))); diff != "" {
				t.Fatalf("%s: after %.100q…:\n%s", row.name, stream[:i+1], diff)
			}
		}
	}
}

func TestClientsThatReadLinesAreNotHeldUp(t *testing.T) {
	var got bytes.Buffer
	u := &unasked{to: &got}
	for _, row := range []struct{ write, passes string }{
		{"data: {\"choices\":[{}],", ""},
		{"\"usage\":null}\n", "data: {\"choices\":[{}]}\n"},
		{"\n", "\n"},
		{": a comm", ": a comm"},
		{"ent\n", "ent\n"},
		{"data: [DONE]\n", "data: [DONE]\n"},
		{"da", "da"}, // of the same event
	} {
		got.Reset()
		u.Write([]byte(row.write))
		if got.String() != row.passes {
			t.Errorf("with %q there passed %q, want %q", row.write, got.String(), row.passes)
		}
	}
}

func FuzzAnySplitTakesOutTheSame(f *testing.F) {
	for _, row := range unaskedStreams {
		f.Add([]byte(row.stream), uint16(3), uint16(11))
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b uint16) {
		want := unaskedOf(stream)
		i, j := int(a)%(len(stream)+1), int(b)%(len(stream)+1)
		if got := unaskedOf(stream, min(i, j), max(i, j)); got != want {
			t.Fatalf("%q cut at %d and %d became %q, and whole %q", stream, min(i, j), max(i, j), got, want)
		}
		if !bytes.Contains(stream, []byte("usage")) && want != string(stream) {
			t.Fatalf("%q became %q", stream, want)
		}
		if again := unaskedOf([]byte(want)); len(want) > len(stream) || len(again) > len(want) {
			t.Fatalf("%q became longer: %q, %q", stream, want, again)
		}
	})
}
