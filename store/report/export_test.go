package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// measured is a call whose figures can be reckoned by hand: a token every 10 ms
// after the first one.
func measured(side call.Side, id byte, began, ttft time.Duration, tokens int64) *call.Call {
	at := call.At(time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC).Add(began))
	first := at + call.Instant(ttft)
	last := first + call.Instant(time.Duration(tokens-1)*10*time.Millisecond)
	c := &call.Call{
		SpanID: [8]byte{id}, TraceID: [16]byte{id}, Side: side, Operation: wire.OpChat, API: wire.Chat, Outcome: call.OK, Streamed: true,
		Request: wire.Head{Model: "m"}, Usage: wire.Usage{Input: wire.N(100), Output: wire.N(tokens)}, UsageSource: call.UsageReported, TokenEvents: tokens,
	}
	c.Arrived, c.Body, c.Admitted, c.Connected, c.Sent = at, at, at, at, at+1000
	c.FirstToken = call.Mark{Received: first, Delivered: first}
	c.LastToken = call.Mark{Received: last, Delivered: last}
	c.Done = last + call.Instant(5*time.Millisecond)
	var b []byte
	us := ttft.Microseconds()
	for range tokens {
		b = appendVarints(b, uint64(us), 7<<4|1)
		us = 10_000
	}
	c.Timeline = b
	return c
}

func appendVarints(b []byte, values ...uint64) []byte {
	for _, v := range values {
		for ; v >= 0x80; v >>= 7 {
			b = append(b, byte(v)|0x80)
		}
		b = append(b, byte(v))
	}
	return b
}

// benchmarkCalls are three that went well and one that failed, one of them seen
// from both sides, and some that belong to no figure.
func benchmarkCalls() []*call.Call {
	seen := measured(call.Proxy, 2, time.Millisecond, 90*time.Millisecond, 3)
	seen.ParentSpan = [8]byte{1}
	batched := measured(call.Proxy, 4, 2*time.Second, 300*time.Millisecond, 11)
	batched.TokenEvents = 5
	failed := measured(call.Proxy, 5, 3*time.Second, time.Millisecond, 2)
	failed.Outcome, failed.ErrorMessage, failed.Usage.Output = call.RateLimited, "slow down", wire.Count{}
	warm, worse, list := measured(call.Proxy, 6, 0, 1, 2), measured(call.Proxy, 7, 0, 1, 2), measured(call.Proxy, 8, 0, 1, 2)
	warm.WarmUp, worse.Impaired, list.Operation = true, []string{"cut@7"}, wire.OpModels
	failed.Done = failed.Arrived + call.Instant(time.Second)
	return []*call.Call{
		measured(call.Client, 1, 0, 100*time.Millisecond, 3), seen, measured(call.Proxy, 3, time.Second, 200*time.Millisecond, 6), batched, failed, warm, worse, list,
	}
}

func noRuns(string) ([]store.Run, error) { return nil, nil }

func exported(t *testing.T, format string, want int, calls ...*call.Call) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if n, err := Export(&b, format, each(calls...), noRuns); err != nil || n != want {
		t.Fatalf("%s: %d calls, %v; want %d", format, n, err, want)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%s: %v in %s", format, err, b.String())
	}
	return doc
}

