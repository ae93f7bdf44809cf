//go:build unix

package main

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run's spans come to a real collector over both protocols, and each says
// there what its row in SQLite says.
func TestCollectorHoldsWhatSQLiteHolds(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // it is mostly the simulator's answers that take long
			c := newCollector(t)
			c.start(t)
			endpoint := "http://" + c.grpc
			if protocol != "grpc" {
				endpoint = "http://" + c.http
			}
			db := filepath.Join(t.TempDir(), "weir.db")
			weirRun(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol},
				"demo", "--for", "5s", "--db", db)
			c.end(t, syscall.SIGTERM) // with which it writes what it holds
			sameSpans(t, c.spans(t), db)
			if n, want := c.measured(t, "weir.ttft.felt", "weir.side", "proxy"), countRows(t, db, "proxy"); n != want || n == 0 {
				t.Errorf("metrics have %d first tokens, and SQLite %d", n, want)
			}
		})
	}
}

// The collector is killed twice during a run, and is down at its end. Nothing of
// that is seen in the run, and when the collector is back it can be sent all.
func TestCollectorIsKilledDuringARun(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // it is mostly the simulator's answers that take long
			killedDuringARun(t, protocol)
		})
	}
}

func killedDuringARun(t *testing.T, protocol string) {
	c := newCollector(t)
	c.start(t)
	db := filepath.Join(t.TempDir(), "weir.db")
	endpoint := "http://" + c.grpc
	if protocol != "grpc" {
		endpoint = "http://" + c.http
	}
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol}
	run := startWeir(t, env, "demo", "--for", "6s", "--qps", "50", "--db", db)
	for range 2 {
		c.await(t, 1)
		c.end(t, syscall.SIGKILL)
		c.start(t)
	}
	c.await(t, 1)
	c.end(t, syscall.SIGKILL)
	_, said := run.wait(t)
	if !strings.Contains(said, "wait for the collector at "+endpoint) {
		t.Errorf("at the end it was not said what waits:\n%s", said)
	}
	before, _ := weirRun(t, nil, "report", "--db", db, "--json")

	c.start(t)
	if status, _ := weirRun(t, nil, "export", "--status", "--db", db); waitingFor(t, status) == 0 {
		t.Errorf("nothing waits:\n%s", status)
	}
	weirRun(t, env, "export", "--otlp", "--since", "10m", "--db", db)
	if status, _ := weirRun(t, nil, "export", "--status", "--db", db); waitingFor(t, status) != 0 {
		t.Errorf("some still wait:\n%s", status)
	}
	c.end(t, syscall.SIGTERM)
	sameSpans(t, c.spans(t), db)
	if last := c.folders[len(c.folders)-1]; len(storedSpans(t, db)) != countSpans(t, last) {
		t.Errorf("%d spans are stored, and %d came when all were sent again", len(storedSpans(t, db)), countSpans(t, last))
	}

	after, _ := weirRun(t, nil, "report", "--db", db, "--json")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the report changed:\n%s", d)
	}
	var r struct {
		Lost  int `json:"lost_spans"`
		Total struct {
			Calls, OK int
			TTFT      struct {
				P50 float64 `json:"p50_ms"`
				P99 float64 `json:"p99_ms"`
			} `json:"ttft_felt"`
		} `json:"total"`
	}
	if err := json.Unmarshal([]byte(after), &r); err != nil {
		t.Fatal(err)
	}
	if n := len(storedSpans(t, db)); r.Lost != 0 || n != 2*r.Total.Calls || r.Total.Calls < 100 {
		t.Errorf("%d spans of %d calls, %d lost", n, r.Total.Calls, r.Lost)
	}
	t.Logf("ttft felt p50 %v ms, p99 %v ms of %d calls", r.Total.TTFT.P50, r.Total.TTFT.P99, r.Total.Calls)
}

func waitingFor(t *testing.T, status string) int {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(status), "\n")
	fields := strings.Split(rows[len(rows)-1], "\t")
	column := slices.Index(strings.Split(rows[0], "\t"), "waiting_spans")
	if len(rows) != 2 || column < 0 || column >= len(fields) {
		t.Fatalf("the status is\n%s", status)
	}
	n, err := strconv.Atoi(fields[column])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func countSpans(t *testing.T, folder string) int {
	t.Helper()
	ids := map[string]bool{}
	for s := range readSpans(t, filepath.Join(folder, "traces.jsonl")) {
		ids[s.SpanID] = true
	}
	return len(ids)
}

