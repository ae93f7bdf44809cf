package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/proxy"
	"weir/proxy/wire"
	"weir/store/report"
)

// loadFlags are the flags of weir load.
type loadFlags struct {
	upstreams     []string
	target        string
	db            string
	caFile        string
	upstreamProxy string

	length      time.Duration
	qps         float64
	seed        uint64
	labels      []string
	model       string
	api         string
	tokensOf    string
	maxInFlight int
	timeout     time.Duration
	limit       int // rows of a trace
	limits      laneFlags
	speed       float64
	run         runFlags
	trace       traceFlags
	keep        keepFlags

	dryRun      bool
	noPreflight bool
	json        bool
}

func (a *app) loadCommand() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load MODEL|TRACE|DATASET|SELECTION",
		Short: "Replay a load model, a recorded trace, a dataset or recorded calls, and report on it",
		Long: `Sends what a load model says (or a trace, or a dataset of whole requests),
through a proxy inside this process (--upstream) or through a weir that runs
already (--target), and reports on it. In the place of a file a selection, as
run:7f3a, since:1h or label:NAME, plays calls that weir recorded: at their
instants, of their sizes, sessions turn by turn with the times to think.
The key is read from $WEIR_API_KEY, else from the API's own variable:
$OPENAI_API_KEY, $ANTHROPIC_API_KEY, $GEMINI_API_KEY. It is never a flag.

A run during which this machine could not keep the plan is headed invalid and
exits with 3, and so does one that ended itself by --abort-if or --budget.
Ctrl-C stops sending and waits for what is under way; a second one breaks it
off.`,
		Example: `  weir load load_model.json --upstream http://127.0.0.1:9001 --for 1m
  weir load load_model.json --upstream https://api.openai.com --model gpt-5-mini --qps 2 --label try=1
  weir load trace.csv --limit 300 --upstream http://127.0.0.1:9001
  weir load load_model.json --upstream http://127.0.0.1:9001 --concurrency adaptive
  weir load requests.jsonl --qps 5 --upstream http://127.0.0.1:9001
  weir load load_model.json --users 20 --for 5m --abort-if 'error rate > 20% for 10s' --upstream http://127.0.0.1:9001
  weir load load_model.json --shard 0/4 --seed 7 --start-at 2026-05-04T10:00:00Z --target http://127.0.0.1:7717
  weir load since:1h --upstream http://127.0.0.1:9001 --model sim-small --speed 2
  weir load load_model.json --dry-run`,
		Args: wantArgs(1, -1, "the load model, trace, dataset or selection of calls"),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := oneSource(args)
			if err != nil {
				return err
			}
			return a.runLoad(c.Context(), file, f, c.Flags().Changed)
		},
	}
	fl := c.Flags()
	fl.StringArrayVarP(&f.upstreams, "upstream", "u", nil, "endpoint to load, through a proxy inside this process; as in weir proxy")
	fl.StringVarP(&f.target, "target", "t", "", "a weir that runs already, or any endpoint to be loaded without a proxy")
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.StringVar(&f.caFile, "ca-file", "", "PEM certificates to trust for upstreams, beside the system's")
	fl.StringVar(&f.upstreamProxy, "upstream-proxy", "", "proxy on the way to the upstreams; HTTPS_PROXY is not read")
	fl.DurationVar(&f.length, "for", 0, "play the model in this time; ramp and phases are scaled. A dataset is spread over it")
	fl.Float64Var(&f.qps, "qps", 0, "request starts a second, instead of the model's")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of every random choice (default: the model's, else drawn and told)")
	fl.StringArrayVar(&f.labels, "label", nil, "NAME or KEY=VALUE for each call of the run; may be repeated")
	fl.StringVar(&f.model, "model", "", "model to ask for, instead of the load model's")
	fl.StringVar(&f.tokensOf, "tokens-of", "", tokensOfHelp)
	fl.StringVar(&f.api, "api", "", "API to speak: chat, responses, messages, gemini or completions")
	fl.IntVar(&f.maxInFlight, "max-in-flight", 0, "most calls at once (default: the model's, else no limit); reaching it makes the run invalid")
	fl.DurationVar(&f.timeout, "timeout", 0, "longest time of one call (default: the model's, else none)")
	f.limits.addShort(fl)
	f.limits.rules.rows = &f.limit
	fl.Var(&f.limits.rules, "limit", "rows of a trace or dataset to send, as 300 (default: all); or a limit of some calls, as in weir proxy")
	fl.Float64Var(&f.speed, "speed", 0, "play a trace or dataset so much faster (default 1)")
	f.run.add(fl)
	f.trace.add(fl)
	f.keep.add(fl)
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be sent, as weir plan does, and send nothing")
	fl.BoolVar(&f.noPreflight, "no-preflight", false, "leave out the small request that proves address, key, model and streaming first")
	fl.BoolVar(&f.json, "json", false, "print the report as JSON")
	a.telemetry.add(fl)
	return c
}

