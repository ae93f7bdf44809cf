package store

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"weir/store/call"
)

// Attributes of metrics that spans do not have.
const (
	keyPart     = "weir.part"
	keyStreamed = "weir.streamed" // a stream was asked for or came: the call could have a first token
	keyImpaired = "weir.impaired" // weir made it worse on purpose: it is no measure of the endpoint
)

// callMetrics are the metrics of calls, the proxy's and the generator's: those
// of the GenAI conventions, and weir's own. The recorder shows it each ended
// call, beside the streams. Latencies are of calls that went well, that were no
// warm-up, and that weir did not make worse on purpose.
type callMetrics struct {
	labels *seriesLabels
	genAI  []*genAI

	calls metric.Int64Counter
	totalled
	ttftFelt, ttftUpstream, tpot *histogram
	queued, overhead             *histogram
	chunk, gap                   *histogram
	inFlight                     metric.Int64ObservableUpDownCounter
	written, lost                metric.Int64ObservableCounter
	sent, failed, rejected       metric.Int64ObservableCounter
	waiting, unsent              metric.Int64ObservableUpDownCounter
	cpu                          metric.Float64ObservableCounter
	recorder                     *Recorder
	outbox                       *Outbox // nil: nothing is sent on

	// Of the call that is looked at; kept for their room.
	chunks, gaps []float64
	value        [1]float64
}

// newCallMetrics makes the instruments.
func newCallMetrics(meter metric.Meter, t *Tracing, profiles []string, made *histograms) (*callMetrics, error) {
	m := &callMetrics{labels: newSeriesLabels(), recorder: t.Recorder, outbox: t.Outbox}
	var errs []error
	seconds := func(to **histogram, name, what string, bounds []float64) {
		h, err := made.make(meter, what, bounds, name)
		*to, errs = h, append(errs, err)
	}
	observed := func(to *metric.Int64ObservableCounter, name, unit, what string) {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, errs = c, append(errs, err)
	}
	var perChunk []string
	for _, profile := range profiles {
		perChunk = append(perChunk, genAIPrefix(profile)+"time_per_output_chunk")
		g, err := newGenAI(meter, profile, made, &m.totalled)
		m.genAI, errs = append(m.genAI, g), append(errs, err)
	}
	var err error
	m.calls, err = meter.Int64Counter("weir.calls", metric.WithUnit("{call}"), metric.WithDescription("Calls that ended, by how they did, those of a warm-up left out."))
	errs = append(errs, err)
	seconds(&m.ttftFelt, "weir.ttft.felt", "From the call's arrival to its first token's delivery: what the caller felt.", secondBuckets())
	seconds(&m.ttftUpstream, "weir.ttft.upstream", "From the request's end to its first token: the model's and the network's share.", secondBuckets())
	seconds(&m.tpot, "weir.tpot", "Time per output token after the first, by the provider's usage.", doubled(0.001, 2, 14))
	seconds(&m.queued, "weir.queue.duration", "How long weir held calls before it let them go.", secondBuckets())
	seconds(&m.overhead, "weir.overhead.duration", "What weir added to the first token: its work on a request that had not to wait, and on the first token.", doubled(0.000_05, 2, 16))
	seconds(&m.gap, "weir.stream.chunk_gap", "Between events with output; an event may hold many tokens.", doubled(0.001, 2, 17))
	m.chunk, err = made.make(meter, "Between an event of a stream and the one before it.", secondBuckets(), perChunk...)
	errs = append(errs, err)
	observed(&m.stalls, "weir.stream.stalls", "{stall}", "Gaps between events with output above the threshold.")
	m.stalled, err = meter.Float64ObservableCounter("weir.stream.stalled.time", metric.WithUnit("s"), metric.WithDescription("The sum of such gaps."))
	errs = append(errs, err)
	m.parts, err = meter.Float64ObservableCounter("weir.call.time", metric.WithUnit("s"), metric.WithDescription("Where the time of calls went, by the parts of their account."))
	errs = append(errs, err)
	observed(&m.written, "weir.spans.written", "{span}", "Spans in the database.")
	observed(&m.lost, "weir.spans.lost", "{span}", "Spans that could not be written and never will be.")
	observed(&m.sent, "weir.otlp.spans.sent", "{span}", "Spans that the collector took.")
	observed(&m.failed, "weir.otlp.attempts.failed", "{attempt}", "Attempts to send spans that the collector did not take; they are tried again.")
	observed(&m.rejected, "weir.otlp.spans.rejected", "{span}", "Spans that the collector will never take; they are not sent again.")
	m.inFlight, err = meter.Int64ObservableUpDownCounter("weir.calls.in_flight", metric.WithUnit("{call}"), metric.WithDescription("Calls that have begun and not ended."))
	errs = append(errs, err)
	m.waiting, err = meter.Int64ObservableUpDownCounter("weir.spans.waiting", metric.WithUnit("{span}"), metric.WithDescription("Spans that are not written yet."))
	errs = append(errs, err)
	m.unsent, err = meter.Int64ObservableUpDownCounter("weir.otlp.spans.waiting", metric.WithUnit("{span}"), metric.WithDescription("Spans of the database that the collector is yet to take, those of earlier processes too."))
	errs = append(errs, err)
	m.cpu, err = meter.Float64ObservableCounter("process.cpu.time", metric.WithUnit("s"), metric.WithDescription("What the process of weir used of its cores."))
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	observables := []metric.Observable{m.inFlight, m.written, m.lost, m.sent, m.failed, m.rejected, m.waiting, m.unsent, m.cpu, m.stalls, m.stalled, m.parts}
	for _, used := range m.used {
		if used != nil {
			observables = append(observables, used)
		}
	}
	if _, err := meter.RegisterCallback(m.observe, observables...); err != nil {
		return nil, err
	}
	return m, nil
}

