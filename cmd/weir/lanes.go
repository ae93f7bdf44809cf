package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/shaper"
	"weir/store/report"
)

// lanesSchema names the contract of shaper/LANES.md.
const lanesSchema = "weir.lanes/1"

// lanesSaid is the state of a running proxy's lanes.
type lanesSaid struct {
	Schema string             `json:"schema"`
	At     time.Time          `json:"at"`
	Listen string             `json:"listen"` // of the proxy
	Limits []string           `json:"limits"` // the rules that lanes come from, as they are written
	Lanes  []shaper.LaneState `json:"lanes"`
}

// lanesCommandFlags are the flags of weir lanes.
type lanesCommandFlags struct {
	which
	follow bool
	all    bool
	json   bool
}

func (a *app) lanesCommand() *cobra.Command {
	var f lanesCommandFlags
	c := &cobra.Command{
		Use:   "lanes",
		Short: "Show who waits for what in a running proxy",
		Long: `Shows the lanes of a running proxy: how many calls are in flight and how many
wait, what bounds them, until when the endpoint's word holds them, and what came
of all that came. A lane called "endpoint …" is limited by nothing but what the
endpoint itself says. A wide terminal shows more than a narrow one; idle lanes of
those that come with their calls, as by session=each, are only counted. A pipe
gets tab-separated rows of all, with a head.`,
		Example: `  weir lanes
  weir lanes --follow
  weir lanes --json`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runLanes(c.Context(), f) },
	}
	fl := c.Flags()
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on every second, until Ctrl-C or the proxy's end")
	fl.BoolVarP(&f.all, "all", "a", false, "on a terminal: each idle lane too")
	fl.BoolVar(&f.json, "json", false, "as JSON, the contract of shaper/LANES.md; with --follow a line each time")
	f.which.add(fl)
	return c
}

// followEvery is the time between two looks at the lanes.
const followEvery = time.Second

func (a *app) runLanes(ctx context.Context, f lanesCommandFlags) error {
	p, err := a.pick(ctx, f.which)
	if err != nil {
		return err
	}
	_, tty := terminal(a.out)
	shown := &live{w: a.out}
	if !f.json && !tty {
		fmt.Fprintln(a.out, lanesHead)
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		var said lanesSaid
		if err := p.ask(ctx, http.MethodGet, "/lanes", nil, &said); err != nil {
			switch {
			case ctx.Err() != nil:
				return nil
			case n > 0:
				fmt.Fprintf(a.err, "the weir proxy with pid %d has ended\n", p.Pid)
				return nil
			}
			return err
		}
		switch empty := n == 0 && len(said.Lanes) == 0; {
		case empty && len(said.Limits) == 0:
			fmt.Fprintf(a.err, "nothing limits the calls, so that there is no lane\nnext: weir limit rps=5%s\n", f.flags())
		case empty:
			fmt.Fprintf(a.err, "no lane yet: each comes with its first call, by %s\n", strings.Join(said.Limits, "; "))
		}
		switch {
		case f.json:
			err = writeJSON(a.out, said, f.follow)
		case !tty:
			laneRows(a.out, said)
		default:
			shown.columns, _ = terminal(a.out) // as wide as it is by now
			view := laneView{columns: shown.columns - 1, all: f.all}
			if f.follow {
				view.lines = terminalRows(a.out) - 1
			}
			shown.draw(laneLines(said, view))
		}
		if err != nil || !f.follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// writeJSON writes a value on one line, or for reading.
func writeJSON(w io.Writer, v any, line bool) error {
	e := json.NewEncoder(w)
	if !line {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// lanesHead is the head of laneRows.
const lanesHead = "at\tlane\tlimit\tin_flight\tin_flight_limit\twaiting\toldest_wait_ms\tadmitted_per_s\tfull\theld_for_ms\thold_reason\ttokens_left\t" +
	"admitted_calls\trefused_calls\tleft_calls\tendpoint_refused_calls\teach"

// laneRows writes a row a lane, for a pipe: absent figures are empty.
func laneRows(w io.Writer, said lanesSaid) {
	at := said.At.UTC().Format("2006-01-02T15:04:05.000Z")
	for _, l := range said.Lanes {
		most, oldest, rate, held, left := "", "", "", "", ""
		if l.MostInFlight != nil {
			most = strconv.Itoa(*l.MostInFlight)
		}
		if l.Waiting > 0 {
			oldest = thousandths(l.OldestMS)
		}
		if l.PerS != nil {
			rate = thousandths(*l.PerS)
		}
		if l.HeldMS > 0 {
			held = thousandths(l.HeldMS)
		}
		if l.TokensLeft != nil {
			left = thousandths(*l.TokensLeft)
		}
		report.TabLine(w, at, l.Name, l.Limit, strconv.Itoa(l.InFlight), most, strconv.Itoa(l.Waiting), oldest, rate, l.Full, held, l.HoldReason, left,
			strconv.FormatInt(l.Admitted, 10), strconv.FormatInt(l.Refused, 10), strconv.FormatInt(l.Left, 10), strconv.FormatInt(l.EndpointRefused, 10), strconv.FormatBool(l.Each))
	}
}

func thousandths(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
