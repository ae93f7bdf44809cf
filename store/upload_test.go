package store

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// delivery is how a database stands with its only collector.
func delivery(t *testing.T, db *DB) Delivery {
	t.Helper()
	all, err := db.Deliveries(context.Background())
	if err != nil || len(all) != 1 {
		t.Fatalf("deliveries %+v, %v", all, err)
	}
	return all[0]
}

func TestSpansThatACollectorRejectsAreNotCountedAsSent(t *testing.T) {
	answer, err := proto.Marshal(&coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too\x1b[31m old"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{answer: func([]*tracepb.Span, int) (int, []byte) { return 200, answer }}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "weir.db")
	env := setEnv(t, url)
	db, tr, _ := tracing(t, path, nil) // sends nothing yet
	for i := range 3 {
		record(tr, context.Background(), example(i))
	}
	if err := tr.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.write.Exec("INSERT INTO export_cursor (target, writer, last_id) VALUES (?, 1, 0)", url); err != nil {
		t.Fatal(err)
	}
	sent, err := Resend(context.Background(), db, nil, ResendOptions{TracingOptions: TracingOptions{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}})
	if err != nil || sent.Sent != 1 || sent.Rejected != 2 || sent.Rejection != "partial success: too [31m old" {
		t.Errorf("%+v, %v", sent, err)
	}
	if d := delivery(t, db); d.Sent != 1 || d.Rejected != 2 || d.Waiting != 0 || d.Rejection != sent.Rejection {
		t.Errorf("%+v", d)
	}
	if c.seen != 1 {
		t.Errorf("the collector was asked %d times", c.seen)
	}
}

// One span that no collector takes does not stand before all others.
func TestASpanThatIsRefusedForGoodIsPassedOver(t *testing.T) {
	poisoned := func(spans []*tracepb.Span) bool {
		for _, s := range spans {
			if strings.Contains(s.Name, "poison") {
				return true
			}
		}
		return false
	}
	for name, answer := range map[string]func([]*tracepb.Span, int) (int, []byte){
		"400 for one of them": func(spans []*tracepb.Span, _ int) (int, []byte) {
			if poisoned(spans) {
				return 400, []byte("bad span")
			}
			return 200, nil
		},
		"413, of more than 40 kB": func(_ []*tracepb.Span, size int) (int, []byte) {
			if size > 40_000 {
				return 413, []byte("too large")
			}
			return 200, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &collector{ill: true, answer: answer}
			url, _ := listenOn(t, c, "127.0.0.1:0")
			db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
			m, err := tr.NewMetrics(t.Context(), MetricsOptions{Scraped: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				one := example(i)
				if i == 17 {
					one.Request.Model, one.ErrorBody = "poison", strings.Repeat("x", 60_000)
				}
				record(tr, context.Background(), one)
			}
			await(t, "a refusal", func() bool { return tr.Outbox.Failed() > 0 })
			c.mu.Lock()
			c.ill = false
			c.mu.Unlock()
			await(t, "the others to come", func() bool { return len(c.ids()) == 99 && tr.Outbox.Rejected() == 1 })
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			if !strings.Contains(w.Body.String(), "\nweir_otlp_spans_rejected_total 1\n") {
				t.Error("the metrics do not tell of the rejected span")
			}
			stop()
			for id, n := range c.ids() {
				if n != 1 {
					t.Errorf("span %x came %d times", id, n)
				}
			}
			d := delivery(t, db)
			if d.Sent != 99 || d.Rejected != 1 || d.Waiting != 0 || tr.Outbox.Rejected() != 1 || tr.Outbox.Sent() != 99 {
				t.Errorf("%+v, rejected %d", d, tr.Outbox.Rejected())
			}
			if !strings.Contains(d.Rejection, " of trace ") || !strings.Contains(d.Rejection, ": 4") {
				t.Errorf("it was rejected, since %q", d.Rejection)
			}
		})
	}
}

// What refuses everything is no collector, and all is kept for one.
func TestWhatTakesNothingRejectsNoSpan(t *testing.T) {
	c := &collector{answer: func([]*tracepb.Span, int) (int, []byte) { return 400, []byte("plain HTTP was sent to an HTTPS port") }}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	for i := range 5 {
		record(tr, context.Background(), example(i))
	}
	await(t, "a refusal", func() bool { return tr.Outbox.Failed() > 0 })
	stop()
	if d := delivery(t, db); d.Sent != 0 || d.Rejected != 0 || d.Waiting != 5 || !strings.Contains(d.Err, "HTTPS port") {
		t.Errorf("%+v", d)
	}
}

type grpcCollector struct {
	coltracepb.UnimplementedTraceServiceServer
	took atomic.Int64
}

func (g *grpcCollector) Export(_ context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	n := 0
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			n += len(ss.Spans)
			for _, s := range ss.Spans {
				if strings.Contains(s.Name, "large") {
					return nil, status.Error(codes.ResourceExhausted, "grpc: received message larger than max (6002850 vs. 4194304)")
				}
				if strings.Contains(s.Name, "poison") {
					return nil, status.Error(codes.InvalidArgument, "bad span")
				}
			}
		}
	}
	g.took.Add(int64(n))
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func TestASpanThatIsRefusedForGoodByGRPCIsPassedOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, s := &grpcCollector{}, grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(s, g)
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	t.Cleanup(func() { s.Stop(); <-done })
	env := setEnv(t, "http://"+l.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	env["OTEL_EXPORTER_OTLP_PROTOCOL"] = "grpc"
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), env)
	for i, model := range []string{"poison", "a", "large", "b", "c"} {
		one := example(i)
		one.Request.Model = model
		record(tr, context.Background(), one)
	}
	await(t, "the others to come", func() bool { return g.took.Load() == 3 })
	stop()
	if tr.Outbox.Rejected() != 2 || tr.Outbox.Sent() != 3 {
		t.Errorf("%d rejected, %d sent", tr.Outbox.Rejected(), tr.Outbox.Sent())
	}
}