// observe tells how things stand.
func (m *callMetrics) observe(ctx context.Context, to metric.Observer) error {
	underWay := m.labels.each(func(s *series) { m.tell(to, s) }) // a series that was told of does not vanish
	for _, s := range m.recorder.underWay() {
		underWay[m.labels.of(*s, false)]++
	}
	for s, n := range underWay {
		to.ObserveInt64(m.inFlight, n, s.plain.option)
	}
	to.ObserveInt64(m.written, m.recorder.Written())
	to.ObserveInt64(m.lost, m.recorder.Lost())
	to.ObserveInt64(m.waiting, m.recorder.Waiting())
	if m.outbox != nil {
		to.ObserveInt64(m.sent, m.outbox.Sent())
		to.ObserveInt64(m.failed, m.outbox.Failed())
		to.ObserveInt64(m.rejected, m.outbox.Rejected())
		if n, err := m.outbox.Waiting(ctx); err == nil { // else it is not known
			to.ObserveInt64(m.unsent, n)
		}
	}
	if used, ok := cpuTime(); ok {
		to.ObserveFloat64(m.cpu, used.Seconds())
	}
	return nil
}

// record counts an ended call. The exemplars that a histogram keeps lead to its
// span.
func (m *callMetrics) record(c *call.Call, span trace.SpanContext) {
	if !c.WantsAnswer() {
		return
	}
	ctx := trace.ContextWithSpanContext(context.Background(), span)
	s := m.labels.of(c.Series(), c.Status >= 200 && c.Status < 300)
	if !c.WarmUp {
		m.calls.Add(ctx, 1, s.with(call.OutcomeAttribute(c.Outcome), attribute.Bool(keyStreamed, c.Streamed || c.Request.Stream), attribute.Bool(keyImpaired, c.Worsened())).option)
	}
	failure := m.labels.failure(c)
	if c.UsageSource == call.UsageReported || c.UsageSource == call.UsageInjected {
		m.labels.add(s, func(t *totals) { t.usage(&c.Usage) })
		for _, g := range m.genAI {
			g.tokens(ctx, &c.Usage, failure, s.with)
		}
	}
	if c.WarmUp || c.Worsened() {
		return
	}
	into := func(h *histogram, of *labelled, d time.Duration, ok bool) {
		if ok {
			m.value[0] = d.Seconds()
			h.record(ctx, of, m.value[:], m.value[0])
		}
	}
	d, ok := c.Duration()
	of := s.with(failure...)
	for _, g := range m.genAI {
		into(g.duration, of, d, ok)
	}
	if c.Outcome != call.OK {
		return
	}
	m.labels.add(s, func(t *totals) { t.latency(c) })
	d, ok = c.FirstChunk()
	for _, g := range m.genAI {
		into(g.firstChunk, s.plain, d, ok)
	}
	d, ok = c.TTFTFelt()
	into(m.ttftFelt, s.plain, d, ok)
	d, ok = c.TTFTUpstream()
	into(m.ttftUpstream, s.plain, d, ok)
	d, ok = c.TPOT()
	into(m.tpot, s.plain, d, ok)
	if c.Side == call.Proxy {
		d, ok = c.Queued()
		into(m.queued, s.plain, d, ok)
		d, ok = c.Overhead()
		into(m.overhead, s.plain, d, ok)
	}
	m.recordGaps(ctx, c, s)
}

// recordGaps takes down the time between the events of a stream. Only the
// longest gap leads to the span: of a thousand one looks at that.
func (m *callMetrics) recordGaps(ctx context.Context, c *call.Call, s *series) {
	m.chunks, m.gaps = m.chunks[:0], m.gaps[:0]
	var last, token time.Duration
	first, firstToken := true, true
	for e := range c.Timeline.Events() {
		if !first {
			m.chunks = append(m.chunks, (e.After - last).Seconds())
		}
		first, last = false, e.After
		if e.Output == 0 {
			continue
		}
		if gap := e.After - token; !firstToken && gap > 0 { // what came in one read has no time between
			m.gaps = append(m.gaps, gap.Seconds())
		}
		firstToken, token = false, e.After
	}
	m.chunk.record(ctx, s.events, m.chunks, -1)
	m.gap.record(ctx, s.events, m.gaps, c.Gaps.Longest.Seconds())
}
