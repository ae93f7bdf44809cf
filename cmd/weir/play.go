package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/generator"
	"weir/store/report"
)

// playOptions say how a run is played and told of.
type playOptions struct {
	shown     string // the endpoint, as the report names it
	preflight bool
	selfCheck bool
	proxied   bool // through a proxy in this process
	json      bool
	settle    func()   // waits until the proxy has recorded what it carried
	notes     []string // how to read the run's figures, known before it
	next      string   // the next useful command; one about the run when empty
}

// play sends a run, stores what it says of itself, prints its report, and
// gives the error that its verdict is.
func (a *app) play(ctx context.Context, s *stack, run *generator.Run, o playOptions) error {
	if o.preflight {
		run.OnRetry = func(said string) { a.warn([]string{said}) }
		warnings, err := run.Preflight(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return errInterrupted
			}
			return err
		}
		a.warn(warnings)
	}
	a.warn(run.Limits())
	if o.selfCheck {
		check, err := a.checkSelf(ctx, run.Plan, o.proxied)
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err != nil:
			return fmt.Errorf("self-check: %w; --no-self-check leaves it out", err)
		}
		fmt.Fprintln(a.err, check.note())
		warnings, err := check.judge()
		a.warn(warnings)
		if err != nil {
			return err
		}
		o.notes = append(o.notes, check.note())
	}
	if err := s.beginRun(ctx, run, o.shown); err != nil {
		return err
	}
	shown := a.watch(run)
	result, err := run.Do(ctx, a.hard)
	shown.end()
	if err != nil {
		return err
	}
	// A call ends for its client before it ends for the proxy.
	o.settle()
	ended, kept := s.endRun(run, result, o.shown, o.notes)
	// The run's calls are read back from the store: what is reported is what
	// was kept, even if that is not all. How it ended is known without.
	r, err := summarise(context.WithoutCancel(ctx), s.db, []string{"run:" + run.ID}, nil, ended)
	if err != nil {
		return errors.Join(kept, err)
	}
	if recorder := s.tracing.Recorder; kept != nil {
		missing := recorder.Waiting() + recorder.Lost()
		r.LostSpans = report.N(float64(missing))
		r.Warnings = append(r.Warnings, counted(missing, "span")+" could not be written: the figures are of the rest")
	}
	switch {
	case o.json:
		err = r.JSON(a.out)
	case result.Sent > 0:
		err = a.print(a.out, r.Text)
	}
	if err != nil {
		return err
	}
	if kept != nil {
		return coded{exitFailed, &hinted{fmt.Errorf("not all of the run could be kept: %w", kept), "weir report run:" + run.ID + s.dbFlag()}}
	}
	if result.Sent == 0 {
		return a.nothingSent(result)
	}
	next := o.next
	if next == "" {
		next = "weir calls run:" + run.ID + " --slowest" + s.dbFlag()
	}
	return judged(result, r.Wants, next, a)
}

// nothingSent is the end of a run without a call, of which there is nothing to
// look at.
func (a *app) nothingSent(result *generator.Result) error {
	switch {
	case result.Stopped != "":
		return coded{exitThreshold, errors.New("nothing of the plan was sent: the run ended itself: " + result.Stopped)}
	case result.Partial:
		return coded{exitInterrupted, errors.New("interrupted: nothing of the plan was sent")}
	}
	a.warn([]string{"nothing was sent: the plan, or this shard's part of it, has no request in its time"})
	return nil
}

// judged turns a run's verdict into the command's end. What is wanted of a run
// that is not valid is not the question.
func judged(result *generator.Result, wants []report.Want, next string, a *app) error {
	switch {
	case result.Stopped != "":
		return coded{exitThreshold, &hinted{errors.New("the run ended itself, and the report is of what was sent: " + result.Stopped), next}}
	case result.Partial:
		return coded{exitInterrupted, &hinted{errors.New("interrupted: the report is of what was sent"), next}}
	case result.Verdict != generator.Valid:
		return coded{exitThreshold, &hinted{fmt.Errorf("the run is %s: %s", result.Verdict, strings.Join(result.Reasons, "; ")), next}}
	}
	var missed []string
	for _, w := range wants {
		if w.Result != report.WantHeld {
			missed = append(missed, w.Scenario+": "+w.Want+" "+w.Result)
		}
	}
	if len(missed) > 0 {
		return coded{exitThreshold, &hinted{fmt.Errorf("not as the load model wants it: %s", strings.Join(missed, "; ")), next}}
	}
	fmt.Fprintln(a.err, "next: "+next)
	return nil
}

// warn tells of what works but not fully.
func (a *app) warn(warnings []string) {
	width, _ := terminal(a.err) // 0 where it is none, which wraps nothing
	for _, w := range warnings {
		report.Paragraph(a.err, "! ", w, 2, report.Style{Width: width})
	}
}