// runLoad checks everything that can be checked before anything is opened or
// sent.
func (a *app) runLoad(ctx context.Context, file string, f loadFlags, given func(string) bool) error {
	if err := f.keep.check(); err != nil {
		return err
	}
	plan, err := a.readPlan(ctx, file, f, given)
	if err != nil {
		return err
	}
	run := &generator.Run{ID: generator.NewRunID(), Plan: plan}
	if err := f.apply(run, file, given("seed") || plan.Model.HasSeed); err != nil {
		return err
	}
	labels, err := parseLabels(f.labels)
	if err != nil {
		return err
	}
	shape, err := f.limits.shaper(plan.Model.Rules())
	if err != nil {
		return err
	}
	if f.dryRun {
		o, err := a.foresee(ctx, plan, generator.OutlookOptions{})
		if err != nil {
			return err
		}
		if err := a.print(a.out, func(w io.Writer, s report.Style) { outlookText(w, o, s) }); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "next: weir load %s\n", f.from(file))
		return nil
	}
	var upstreams []proxy.Upstream
	switch {
	case f.target != "" && len(f.upstreams) > 0:
		return usagef("load: --upstream and --target exclude each other: the first sends through a proxy in here, the second through one that runs")
	case f.target != "" && f.limits.given():
		return usagef("load: --rps, --limit and the like are for the proxy in here, and --target for one that runs; weir limit changes what holds in that")
	case f.target != "":
		if !a.holdsAt(ctx, f.target, ruleLines(shape.Rules())) {
			a.warn([]string{fmt.Sprintf("the limits of %s do not all hold at %s, which has its own: by weir proxy --load-model, or weir limit", file, f.target)})
		}
		if _, err := parseUpstream(f.target); err != nil {
			return usage(errors.New(strings.ReplaceAll(err.Error(), "--upstream", "--target")))
		}
	case len(f.upstreams) == 0:
		return usage(&hinted{errors.New("load: no --upstream and no --target: where should requests go?"),
			"weir sim --listen 127.0.0.1:9001, then weir load " + file + " --upstream http://127.0.0.1:9001"})
	default:
		pf := proxyFlags{upstreams: f.upstreams, caFile: f.caFile, upstreamProxy: f.upstreamProxy}
		if upstreams, err = pf.proxyUpstreams(a.env); err != nil {
			return err
		}
	}
	if a.impair = impairerOf(plan.Model, plan.Seed); a.impair != nil && f.target != "" {
		a.warn([]string{"the load model's impair is for a proxy inside weir load, and is passed over with --target: give that weir the model, as weir proxy --load-model " + file})
		a.impair = nil
	}
	if f.keep.what != "none" && f.target != "" { // $WEIR_KEEP may be meant for that weir
		a.warn([]string{"--keep is for a proxy inside weir load, and is passed over with --target: say it to that weir"})
	}
	tellImpairments(a.err, a.impair)
	s, err := a.openStack(f.db, shape)
	if err != nil {
		return err
	}
	if secret, _ := a.env(sharedSecret); plan.Shard.Of > 1 && secret == "" {
		s.secret = []byte("shards of run " + run.ID) // they must name a key alike
	}
	if !run.StartAt.IsZero() {
		fmt.Fprintf(a.err, "starts at %s, in %s\n", run.StartAt.Format(time.RFC3339), time.Until(run.StartAt).Round(time.Second))
	}
	run.Tracer, run.Labels, run.MaxInFlight, run.Timeout = s.tracer, labels, f.maxInFlight, f.timeout
	return errors.Join(a.load(ctx, s, run, upstreams, f), s.close())
}

