package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/report"
)

// planFlags are the flags of weir plan beside those that it has from weir load.
type planFlags struct {
	loadFlags
	dataset string
	latency string
	prices  []string
	again   string // the flags that weir load wants too, to send what was planned
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan MODEL|TRACE|DATASET|SELECTION",
		Short: "Say what a load would send before anything is sent, or write it down",
		Long: `Plays a load model, a recorded trace or a dataset without sending, and says what
weir load would send: when, by scenario, how much of it a prefix cache could
hold, what it would cost at prices that you give, how many calls would be in
flight at a latency that you state, and what is unlike real traffic in it.

With --dataset it also writes the requests, prompts in full, as JSON Lines that
weir load and other tools read. The same input and seed give the same bytes.`,
		Example: `  weir plan load_model.json
  weir plan load_model.json --latency 'ttft 500ms, tpot 20ms' --price 'gpt-5-mini=0.25,2,0.025' --model gpt-5-mini
  weir plan load_model.json --seed 7 --dataset requests.jsonl
  weir plan sharegpt.json --for 10m --limit 2000`,
		Args: wantArgs(1, -1, "the load model, trace, dataset or selection of calls"),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := oneSource(args)
			if err != nil {
				return err
			}
			f.again = again(c.Flags())
			return a.runPlan(c.Context(), file, f, c.Flags().Changed)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.dataset, "dataset", "o", "", "write the requests to this file, or to the standard output with -")
	fl.StringVar(&f.latency, "latency", "", "what calls may take, as 'ttft 500ms, tpot 20ms': tells how many are in flight")
	fl.StringArrayVar(&f.prices, "price", nil, "MODEL=INPUT,OUTPUT[,CACHED], dollars a million tokens; * is any model; may be repeated")
	fl.BoolVar(&f.json, "json", false, "as JSON, the contract of store/report/PLAN.md")
	fl.DurationVar(&f.length, "for", 0, "play the model in this time; ramp and phases are scaled. A dataset is spread over it")
	fl.Float64Var(&f.qps, "qps", 0, "request starts a second, instead of the model's")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of every random choice (default: the model's, else drawn and told)")
	fl.StringVar(&f.db, "db", "", "database file in which a selection looks for calls (default: weir.db in the user's data folder)")
	f.trace.add(fl)
	fl.StringVar(&f.model, "model", "", "model to ask for, instead of the load model's")
	fl.StringVar(&f.tokensOf, "tokens-of", "", tokensOfHelp)
	fl.StringVar(&f.api, "api", "", "API to speak: chat, responses, messages, gemini or completions")
	fl.IntVar(&f.run.users, "users", 0, "closed loop of so many virtual users, instead of a rate; needs --latency")
	fl.StringVar(&f.run.shard, "shard", "", "this part of the plan, as 0/4 to 3/4; all parts together are the plan, byte for byte")
	fl.IntVar(&f.limit, "limit", 0, "requests of a trace or dataset to send (default: all)")
	fl.Float64Var(&f.speed, "speed", 0, "play a trace or dataset so much faster (default 1)")
	return c
}

func (a *app) runPlan(ctx context.Context, file string, f planFlags, given func(string) bool) error {
	options, err := f.options()
	switch {
	case err != nil:
		return usage(err)
	case f.dataset == "-" && f.json:
		return usagef("plan: --json and --dataset - would both be written to the standard output; name a file for the dataset")
	case f.dataset != "" && f.dataset != "-" && isSameFile(f.dataset, file):
		return usagef("--dataset %s: is the file that is read; name another", f.dataset)
	}
	plan, err := a.readPlan(ctx, file, f.loadFlags, given)
	if err != nil {
		return err
	}
	if f.dataset != "" {
		if err := plan.Writable(); err != nil {
			return usage(fmt.Errorf("--dataset: %w", err))
		}
	}
	o, err := a.foresee(ctx, plan, options)
	if err != nil {
		return err
	}
	if f.dataset != "" {
		if err := a.writeDataset(ctx, f.dataset, plan); err != nil {
			return err
		}
	}
	if f.json {
		return o.JSON(a.out)
	}
	out, next := a.out, f.from(file)+f.again
	switch f.dataset {
	case "":
	case "-":
		out, next = a.err, f.from("FILE")
	default:
		next = f.from(f.dataset)
	}
	if err := a.print(out, func(w io.Writer, s report.Style) { outlookText(w, o, s) }); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "next: weir load %s\n", next)
	return nil
}

// planNames are the flags that change what is sent, but for those of traces.
var planNames = []string{"seed", "for", "qps", "users", "shard", "limit", "speed", "model", "api", "tokens-of"}

// again are those of them that were given.
func again(given *pflag.FlagSet) string {
	words := ""
	given.Visit(func(f *pflag.Flag) {
		if slices.Contains(planNames, f.Name) || slices.Contains(traceFlagNames, f.Name) {
			words += " --" + f.Name + " " + shellWords(f.Value.String())
		}
	})
	return words
}

// options are what the flags state beside the plan.
func (f *planFlags) options() (o generator.OutlookOptions, err error) {
	if f.latency != "" {
		if o.Latency, err = generator.ParseLatency(f.latency); err != nil {
			return o, fmt.Errorf("--latency %w", err)
		}
	}
	o.Prices, err = parsePrices(f.prices)
	return o, err
}

// writeDataset writes a dataset to a file, or with - to the standard output. A
// file has all of it or is not touched.
func (a *app) writeDataset(ctx context.Context, path string, plan *generator.Plan) error {
	write := func(w io.Writer) error {
		err := generator.WriteDataset(ctx, w, plan)
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if path == "-" {
		return write(a.out)
	}
	toFile := func(f *os.File) error {
		progress := a.written(f, path)
		defer progress.end()
		return write(progress)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return usagef("--dataset %s: is a directory; name a file in it", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // a pipe, or /dev/null
		if err != nil {
			return usagef("--dataset %s: %w", path, err)
		}
		return errors.Join(toFile(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usagef("--dataset %s: cannot be written: %w", path, err)
	}
	err = errors.Join(toFile(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("--dataset %s: %w", path, err)
	}
	return nil
}

// isSameFile says whether two paths name one file.
func isSameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// readDataset makes the plan of a file of requests, and says what is odd in it.
func (a *app) readDataset(ctx context.Context, file string, f loadFlags, given func(string) bool) (*generator.Plan, error) {
	if given("speed") && (given("for") || given("qps")) {
		return nil, usagef("--speed keeps the times of %s, and --for and --qps put new ones in their place; give one or the other", file)
	}
	told, end := a.surveying(ctx, file)
	d, err := generator.OpenDataset(file, generator.DatasetOptions{
		Limit: f.limit, Speed: f.speed, QPS: f.qps, For: f.length, Model: f.model, API: wire.API(f.api), OnSurvey: told,
	})
	end()
	if err != nil {
		return nil, surveyed(err)
	}
	fmt.Fprintf(a.err, "dataset %s (%s): %s in %s\n", file, d.Format, counted(d.Requests, "request"), bound("at most ", d.AtMost)+counted(d.Begun, "session"))
	a.warn(d.Notes)
	m := &loadmodel.Model{}
	return &generator.Plan{Model: m, Dataset: d, Seed: chooseSeed(m, f.seed, given("seed"))}, nil
}
