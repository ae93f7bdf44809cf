package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"weir/generator"
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
			l.draw([]string{fmt.Sprintf("planning  %s%s, %s requests so far; Ctrl-C ends it", p.At.Round(time.Second), of, thousands(int64(p.Requests)))})
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