// load opens the inner proxy, if there is one, and plays the plan.
func (a *app) load(ctx context.Context, s *stack, run *generator.Run, upstreams []proxy.Upstream, f loadFlags) (failed error) {
	run.Target = generator.Target{BaseURL: f.target, Keys: a.keys()}
	shown := f.target
	settle := func() { time.Sleep(recordedElsewhere) }
	if len(upstreams) > 0 {
		p := s.proxy(upstreams)
		p.Log = a.logger(false)
		a.tellLanes(s.shaper)
		kept, err := s.keep(f.keep)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, kept.close()) }()
		p.Keep = kept.seam
		base, stop, err := serveInside(p)
		if err != nil {
			return err
		}
		defer stop()
		shown, settle = upstreams[0].URL.String(), stop
		run.Target.BaseURL, run.Target.Shown = base, shown
	}
	return a.play(ctx, s, run, playOptions{
		shown: shown, preflight: !f.noPreflight, selfCheck: !f.run.noSelfCheck, proxied: len(upstreams) > 0, json: f.json, settle: settle,
	})
}

// recordedElsewhere is the time after which a weir in another process has
// written down what it carried.
const recordedElsewhere = 400 * time.Millisecond

// serveInside serves p on a loopback port of this process. stop lets what is
// under way end, and may be called again.
func serveInside(p *proxy.Proxy) (base string, stop func(), err error) {
	l, err := loopbackListener()
	if err != nil {
		return "", nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		p.Serve(l) //nolint:errcheck // a failing proxy shows in every call
	}()
	stop = sync.OnceFunc(func() {
		wait, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if p.Shutdown(wait) != nil {
			p.Close()
		}
		<-served
	})
	return "http://" + l.Addr().String(), stop, nil
}

// sendable says whether --qps is a rate that a load model may have, too.
func sendable(qps float64) bool { return positive(qps) && qps <= loadmodel.MostQPS }

func unsendable(qps float64) error {
	return usagef("--qps %g: want a rate above 0, at most %d", qps, loadmodel.MostQPS)
}

// positive says whether f is a number above 0, which NaN and Inf are not.
func positive(f float64) bool { return f > 0 && !math.IsInf(f, 0) }

// readModel reads a load model; what is wrong with it is a matter of usage.
func readModel(file string) (*loadmodel.Model, error) {
	m, err := loadmodel.Read(file)
	return m, usage(err)
}

// readPlan reads the model and puts the flags over it.
func (a *app) readPlan(ctx context.Context, file string, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	switch {
	case given("for") && f.length < shortestRun:
		return nil, usagef("--for %s: want %s or more, as 30s or 5m", f.length, shortestRun)
	case given("qps") && !sendable(f.qps):
		return nil, unsendable(f.qps)
	case given("max-in-flight") && f.maxInFlight < 0, f.limit < 0, given("timeout") && f.timeout < 0:
		return nil, usagef("--max-in-flight, --limit and --timeout: want 0 or more")
	case given("speed") && !positive(f.speed):
		return nil, usagef("--speed %g: want a factor above 0; 2 plays a trace in half the time", f.speed)
	case f.api != "" && wire.For(wire.API(f.api)) == nil:
		return nil, usagef("--api %s: want chat, responses, messages, gemini or completions", f.api)
	}
	// A pipe would be read more than once, and can keep its reader waiting.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, usagef("%s is no regular file; write what it gives into one, and name that", file)
	}
	shard, err := parseShard(f.run.shard)
	if err != nil {
		return nil, err
	}
	plan, err := a.readWhole(ctx, file, f, given)
	if err != nil {
		return nil, err
	}
	plan.Shard = shard
	if plan.Rates, err = a.ratesOf(ctx, f.tokensOf, f); err != nil {
		return nil, err
	}
	return plan, nil
}

