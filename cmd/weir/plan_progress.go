package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/generator"
	"weir/generator/loadmodel"
)

// foresee plays a plan, and shows on a terminal how far it has come.
func (a *app) foresee(ctx context.Context, plan *generator.Plan, options generator.OutlookOptions) (*generator.Outlook, error) {
	if columns, tty := terminal(a.err); tty {
		l := &live{w: a.err, columns: columns}
		defer l.clear()
		options.OnProgress = func(p generator.Foreseen) {
			of := ""
			if p.Length > 0 {
				of = " of " + p.Length.Round(time.Second).String()
			}
			l.draw([]string{fmt.Sprintf("planning  %s%s, %s so far; Ctrl-C ends it", p.At.Round(time.Second), of, counted(p.Requests, "request"))})
		}
	}
	o := generator.Foresee(ctx, plan, options)
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case o.Problem != nil:
		return nil, usage(o.Problem)
	}
	return o, nil
}

// surveying shows on a terminal how much of a file is read before its plan is
// played, and ends that where ctx does. What it gives is told of the requests
// read so far, and to be ended.
func (a *app) surveying(ctx context.Context, file string) (told func(requests int) bool, end func()) {
	columns, tty := terminal(a.err)
	l := &live{w: a.err, columns: columns}
	told = func(requests int) bool {
		if tty && ctx.Err() == nil {
			l.draw([]string{fmt.Sprintf("reading %s, %s so far; Ctrl-C ends it", file, counted(requests, "request"))})
		}
		return ctx.Err() == nil
	}
	return told, func() {
		if tty {
			l.clear()
		}
	}
}

// surveyed is the error of a survey.
func surveyed(err error) error {
	if errors.Is(err, loadmodel.ErrStopped) {
		return errInterrupted
	}
	return usage(err)
}

// written shows on a terminal how much of a file is written.
type written struct {
	w     io.Writer
	live  *live // nil without a terminal
	path  string
	bytes int64
	shown time.Time
}

func (a *app) written(w io.Writer, path string) *written {
	c := &written{w: w, path: path, shown: time.Now()}
	if columns, tty := terminal(a.err); tty {
		c.live = &live{w: a.err, columns: columns}
	}
	return c
}

func (c *written) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.bytes += int64(n)
	if now := time.Now(); c.live != nil && now.Sub(c.shown) >= time.Second {
		c.shown = now
		c.live.draw([]string{fmt.Sprintf("writing %s, %s MB so far; Ctrl-C ends it", c.path, thousands(c.bytes/1_000_000))})
	}
	return n, err
}

// end takes the line away.
func (c *written) end() {
	if c.live != nil {
		c.live.clear()
	}
}
