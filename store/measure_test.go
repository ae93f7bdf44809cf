package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"weir/store/call"
)

// streamed is a call of three events, of which two are tokens, 100 ms apart.
func streamed() *call.Call {
	c := example(1)
	c.Timeline = nil
	for _, e := range []struct{ us, what uint64 }{{20_000, 10 << 4}, {20_000, 10<<4 | 1}, {100_000, 10<<4 | 1}} {
		c.Timeline = binary.AppendUvarint(c.Timeline, e.us)
		c.Timeline = binary.AppendUvarint(c.Timeline, e.what)
	}
	c.Gaps = call.Gaps{N: 1, P50: 100 * time.Millisecond, P99: 100 * time.Millisecond, Longest: 100 * time.Millisecond}
	return c
}

// told are the metrics that a collector got of some calls.
func told(t *testing.T, protocol string, env map[string]string, profiles []string, calls func(tr *Tracing)) *gauger {
	t.Helper()
	g := &gauger{}
	all := map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": g.serve(t, protocol) + map[string]string{"http/protobuf": "/v1/metrics"}[protocol], "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": protocol}
	maps.Copy(all, env)
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	m, err := tr.NewMetrics(t.Context(), MetricsOptions{Env: setVariables(t, all), Profiles: profiles})
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	calls(tr)
	stop()
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// names are those of the metrics that begin so.
func (g *gauger) names(prefix string) []string {
	var names []string
	for name := range g.last {
		if strings.HasPrefix(name, prefix) {
			names = append(names, strings.TrimPrefix(name, prefix))
		}
	}
	slices.Sort(names)
	return names
}

// times are how many measurements a histogram has, and their sum.
func (g *gauger) times(name string) string {
	n, sum := uint64(0), 0.0
	for _, p := range g.last[name].GetHistogram().GetDataPoints() {
		n, sum = n+p.Count, sum+p.GetSum()
	}
	return fmt.Sprintf("%d: %.4g", n, sum)
}

func TestCollectorIsToldOfCallsByTheConventions(t *testing.T) {
	both := []string{
		"inference.duration", "inference.operation.input_tokens", "inference.operation.output_tokens", "inference.time_per_output_chunk", "inference.time_to_first_chunk",
		"inference.usage.cache_read.input_tokens", "inference.usage.input_tokens", "inference.usage.output_tokens",
		"operation.duration", "operation.time_per_output_chunk", "operation.time_to_first_chunk", "token.usage",
	}
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		for _, profiles := range [][]string{nil, {"1.41"}, {"0.1", "1.41"}} {
			t.Run(protocol+" "+strings.Join(profiles, ","), func(t *testing.T) {
				g := told(t, protocol, nil, profiles, func(tr *Tracing) { record(tr, context.Background(), streamed()) })
				want := both[:8]
				switch len(profiles) {
				case 1:
					want = both[8:]
				case 2:
					want = both
				}
				if diff := cmp.Diff(want, g.names("gen_ai.client.")); diff != "" {
					t.Error(diff)
				}
				if server := g.names("gen_ai.server."); len(server) > 0 {
					t.Errorf("weir is no model server, and tells of %v", server)
				}
			})
		}
	}
}

