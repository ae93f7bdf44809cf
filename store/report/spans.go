package report

import (
	"bufio"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/store"
	"weir/store/call"
)

// Formats are what Export writes.
var Formats = []string{"otel-json", "jsonl", "csv", "vllm", "aiperf", "guidellm"}

// Export writes calls in one of Formats, as EXPORT.md describes them, and gives
// how many it wrote: of the first three each view of a call, of the others each
// call once. runs finds what is known of a run by its id; otel-json alone asks.
func Export(w io.Writer, format string, calls iter.Seq2[*call.Call, error], runs func(id string) ([]store.Run, error)) (n int, err error) {
	out := bufio.NewWriter(w)
	switch format {
	case "otel-json":
		n, err = otelJSON(out, calls, runs)
	case "jsonl":
		n, err = writeEach(calls, func(c *call.Call) error { return CallLine(out, c) })
	case "csv":
		n, err = callsCSV(out, calls)
	case "vllm", "aiperf", "guidellm":
		n, err = benchmark(out, format, calls)
	default:
		return 0, fmt.Errorf("format %q: want %s", format, strings.Join(Formats, ", "))
	}
	if err != nil {
		return n, err
	}
	return n, out.Flush()
}

func writeEach(calls iter.Seq2[*call.Call, error], write func(*call.Call) error) (n int, err error) {
	for c, err := range calls {
		if err == nil {
			err = write(c)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// spanJSON is a span as FORMATS has it, and what more OpenTelemetry says of one.
type spanJSON struct {
	Trace      string         `json:"trace_id"`
	Span       string         `json:"span_id"`
	Parent     string         `json:"parent_span_id,omitempty"`
	TraceState string         `json:"trace_state,omitempty"`
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Start      string         `json:"start_time"`
	End        string         `json:"end_time"`
	Status     statusJSON     `json:"status"`
	Attributes map[string]any `json:"attributes"`
	Events     []eventJSON    `json:"events,omitempty"`
}

type statusJSON struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

type eventJSON struct {
	Name string `json:"name"`
	Time string `json:"time"`
}

// RunsKey is where the runs of the spans stand in otel-json.
const RunsKey = "weir_runs"

func otelJSON(w io.Writer, calls iter.Seq2[*call.Call, error], find func(string) ([]store.Run, error)) (int, error) {
	if _, err := io.WriteString(w, `{"spans": [`); err != nil {
		return 0, err
	}
	between, ids := "\n", map[string]bool{}
	n, err := writeEach(calls, func(c *call.Call) error {
		if c.Run != "" {
			ids[c.Run] = true
		}
		b, err := json.Marshal(spanOf(c))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s%s", between, b)
		between = ",\n"
		return err
	})
	if err != nil {
		return n, err
	}
	runs := []store.Run{}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		found, err := find(id)
		if err != nil {
			return n, err
		}
		for _, r := range found {
			if r.ID == id { // and does not only begin so
				runs = append(runs, r)
			}
		}
	}
	b, err := json.Marshal(runs)
	if err == nil {
		_, err = fmt.Fprintf(w, "\n], %q: %s}\n", RunsKey, b)
	}
	return n, err
}

func spanOf(c *call.Call) spanJSON {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	code, message := c.SpanStatus()
	s := spanJSON{
		Trace: hex.EncodeToString(c.TraceID[:]), Span: SpanText(c), Parent: parentText(c), TraceState: c.TraceState,
		Name: c.SpanName(), Kind: "CLIENT", Start: stamp(c.Started()), End: stamp(c.Done.Time()),
		Status: statusJSON{strings.ToUpper(code.String()), message}, Attributes: jsonOf(c).Properties,
	}
	for _, e := range c.SpanEvents() {
		s.Events = append(s.Events, eventJSON{e.Name, stamp(e.At.Time())})
	}
	return s
}

func parentText(c *call.Call) string {
	if c.ParentSpan == [8]byte{} {
		return ""
	}
	return hex.EncodeToString(c.ParentSpan[:])
}

// callColumns are the columns of a call as CSV: absent figures are empty.
var callColumns = []struct {
	name string
	of   func(*call.Call) string
}{
	{"span_id", SpanText},
	{"trace_id", func(c *call.Call) string { return hex.EncodeToString(c.TraceID[:]) }},
	{"parent_span_id", parentText},
	{"side", func(c *call.Call) string { return string(c.Side) }},
	{"started_at", func(c *call.Call) string { return c.Started().UTC().Format(time.RFC3339Nano) }},
	{"run", func(c *call.Call) string { return c.Run }},
	{"scenario", func(c *call.Call) string { return c.Scenario }},
	{"session", func(c *call.Call) string { return c.Session }},
	{"turn", func(c *call.Call) string { return positive(c.Turn) }},
	{"warm_up", func(c *call.Call) string { return truth(c.WarmUp) }},
	{"impaired", func(c *call.Call) string { return strings.Join(c.Impaired, " ") }},
	{"labels", labelsText},
	{"api", func(c *call.Call) string { return string(c.API) }},
	{"operation", func(c *call.Call) string { return string(c.Operation) }},
	{"provider", func(c *call.Call) string { return c.Provider }},
	{"upstream", func(c *call.Call) string { return c.Upstream }},
	{"model", func(c *call.Call) string { return c.Request.Model }},
	{"served_model", func(c *call.Call) string { return c.ServedModel }},
	{"client", func(c *call.Call) string { return c.ClientName }},
	{"purpose", func(c *call.Call) string { return c.Purpose }},
	{"outcome", func(c *call.Call) string { return string(c.Outcome) }},
	{"status", func(c *call.Call) string { return positive(c.Status) }},
	{"error_type", func(c *call.Call) string { return c.ErrorType }},
	{"no_first_token", func(c *call.Call) string { return string(c.NoFirstToken) }},
	{"ttft_felt_ms", func(c *call.Call) string { return field(msIf(c.TTFTFelt())) }},
	{"ttft_upstream_ms", func(c *call.Call) string { return field(msIf(c.TTFTUpstream())) }},
	{"ttft_response_ms", func(c *call.Call) string { return field(msIf(c.TTFTResponse())) }},
	{"tpot_ms", func(c *call.Call) string { return field(msIf(c.TPOT())) }},
	{"queued_ms", func(c *call.Call) string { return field(msIf(c.Queued())) }},
	{"last_token_ms", func(c *call.Call) string { return field(msIf(c.ToLastToken())) }},
	{"total_ms", func(c *call.Call) string { return field(msIf(c.Duration())) }},
	{"input_tokens", func(c *call.Call) string { return tokens(c.Usage.Input.N, c.Usage.Input.Known) }},
	{"output_tokens", func(c *call.Call) string { return tokens(c.Usage.Output.N, c.Usage.Output.Known) }},
	{"cache_read_tokens", func(c *call.Call) string { return tokens(c.Usage.CacheRead.N, c.Usage.CacheRead.Known) }},
	{"cache_write_tokens", func(c *call.Call) string { return tokens(c.Usage.CacheWrite.N, c.Usage.CacheWrite.Known) }},
	{"reasoning_tokens", func(c *call.Call) string { return tokens(c.Usage.Reasoning.N, c.Usage.Reasoning.Known) }},
	{"usage_source", func(c *call.Call) string { return string(c.UsageSource) }},
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func labelsText(c *call.Call) string {
	if len(c.Labels) == 0 {
		return ""
	}
	b, err := json.Marshal(c.Labels)
	if err != nil {
		return "" // which a map of strings never is
	}
	return string(b)
}

func callsCSV(w io.Writer, calls iter.Seq2[*call.Call, error]) (int, error) {
	out := csv.NewWriter(w)
	row := make([]string, len(callColumns))
	for i, column := range callColumns {
		row[i] = column.name
	}
	if err := out.Write(row); err != nil {
		return 0, err
	}
	n, err := writeEach(calls, func(c *call.Call) error {
		for i, column := range callColumns {
			row[i] = column.of(c)
		}
		return out.Write(row)
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return n, err
}
