package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"weir/examples/quickstart"
	"weir/generator"
	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy"
)

// demoFlags are the flags of weir demo.
type demoFlags struct {
	length time.Duration
	qps    float64
	seed   uint64
	db     string
	json   bool
	limits laneFlags
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: simulated endpoint, proxy and load in one process",
		Long: `Starts a simulated endpoint and the proxy in front of it, replays the quickstart's
load model through the proxy, and prints TTFT by scenario out of the store. No
key, no network.`,
		Example: `  weir demo
  weir demo --for 20s --seed 7
  weir demo --qps 40 --db demo.db
  weir demo --qps 40 --rps 10`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runDemo(c.Context(), f, c.Flags().Changed) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.length, "for", 30*time.Second, "time over which requests start")
	fl.Float64Var(&f.qps, "qps", 0, "request starts a second (default: the load model's 20)")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.BoolVar(&f.json, "json", false, "print the report as JSON")
	f.limits.add(fl)
	a.telemetry.add(fl)
	return c
}

// shortestRun is the shortest time in which a rate means anything.
const shortestRun = 100 * time.Millisecond

func (a *app) runDemo(ctx context.Context, f demoFlags, given func(string) bool) error {
	if f.length < shortestRun {
		return usagef("--for %s: want %s or more, as 20s", f.length, shortestRun)
	}
	if given("qps") && !sendable(f.qps) {
		return unsendable(f.qps)
	}
	m, err := loadmodel.Decode("load_model.json", quickstart.LoadModel)
	if err != nil {
		return err
	}
	m = m.Scaled(f.length)
	if f.qps > 0 {
		m = m.AtQPS(f.qps)
	}
	override(m, "sim-small", "")
	shape, err := f.limits.shaper(m.Rules())
	if err != nil {
		return err
	}
	s, err := a.openStack(f.db, shape)
	if err != nil {
		return err
	}
	return errors.Join(a.demo(ctx, s, m, f), s.close())
}

func (a *app) demo(ctx context.Context, s *stack, m *loadmodel.Model, f demoFlags) error {
	l, err := loopbackListener()
	if err != nil {
		return err
	}
	endpoint, err := startSim(l, sim.Config{Seed: f.seed})
	if err != nil {
		return err
	}
	defer endpoint.stop()
	at, err := url.Parse(endpoint.url)
	if err != nil {
		return err
	}
	p := s.proxy([]proxy.Upstream{{Name: "sim", URL: at}})
	p.Log = a.logger(false)
	base, stop, err := serveInside(p)
	if err != nil {
		return err
	}
	defer stop()
	run := &generator.Run{
		ID: generator.NewRunID(), Plan: &generator.Plan{Model: m, Seed: f.seed}, Tracer: s.tracer,
		Labels: map[string]string{"demo": ""}, Target: generator.Target{BaseURL: base},
	}
	fmt.Fprintf(a.err, "simulated endpoint  %s\nweir's proxy        %s\nload model          %s, for %s\nrecords             %s\n",
		endpoint.url, base, m.Name, f.length, s.path())
	a.tellLanes(s.shaper)
	return a.play(ctx, s, run, playOptions{shown: "sim", json: f.json, settle: stop})
}
