package store

import (
	"context"
	"fmt"
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
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"weir/store/call"
)

// gauger is an OTLP receiver of metrics, by HTTP and gRPC; it passes over spans.
type gauger struct {
	colmetricspb.UnimplementedMetricsServiceServer
	mu   sync.Mutex
	last map[string]*metricspb.Metric
	came int
}

func (g *gauger) take(req *colmetricspb.ExportMetricsServiceRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came++
	g.last = map[string]*metricspb.Metric{}
	for _, rm := range req.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				g.last[m.Name] = m
			}
		}
	}
}

func (g *gauger) Export(_ context.Context, req *colmetricspb.ExportMetricsServiceRequest) (*colmetricspb.ExportMetricsServiceResponse, error) {
	g.take(req)
	return &colmetricspb.ExportMetricsServiceResponse{}, nil
}

func (g *gauger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req colmetricspb.ExportMetricsServiceRequest
	if err != nil || r.URL.Path == "/v1/metrics" && proto.Unmarshal(body, &req) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	if r.URL.Path == "/v1/metrics" {
		g.take(&req)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// serve receives at an address of the loopback, by one of the protocols.
func (g *gauger) serve(t *testing.T, protocol string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var stop func()
	if protocol == "grpc" {
		s := grpc.NewServer()
		colmetricspb.RegisterMetricsServiceServer(s, g)
		stop = s.Stop
		go func() { _ = s.Serve(l); close(done) }()
	} else {
		s := &http.Server{Handler: g}
		stop = func() { s.Close() }
		go func() { _ = s.Serve(l); close(done) }()
	}
	t.Cleanup(func() { stop(); <-done })
	return "http://" + l.Addr().String()
}

// figures are the values of a metric by their attributes.
func (g *gauger) figures(name string) map[string]float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.last[name]
	values := map[string]float64{}
	for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
		values[attributesText(p.Attributes)] = p.GetAsDouble() + float64(p.GetAsInt())
	}
	return values
}

func attributesText(list []*commonpb.KeyValue) string {
	var words []string
	for _, kv := range list {
		words = append(words, kv.Key+"="+kv.Value.GetStringValue())
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// setVariables sets what the exporters read themselves, and gives it.
func setVariables(t *testing.T, env map[string]string) func(string) (string, bool) {
	for name, v := range env {
		t.Setenv(name, v)
	}
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// waitedIn is a proxy's call that waited in a lane.
func waitedIn(lane string, wait time.Duration) *call.Call {
	c := example(1)
	c.Side, c.Lane = call.Proxy, lane
	c.Body = c.Arrived
	c.Admitted = c.Arrived + call.Instant(wait)
	return c
}

func TestCollectorIsToldOfLanes(t *testing.T) {
	limit, left := 8, -120.5
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			g := &gauger{}
			env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": g.serve(t, protocol) + map[string]string{"http/protobuf": "/v1/metrics"}[protocol], "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": protocol})
			_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
			lanes := []Lane{
				{Name: "all", Waiting: 3, InFlight: 8, MostInFlight: &limit, Admitted: 40, Refused: 2, EndpointRefused: 1, Held: 1500 * time.Millisecond, TokensLeft: &left},
				{Name: "scenario=rag"},
			}
			m, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: env, Lanes: func() []Lane { return lanes }})
			if err != nil || m == nil {
				t.Fatal(m, err)
			}
			for _, wait := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 700 * time.Second} {
				record(tr, context.Background(), waitedIn("all", wait))
			}
			record(tr, context.Background(), example(2)) // in no lane
			stop()
			if err := m.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]map[string]float64{
				"weir.lane.waiting":         {"weir.lane=all": 3, "weir.lane=scenario=rag": 0},
				"weir.lane.in_flight":       {"weir.lane=all": 8, "weir.lane=scenario=rag": 0},
				"weir.lane.in_flight.limit": {"weir.lane=all": 8},
				"weir.lane.admitted":        {"weir.lane=all": 40, "weir.lane=scenario=rag": 0},
				"weir.lane.refused": {"weir.lane=all,weir.refused.by=weir": 2, "weir.lane=all,weir.refused.by=endpoint": 1,
					"weir.lane=scenario=rag,weir.refused.by=weir": 0, "weir.lane=scenario=rag,weir.refused.by=endpoint": 0},
				"weir.lane.held":        {"weir.lane=all": 1.5, "weir.lane=scenario=rag": 0},
				"weir.lane.tokens_left": {"weir.lane=all": -120.5},
			} {
				if diff := cmp.Diff(want, g.figures(name)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			points := g.last["weir.lane.queue.duration"].GetHistogram().GetDataPoints()
			if len(points) != 1 {
				t.Fatalf("%d lanes have queue times, want 1", len(points))
			}
			bounds, counts := points[0].ExplicitBounds, points[0].BucketCounts
			if len(bounds) != 17 || bounds[0] != 0.01 || bounds[16] != 655.36 {
				t.Errorf("the buckets end at %v", bounds)
			}
			if want := []uint64{2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}; !slices.Equal(counts, want) {
				t.Errorf("queue times are in the buckets %v, want %v", counts, want)
			}
		})
	}
}

