package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy"
	"weir/store/call"
)

// The burst of a self-check: at the plan's highest rate, or checkLeast where
// that is less, for a time that grows with the rate up to checkLongest. Its
// prompts are short and its answers have a dozen events: it tells what sending
// and reading at that rate cost this machine, not what long prompts do.
const (
	checkLeast    = 50.0 // a second
	checkFull     = 300.0
	checkShortest = 300 * time.Millisecond
	checkLongest  = 1500 * time.Millisecond
	peakPatience  = 300 * time.Millisecond // to find a trace's highest rate
)

// The TTFT error that is told as a warning, and the part of the burst below
// which a run is refused: figures of a machine that sends half of what it should
// are of the machine.
const (
	checkTTFT      = 2 * time.Millisecond
	checkSentLeast = 0.5
)

const checkModel = `{"load_model": {"name": "self-check", "model": "self-check", "scenarios": [
  {"id": "check", "weight": 1, "input_tokens": {"min": 40, "max": 80}, "output_tokens": {"min": 48, "max": 48}}],
  "target_qps": 1, "duration_seconds": 1, "arrivals": {"process": "constant"}}}`

// selfCheck is what a burst at an endpoint that knows the truth showed.
type selfCheck struct {
	rate   float64
	result *generator.Result
	n      int           // calls whose TTFT was compared
	off    time.Duration // by which TTFTs were wrong, p99
}

// heard keeps the calls that a run makes.
type heard struct {
	mu    sync.Mutex
	calls []*call.Call
}

func (h *heard) take(c *call.Call) {
	if c.Side == call.Client {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, c)
	}
}

// checkSelf sends a burst at the plan's highest rate to a simulated endpoint in
// this process, through a proxy where the run will have one in here, and holds
// what was measured against the endpoint's own record.
func (a *app) checkSelf(ctx context.Context, plan *generator.Plan, proxied bool) (*selfCheck, error) {
	soon, cancel := context.WithTimeout(ctx, peakPatience)
	defer cancel()
	rate := max(plan.PeakRate(soon), checkLeast)
	m, err := loadmodel.Decode("self-check", []byte(checkModel))
	if err != nil {
		return nil, err
	}
	m = m.Scaled(checkShortest + time.Duration(float64(checkLongest-checkShortest)*min(1, (rate-checkLeast)/(checkFull-checkLeast)))).AtQPS(rate)

	var mu sync.Mutex
	truth := map[string]time.Duration{} // by the response's id: the endpoint's own TTFT
	l, err := loopbackListener()
	if err != nil {
		return nil, err
	}
	engine, err := sim.Preset("small")
	if err != nil {
		l.Close()
		return nil, err
	}
	engine.Slots = 1 << 20 // it is never the endpoint that is short of anything
	endpoint, err := startSim(l, sim.Config{Engine: engine, Log: func(r *sim.Record) {
		if first, ok := r.FirstToken(); ok {
			mu.Lock()
			defer mu.Unlock()
			truth[r.ID] = first.Before.Sub(r.Body)
		}
	}})
	if err != nil {
		return nil, err
	}
	defer endpoint.stop()
	ears := &heard{}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(call.Ended(ears.take)))
	run := &generator.Run{Plan: &generator.Plan{Model: m, Seed: 1}, Tracer: provider.Tracer("weir"), Target: generator.Target{BaseURL: endpoint.url}, Timeout: 5 * time.Second}
	if proxied {
		at, err := url.Parse(endpoint.url)
		if err != nil {
			return nil, err
		}
		base, stop, err := serveInside(&proxy.Proxy{Upstreams: []proxy.Upstream{{Name: "self-check", URL: at}}, Tracer: provider.Tracer("weir"), Log: a.logger(false)})
		if err != nil {
			return nil, err
		}
		defer stop()
		run.Target.BaseURL = base
	}
	result, err := run.Do(ctx, a.hard)
	if err != nil {
		return nil, err
	}
	c := &selfCheck{rate: rate, result: result}
	mu.Lock()
	defer mu.Unlock()
	ears.mu.Lock()
	defer ears.mu.Unlock()
	var off []time.Duration
	for _, one := range ears.calls {
		measured, ok := one.TTFTUpstream()
		if real, known := truth[one.ResponseID]; ok && known {
			off = append(off, max(measured-real, real-measured))
		}
	}
	slices.Sort(off)
	c.n, c.off = len(off), call.Percentile(off, 99)
	return c, nil
}

// note is what the burst says of the figures to come.
func (c *selfCheck) note() string {
	return fmt.Sprintf("self-check at %.3g requests/s: sends were late by %s, and TTFTs off by %s, at p99 of %d: so much of the figures may be this machine's own",
		c.rate, c.result.Lag.P99.Round(10*time.Microsecond), c.off.Round(10*time.Microsecond), c.n)
}

// judge warns where the machine will not do the plan justice; an error where it
// cannot send it at all.
func (c *selfCheck) judge() (warnings []string, err error) {
	for _, reason := range c.result.Reasons {
		warnings = append(warnings, "self-check: "+reason)
	}
	if c.off > checkTTFT {
		warnings = append(warnings, fmt.Sprintf("self-check: TTFTs were off by %s at p99, above %s: other work on this machine, or too high a rate for it", c.off.Round(10*time.Microsecond), checkTTFT))
	}
	if r := c.result; r.SentRate < checkSentLeast*r.PlannedRate || r.Sent == 0 {
		return warnings, coded{exitThreshold, &hinted{
			fmt.Errorf("self-check: of %.3g requests/s this machine sends %.3g/s to an endpoint that is never slow: nothing was sent", c.rate, r.SentRate),
			"a lower --qps, --shard on several machines, or --no-self-check"}}
	}
	return warnings, nil
}
