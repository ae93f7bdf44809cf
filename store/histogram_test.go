package store

import (
	"context"
	"slices"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.opentelemetry.io/otel/trace"
)

// toldOf is what a reader is told by name after some calls' values.
func toldOf(t *testing.T, events *histograms, marked trace.SpanContext) map[string]metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(events))
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("weir")
	h, err := events.make(meter, "what", doubled(0.001, 2, 5), "one", "two")
	if err != nil {
		t.Fatal(err)
	}
	labels := newSeriesLabels()
	a, b := example(0).Series(), example(0).Series()
	b.Model = "another"
	elsewhere := a
	elsewhere.Host = "elsewhere" // which events are not told apart by
	ctx := trace.ContextWithSpanContext(context.Background(), marked)
	h.record(ctx, labels.of(a, true).events, []float64{0.001, 0.0010001, 0.016, 7, 0}, 7)
	h.record(ctx, labels.of(b, true).events, []float64{0.002}, -1)
	h.record(ctx, labels.of(elsewhere, true).events, []float64{0.004, 0.003}, 0.004)
	h.record(ctx, labels.of(b, true).events, nil, -1)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	told := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			told[m.Name] = m
		}
	}
	return told
}

func TestValuesOfEventsAreToldAsTheSDKTellsThem(t *testing.T) {
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	for name, span := range map[string]trace.SpanContext{"sampled": sampled, "not sampled": sampled.WithTraceFlags(0)} {
		own, sdk := toldOf(t, &histograms{}, span), toldOf(t, &histograms{exponential: true}, span)
		for _, metric := range []string{"one", "two"} {
			exemplars := 0
			for _, told := range []metricdata.Metrics{own[metric], sdk[metric]} {
				h, ok := told.Data.(metricdata.Histogram[float64])
				if !ok || len(h.DataPoints) != 2 {
					t.Fatalf("%s: %+v", metric, told)
				}
				for i := range h.DataPoints {
					exemplars += len(h.DataPoints[i].Exemplars)
				}
			}
			if want := map[string]int{"sampled": 4, "not sampled": 0}[name]; exemplars != want {
				t.Errorf("%s: %s: %d exemplars, want %d", name, metric, exemplars, want)
			}
			metricdatatest.AssertEqual(t, sdk[metric], own[metric], metricdatatest.IgnoreTimestamp())
		}
	}
	for name, m := range toldOf(t, &histograms{untraced: true}, sampled) {
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			if len(p.Exemplars) > 0 {
				t.Errorf("%s: exemplars that nobody wants", name)
			}
		}
	}
}

// What has no buckets, or begins anew each time, is the SDK's.
func TestValuesOfEventsAreTheSDKsWhereAReaderWantsThemOtherwise(t *testing.T) {
	for name, ask := range map[string]struct {
		temporality metricdata.Temporality
		aggregation sdkmetric.Aggregation
		want        bool
	}{
		"as it comes": {metricdata.CumulativeTemporality, sdkmetric.AggregationDefault{}, false},
		"buckets":     {metricdata.CumulativeTemporality, sdkmetric.AggregationExplicitBucketHistogram{}, false},
		"exponential": {metricdata.CumulativeTemporality, sdkmetric.AggregationBase2ExponentialHistogram{}, true},
		"deltas":      {metricdata.DeltaTemporality, sdkmetric.AggregationDefault{}, true},
	} {
		var p histograms
		p.reads(ask.temporality, ask.aggregation)
		p.reads(metricdata.CumulativeTemporality, sdkmetric.AggregationDefault{}) // another one, which takes all
		if p.exponential != ask.want {
			t.Errorf("%s: by the SDK is %v, want %v", name, p.exponential, ask.want)
		}
	}
}

// BenchmarkGaps is what the gaps of a call of fifty events cost.
func BenchmarkGaps(b *testing.B) {
	for name, events := range map[string]*histograms{"own": {}, "sdk": {exponential: true}} {
		b.Run(name, func(b *testing.B) {
			meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("weir")
			h, err := events.make(meter, "what", doubled(0.001, 2, 17), "one")
			if err != nil {
				b.Fatal(err)
			}
			c := example(0)
			s := newSeriesLabels().of(c.Series(), true)
			values := slices.Repeat([]float64{0.02, 0.021, 0.019, 0.0202, 0.0001}, 10)
			for b.Loop() {
				h.record(context.Background(), s.events, values, -1)
			}
		})
	}
}
