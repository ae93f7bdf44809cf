package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

func keptContent() *store.Content {
	return &store.Content{
		Full: true, At: time.Unix(1_800_000_000, 0), RequestBytes: 50_000, ResponseBytes: 30, RequestTruncated: true,
		Request: []byte(`{"model":"m","messages":[`), Response: []byte("data: \x1b[2Jhi\n\ndata: [DONE]\n\n"),
		Shape: &wire.Shape{Blocks: []wire.Block{
			{Role: wire.Definition, Name: "Bash", Bytes: 900, Hash: 10},
			{Role: wire.System, Kind: wire.KindText, Bytes: 7000, Hash: 1 << 63},
			{Role: wire.User, Kind: wire.KindText, Bytes: 42},
			{Role: wire.Assistant, Kind: wire.KindTool, Name: "B\x1bash", Bytes: 12},
			{Role: wire.ToolRole, Kind: wire.KindToolResult, Name: "Bash", Bytes: 0},
		}},
	}
}

func TestContentForPeople(t *testing.T) {
	const shapeText = `
request  5 blocks, 7954 bytes
n  role        kind         tool  bytes
1  definition  –            Bash    900
2  system      text         –      7000
3  user        text         –        42
4  assistant   tool call    Bash     12
5  tool        tool result  Bash      0
`
	const bodiesText = `
request  50000 bytes as sent; the first 25 bytes of its text:
{"model":"m","messages":[

response  30 bytes as sent
data: [2Jhi

data: [DONE]
`
	onlyShape := keptContent()
	onlyShape.Full = false
	gone := keptContent()
	gone.Shape, gone.Request, gone.Response, gone.ResponseBytes = nil, nil, nil, 0
	for _, row := range []struct {
		sentence string
		c        *store.Content
		bodies   bool
		want     string
	}{
		{"the shape", keptContent(), false, shapeText},
		{"bodies too", keptContent(), true, shapeText + bodiesText},
		{"bodies that were not to be kept", onlyShape, true, shapeText},
		{"bodies of which nothing could be kept", gone, true, "\nrequest  50000 bytes as sent, of which nothing could be kept\n\nresponse  0 bytes as sent\n"},
	} {
		var b bytes.Buffer
		Content(&b, row.c, row.bodies, Style{})
		if diff := cmp.Diff(row.want, b.String()); diff != "" {
			t.Errorf("%s: %s", row.sentence, diff)
		}
	}
}

func TestLongShapeIsShownByItsEnds(t *testing.T) {
	for blocks, want := range map[int]int{40: 40, 41: 41, 500: 41} {
		c := &store.Content{Shape: &wire.Shape{Blocks: make([]wire.Block, blocks)}}
		var b bytes.Buffer
		Content(&b, c, false, Style{})
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")[2:]
		if len(lines) != want || !strings.HasPrefix(strings.TrimSpace(lines[len(lines)-1]), fmt.Sprint(blocks)) {
			t.Errorf("%d blocks: %d lines, want %d:\n%s", blocks, len(lines), want, b.String())
		}
		if blocks == 500 && !strings.Contains(b.String(), "…  460 more") {
			t.Errorf("what is left out is not said:\n%s", b.String())
		}
	}
}

func TestCallAsJSON(t *testing.T) {
	c := &call.Call{Side: call.Proxy, Scenario: "chat", Status: 200, SpanID: [8]byte{1}, TraceID: [16]byte{2},
		Instants: call.Instants{Arrived: call.At(time.Unix(1_800_000_000, 5000))}}
	read := func(content *store.Content, bodies bool) (v struct {
		Schema, Span_ID, Trace_ID, Started_At string
		Properties                            map[string]any
		Content                               *struct {
			Kind              string
			Shape             []blockJSON
			Request_Bytes     int
			Request_Truncated bool
			Request, Response *string
		}
	}) {
		var b bytes.Buffer
		if err := CallJSON(&b, c, content, bodies); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := read(nil, true)
	if v.Schema != "weir.call/1" || v.Span_ID != "0100000000000000" || v.Trace_ID[:2] != "02" || v.Content != nil ||
		v.Started_At != "2027-01-15T08:00:00.000005Z" || v.Properties["weir.scenario"] != "chat" {
		t.Errorf("a call is %+v", v)
	}
	if v = read(keptContent(), false); v.Content.Request != nil || v.Content.Response != nil || v.Content.Kind != "full" || v.Content.Request_Bytes != 50_000 {
		t.Errorf("without bodies its content is %+v", v.Content)
	}
	if diff := cmp.Diff(blockJSON{Role: wire.System, Kind: "text", Bytes: 7000, Hash: "8000000000000000"}, v.Content.Shape[1]); diff != "" {
		t.Error(diff)
	}
	if v = read(keptContent(), true); *v.Content.Response != "data: \x1b[2Jhi\n\ndata: [DONE]\n\n" || *v.Content.Request != `{"model":"m","messages":[` {
		t.Errorf("its bodies are %q, %q", *v.Content.Request, *v.Content.Response)
	}
	only := keptContent()
	only.Full, only.Shape = false, nil
	if v = read(only, true); v.Content.Kind != "shape" || v.Content.Shape != nil || v.Content.Request != nil {
		t.Errorf("without a shape its content is %+v", v.Content)
	}
}
