package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// soon VAR TIME: puts the time so long from now into VAR, in Unix seconds.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	after, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], fmt.Sprint(time.Now().Add(after).Unix()))
}

// atonce N weir …: runs weir N times at once and waits for all, with the number
// from 0 in the place of each {}. A run that this machine could not do justice,
// which exits with 3, will do.
func eachAtOnce(ts *testscript.TestScript, _ bool, args []string) {
	var n int
	if _, err := fmt.Sscan(args[0], &n); err != nil {
		ts.Fatalf("atonce %s: %v", args[0], err)
	}
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "TZ", "OPENAI_API_KEY"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p, err := exec.LookPath(filepath.Join(dir, args[1])); err == nil && program == "" {
			program = p
		}
	}
	var all sync.WaitGroup
	said := make([]string, n)
	for i := range n {
		all.Go(func() {
			var own []string
			for _, a := range args[2:] {
				own = append(own, strings.ReplaceAll(a, "{}", fmt.Sprint(i)))
			}
			c := exec.Command(program, own...)
			c.Dir, c.Env = ts.Getenv("WORK"), env
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitThreshold) {
				said[i] = fmt.Sprintf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	if text := strings.Join(said, ""); text != "" {
		ts.Fatalf("%s", text)
	}
}

// planned is what a call was to be, and what is certain of its answer.
type planned struct {
	Scenario, Session string
	Turn              int
	Due               time.Duration // of a session's first; a later one's follows the answer
	Input, Output     int64
	Answered          int64
	Outcome           call.Outcome
}

// runIn reads the only run of a database: its client's calls in the order of
// what they are, and its report.
func runIn(ts *testscript.TestScript, file string) (store.Run, []planned, *report.Report) {
	db, err := store.Open(context.Background(), ts.MkAbs(file), store.Options{ReadOnly: true})
	ts.Check(err)
	defer db.Close()
	runs, err := db.Runs(context.Background(), "")
	ts.Check(err)
	if len(runs) != 1 {
		ts.Fatalf("%s has %d runs, want 1", file, len(runs))
	}
	run := runs[0]
	selection, err := store.ParseSelection([]string{"run:" + run.ID})
	ts.Check(err)
	var calls []planned
	for c, err := range db.Calls(context.Background(), selection, store.Order{}) {
		ts.Check(err)
		if c.Side != call.Client {
			continue
		}
		p := planned{Scenario: c.Scenario, Session: strings.TrimPrefix(c.Session, run.ID), Turn: c.Turn,
			Input: c.ExpectedInput.N, Output: c.ExpectedOutput.N, Answered: c.Usage.Output.N, Outcome: c.Outcome}
		if c.Turn <= 1 {
			p.Due = c.Due.Time().Sub(run.Started)
		}
		calls = append(calls, p)
	}
	slices.SortFunc(calls, func(a, b planned) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	r, err := summarise(context.Background(), db, []string{"run:" + run.ID}, nil)
	ts.Check(err)
	return run, calls, r
}

// sameRun A B: the runs of two databases sent the same requests at the same
// instants of their plan, and their reports say the same of all that does not
// depend on the moment.
func sameRun(ts *testscript.TestScript, _ bool, args []string) {
	a, callsA, reportA := runIn(ts, args[0])
	b, callsB, reportB := runIn(ts, args[1])
	if len(callsA) < 30 {
		ts.Fatalf("%s has only %d calls", args[0], len(callsA))
	}
	if diff := cmp.Diff(callsA, callsB); diff != "" {
		ts.Fatalf("the calls differ (-%s +%s):\n%s", args[0], args[1], diff)
	}
	type certain struct {
		Planned, Sent, NotSent int
		Scenarios              []string
		Partial                bool
	}
	of := func(r store.Run) certain { return certain{r.Planned, r.Sent, r.NotSent, r.Scenarios, r.Partial} }
	if diff := cmp.Diff(of(a), of(b)); diff != "" {
		ts.Fatalf("the runs differ (-%s +%s):\n%s", args[0], args[1], diff)
	}
	type row struct {
		Group         []string
		Calls, OK, N  int
		Output        report.Num
		Felt, FromDue int
	}
	rows := func(r *report.Report) (list []row) {
		for _, w := range append(slices.Clone(r.Rows), r.Total) {
			list = append(list, row{w.Group, w.Calls, w.OK, w.Views.Both, w.Tokens.Output, w.TTFTFelt.N, w.TTFTResponse.N})
		}
		return list
	}
	if diff := cmp.Diff(rows(reportA), rows(reportB)); diff != "" {
		ts.Fatalf("the reports differ (-%s +%s):\n%s", args[0], args[1], diff)
	}
	if len(reportA.Endpoints) != len(reportB.Endpoints) {
		ts.Fatalf("%d endpoints and %d: a key has several names", len(reportA.Endpoints), len(reportB.Endpoints))
	}
}
