package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"weir/store/call"
)

// Lane is how things stand in one of the shaper's lanes.
type Lane struct {
	Name            string
	Waiting         int
	InFlight        int
	MostInFlight    *int  // nil: no limit
	Admitted        int64 // so far, as are the two below
	Refused         int64 // by weir
	EndpointRefused int64
	Held            time.Duration // from now; 0: it is not held
	TokensLeft      *float64      // below 0 a debt; nil: no budget of tokens
}

// Metrics tell of calls, of the lanes and of weir itself, by OpenTelemetry: a
// collector, each minute or as OTEL_METRIC_EXPORT_INTERVAL says and once more at
// the end, and whoever scrapes Handler. A collector that is down misses what
// was; nothing waits for it.
type Metrics struct {
	provider *sdkmetric.MeterProvider
	exporter *quietExporter // nil: no collector
	handler  http.Handler   // nil: nobody scrapes
	calls    *callMetrics
	queue    metric.Float64Histogram
	labels   laneLabels
}

// MetricsOptions say of what is told, and to whom.
type MetricsOptions struct {
	Env func(name string) (string, bool) // of the process; nil: empty
	Log *slog.Logger                     // told what the collector refuses; nil: nobody is
	// Lanes gives the lanes' state whenever it is told; nil: there are none.
	Lanes func() []Lane
	// Profiles are the GenAI conventions by which calls are told of; nil is the
	// first of GenAIProfiles.
	Profiles []string
	// Scraped has the metrics served by Handler too. NativeHistograms gives those
	// that Prometheus has of its own, to one that asks for them; all others see
	// no buckets then.
	Scraped, NativeHistograms bool
}

// mostLanes is how many lanes have a name of their own in the metrics; all
// others together are otherLanes.
const (
	mostLanes  = 100
	otherLanes = other
)

// metricsEndFor is how long the end of a command may be held up for the last
// figures.
const metricsEndFor = 2 * time.Second

const (
	keyLane      = "weir.lane"
	keyRefusedBy = "weir.refused.by"
)

// NewMetrics begins to tell the collector that the OTEL_ variables name, and
// whoever scrapes. It is nil where they name none and nobody does;
// OTEL_METRICS_EXPORTER=none or OTEL_SDK_DISABLED keep it from being sent.
func (t *Tracing) NewMetrics(ctx context.Context, o MetricsOptions) (*Metrics, error) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Lanes == nil {
		o.Lanes = func() []Lane { return nil }
	}
	if o.Profiles == nil {
		o.Profiles = GenAIProfiles[:1]
	}
	m := &Metrics{}
	filter, _ := o.Env("OTEL_METRICS_EXEMPLAR_FILTER")
	made := &histograms{untraced: filter == "always_off"}
	options := []sdkmetric.Option{sdkmetric.WithResource(t.resource), sdkmetric.WithCardinalityLimit(mostPoints)}
	at, err := otlpEndpoint(o.Env, "METRICS")
	if err != nil || at == nil && !o.Scraped {
		return nil, err
	}
	if at != nil {
		exporter, err := newMetricExporter(ctx, at)
		if err != nil {
			return nil, at.wrap(" metrics", err)
		}
		m.exporter = &quietExporter{Exporter: exporter, endpoint: at, log: o.Log}
		if m.exporter.log == nil {
			m.exporter.log = slog.New(slog.DiscardHandler)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(m.exporter, sdkmetric.WithProducer(made))))
		made.reads(exporter.Temporality(sdkmetric.InstrumentKindHistogram), exporter.Aggregation(sdkmetric.InstrumentKindHistogram))
	}
	if o.Scraped {
		reader, handler, err := newScraped(o.NativeHistograms, made)
		if err != nil {
			return nil, fmt.Errorf("metrics for Prometheus: %w", err)
		}
		m.handler = handler
		options = append(options, sdkmetric.WithReader(reader))
	}
	m.provider = sdkmetric.NewMeterProvider(options...)
	err = m.instruments(o.Lanes)
	if err == nil {
		m.calls, err = newCallMetrics(m.provider.Meter("weir"), t, o.Profiles, made)
	}
	if err != nil {
		return nil, errors.Join(err, m.Shutdown(ctx))
	}
	show := func(c *call.Call, span trace.SpanContext) {
		m.calls.record(c, span)
		m.recordLane(c)
	}
	t.Recorder.measure.Store(&show)
	return m, nil
}