// What a collector answers may be a page, with what it was sent.
func TestAnswersOfCollectorsAreTidied(t *testing.T) {
	page := "<html>\n\x1b[31mred " + strings.Repeat("X", 200_000) + " token=Bearer sk-ant-REDACTED0123456789"
	c := &collector{answer: func([]*tracepb.Span, int) (int, []byte) { return 500, []byte("SECRETVALUE1 SECRET VALUE2 " + page) }}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": strings.Replace(url, "http://", "http://me:PASSWORD@", 1) + "/?api-key=QUERYSECRET", "OTEL_EXPORTER_OTLP_HEADERS": "x-a=SECRETVALUE1,x-b=SECRET%20VALUE2"})
	path := filepath.Join(t.TempDir(), "weir.db")
	named := map[string]string{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"} {
		named[name], _ = env(name)
	}
	db, tr, stop := tracing(t, path, named)
	record(tr, context.Background(), example(1))
	await(t, "a refusal", func() bool { return tr.Outbox.Failed() > 0 && tr.Outbox.Err() != nil })
	told := tr.Outbox.Err().Error()
	stop()
	d := delivery(t, db)
	for _, text := range []string{told, d.Err, d.Target} {
		if len(text) > tellAnswer || strings.ContainsAny(text, "\x1b\n") || strings.Contains(text, "SECRET") || strings.Contains(text, "PASSWORD") {
			t.Errorf("told: %.500q", text)
		}
	}
	if !strings.Contains(told, "500 Internal Server Error") || !strings.HasSuffix(told, "…") || d.Target != url {
		t.Errorf("told of %s: %q", d.Target, told)
	}
}

func TestAProtocolThatIsNotSpokenIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	t.Cleanup(func() { s.Stop(); <-done })
	http, _ := listenOn(t, &collector{}, "127.0.0.1:0")
	for _, row := range []struct{ url, protocol, want string }{
		{"http://" + l.Addr().String(), "http/protobuf", "set OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{http, "grpc", "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"},
	} {
		t.Run(row.protocol, func(t *testing.T) {
			env := setEnv(t, row.url)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", row.protocol)
			env["OTEL_EXPORTER_OTLP_PROTOCOL"] = row.protocol
			_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), env)
			record(tr, context.Background(), example(1))
			await(t, "a refusal", func() bool { return tr.Outbox.Failed() > 0 })
			stop()
			if got := fmt.Sprint(tr.Outbox.Err()); !strings.Contains(got, row.want) {
				t.Errorf("%s", got)
			}
		})
	}
}