func TestVariablesThatKeepMetricsAtHome(t *testing.T) {
	_, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for _, env := range []map[string]string{
		{}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"},
	} {
		m, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
		if m != nil || err != nil {
			t.Errorf("%v: metrics would be sent (%v)", env, err)
		}
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: func(name string) (string, bool) {
		v, ok := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}[name]
		return v, ok
	}})
	if err == nil || !strings.Contains(err.Error(), "want grpc or http/protobuf") {
		t.Errorf("an unknown protocol: %v", err)
	}
}

// A collector that takes the request and never answers holds up neither the
// calls nor, for long, the end.
func TestACollectorThatIsSilentHoldsNothingUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	env := setVariables(t, map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://" + l.Addr().String(), "OTEL_METRIC_EXPORT_INTERVAL": "1"})
	_, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	asked := make(chan struct{}, 1)
	m, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: env, Lanes: func() []Lane {
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-asked // it is on its way to the collector
	for i := range 100 {
		record(tr, context.Background(), waitedIn(fmt.Sprint("lane ", i), time.Second))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Shutdown(ctx); err == nil {
		t.Error("the end does not say that nothing was taken")
	}
}

func TestLanesInMetricsAreBoundedAndCountersNeverFall(t *testing.T) {
	var n laneLabels
	total := func(lanes []Lane) (names int, admitted int64, other Lane) {
		for _, l := range n.sum(lanes) {
			names++
			admitted += l.Admitted
			if l.Name == otherLanes {
				other = l
			}
		}
		return names, admitted, other
	}
	var lanes []Lane
	one := 1
	for i := range 150 {
		lanes = append(lanes, Lane{Name: fmt.Sprint("key=", i), Admitted: 10, Waiting: 1, MostInFlight: &one, Held: time.Duration(i)})
	}
	names, admitted, other := total(lanes)
	if names != mostLanes+1 || admitted != 1500 || other.Waiting != 50 || other.Admitted != 500 || other.MostInFlight != nil || other.Held != 149 {
		t.Errorf("%d lanes with %d admitted, of which the others %+v", names, admitted, other)
	}
	// All go but one, which has done more, and one comes back from nothing.
	_, admitted, other = total([]Lane{{Name: "key=149", Admitted: 12}})
	if admitted != 1502 || other.Admitted != 502 || other.Waiting != 0 {
		t.Errorf("%d admitted, of which the others %+v", admitted, other)
	}
	if _, admitted, other = total([]Lane{{Name: "key=149", Admitted: 13}, {Name: "key=120", Admitted: 4}}); admitted != 1507 || other.Admitted != 507 {
		t.Errorf("%d admitted, of which the others %+v", admitted, other)
	}
	if n.of("key=3") != "key=3" || n.of("key=new") != otherLanes {
		t.Error("names changed their labels")
	}
}