// mostPoints is a last bound, for each metric: its series, told apart by what
// else its attributes say.
const mostPoints = 8 * mostSeries

func newMetricExporter(ctx context.Context, at *endpoint) (sdkmetric.Exporter, error) {
	if at.protocol == "grpc" {
		options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: false})}
		if at.unnamed != "" {
			options = append(options, otlpmetricgrpc.WithEndpointURL(at.unnamed))
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false})}
	if at.unnamed != "" {
		options = append(options, otlpmetrichttp.WithEndpointURL(at.unnamed))
	}
	return otlpmetrichttp.New(ctx, options...)
}

// newScraped is a reader of metrics, and what serves them to Prometheus: with
// exemplars to one that reads OpenMetrics.
func newScraped(native bool, made *histograms) (sdkmetric.Reader, http.Handler, error) {
	registry := prometheus.NewRegistry()
	options := []otelprometheus.Option{
		otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithProducer(made),
		// Names that each Prometheus reads.
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	}
	if native {
		made.exponential = true
		options = append(options, otelprometheus.WithAggregationSelector(func(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
			if kind == sdkmetric.InstrumentKindHistogram {
				return sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 8} // what Prometheus can hold
			}
			return sdkmetric.DefaultAggregationSelector(kind)
		}))
	}
	reader, err := otelprometheus.New(options...)
	return reader, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), err
}

// Handler serves the metrics to Prometheus; nil where nobody scrapes them, and on
// a nil Metrics.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return nil
	}
	return m.handler
}

