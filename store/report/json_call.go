package report

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"weir/store/call"
)

// CallJSON writes a call as one line of JSON: its ids, its start and its
// attributes, which have the names and the units of its span.
func CallJSON(w io.Writer, c *call.Call) error {
	attributes := map[string]any{}
	for _, kv := range c.Attributes() {
		if kv.Key != call.KeyTimeline {
			attributes[string(kv.Key)] = kv.Value.AsInterface()
		}
	}
	line := struct {
		Span       string         `json:"span_id"`
		Trace      string         `json:"trace_id"`
		Parent     string         `json:"parent_span_id,omitempty"`
		Start      time.Time      `json:"start"`
		Attributes map[string]any `json:"attributes"`
	}{Span: SpanText(c), Trace: hex.EncodeToString(c.TraceID[:]), Start: c.Started().UTC(), Attributes: attributes}
	if c.ParentSpan != [8]byte{} {
		line.Parent = hex.EncodeToString(c.ParentSpan[:])
	}
	return json.NewEncoder(w).Encode(line)
}
