package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"weir/store/call"
)

// loggee is an OTLP receiver of logs.
type loggee struct {
	collogspb.UnimplementedLogsServiceServer
	got chan *logspb.LogRecord
}

func (g *loggee) Export(_ context.Context, req *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	for _, r := range req.ResourceLogs {
		for _, s := range r.ScopeLogs {
			for _, record := range s.LogRecords {
				g.got <- record
			}
		}
	}
	return &collogspb.ExportLogsServiceResponse{}, nil
}

func (g *loggee) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var req collogspb.ExportLogsServiceRequest
	if r.URL.Path == "/v1/logs" && proto.Unmarshal(b, &req) == nil {
		_, _ = g.Export(r.Context(), &req)
	}
}

func TestCollectorGetsTheLogWithTheCallThatIsMeant(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			g := &loggee{got: make(chan *logspb.LogRecord, 8)}
			url := ""
			if protocol == "grpc" {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				s := grpc.NewServer()
				collogspb.RegisterLogsServiceServer(s, g)
				served := make(chan struct{})
				go func() { _ = s.Serve(l); close(served) }()
				t.Cleanup(func() { s.Stop(); <-served })
				url = "http://" + l.Addr().String()
			} else {
				s := httptest.NewServer(g)
				t.Cleanup(s.Close)
				url = s.URL
			}
			env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
			_, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
			logs, err := tr.NewLogs(t.Context(), TracingOptions{Env: env})
			if err != nil {
				t.Fatal(err)
			}
			sc := record(tr, context.Background(), example(1))
			slog.New(logs.Handler).ErrorContext(trace.ContextWithSpanContext(t.Context(), sc), "weir cannot measure a stream", "api", "chat")
			if err := logs.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			var r *logspb.LogRecord
			select {
			case r = <-g.got:
			default: // what was ended has sent all
				t.Fatal("the collector got nothing")
			}
			if r.Body.GetStringValue() != "weir cannot measure a stream" || [16]byte(r.TraceId) != sc.TraceID() || [8]byte(r.SpanId) != sc.SpanID() || attributesText(r.Attributes) != "api=chat" {
				t.Errorf("the collector got %v", r)
			}
		})
	}
}

func TestACollectorThatIsDownIsToldOfOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://" + l.Addr().String() + "/v1/logs", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE": "1"})
	_, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	var said strings.Builder
	logs, err := tr.NewLogs(t.Context(), TracingOptions{Env: env, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		slog.New(logs.Handler).Error("something")
	}
	if err := logs.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "the collector does not take the log"); n != 1 {
		t.Errorf("told %d times: %s", n, &said)
	}
	for _, quiet := range []map[string]string{{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_LOGS_EXPORTER": "none"}} {
		logs, err := tr.NewLogs(t.Context(), TracingOptions{Env: func(name string) (string, bool) { v, ok := quiet[name]; return v, ok }})
		if logs != nil || err != nil || logs.Shutdown(t.Context()) != nil {
			t.Errorf("%v: the log would be sent", quiet)
		}
	}
}

// What a call is logged with has types of its own, and what a client named.
func TestAttributesOfTheLogArePlain(t *testing.T) {
	g := &loggee{got: make(chan *logspb.LogRecord, 8)}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL})
	_, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	logs, err := tr.NewLogs(t.Context(), TracingOptions{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	slog.New(logs.Handler).With("session", "s\xff").WithGroup("g").Info("odd \xfe byte", "outcome", call.OK, "model", "", "served", "gpt-\xff\xfe",
		"none", nil, "error", errors.New("broken \xff"), "took", time.Second, slog.Group("in", "api", call.Outcome("chat"), "empty", ""), "long", strings.Repeat("x", 1<<20))
	if err := logs.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := <-g.got
	var told []string
	var tell func(prefix string, list []*commonpb.KeyValue)
	tell = func(prefix string, list []*commonpb.KeyValue) {
		for _, kv := range list {
			if group := kv.Value.GetKvlistValue(); group != nil {
				tell(prefix+kv.Key+".", group.Values)
				continue
			}
			text := kv.Value.GetStringValue()
			if n := kv.Value.GetIntValue(); n != 0 {
				text = fmt.Sprint(n)
			}
			if len(text) > 100 {
				text = fmt.Sprint(len(text), " bytes")
			}
			told = append(told, prefix+kv.Key+"="+text)
		}
	}
	tell("", r.Attributes)
	want := []string{"session=s\uFFFD", "g.outcome=ok", "g.served=gpt-\uFFFD", "g.error=broken \uFFFD", "g.took=1000000000", "g.in.api=chat", "g.long=4096 bytes"}
	slices.Sort(told)
	slices.Sort(want)
	if diff := cmp.Diff(want, told); diff != "" || r.Body.GetStringValue() != "odd \uFFFD byte" {
		t.Errorf("%q: %s", r.Body.GetStringValue(), diff)
	}
}