// instruments makes what is told. The observed ones are read together, so that
// they are of one moment.
func (m *Metrics) instruments(lanes func() []Lane) error {
	meter := m.provider.Meter("weir")
	var errs []error
	upDown := func(name, unit, what string) metric.Int64ObservableUpDownCounter {
		i, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	counter := func(name, unit, what string) metric.Int64ObservableCounter {
		i, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	gauge := func(name, unit, what string) metric.Float64ObservableGauge {
		i, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	waiting := upDown("weir.lane.waiting", "{call}", "Calls that wait in the lane.")
	inFlight := upDown("weir.lane.in_flight", "{call}", "Calls that were let go and whose stream has not ended.")
	limit := upDown("weir.lane.in_flight.limit", "{call}", "How many may be in flight; absent where nothing limits them.")
	admitted := counter("weir.lane.admitted", "{call}", "Calls that were let go.")
	refused := counter("weir.lane.refused", "{call}", "Calls that were refused, by weir or by the endpoint.")
	held := gauge("weir.lane.held", "s", "For how long the endpoint's word will hold the lane; 0 where it does not.")
	left := gauge("weir.lane.tokens_left", "{token}", "What is left of the scarcest budget of tokens, below 0 a debt; absent where there is none.")
	var err error
	m.queue, err = meter.Float64Histogram("weir.lane.queue.duration", metric.WithUnit("s"), metric.WithDescription("How long calls that were let go had waited."),
		metric.WithExplicitBucketBoundaries(secondBuckets()...))
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	observe := func(_ context.Context, to metric.Observer) error {
		for _, l := range m.labels.sum(lanes()) {
			name := call.Attribute(keyLane, l.Name)
			of := metric.WithAttributeSet(attribute.NewSet(name))
			to.ObserveInt64(waiting, int64(l.Waiting), of)
			to.ObserveInt64(inFlight, int64(l.InFlight), of)
			to.ObserveInt64(admitted, l.Admitted, of)
			to.ObserveInt64(refused, l.Refused, metric.WithAttributeSet(attribute.NewSet(name, attribute.String(keyRefusedBy, "weir"))))
			to.ObserveInt64(refused, l.EndpointRefused, metric.WithAttributeSet(attribute.NewSet(name, attribute.String(keyRefusedBy, "endpoint"))))
			to.ObserveFloat64(held, l.Held.Seconds(), of)
			if l.MostInFlight != nil {
				to.ObserveInt64(limit, int64(*l.MostInFlight), of)
			}
			if l.TokensLeft != nil {
				to.ObserveFloat64(left, *l.TokensLeft, of)
			}
		}
		return nil
	}
	_, err = meter.RegisterCallback(observe, waiting, inFlight, limit, admitted, refused, held, left)
	return err
}

// Shutdown tells how things stood last and ends the telling, within two seconds
// or when ctx ends. It fails when the collector did not take that. On a nil
// Metrics it does nothing.
func (m *Metrics) Shutdown(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, metricsEndFor)
	defer cancel()
	err := m.provider.Shutdown(ctx)
	if m.exporter == nil {
		return err
	}
	if last := m.exporter.last.Load(); last != nil && *last != nil {
		return m.exporter.wrap(" metrics", *last)
	}
	return err
}

// quietExporter says once that a collector does not take metrics, and not at
// each interval on stderr, as the SDK would.
type quietExporter struct {
	sdkmetric.Exporter
	*endpoint
	log  *slog.Logger
	last atomic.Pointer[error] // of the last attempt; nil when it went well
}

// Export sends what was collected. It never fails: what did not go out is of
// the past when the next one does.
func (e *quietExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := e.Exporter.Export(ctx, m)
	if before := e.last.Swap(&err); err != nil && (before == nil || *before == nil) {
		e.log.Warn("the collector does not take metrics", "target", e.target, "error", e.explain(err))
	}
	return nil
}

// recordLane takes down how long a call waited in its lane.
func (m *Metrics) recordLane(c *call.Call) {
	if c.Side != call.Proxy || c.Lane == "" {
		return
	}
	if d, ok := c.Queued(); ok {
		m.queue.Record(context.Background(), d.Seconds(), metric.WithAttributeSet(attribute.NewSet(call.Attribute(keyLane, m.labels.of(c.Lane)))))
	}
}

// laneLabels are the names of lanes in the metrics, which are bounded, and the
// counters below them, which never fall, although lanes come and go.
type laneLabels struct {
	mu     sync.Mutex
	own    map[string]bool
	before map[string]Lane // as the lanes that there are now were told last
	totals map[string]*Lane
}

// of is the label of a lane.
func (n *laneLabels) of(lane string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.label(lane)
}

func (n *laneLabels) label(lane string) string {
	lane = call.Attribute(keyLane, lane).Value.AsString() // it is a client's session, say
	switch {
	case n.own[lane]:
		return lane
	case len(n.own) >= mostLanes:
		return otherLanes
	case n.own == nil:
		n.own = map[string]bool{}
	}
	n.own[lane] = true
	return lane
}

// sum puts lanes together by their labels. Of the other lanes there is no limit
// and no budget, and the longest time for which one is held.
func (n *laneLabels) sum(lanes []Lane) []Lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.totals == nil {
		n.totals = map[string]*Lane{}
	}
	for _, total := range n.totals {
		total.Waiting, total.InFlight, total.Held, total.MostInFlight, total.TokensLeft = 0, 0, 0, nil, nil
	}
	before := n.before
	n.before = make(map[string]Lane, len(lanes))
	for _, l := range lanes {
		label := n.label(l.Name)
		total := n.totals[label]
		if total == nil {
			total = &Lane{Name: label}
			n.totals[label] = total
		}
		total.Waiting += l.Waiting
		total.InFlight += l.InFlight
		total.Held = max(total.Held, l.Held)
		if label != otherLanes {
			total.MostInFlight, total.TokensLeft = l.MostInFlight, l.TokensLeft
		}
		last := before[l.Name]
		total.Admitted += more(l.Admitted, last.Admitted)
		total.Refused += more(l.Refused, last.Refused)
		total.EndpointRefused += more(l.EndpointRefused, last.EndpointRefused)
		n.before[l.Name] = l
	}
	told := make([]Lane, 0, len(n.totals))
	for _, total := range n.totals {
		told = append(told, *total)
	}
	return told
}

// more is how much a counter grew; one that fell is another lane's by that name.
func more(now, before int64) int64 {
	if now < before {
		return now
	}
	return now - before
}
