package store

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"go.opentelemetry.io/otel/trace"
)

// collector is an OTLP receiver that can be ill.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	ill   bool
	seen  int

	largest int // message, in bytes

	instances []string // each time that spans came, of whom
	resources []string // likewise, whose

	// answer, unless it is nil, says with what spans are answered; those of an
	// answer that is no 200 were not taken.
	answer func(spans []*tracepb.Span, size int) (status int, body []byte)
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req coltracepb.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &req) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	c.largest = max(c.largest, len(body))
	if c.ill {
		http.Error(w, "ill", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if c.answer != nil {
		var spans []*tracepb.Span
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
		status, text := c.answer(spans, len(body))
		if status != 200 {
			http.Error(w, string(text), status)
			return
		}
		defer func() { _, _ = w.Write(text) }()
	}
	for _, rs := range req.ResourceSpans {
		c.resources = append(c.resources, attributesText(rs.Resource.Attributes))
		for _, kv := range rs.Resource.Attributes {
			if kv.Key == "service.instance.id" {
				c.instances = append(c.instances, kv.Value.GetStringValue())
			}
		}
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

func (c *collector) ids() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[string]int{}
	for _, s := range c.spans {
		ids[string(s.SpanId)]++
	}
	return ids
}

func listenOn(t *testing.T, c *collector, address string) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: c}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	stop = func() { s.Close(); <-done }
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}

func setEnv(t *testing.T, url string) map[string]string {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}

func TestCollectorGetsEverySpanOnce(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	for i := range 1200 {
		record(tr, context.Background(), example(i))
	}
	stop()
	ids := c.ids()
	for id, n := range ids {
		if n != 1 {
			t.Fatalf("span %x came %d times", id, n)
		}
	}
	if len(ids) != 1200 || tr.Outbox.Sent() != 1200 {
		t.Errorf("%d spans came, %d sent", len(ids), tr.Outbox.Sent())
	}
	s := c.spans[0]
	if s.Name != "chat gpt-x" || s.Kind != tracepb.Span_SPAN_KIND_CLIENT || s.EndTimeUnixNano-s.StartTimeUnixNano != 141_000_000 {
		t.Errorf("the span is %v", s)
	}
}

func TestCollectorThatIsDownLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	c := &collector{}
	url, stopCollector := listenOn(t, c, "127.0.0.1:0")
	stopCollector()
	env := setEnv(t, url)
	db, tr, stop := tracing(t, path, env)
	for i := range 50 {
		record(tr, context.Background(), example(i))
	}
	await(t, "the outbox to fail", func() bool { return tr.Outbox.Failed() > 0 })
	if n := len(all(t, db, "all")); n != 50 {
		t.Errorf("%d calls in the database, want 50", n)
	}
	if n, err := tr.Outbox.Waiting(context.Background()); n != 50 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	stop()

	// The next process finds the collector well, and sends what the first one
	// could not.
	listenOn(t, c, url[len("http://"):])
	_, tr2, stop2 := tracing(t, path, env)
	record(tr2, context.Background(), example(99))
	await(t, "all spans to come", func() bool { return len(c.ids()) == 51 })
	stop2()
	slices.Sort(c.instances)
	if who := slices.Compact(c.instances); len(who) != 2 || who[0] == "" {
		t.Errorf("spans of two processes came as those of %q", who)
	}
}

func TestIllCollectorIsTriedAgain(t *testing.T) {
	c := &collector{ill: true}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	record(tr, context.Background(), example(0))
	await(t, "a refusal", func() bool { return tr.Outbox.Failed() > 0 })
	c.mu.Lock()
	c.ill = false
	c.mu.Unlock()
	await(t, "the span to come", func() bool { return len(c.ids()) == 1 })
	stop()
}

// What a waterfall shows: the caller's trace goes on, with its state, and the
// parts of the call are events.
func TestSpanGoesOnInItsTraceAndShowsItsParts(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	state, err := trace.ParseTraceState("a=b,c=d")
	if err != nil {
		t.Fatal(err)
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	record(tr, trace.ContextWithRemoteSpanContext(context.Background(), parent), example(0))
	stop()
	s := c.spans[0]
	if s.TraceState != "a=b,c=d" || s.TraceId[0] != 1 || s.ParentSpanId[0] != 2 || all(t, db, "all")[0].TraceState != "a=b,c=d" {
		t.Errorf("the span is %v", s)
	}
	got := map[string]uint64{}
	for _, e := range s.Events {
		got[e.Name] = e.TimeUnixNano - s.StartTimeUnixNano
	}
	want := map[string]uint64{"weir.queue": 100_000, "weir.connect": 200_000, "weir.send": 300_000, "weir.wait": 400_000, "weir.first_token": 40_000_000, "weir.last_token": 140_000_000}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the events:\n%s", d)
	}
}

func TestUnsampledCallsAreNotSent(t *testing.T) {
	c := &collector{}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true})
	record(tr, trace.ContextWithRemoteSpanContext(context.Background(), parent), example(0))
	record(tr, context.Background(), example(1))
	stop()
	if n := len(all(t, db, "all")); n != 2 || len(c.ids()) != 1 {
		t.Errorf("%d recorded and %d sent, want 2 and 1", n, len(c.ids()))
	}
}

func TestVariablesThatKeepSpansAtHome(t *testing.T) {
	for _, env := range []map[string]string{
		{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"},
	} {
		_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), env)
		if tr.Outbox != nil {
			t.Errorf("%v: spans would be sent", env)
		}
		record(tr, context.Background(), example(0))
		stop()
		if tr.Recorder.Written() != 1 {
			t.Errorf("%v: %d written, want 1", env, tr.Recorder.Written())
		}
	}
}

// Nothing is sent to anywhere else when it is unclear where to.
func TestVariablesThatSayNoPlaceAreRefused(t *testing.T) {
	for _, row := range []struct{ name, endpoint, protocol, want string }{
		{"an unknown protocol", "http://x", "http/json", "want grpc or http/protobuf"},
		{"an address", "127.0.0.1:4317", "grpc", "for traces: want a URL, as http://127.0.0.1:4318"},
		{"a name and a port", "localhost:4318", "", "want a URL"},
		{"an address with a password", "me:secret@collector:4318", "", "want a URL"},
		{"a path", "/v1/traces", "", "want a URL"},
		{"no host", "http:///v1/traces", "", "want a URL"},
	} {
		db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
		_, err := NewTracing(context.Background(), db, TracingOptions{Env: func(n string) (string, bool) {
			v := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": row.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": row.protocol}[n]
			return v, v != ""
		}})
		if err == nil || !contains(err.Error(), row.want) || contains(err.Error(), "secret") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// Many processes leave many spans, and these are asked after each batch.
func TestSendingReadsNoSpansButItsOwn(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	for _, query := range []string{countWaiting, writersToSend, deliveries, selectSpan + " WHERE s.id > 1 AND s.writer = 1 ORDER BY s.id LIMIT 10"} {
		asked := 0
		for _, step := range steps(t, db, query) {
			if words := strings.Fields(step); len(words) > 1 && words[1] == "s" {
				asked++
				if !strings.Contains(step, "INDEX spans_writer (writer=?") {
					t.Errorf("%s\nreads other spans: %s", query, step)
				}
			}
		}
		if asked == 0 {
			t.Errorf("%s: no step looks at spans", query)
		}
	}
}

// steps are how SQLite finds what a query asks.
func steps(t *testing.T, db *DB, query string) (all []string) {
	t.Helper()
	rows, err := db.read.Query("EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		all = append(all, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
