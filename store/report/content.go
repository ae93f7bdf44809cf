package report

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// A shape of more blocks than mostBlocks is shown by its first and its last
// ones; JSON has all.
const (
	mostBlocks = 40
	lastBlocks = 10
)

// Content writes what is kept of a call for people: the request's shape, and,
// when bodies are wanted and were kept, those.
func Content(w io.Writer, c *store.Content, bodies bool, s Style) {
	if c.Shape != nil {
		shape(w, c.Shape, s)
	}
	if !bodies || !c.Full {
		return
	}
	body(w, "request", c.Request, c.RequestBytes, c.RequestTruncated, s)
	body(w, "response", c.Response, c.ResponseBytes, c.ResponseTruncated, s)
}

func shape(w io.Writer, shape *wire.Shape, s Style) {
	bytes := 0
	for _, b := range shape.Blocks {
		bytes += b.Bytes
	}
	fmt.Fprintf(w, "\nrequest  %s, %s\n", count(len(shape.Blocks), "block"), count(bytes, "byte"))
	if len(shape.Blocks) == 0 {
		return
	}
	t := &table{columns: []column{{head: "n"}, {head: "role", left: true}, {head: "kind", left: true}, {head: "tool", left: true}, {head: "bytes"}}}
	for i, b := range shape.Blocks {
		if n := len(shape.Blocks); n > mostBlocks && i >= mostBlocks-lastBlocks && i < n-lastBlocks {
			if i == n-lastBlocks-1 {
				t.add("…", fmt.Sprintf("%d more", n-mostBlocks), "", "", "")
			}
			continue
		}
		tool := absent
		if b.Name != "" {
			tool = clip(plain(b.Name), 40)
		}
		t.add(strconv.Itoa(i+1), plain(string(b.Role)), kindText(b.Kind), tool, strconv.Itoa(b.Bytes))
	}
	t.text(w, func(row, _ int, cell string) string {
		if row == -1 || cell == absent {
			return s.paint(faint, cell)
		}
		return cell
	})
}

var kindNames = map[wire.Kind]string{
	wire.KindText: "text", wire.KindReasoning: "reasoning", wire.KindRefusal: "refusal", wire.KindTool: "tool call",
	wire.KindToolResult: "tool result", wire.KindOther: "other",
}

// kindText is absent for the definition of a tool, which is of no kind.
func kindText(k wire.Kind) string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return absent
}

// body writes one body under a head that says how much of it this is.
func body(w io.Writer, name string, b []byte, whole int64, truncated bool, s Style) {
	head := fmt.Sprintf("%s  %s as sent", name, count(int(whole), "byte"))
	switch {
	case truncated && len(b) == 0:
		head += ", of which nothing could be kept"
	case truncated:
		head += fmt.Sprintf("; the first %s of its text:", count(len(b), "byte"))
	}
	fmt.Fprintf(w, "\n%s\n", s.paint(faint, head))
	if len(b) > 0 {
		fmt.Fprintln(w, strings.TrimRight(harmless(string(b)), "\n"))
	}
}

// harmless keeps text from steering the terminal; its lines stay.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf)) {
			return -1
		}
		return r
	}, s)
}

type callJSON struct {
	Schema     string         `json:"schema"`
	Span       string         `json:"span_id"`
	Trace      string         `json:"trace_id"`
	Parent     string         `json:"parent_span_id,omitempty"`
	Started    string         `json:"started_at"`
	Properties map[string]any `json:"properties"`
}

type callAndContent struct {
	callJSON
	Content *contentJSON `json:"content"`
}

type contentJSON struct {
	Kind              string      `json:"kind"`
	Shape             []blockJSON `json:"shape"`
	RequestBytes      int64       `json:"request_bytes"`
	ResponseBytes     int64       `json:"response_bytes"`
	RequestTruncated  bool        `json:"request_truncated"`
	ResponseTruncated bool        `json:"response_truncated"`
	Request           *string     `json:"request,omitempty"`
	Response          *string     `json:"response,omitempty"`
}

type blockJSON struct {
	Role  wire.Role `json:"role"`
	Kind  string    `json:"kind,omitempty"`
	Tool  string    `json:"tool,omitempty"`
	Bytes int       `json:"bytes"`
	Hash  string    `json:"hash"`
}

// CallJSON writes one call as REPORT.md describes it; content is nil where
// nothing is kept, and its bodies are written when they are wanted.
func CallJSON(w io.Writer, c *call.Call, content *store.Content, bodies bool) error {
	out := callAndContent{callJSON: jsonOf(c)}
	if content != nil {
		out.Content = contentOf(content, bodies)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// CallLine writes one call as a line of JSON, without its content.
func CallLine(w io.Writer, c *call.Call) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(jsonOf(c))
}

func jsonOf(c *call.Call) callJSON {
	out := callJSON{
		Schema: "weir.call/1", Span: SpanText(c), Trace: hex.EncodeToString(c.TraceID[:]),
		Started: c.Started().UTC().Format(time.RFC3339Nano), Properties: map[string]any{},
	}
	if c.ParentSpan != [8]byte{} {
		out.Parent = hex.EncodeToString(c.ParentSpan[:])
	}
	for _, kv := range c.Attributes() {
		out.Properties[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

func contentOf(c *store.Content, bodies bool) *contentJSON {
	out := &contentJSON{
		Kind: "shape", RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes,
		RequestTruncated: c.RequestTruncated, ResponseTruncated: c.ResponseTruncated,
	}
	if c.Shape != nil {
		out.Shape = make([]blockJSON, len(c.Shape.Blocks))
		for i, b := range c.Shape.Blocks {
			out.Shape[i] = blockJSON{Role: b.Role, Kind: kindNames[b.Kind], Tool: b.Name, Bytes: b.Bytes, Hash: strconv.FormatUint(b.Hash, 16)}
		}
	}
	if c.Full {
		out.Kind = "full"
		if bodies {
			request, response := string(c.Request), string(c.Response)
			out.Request, out.Response = &request, &response
		}
	}
	return out
}
