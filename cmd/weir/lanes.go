package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	json   bool
}

func (a *app) lanesCommand() *cobra.Command {
	var f lanesCommandFlags
	c := &cobra.Command{
		Use:   "lanes",
		Short: "Show who waits for what in a running proxy",
		Long: `Shows the lanes of a running proxy: how many calls are in flight and how many
wait, what they wait for, and what came of all that came. A lane called "endpoint
…" is limited by nothing but what the endpoint itself says. A pipe gets
tab-separated rows with a head.`,
		Example: `  weir lanes
  weir lanes --follow
  weir lanes --json`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runLanes(c.Context(), f) },
	}
	fl := c.Flags()
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on every second, until Ctrl-C or the proxy's end")
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
	columns, tty := terminal(a.out)
	shown := &live{w: a.out, columns: columns}
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
		case f.follow:
			shown.draw(atMost(laneLines(said), terminalRows(a.out)-1))
		default:
			for _, line := range laneLines(said) {
				fmt.Fprintln(a.out, line)
			}
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

// laneLines is the table for people; empty without a lane. Columns in which
// nothing stands are left out.
func laneLines(said lanesSaid) []string {
	if len(said.Lanes) == 0 {
		return nil
	}
	columns := []report.Column{
		{Head: "lane", Left: true}, {Head: "limit", Left: true}, {Head: "in flight"}, {Head: "waiting"}, {Head: "oldest"}, {Head: "admitted/s"},
		{Head: "waits for", Left: true}, {Head: "held", Left: true}, {Head: "tokens left"},
		{Over: "calls", Head: "admitted"}, {Over: "calls", Head: "refused"}, {Over: "calls", Head: "left"}, {Over: "calls", Head: "429"},
	}
	var rows [][]string
	for _, l := range said.Lanes {
		inFlight, oldest, held, left := strconv.Itoa(l.InFlight), "–", "–", "–"
		if l.MostInFlight != nil {
			inFlight += " of " + strconv.Itoa(*l.MostInFlight)
		}
		if l.Waiting > 0 {
			oldest = waited(l.OldestMS)
		}
		if l.HeldMS > 0 {
			held = strings.TrimSpace(waited(l.HeldMS) + " " + l.HoldReason)
		}
		if l.TokensLeft != nil {
			left = strconv.FormatFloat(*l.TokensLeft, 'f', 0, 64)
		}
		rows = append(rows, []string{
			l.Name, orDash(l.Limit), inFlight, strconv.Itoa(l.Waiting), oldest, strconv.FormatFloat(l.PerS, 'f', 1, 64), orDash(l.Full), held, left,
			strconv.FormatInt(l.Admitted, 10), strconv.FormatInt(l.Refused, 10), strconv.FormatInt(l.Left, 10), strconv.FormatInt(l.EndpointRefused, 10),
		})
	}
	for i := len(columns) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "–" }) {
			columns = slices.Delete(columns, i, i+1)
			for r := range rows {
				rows[r] = slices.Delete(rows[r], i, i+1)
			}
		}
	}
	var b bytes.Buffer
	report.Table(&b, columns, rows)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// waited writes milliseconds as people read them.
func waited(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// atMost keeps as many lines as a screen has.
func atMost(lines []string, most int) []string {
	if most < 3 || len(lines) <= most {
		return lines
	}
	return append(lines[:most-1:most-1], fmt.Sprintf("… and %d more; weir lanes shows all", len(lines)-most+1))
}

// lanesHead is the head of laneRows.
const lanesHead = "at\tlane\tlimit\tin_flight\tin_flight_limit\twaiting\toldest_wait_ms\tadmitted_per_s\tfull\theld_for_ms\thold_reason\ttokens_left\t" +
	"admitted_calls\trefused_calls\tleft_calls\tendpoint_refused_calls"

// laneRows writes a row a lane, for a pipe: absent figures are empty.
func laneRows(w io.Writer, said lanesSaid) {
	at := said.At.UTC().Format("2006-01-02T15:04:05.000Z")
	for _, l := range said.Lanes {
		most, oldest, held, left := "", "", "", ""
		if l.MostInFlight != nil {
			most = strconv.Itoa(*l.MostInFlight)
		}
		if l.Waiting > 0 {
			oldest = thousandths(l.OldestMS)
		}
		if l.HeldMS > 0 {
			held = thousandths(l.HeldMS)
		}
		if l.TokensLeft != nil {
			left = thousandths(*l.TokensLeft)
		}
		report.TabLine(w, at, l.Name, l.Limit, strconv.Itoa(l.InFlight), most, strconv.Itoa(l.Waiting), oldest, thousandths(l.PerS), l.Full, held, l.HoldReason, left,
			strconv.FormatInt(l.Admitted, 10), strconv.FormatInt(l.Refused, 10), strconv.FormatInt(l.Left, 10), strconv.FormatInt(l.EndpointRefused, 10))
	}
}

func thousandths(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