func TestFiguresOfCallsInMetrics(t *testing.T) {
	failed, impaired, warm, list, mine := streamed(), streamed(), streamed(), streamed(), streamed()
	failed.Outcome, failed.ErrorType, failed.Status = call.Overloaded, "overloaded_error", 529
	impaired.Impaired = []string{"first_token+800ms"}
	warm.WarmUp = true
	list.Operation = "models"
	mine.Side = call.Client
	var link string
	g := told(t, "grpc", nil, []string{"0.1", "1.41"}, func(tr *Tracing) {
		link = record(tr, context.Background(), streamed()).TraceID().String()
		for _, c := range []*call.Call{failed, impaired, warm, list} {
			record(tr, context.Background(), c)
		}
	})
	// A warm-up is in no figure.
	if diff := cmp.Diff(map[string]float64{"ok": 2, "overloaded": 1}, by(g.last["weir.calls"], "weir.outcome")); diff != "" {
		t.Error("outcomes:", diff)
	}
	// Latencies are of the one call that went well and is a measure.
	for name, want := range map[string]string{
		"gen_ai.client.inference.duration":               "2: 0.282", // failed ones too
		"gen_ai.client.operation.duration":               "2: 0.282",
		"gen_ai.client.inference.time_to_first_chunk":    "1: 0.0196",
		"gen_ai.client.inference.time_per_output_chunk":  "2: 0.12",
		"weir.ttft.felt":                                 "1: 0.0401",
		"weir.ttft.upstream":                             "1: 0.0396",
		"weir.tpot":                                      "1: 0.002",
		"weir.queue.duration":                            "1: 0.0001",
		"weir.stream.chunk_gap":                          "1: 0.1",
		"weir.overhead.duration":                         "1: 0.0002",
		"gen_ai.client.inference.operation.input_tokens": "4: 480", // what was used was used
	} {
		if got := g.times(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if diff := cmp.Diff(map[string]float64{"unknown": 480}, by(g.last["gen_ai.client.inference.usage.input_tokens"], "gen_ai.token.modality")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"input": 480, "output": 204}, by(g.last["gen_ai.client.token.usage"], "gen_ai.token.type")); diff != "" {
		t.Error(diff)
	}
	if g.last["gen_ai.client.inference.usage.reasoning.output_tokens"] != nil {
		t.Error("reasoning was not reported, and is told")
	}
	parts := by(g.last["weir.call.time"], "weir.part")
	if got := fmt.Sprintf("wait %.4g generate %.4g", parts["wait"], parts["generate"]); got != "wait 0.0396 generate 0.1" {
		t.Error(got)
	}
	for _, p := range g.last["gen_ai.client.inference.duration"].GetHistogram().GetDataPoints() {
		a := attributesText(p.Attributes)
		for _, required := range []string{"gen_ai.operation.name=chat", "gen_ai.provider.name=openai", "gen_ai.request.model=gpt-x", "server.address=127.0.0.1", "weir.scenario=short_chat", "weir.api=chat", "weir.upstream=sim", "weir.side=proxy"} {
			if !strings.Contains(a, required) {
				t.Errorf("%s is not in %s", required, a)
			}
		}
		if n := len(p.ExplicitBounds); n != 17 || p.ExplicitBounds[0] != 0.01 || p.ExplicitBounds[13] != 81.92 {
			t.Errorf("bounds %v", p.ExplicitBounds)
		}
	}
	if diff := cmp.Diff(map[string]float64{"": 1, "overloaded_error": 1}, by(g.last["gen_ai.client.inference.duration"], "error.type")); diff != "" {
		t.Error(diff)
	}
	if p := g.last["gen_ai.client.inference.operation.input_tokens"].GetHistogram().GetDataPoints()[0]; len(p.ExplicitBounds) != 14 || p.ExplicitBounds[13] != 67_108_864 {
		t.Errorf("bounds %v", p.ExplicitBounds)
	}
	exemplars := g.last["weir.ttft.felt"].GetHistogram().GetDataPoints()[0].Exemplars
	if len(exemplars) != 1 || fmt.Sprintf("%x", exemplars[0].TraceId) != link {
		t.Errorf("the exemplars %v do not lead to %s", exemplars, link)
	}

	g = told(t, "grpc", nil, nil, func(tr *Tracing) { record(tr, context.Background(), mine) })
	if diff := cmp.Diff(map[string]float64{"client": 1}, by(g.last["weir.ttft.felt"], "weir.side")); diff != "" {
		t.Error("the generator's calls:", diff)
	}
	if got := g.times("weir.overhead.duration"); got != "0: 0" {
		t.Errorf("the generator has an overhead of the proxy's: %s", got)
	}
}

// Failures are set against first tokens: those that weir made, and those of calls
// that could have none, must be told from the others.
func TestCallsThatAreNoMeasureAreToldFromOthers(t *testing.T) {
	failed := func(streamed bool, impaired ...string) *call.Call {
		c := example(1)
		c.Outcome, c.Status, c.Streamed, c.Request.Stream, c.Impaired = call.ServerError, 500, false, streamed, impaired
		return c
	}
	answered := streamed()
	answered.Request.Stream = false // yet a stream came
	spared := streamed()
	spared.Impaired = []string{call.NotApplied("cut@7", "status 200")}
	g := told(t, "grpc", nil, nil, func(tr *Tracing) {
		for _, c := range []*call.Call{failed(true), failed(true), failed(false), failed(true, "529"), answered, spared} {
			record(tr, context.Background(), c)
		}
	})
	got := map[string]float64{}
	for _, p := range g.last["weir.calls"].GetSum().GetDataPoints() {
		of := map[string]string{}
		for _, kv := range p.Attributes {
			of[kv.Key] = kv.Value.GetStringValue()
			if kv.Key == "weir.streamed" || kv.Key == "weir.impaired" {
				of[kv.Key] = fmt.Sprint(kv.Value.GetBoolValue())
			}
		}
		got[fmt.Sprintf("%s streamed=%s impaired=%s", of["weir.outcome"], of["weir.streamed"], of["weir.impaired"])] += float64(p.GetAsInt())
	}
	want := map[string]float64{
		"server_error streamed=true impaired=false": 2, "server_error streamed=false impaired=false": 1, "server_error streamed=true impaired=true": 1,
		"ok streamed=true impaired=false": 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := by(g.last["weir.ttft.felt"], "weir.scenario"); got["short_chat"] != 2 {
		t.Errorf("the call that nothing befell has no TTFT: %v", got)
	}
}

// by sums a metric by one attribute; a histogram's token counts are summed, and
// of durations the measurements are counted.
func by(m *metricspb.Metric, key string) map[string]float64 {
	sums := map[string]float64{}
	for _, p := range m.GetSum().GetDataPoints() {
		for _, kv := range p.Attributes {
			if kv.Key == key {
				sums[kv.Value.GetStringValue()] += p.GetAsDouble() + float64(p.GetAsInt())
			}
		}
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		value := ""
		for _, kv := range p.Attributes {
			if kv.Key == key {
				value = kv.Value.GetStringValue()
			}
		}
		if m.Unit == "s" {
			sums[value] += float64(p.Count)
		} else {
			sums[value] += p.GetSum()
		}
	}
	return sums
}

func TestHistogramsAreExponentialWhereAskedFor(t *testing.T) {
	g := told(t, "http/protobuf", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram"}, nil,
		func(tr *Tracing) { record(tr, context.Background(), streamed()) })
	if n := len(g.last["weir.ttft.felt"].GetExponentialHistogram().GetDataPoints()); n != 1 {
		t.Errorf("%d exponential points, want 1", n)
	}
}

// Whoever may call can name what does not exist.
func TestInventedNamesDoNotMakeMetricsGrow(t *testing.T) {
	g := told(t, "grpc", nil, nil, func(tr *Tracing) {
		for i := range 500 {
			c := streamed()
			c.Request.Model, c.Scenario = fmt.Sprint("invented-", i), fmt.Sprint("scenario-", i)
			c.Outcome, c.Status, c.ErrorType = call.ClientError, 404, fmt.Sprint("error-", i)
			record(tr, context.Background(), c)
		}
		for i := range 100 {
			c := streamed()
			c.Request.Model = fmt.Sprint("real-", i)
			record(tr, context.Background(), c)
		}
	})
	models := by(g.last["weir.calls"], "gen_ai.request.model")
	total := 0.0
	for _, n := range models {
		total += n
	}
	if len(models) != mostPlaces+1 || models["real-0"] != 1 || models["invented-0"] != 1 || models[other] != 500-mostPlaces/2+100-mostPlaces/2 || total != 600 {
		t.Errorf("%d models of %g calls, other %g", len(models), total, models[other])
	}
	if classes := by(g.last["gen_ai.client.inference.duration"], "error.type"); len(classes) != mostPlaces+2 || classes[otherErrors] != 450 {
		t.Errorf("%d classes, of which the others have %g", len(classes), classes[otherErrors])
	}

	// Names that are all known still make no more than so many series.
	l := newSeriesLabels()
	for model := range mostPlaces {
		for scenario := range mostPlaces {
			c := streamed()
			c.Request.Model, c.Scenario = fmt.Sprint(model), fmt.Sprint(scenario)
			l.of(c.Series(), true)
		}
	}
	if n := len(l.each(func(*series) {})); n != mostSeries+1 {
		t.Errorf("%d series, want %d and the one of all others", n, mostSeries)
	}
}

func TestCallsInFlightInMetrics(t *testing.T) {
	g := told(t, "grpc", nil, nil, func(tr *Tracing) {
		record(tr, context.Background(), streamed())
		c := streamed()
		c.Scenario = "agent"
		c.Begin(context.Background(), tr.Provider.Tracer("weir"))
	})
	if diff := cmp.Diff(map[string]float64{"short_chat": 0, "agent": 1}, by(g.last["weir.calls.in_flight"], "weir.scenario")); diff != "" {
		t.Error(diff)
	}
	if lost := g.last["weir.spans.lost"].GetSum().GetDataPoints(); len(lost) != 1 || lost[0].GetAsInt() != 0 {
		t.Errorf("spans lost: %v", lost)
	}
}

// While the traces' collector is ill, and when it is well again.
func TestSendingInMetrics(t *testing.T) {
	c := &collector{ill: true}
	url, _ := listenOn(t, c, "127.0.0.1:0")
	_, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), setEnv(t, url))
	m, err := tr.NewMetrics(t.Context(), MetricsOptions{Scraped: true})
	if err != nil {
		t.Fatal(err)
	}
	scraped := func() map[string]string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		figures := map[string]string{}
		for line := range strings.Lines(w.Body.String()) {
			if name, figure, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "weir_otlp_") {
				figures[strings.TrimPrefix(name, "weir_otlp_")] = figure
			}
		}
		return figures
	}
	for range 3 {
		record(tr, context.Background(), streamed())
	}
	await(t, "a refusal", func() bool { f := scraped(); return f["spans_waiting"] == "3" && f["attempts_failed_total"] != "0" })
	if sent := scraped()["spans_sent_total"]; sent != "0" {
		t.Errorf("%s spans were sent to a collector that takes none", sent)
	}
	c.mu.Lock()
	c.ill = false
	c.mu.Unlock()
	await(t, "the spans to come", func() bool { f := scraped(); return f["spans_waiting"] == "0" && f["spans_sent_total"] == "3" })
	stop()
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkMeasure(b *testing.B) {
	_, tr, stop := tracing(b, filepath.Join(b.TempDir(), "weir.db"), nil)
	defer stop()
	m, err := tr.NewMetrics(b.Context(), MetricsOptions{Scraped: true})
	if err != nil {
		b.Fatal(err)
	}
	c := streamed()
	for len(c.Timeline) < 4*200 { // some 200 events
		c.Timeline = append(c.Timeline, c.Timeline[len(c.Timeline)-5:]...)
	}
	sc := record(tr, context.Background(), streamed())
	for b.Loop() {
		m.calls.record(c, sc)
	}
	b.ReportMetric(float64(c.Timeline.Len()), "events/op")
}
