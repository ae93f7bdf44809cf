package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// histogram is of seconds. The SDK's own looks at all attributes of each value to
// find its series, which would cost as much as all else that is done to record a
// call; this one is told of a call's values at once, by attributes that were put
// together before. It has buckets, which only grow; where a reader asks for
// something else, the SDK's are told.
type histogram struct {
	names  []string // under each of them it is told
	what   string
	bounds []float64
	sdk    []metric.Float64Histogram // by the names; none where the buckets here do
	traced bool                      // exemplars lead to spans

	mu      sync.Mutex
	began   time.Time
	tallies map[attribute.Distinct]*tally
}

// tally is what came in one series.
type tally struct {
	attributes       attribute.Set
	counts           []uint64 // by bucket
	sum, least, most float64
	exemplars        []metricdata.Exemplar[float64] // by bucket; some without a time, and are none
}

// histograms are those of all calls; it is a producer for readers of metrics.
type histograms struct {
	exponential bool // some reader asks for more than buckets that grow
	untraced    bool // exemplars are not wanted
	all         []*histogram
}

// reads takes down what a reader asks for.
func (p *histograms) reads(temporality metricdata.Temporality, aggregation sdkmetric.Aggregation) {
	switch aggregation.(type) {
	case sdkmetric.AggregationDefault, sdkmetric.AggregationExplicitBucketHistogram:
	default:
		p.exponential = true
	}
	p.exponential = p.exponential || temporality != metricdata.CumulativeTemporality
}

// make makes one. All readers have been asked before.
func (p *histograms) make(meter metric.Meter, what string, bounds []float64, names ...string) (*histogram, error) {
	h := &histogram{names: names, what: what, bounds: bounds, began: time.Now(), traced: !p.untraced, tallies: map[attribute.Distinct]*tally{}}
	if !p.exponential {
		p.all = append(p.all, h)
		return h, nil
	}
	for _, name := range names {
		sdk, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
		if err != nil {
			return nil, err
		}
		h.sdk = append(h.sdk, sdk)
	}
	return h, nil
}

// record takes down a call's values. The one that is marked leads to its span;
// a negative mark is for none.
func (h *histogram) record(ctx context.Context, of *labelled, values []float64, marked float64) {
	if len(values) == 0 {
		return
	}
	if h.sdk != nil {
		for _, v := range values {
			at := context.Background() // who marks nothing need not be looked at
			if v == marked {
				at = ctx
			}
			for _, sdk := range h.sdk {
				sdk.Record(at, v, of.record...)
			}
		}
		return
	}
	span := trace.SpanContextFromContext(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.tallies[of.set.Equivalent()]
	if t == nil {
		t = &tally{
			attributes: of.set, counts: make([]uint64, len(h.bounds)+1), least: values[0], most: values[0],
			exemplars: make([]metricdata.Exemplar[float64], len(h.bounds)+1),
		}
		h.tallies[of.set.Equivalent()] = t
	}
	for _, v := range values {
		bucket, _ := slices.BinarySearch(h.bounds, v) // a bound belongs to the bucket below it
		t.counts[bucket]++
		t.sum += v
		t.least, t.most = min(t.least, v), max(t.most, v)
		if v == marked && h.traced && span.IsSampled() {
			traceID, spanID := span.TraceID(), span.SpanID()
			t.exemplars[bucket] = metricdata.Exemplar[float64]{Value: v, Time: time.Now(), TraceID: traceID[:], SpanID: spanID[:]}
		}
	}
}

// Produce gives what there is so far.
func (p *histograms) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	scope := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "weir"}}
	for _, h := range p.all {
		points := h.points()
		if len(points) == 0 {
			continue
		}
		for _, name := range h.names {
			scope.Metrics = append(scope.Metrics, metricdata.Metrics{
				Name: name, Description: h.what, Unit: "s",
				Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality},
			})
		}
	}
	if scope.Metrics == nil {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scope}, nil
}

func (h *histogram) points() (points []metricdata.HistogramDataPoint[float64]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, t := range h.tallies {
		p := metricdata.HistogramDataPoint[float64]{
			Attributes: t.attributes, StartTime: h.began, Time: now, Bounds: h.bounds, BucketCounts: slices.Clone(t.counts),
			Sum: t.sum, Min: metricdata.NewExtrema(t.least), Max: metricdata.NewExtrema(t.most),
		}
		for _, n := range t.counts {
			p.Count += n
		}
		for _, e := range t.exemplars {
			if !e.Time.IsZero() {
				p.Exemplars = append(p.Exemplars, e)
			}
		}
		points = append(points, p)
	}
	return points
}