// readWhole reads the plan of all shards.
func (a *app) readWhole(ctx context.Context, file string, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	recorded := isSelection(file)
	if err := almostSelection(file); err != nil {
		return nil, usage(err)
	}
	trace, dataset := !recorded && (f.trace.format != "" || loadmodel.LooksLikeTrace(file)), generator.LooksLikeDataset(file)
	switch {
	case (recorded || trace || dataset) && f.run.users != 0:
		return nil, usagef("--users is for load models, and %s says itself when its requests go", file)
	case recorded:
		return a.readRecorded(ctx, file, f, given)
	case trace:
		return a.readTrace(ctx, file, f, given)
	case dataset:
		if err := f.trace.notFor(file, "dataset", given); err != nil {
			return nil, err
		}
		return a.readDataset(ctx, file, f, given)
	}
	m, err := readModel(file)
	if err != nil {
		return nil, err
	}
	if m.Trace != nil {
		return a.readModelsTrace(ctx, file, m, f, given)
	}
	if err := f.trace.notFor(file, "load model", given); err != nil {
		return nil, err
	}
	if f.limit > 0 || given("speed") {
		return nil, usagef("--limit ROWS and --speed are for traces and datasets, and %s is a load model; use --for and --qps", file)
	}
	if f.length > 0 {
		m = m.Scaled(f.length)
	}
	if f.qps > 0 {
		m = m.AtQPS(f.qps)
	}
	if m, err = f.closeLoop(m); err != nil {
		return nil, err
	}
	override(m, f.model, wire.API(f.api))
	return &generator.Plan{Model: m, Seed: chooseSeed(m, f.seed, given("seed"))}, nil
}

// override puts one model and one API over all that the load model says.
func override(m *loadmodel.Model, model string, api wire.API) {
	m.Scenarios = append([]loadmodel.Scenario(nil), m.Scenarios...)
	if model != "" {
		m.Model, m.Models = model, nil
	}
	if api != "" {
		m.API = api
	}
	m.Models = append([]loadmodel.Share(nil), m.Models...)
	for i := range m.Models {
		if api != "" {
			m.Models[i].API = ""
		}
	}
	for i := range m.Scenarios {
		if model != "" {
			m.Scenarios[i].Model = ""
		}
		if api != "" {
			m.Scenarios[i].API = ""
		}
	}
}

// chooseSeed takes the flag's seed, else the model's, else draws one, which
// the report tells.
func chooseSeed(m *loadmodel.Model, flag uint64, given bool) uint64 {
	switch {
	case given:
		return flag
	case m.HasSeed:
		return m.Seed
	}
	return rand.Uint64N(1_000_000) //nolint:gosec // a seed to be told and typed again, not a secret
}

// keys reads the keys from the environment.
func (a *app) keys() generator.Keys {
	own := func(names ...string) generator.Secret {
		for _, name := range append([]string{"WEIR_API_KEY"}, names...) {
			if v, _ := a.env(name); v != "" {
				return generator.Secret(v)
			}
		}
		return ""
	}
	return generator.Keys{OpenAI: own("OPENAI_API_KEY"), Anthropic: own("ANTHROPIC_API_KEY"), Gemini: own("GEMINI_API_KEY")}
}

// parseLabels reads NAME and KEY=VALUE.
func parseLabels(flags []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, l := range flags {
		key, value, _ := strings.Cut(l, "=")
		if key == "" || url.PathEscape(key) != key {
			return nil, usagef("--label %s: want NAME or KEY=VALUE, the name of letters, digits and dashes", l)
		}
		labels[key] = value
	}
	return labels, nil
}