// weirRun runs weir with variables of its own.
func weirRun(t *testing.T, env []string, args ...string) (stdout, stderr string) {
	t.Helper()
	return startWeir(t, env, args...).wait(t)
}

// started is a weir that runs.
type started struct {
	*exec.Cmd
	out, err strings.Builder
}

func startWeir(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	home := t.TempDir()
	s := &started{Cmd: exec.Command("weir", args...)}
	s.Env = append(os.Environ(), append(env, "HOME="+home, "XDG_DATA_HOME="+home, "XDG_RUNTIME_DIR=", "GORACE=atexit_sleep_ms=0")...)
	s.Stdout, s.Stderr = &s.out, &s.err
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill() }) // it has mostly ended
	return s
}

// wait waits for its end. A run that the machine was too busy for is a run
// nonetheless.
func (s *started) wait(t *testing.T) (stdout, stderr string) {
	t.Helper()
	if err := s.Wait(); err != nil && s.ProcessState.ExitCode() != exitThreshold {
		t.Fatalf("%s: %v\n%s", strings.Join(s.Args, " "), err, s.err.String())
	}
	return s.out.String(), s.err.String()
}

// attributeOf says which attribute of a span holds a column of its row.
var attributeOf = map[string]string{
	"side": "weir.side", "run": "weir.run", "scenario": "weir.scenario", "scenario_from": "weir.scenario.from",
	"session": "gen_ai.conversation.id", "turn": "weir.turn", "warm_up": "weir.warm_up", "api": "weir.api",
	"operation": "gen_ai.operation.name", "provider": "gen_ai.provider.name", "upstream": "weir.upstream",
	"model": "gen_ai.request.model", "served_model": "gen_ai.response.model", "client": "weir.client.name",
	"key_fingerprint": "weir.key.fingerprint", "outcome": "weir.outcome", "no_first_token": "weir.no_first_token",
	"status": "http.response.status_code", "streamed": "weir.response.streamed",
	"input_tokens": "gen_ai.usage.input_tokens", "output_tokens": "gen_ai.usage.output_tokens",
	"cache_read_tokens": "gen_ai.usage.cache_read.input_tokens", "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
	"reasoning_tokens": "gen_ai.usage.reasoning.output_tokens", "usage_source": "weir.usage.source",
	"request_bytes": "http.request.body.size", "response_bytes": "http.response.body.size",
	"events": "weir.events", "token_events": "weir.events.token",
	"due_ns": "weir.instant.due_ns", "body_ns": "weir.instant.body_ns", "admitted_ns": "weir.instant.admitted_ns",
	"connected_ns": "weir.instant.connected_ns", "sent_ns": "weir.instant.sent_ns", "headers_ns": "weir.instant.headers_ns",
	"first_byte_ns": "weir.instant.first_byte.received_ns", "first_event_ns": "weir.instant.first_event.received_ns",
	"first_token_ns": "weir.instant.first_token.received_ns", "first_token_delivered_ns": "weir.instant.first_token.delivered_ns",
	"last_token_ns": "weir.instant.last_token.received_ns", "done_ns": "weir.instant.done_ns",
	"ttft_felt_ns": "weir.ttft.felt_ns", "ttft_upstream_ns": "weir.ttft.upstream_ns", "ttft_response_ns": "weir.ttft.response_ns",
	"tpot_ns": "weir.tpot_ns", "error_type": "error.type", "error_message": "weir.error.message",
}

// names are the columns that hold the id of a name, flags those that hold a truth.
var (
	nameColumns = strings.Fields("side run scenario scenario_from api operation provider upstream model served_model client key_fingerprint outcome no_first_token usage_source")
	flagColumns = strings.Fields("warm_up streamed")
)

// sameSpans fails unless the collector holds each span of the database, and no
// other, as its row has it.
func sameSpans(t *testing.T, got map[string][]landed, path string) {
	t.Helper()
	rows := storedSpans(t, path)
	if len(rows) == 0 {
		t.Fatal("SQLite holds no span")
	}
	differ := 0
	for id, want := range rows {
		versions := got[id]
		if len(versions) == 0 {
			t.Errorf("span %s did not come", id)
			continue
		}
		for _, s := range versions {
			if s.Kind != 3 || s.resource["service.name"] != "weir" {
				t.Errorf("span %s is of kind %d and of service %v", id, s.Kind, s.resource["service.name"])
			}
			if s.Flags&1 == 0 {
				t.Errorf("span %s is not sampled", id)
			}
			have := storedSpan{s.TraceID, s.ParentSpanID, s.TraceState, s.Name, s.Start, s.End, s.Status.Code == 2, s.Status.Message, map[string]any(s.Attributes), s.Events}
			if d := cmp.Diff(want, have); d != "" && differ < 3 {
				differ++
				t.Errorf("span %s, SQLite's (-) against the collector's (+):\n%s", id, d)
			}
		}
	}
	for id := range got {
		if _, ok := rows[id]; !ok {
			t.Errorf("the collector has span %s, which SQLite has not", id)
		}
	}
	t.Logf("%d spans", len(rows))
}

