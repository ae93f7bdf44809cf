package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// traceFlags say which part of a trace is played, and how.
type traceFlags struct {
	format      string
	from, to    time.Duration
	times       string
	blockTokens int
}

// traceFlagNames are their names, which load models and datasets know nothing of.
var traceFlagNames = []string{"format", "from", "to", "times", "block-tokens"}

func (t *traceFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&t.format, "format", "", "a trace's format: "+strings.Join(loadmodel.TraceFormats(), ", ")+" (default: by how it begins)")
	fl.DurationVar(&t.from, "from", 0, "play a trace or recorded calls from that time on, as 10m after the first")
	fl.DurationVar(&t.to, "to", 0, "and only up to that time")
	fl.StringVar(&t.times, "times", "", "spread a coarse clock's rows over its ticks (spread, the default); as they stand (verbatim); or at new instants, the rate of each minute kept (resampled)")
	fl.IntVar(&t.blockTokens, "block-tokens", 0, "tokens of the blocks that a trace's hash ids stand for (default: as its format and rows say)")
}

// options are the options of a trace.
func (t *traceFlags) options(f loadFlags, seed uint64) loadmodel.TraceOptions {
	return loadmodel.TraceOptions{
		Format: t.format, From: t.from, To: t.to, Times: t.times, BlockTokens: t.blockTokens,
		Limit: f.limit, Speed: f.speed, Seed: seed,
	}
}

// notFor is the error of a flag of traces that was given for another file.
func (t *traceFlags) notFor(file, what string, given func(string) bool) error {
	for _, name := range traceFlagNames {
		if given(name) {
			return usagef("--%s is for traces and recorded calls, and %s is a %s", name, file, what)
		}
	}
	return nil
}

// readTrace makes the plan of a recorded trace, and says what is odd in it.
func (a *app) readTrace(ctx context.Context, file string, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	if given("for") || given("qps") {
		return nil, usagef("--for and --qps are for load models, and %s is a trace; use --limit and --speed", file)
	}
	m := &loadmodel.Model{Model: f.model, API: wire.API(f.api)}
	seed := chooseSeed(m, f.seed, given("seed"))
	return a.tracePlan(ctx, m, file, f.trace.options(f, seed))
}

// readModelsTrace makes the plan of a load model that names a trace. Flags go
// before what the model says of it.
func (a *app) readModelsTrace(ctx context.Context, file string, m *loadmodel.Model, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	if given("for") || given("qps") || f.run.users != 0 {
		return nil, usagef("--for, --qps and --users are for rates, and the load model %s plays a trace; use --limit and --speed", file)
	}
	override(m, f.model, wire.API(f.api))
	seed := chooseSeed(m, f.seed, given("seed"))
	o, said := f.trace.options(f, seed), m.Trace.Options(seed)
	o.Format, o.Speed, o.Limit = cmp.Or(o.Format, said.Format), cmp.Or(o.Speed, said.Speed), cmp.Or(o.Limit, said.Limit)
	return a.tracePlan(ctx, m, m.Trace.File, o)
}

func (a *app) tracePlan(ctx context.Context, m *loadmodel.Model, file string, o loadmodel.TraceOptions) (*generator.Plan, error) {
	told, end := a.surveying(ctx, file)
	defer end()
	o.OnSurvey = told
	t, err := loadmodel.OpenTrace(file, o)
	if err != nil {
		return nil, usage(err)
	}
	if err := a.tellTrace(t, m, end, fmt.Sprintf("trace %s (%s)", file, t.Format)); err != nil {
		return nil, err
	}
	return &generator.Plan{Model: m, Trace: t, Seed: o.Seed}, nil
}

// tellTrace says what a trace holds, what is odd in it, and what is sent for that
// neither it nor the model says, when end has ended the telling of how far it is
// read.
func (a *app) tellTrace(t *loadmodel.Trace, m *loadmodel.Model, end func(), shown string) error {
	survey, err := t.Survey()
	end()
	if err != nil {
		return surveyed(err)
	}
	if survey.Rows == 0 {
		return usagef("%s: no row stands in the time that --from and --to leave", shown)
	}
	sentence(a.err, fmt.Sprintf("%s: %s over %s", shown, counted(survey.Rows, "request"), survey.Span.Round(time.Second)), a.style(a.err))
	a.warn(survey.Notes)
	switch silent := survey.Silent; {
	case silent == 0 || len(m.Scenarios) > 0: // its scenario says how it is sent
	case silent == survey.Sessions:
		a.warn([]string{"it does not say whether answers were streamed: streams are asked for"})
	default:
		a.warn([]string{partly(silent, survey.Sessions, "row", "does", "do") + " not say whether the answer was streamed: a stream is asked for"})
	}
	return nil
}
