package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"weir/generator"
	"weir/generator/loadmodel"
)

// runFlags are the flags of weir load that say how a run begins and ends, and
// which part of the plan it sends.
type runFlags struct {
	users       int
	abortIf     conditionTexts
	budget      string
	prices      []string
	shard       string
	startAt     string
	noSelfCheck bool
}

func (f *runFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.users, "users", 0, "closed loop: so many virtual users, each a session after the other, instead of a rate")
	fl.Var(&f.abortIf, "abort-if", "end the run when this holds, as 'error rate > 20% for 10s', 'ttft p95 > 8s', 'lag p99 > 50ms', 'in flight > 500 for 5s'; may be repeated")
	fl.StringVar(&f.budget, "budget", "", "most that the run may use, as 'tokens 2000000, usd 5' (default: the model's, else no limit)")
	fl.StringArrayVar(&f.prices, "price", nil, "MODEL=INPUT,OUTPUT[,CACHED], dollars a million tokens, for a budget in dollars; * is any model; may be repeated")
	fl.StringVar(&f.shard, "shard", "", "send this part of the plan, as 0/4 to 3/4 on four machines; weir merge puts their stores together")
	fl.StringVar(&f.startAt, "start-at", "", "when the plan begins, as 2026-05-04T10:00:00Z, in Unix seconds, or +30s (default: at once)")
	fl.BoolVar(&f.noSelfCheck, "no-self-check", false, "leave out the short burst at a simulated endpoint that tells what this machine can do")
}

// conditionTexts are conditions as they are written, several with semicolons
// between.
type conditionTexts struct{ list []generator.Condition }

// Set adds conditions.
func (c *conditionTexts) Set(text string) error {
	for one := range strings.SplitSeq(text, ";") {
		parsed, err := generator.ParseCondition(one)
		if err != nil {
			return err
		}
		c.list = append(c.list, parsed)
	}
	return nil
}

func (c *conditionTexts) String() string {
	var texts []string
	for _, one := range c.list {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, "; ")
}

// Type is what the help calls a value.
func (c *conditionTexts) Type() string { return "condition" }

// parsePrices reads --price.
func parsePrices(texts []string) (prices []generator.Price, err error) {
	for _, text := range texts {
		p, err := generator.ParsePrice(text)
		if err != nil {
			return nil, fmt.Errorf("--price %w", err)
		}
		prices = append(prices, p)
	}
	return prices, nil
}

// parseStart reads --start-at; absolute is false for a time that is counted
// from now.
func parseStart(text string, now time.Time) (at time.Time, absolute bool, err error) {
	if after, relative := strings.CutPrefix(text, "+"); relative {
		d, err := time.ParseDuration(after)
		if err != nil || d < 0 {
			return at, false, usagef("--start-at %s: want a time from now, as +30s", text)
		}
		return now.Add(d), false, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		at = time.Unix(seconds, 0)
	} else if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, false, usagef("--start-at %s: want 2026-05-04T10:00:00Z, Unix seconds, or +30s", text)
	}
	if late := now.Sub(at); late > 0 {
		return at, true, usagef("--start-at %s has passed %s ago: what was due since would be late; name a time to come, with room for starting all machines", text, late.Round(time.Second))
	}
	if wait := at.Sub(now); wait > longestWait {
		return at, true, usagef("--start-at %s is %.0f days from now: want at most %.0f; Unix seconds have 10 digits", text, wait.Hours()/24, longestWait.Hours()/24)
	}
	return at, true, nil
}

// longestWait is how far ahead a run may begin: who means more has mistyped.
const longestWait = 31 * 24 * time.Hour

// apply puts the flags over a run, whose plan is set, and names it: the shards
// of one plan at one instant are one run.
func (f *loadFlags) apply(run *generator.Run, file string, seeded bool) error {
	var err error
	run.AbortIf = f.run.abortIf.list
	if f.run.budget != "" {
		if run.Budget, err = generator.ParseBudget(f.run.budget); err != nil {
			return usagef("--budget %w", err)
		}
	}
	if run.Prices, err = parsePrices(f.run.prices); err != nil {
		return usage(err)
	}
	if err := run.CheckBudget(); err != nil {
		return usage(err)
	}
	absolute := false
	if f.run.startAt != "" {
		if run.StartAt, absolute, err = parseStart(f.run.startAt, time.Now()); err != nil {
			return err
		}
	}
	switch shard := run.Plan.Shard; {
	case shard.Of <= 1:
	case !absolute:
		return usagef("--shard %s: needs --start-at TIME, the same for all %d shards, so that they are one run", shard, shard.Of)
	case !seeded:
		return usagef("--shard %s: needs --seed, the same for all %d shards, so that they draw one plan", shard, shard.Of)
	default:
		run.ID = f.sharedID(run, file)
	}
	return nil
}

// sharedID is the id that all shards of a run find by themselves. Whatever makes
// their plans different makes their ids so.
func (f *loadFlags) sharedID(run *generator.Run, file string) string {
	var source []byte
	if run.Plan.Model != nil {
		source = run.Plan.Model.Source
	}
	all := fmt.Sprintf("%s\n%s\n%d %d %d %d %g %d %q %q %d %g", filepath.Base(file), source, run.Plan.Seed, run.StartAt.UnixNano(), run.Plan.Shard.Of,
		run.Plan.Length(), f.qps, f.run.users, f.model, f.api, f.limit, f.speed)
	sum := sha256.Sum256([]byte(all))
	return hex.EncodeToString(sum[:4])
}

// parseShard reads --shard; empty is all of the plan.
func parseShard(text string) (generator.Shard, error) {
	if text == "" {
		return generator.Shard{}, nil
	}
	s, err := generator.ParseShard(text)
	if err != nil {
		return s, usagef("--shard %w", err)
	}
	return s, nil
}

// closeLoop makes a closed loop of a model.
func (f *loadFlags) closeLoop(m *loadmodel.Model) (*loadmodel.Model, error) {
	switch {
	case f.run.users < 0:
		return nil, usagef("--users %d: want 1 or more", f.run.users)
	case f.run.users == 0:
		return m, nil
	case f.qps > 0:
		return nil, usagef("--users and --qps exclude each other: in a closed loop the endpoint's answers say how fast requests go")
	}
	return m.AtConcurrency(f.run.users), nil
}