// countRows counts the rows of calls whose first token metrics measure: those
// that went well and were neither of a warm-up nor made worse on purpose.
func countRows(t *testing.T, path, side string) (n int64) {
	t.Helper()
	for _, s := range storedSpans(t, path) {
		a := s.Attributes
		if a["weir.side"] == side && a["weir.outcome"] == "ok" && a["weir.ttft.felt_ns"] != nil && a["weir.warm_up"] == nil && a["weir.impaired"] == nil {
			n++
		}
	}
	return n
}

// storedSpan is what a row says that its span must say.
type storedSpan struct {
	Trace, Parent, State, Name, Start, End string
	Failed                                 bool
	Message                                string
	Attributes                             map[string]any
	Events                                 []moment
}

// storedSpans reads the rows by themselves, and not by weir's own reader.
func storedSpans(t *testing.T, path string) map[string]storedSpan {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	columns := []string{"lower(hex(trace_id))", "lower(hex(span_id))", "lower(hex(coalesce(parent_span_id, x'')))", "start_ns", "coalesce(labels, '{}')", "timeline", "rest"}
	fixed := len(columns)
	var names []string
	for column := range attributeOf {
		names = append(names, column)
		columns = append(columns, column)
	}
	for _, column := range nameColumns {
		for i, c := range columns {
			if c == column {
				columns[i] = "(SELECT name FROM names WHERE id = " + column + ")"
			}
		}
	}
	rows, err := db.Query("SELECT " + strings.Join(columns, ", ") + " FROM spans")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]storedSpan{}
	for rows.Next() {
		var s storedSpan
		var id, labels, rest string
		var start int64
		var timeline []byte
		values := make([]any, len(names))
		into := []any{&s.Trace, &id, &s.Parent, &start, &labels, &timeline, &rest}
		for i := range values {
			into = append(into, &values[i])
		}
		if len(into) != fixed+len(names) {
			t.Fatal("columns and values differ in number")
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		s.Attributes = attributesOf(t, names, values, labels, rest)
		if len(timeline) > 0 {
			s.Attributes["weir.timeline"] = base64.RawStdEncoding.EncodeToString(timeline)
		}
		done, _ := s.Attributes["weir.instant.done_ns"].(int64)
		s.Start, s.End = fmt.Sprint(start), fmt.Sprint(start+done)
		s.Name = fmt.Sprint(s.Attributes["gen_ai.operation.name"], " ", s.Attributes["gen_ai.request.model"])
		if s.Failed = s.Attributes["weir.outcome"] != "ok"; s.Failed {
			s.Message, _ = s.Attributes["weir.error.message"].(string)
		}
		s.State, _ = s.Attributes["weir.trace_state"].(string)
		s.Events = derive(t, start, s.Attributes)
		all[id] = s
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func attributesOf(t *testing.T, columns []string, values []any, labels, rest string) map[string]any {
	t.Helper()
	attributes := map[string]any{}
	for i, column := range columns {
		v := values[i]
		for _, flag := range flagColumns {
			if column == flag && v != nil {
				v = v == int64(1)
			}
		}
		if v != nil {
			attributes[attributeOf[column]] = v
		}
	}
	var more, named map[string]any
	d := json.NewDecoder(strings.NewReader(rest))
	d.UseNumber()
	if err := d.Decode(&more); err != nil {
		t.Fatal(err)
	}
	for key, v := range more {
		if n, ok := v.(json.Number); ok {
			if v, _ = n.Float64(); !strings.Contains(n.String(), ".") {
				v, _ = n.Int64()
			}
		}
		attributes[key] = v
	}
	if err := json.Unmarshal([]byte(labels), &named); err != nil {
		t.Fatal(err)
	}
	for name, v := range named {
		attributes["weir.label."+name] = v
	}
	return attributes
}
