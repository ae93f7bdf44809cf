package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy"
	"weir/store/call"
)

// setting is what all rows have in common.
type setting struct {
	hold, gap time.Duration
	endpoints int
	proxied   bool
}

// row is what was measured.
type row struct {
	load
	result  *generator.Result
	off     []time.Duration // measured TTFT − true one, without its sign; sorted
	reasons []string
}

// The limits that a row is held to beside those of every run's verdict.
const (
	lagMost = 5 * time.Millisecond
	offMost = 2 * time.Millisecond
)

// model sends at the row's rate. Streams last so long that as many are in flight
// as the row wants, and the time until they are is the warm-up.
func (l load) model(s setting) (*loadmodel.Model, error) {
	lasts := time.Duration(float64(l.streams) / l.rate * float64(time.Second))
	events := max(int(lasts/s.gap), 1)
	return loadmodel.Decode("loadbench", fmt.Appendf(nil, `{"load_model": {"name": "loadbench", "model": "sim", "scenarios": [
  {"id": "bench", "weight": 1, "input_tokens": {"min": 50, "max": 150}, "output_tokens": {"min": %d, "max": %d}}],
  "target_qps": %g, "duration_seconds": %g, "warm_up_seconds": %g}}`, events, events, l.rate, s.hold.Seconds(), max(lasts.Seconds(), 1)))
}

// truth gathers what the endpoints did: the TTFT of each response by its id.
type truth struct {
	mu   sync.Mutex
	ttft map[string]time.Duration
}

func (t *truth) record(r *sim.Record) {
	if first, ok := r.FirstToken(); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ttft[r.ID] = first.Before.Sub(r.Body)
	}
}

// fleet serves several endpoints at one address, in turn.
func fleet(s setting, t *truth) (base string, stop func(), err error) {
	sims := make([]*sim.Sim, s.endpoints)
	for i := range sims {
		// An endpoint that takes its time for its steps, and for nothing else.
		sims[i], err = sim.New(sim.Config{Seed: uint64(i), Log: t.record,
			Engine: sim.EngineConfig{Slots: 1 << 20, Step: s.gap, Chunk: 1 << 30, TokensPerStep: 1, KVTokens: 1 << 40}})
		if err != nil {
			return "", nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var next atomic.Uint64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sims[next.Add(1)%uint64(len(sims))].ServeHTTP(w, r)
	})}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	return "http://" + l.Addr().String(), func() {
		server.Close()
		served.Wait()
		for _, one := range sims {
			one.Close()
		}
	}, nil
}

// ears keep the calls that count, to be compared with the truth: an endpoint
// writes its record down after its client has the last byte.
type ears struct {
	truth *truth
	mu    sync.Mutex
	calls []*call.Call
}

func (e *ears) take(c *call.Call) {
	if c.Side == call.Client && !c.WarmUp && c.Outcome == call.OK {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls = append(e.calls, &call.Call{ResponseID: c.ResponseID, Instants: c.Instants})
	}
}

// compare holds the calls against the truth, when all have ended.
func (e *ears) compare() []time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.truth.mu.Lock()
	defer e.truth.mu.Unlock()
	var off []time.Duration
	for _, c := range e.calls {
		measured, ok := c.TTFTUpstream()
		if real, known := e.truth.ttft[c.ResponseID]; ok && known {
			off = append(off, max(measured-real, real-measured))
		}
	}
	slices.Sort(off)
	return off
}

// measure plays one row.
func measure(ctx context.Context, l load, s setting) (*row, error) {
	m, err := l.model(s)
	if err != nil {
		return nil, err
	}
	t := &truth{ttft: map[string]time.Duration{}}
	base, stop, err := fleet(s, t)
	if err != nil {
		return nil, err
	}
	defer stop()
	heard := &ears{truth: t}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(call.Ended(heard.take)))
	run := &generator.Run{Plan: &generator.Plan{Model: m, Seed: 1}, Tracer: provider.Tracer("weir"), Target: generator.Target{BaseURL: base}}
	if s.proxied {
		through, end, err := sidecar(base, provider)
		if err != nil {
			return nil, err
		}
		defer end()
		run.Target.BaseURL = through
	}
	result, err := run.Do(ctx, ctx)
	switch {
	case err != nil:
		return nil, err
	case result.Partial:
		return nil, errors.New("interrupted")
	}
	r := &row{load: l, result: result, off: heard.compare(), reasons: result.Reasons}
	r.judge()
	return r, nil
}

// sidecar serves weir's proxy in front of the endpoints.
func sidecar(base string, provider *sdktrace.TracerProvider) (through string, end func(), err error) {
	at, err := url.Parse(base)
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	p := &proxy.Proxy{Upstreams: []proxy.Upstream{{Name: "sim", URL: at}}, Tracer: provider.Tracer("weir")}
	var served sync.WaitGroup
	served.Go(func() { _ = p.Serve(l) })
	return "http://" + l.Addr().String(), func() {
		p.Close()
		served.Wait()
	}, nil
}

// judge adds what the row is held to beside its run's verdict.
func (r *row) judge() {
	if p99 := r.result.Lag.P99; p99 > lagMost && len(r.reasons) == 0 {
		r.reasons = append(r.reasons, fmt.Sprintf("lag p99 %s is above %s", short(p99), lagMost))
	}
	if off := call.Percentile(r.off, 99); off > offMost {
		r.reasons = append(r.reasons, fmt.Sprintf("TTFT is off by %s at p99, above %s", short(off), offMost))
	}
	failed := 0
	for _, sc := range r.result.PerScenario {
		failed += sc.Sent - sc.OK
	}
	if failed > 0 {
		r.reasons = append(r.reasons, fmt.Sprintf("failed calls: %d", failed))
	}
}

func (r *row) write(w io.Writer) {
	verdict := "valid"
	if len(r.reasons) > 0 {
		verdict = "invalid: " + strings.Join(r.reasons, "; ")
	}
	q := r.result
	fmt.Fprintf(w, "%g\t%.1f\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%.0f%%\t%s\n", r.rate, q.SentRate, q.InFlightHi, len(r.off),
		short(q.Lag.P50), short(q.Lag.P99), short(q.Lag.Max), short(call.Percentile(r.off, 50)), short(call.Percentile(r.off, 99)), 100*q.CPU, verdict)
}

// short writes a duration in milliseconds.
func short(d time.Duration) string {
	return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
}