func TestVLLMFile(t *testing.T) {
	got := exported(t, "vllm", 4, benchmarkCalls()...)
	want := map[string]any{
		"num_prompts": 4.0, "completed": 3.0, "failed": 1.0, "duration": 4.0, "model_id": "m",
		"total_input_tokens": 300.0, "total_output_tokens": 20.0, "request_throughput": 0.75, "output_throughput": 5.0, "total_token_throughput": 80.0,
		"mean_ttft_ms": 200.0, "median_ttft_ms": 200.0, "std_ttft_ms": 81.649658, "p99_ttft_ms": 300.0,
		"mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "std_tpot_ms": 0.0, "p99_tpot_ms": 10.0,
		"mean_itl_ms": 10.0, "median_itl_ms": 10.0, "std_itl_ms": 0.0, "p99_itl_ms": 10.0,
		"mean_e2el_ms": 256.666667, "median_e2el_ms": 250.0, "std_e2el_ms": 114.406682, "p99_e2el_ms": 400.0,
		"ttfts": []any{0.1, 0.2, 0.3, nil}, "itls": []any{[]any{0.01, 0.01}, []any{0.01, 0.01, 0.01, 0.01, 0.01}, nil, nil},
		"input_lens": []any{100.0, 100.0, 100.0, 100.0}, "output_lens": []any{3.0, 6.0, 11.0, nil}, "errors": []any{"", "", "", "rate_limited: slow down"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAIPerfFile(t *testing.T) {
	got := exported(t, "aiperf", 4, benchmarkCalls()...)
	for tag, want := range map[string]map[string]any{
		"time_to_first_token": {"unit": "ms", "avg": 200.0, "min": 100.0, "max": 300.0, "p1": 100.0, "p5": 100.0, "p10": 100.0, "p25": 100.0, "p50": 200.0, "p75": 300.0, "p90": 300.0, "p95": 300.0, "p99": 300.0, "std": 81.649658, "count": 3.0},
		"request_throughput":  {"unit": "requests/sec", "avg": 0.75},
		"error_request_count": {"unit": "requests", "avg": 1.0},
	} {
		if d := cmp.Diff(any(want), got[tag]); d != "" {
			t.Errorf("%s:\n%s", tag, d)
		}
	}
	for _, tag := range strings.Fields("inter_token_latency request_latency input_sequence_length output_sequence_length output_token_throughput output_token_throughput_per_user request_count benchmark_duration") {
		if got[tag] == nil {
			t.Errorf("%s is missing", tag)
		}
	}
}

func TestGuideLLMFile(t *testing.T) {
	got := exported(t, "guidellm", 4, benchmarkCalls()...)
	metrics := got["benchmarks"].([]any)[0].(map[string]any)["metrics"].(map[string]any)
	if d := cmp.Diff(any(map[string]any{"successful": 3.0, "errored": 1.0, "incomplete": 0.0, "total": 4.0}), metrics["request_totals"]); d != "" {
		t.Error(d)
	}
	latency := metrics["request_latency"].(map[string]any)
	if s := latency["successful"].(map[string]any); s["max"] != 0.405 || s["count"] != 3.0 || s["percentiles"].(map[string]any)["p50"] != 0.255 || latency["total"] != nil || latency["errored"] != nil {
		t.Errorf("request_latency is %v", latency)
	}
	if s := metrics["time_per_output_token_ms"].(map[string]any)["successful"].(map[string]any); s["median"] != 40.0 {
		t.Errorf("time_per_output_token_ms is %v, want a median of 120/3 ms", s)
	}
}

// Of calls that say nothing, nothing is invented.
func TestUnknownFiguresAreAbsentInEveryFile(t *testing.T) {
	silent := &call.Call{SpanID: [8]byte{9}, Side: call.Imported, Operation: wire.OpChat, Outcome: call.OK, UsageSource: call.UsageMissing}
	silent.Arrived = call.At(time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC))
	silent.Done = silent.Arrived + call.Instant(time.Second)
	v := exported(t, "vllm", 1, silent)
	for _, key := range strings.Fields("mean_ttft_ms p99_tpot_ms mean_itl_ms mean_e2el_ms total_input_tokens output_throughput") {
		if x, there := v[key]; !there || x != nil {
			t.Errorf("vllm: %s is %v", key, x)
		}
	}
	if d := cmp.Diff(any([]any{nil}), v["ttfts"]); d != "" {
		t.Error(d)
	}
	if a := exported(t, "aiperf", 1, silent); a["time_to_first_token"] != nil || a["request_count"] == nil {
		t.Errorf("aiperf: %v", a)
	}
	g := exported(t, "guidellm", 1, silent)
	if m := g["benchmarks"].([]any)[0].(map[string]any)["metrics"].(map[string]any)["time_to_first_token_ms"].(map[string]any); m["successful"] != nil {
		t.Errorf("guidellm: %v", m)
	}
	for _, format := range Formats {
		if format == "jsonl" || format == "csv" {
			continue
		}
		exported(t, format, 0)
	}
}

func TestSpansAndRows(t *testing.T) {
	c := measured(call.Proxy, 1, 0, 100*time.Millisecond, 3)
	c.ParentSpan, c.TraceState, c.Labels = [8]byte{9}, "a=b", map[string]string{"team": "x,y"}
	spans := exported(t, "otel-json", 1, c)["spans"].([]any)
	s := spans[0].(map[string]any)
	if s["name"] != "chat m" || s["kind"] != "CLIENT" || s["start_time"] != "2026-12-01T10:00:00Z" || s["end_time"] != "2026-12-01T10:00:00.125Z" ||
		s["parent_span_id"] != "0900000000000000" || s["trace_state"] != "a=b" || s["status"].(map[string]any)["code"] != "UNSET" {
		t.Errorf("the span is %v", s)
	}
	var events []string
	for _, e := range s["events"].([]any) {
		events = append(events, e.(map[string]any)["name"].(string))
	}
	if d := cmp.Diff(strings.Fields("weir.queue weir.connect weir.send weir.wait weir.first_token weir.last_token"), events); d != "" {
		t.Errorf("events:\n%s", d)
	}
	var b bytes.Buffer
	if _, err := Export(&b, "csv", each(c), noRuns); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	row := map[string]string{}
	for i, name := range rows[0] {
		row[name] = rows[1][i]
	}
	if row["ttft_felt_ms"] != "100" || row["queued_ms"] != "0" || row["cache_read_tokens"] != "" || row["labels"] != `{"team":"x,y"}` || row["turn"] != "" {
		t.Errorf("the row is %v", row)
	}
}

func TestExportSaysWhatFails(t *testing.T) {
	if _, err := Export(&bytes.Buffer{}, "xml", each(), noRuns); err == nil || !strings.Contains(err.Error(), "want otel-json, jsonl") {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	for _, format := range Formats {
		_, err := Export(&bytes.Buffer{}, format, func(yield func(*call.Call, error) bool) { yield(nil, broken) }, noRuns)
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
