package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// callsFlags are the flags of weir calls.
type callsFlags struct {
	db       string
	follow   bool
	slowest  bool
	inFlight bool
	json     bool
	content  bool
	forget   string
	limit    int
}

func (a *app) callsCommand() *cobra.Command {
	var f callsFlags
	c := &cobra.Command{
		Use:   "calls [SELECTION…|ID]",
		Short: "List calls, or draw where one call's time went",
		Long: `Lists the calls that a selection names, the newest at the end, or shows one by the
beginning of its id, with what weir proxy --keep kept of it. A pipe gets
tab-separated rows, with figures in milliseconds and a head.
` + store.SelectionHelp(),
		Example: `  weir calls
  weir calls run:7f3a --slowest
  weir calls --follow scenario:short_chat
  weir calls --in-flight
  weir calls 3f9c1a
  weir calls 3f9c1a --content
  weir calls --forget 30m`,
		Args: wantArgs(0, -1, ""),
		RunE: func(c *cobra.Command, args []string) error { return a.runCalls(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on with each call as it ends, until Ctrl-C")
	fl.BoolVar(&f.slowest, "slowest", false, "the slowest first, by TTFT as it was felt")
	fl.BoolVar(&f.inFlight, "in-flight", false, "calls that have not ended")
	fl.BoolVar(&f.json, "json", false, "each call as a line of JSON, with all attributes of its span")
	fl.BoolVar(&f.content, "content", false, "one call with its request and response, where they were kept")
	fl.StringVar(&f.forget, "forget", "", "delete what was kept of calls: those of the last 30m or so, one by its id, or all; their figures stay")
	fl.IntVarP(&f.limit, "limit", "n", 20, "how many; 0: all")
	onceOnly(fl, "forget")
	return c
}

var spanID = regexp.MustCompile(`^[0-9A-Fa-f]{1,32}$`)

func (a *app) runCalls(ctx context.Context, words []string, f callsFlags) error {
	one := len(words) == 1 && spanID.MatchString(words[0])
	if f.limit < 0 {
		return usagef("--limit %d: want 0 or more", f.limit)
	}
	if f.follow && (f.slowest || f.inFlight) || f.slowest && f.inFlight {
		return usagef("calls: --follow, --slowest and --in-flight exclude each other")
	}
	if f.forget != "" {
		if len(words) > 0 || f.follow || f.slowest || f.inFlight || f.json || f.content {
			return usagef("calls: --forget says itself what is deleted; leave out everything but --db")
		}
		return a.forget(ctx, f.forget, f.db)
	}
	if f.content && !one {
		return usagef("calls: --content is of one call; say which, by the beginning of its id")
	}
	var selection store.Selection
	var err error
	if !one {
		if selection, err = parseSelection(words); err != nil {
			return err
		}
	}
	db, err := a.openToRead(ctx, f.db)
	if err != nil {
		return err
	}
	switch {
	case one:
		err = a.oneCall(ctx, db, words[0], f)
	case f.inFlight:
		err = a.openCalls(ctx, db, f)
	case f.follow:
		err = a.followCalls(ctx, db, selection, f)
	default:
		err = a.listCalls(ctx, db, selection, f)
	}
	return errors.Join(err, db.Close())
}

// oneCall draws one call's account, and what was kept of it.
func (a *app) oneCall(ctx context.Context, db *store.DB, id string, f callsFlags) error {
	views, err := db.Call(ctx, id)
	if err != nil {
		return err
	}
	content, err := contentOf(ctx, db, views)
	if err != nil {
		return err
	}
	if f.json {
		return report.CallJSON(a.out, views[0], content, f.content)
	}
	var other *call.Call
	for _, v := range views[1:] {
		if v.Side != views[0].Side {
			other = v
			break
		}
	}
	style := a.style(a.out)
	report.Explain(a.out, views[0], other, style)
	if content != nil {
		report.Content(a.out, content, f.content, style)
	}
	own := report.SpanText(views[0]) + dbFlag(f.db)
	switch {
	case f.content && (content == nil || !content.Full):
		fmt.Fprintln(a.err, "! the request and the response were not kept; weir proxy --keep full keeps those to come")
	case content != nil && content.Full && f.content:
		fmt.Fprintf(a.err, "next: weir calls --forget %s   (deletes what it says)\n", own)
	case content != nil && content.Full:
		fmt.Fprintf(a.err, "next: weir calls %s --content   (what it says)\n", own)
	case other != nil:
		fmt.Fprintf(a.err, "next: weir calls %s%s   (as the other side saw it)\n", report.SpanText(other), dbFlag(f.db))
	}
	return nil
}

// contentOf is what is kept of a call, which the proxy saw; nil for nothing.
func contentOf(ctx context.Context, db *store.DB, views []*call.Call) (*store.Content, error) {
	for _, v := range views {
		content, ok, err := db.Content(ctx, v.SpanID)
		if err != nil {
			return nil, err
		}
		if ok {
			return &content, nil
		}
	}
	return nil, nil
}

// listCalls lists the newest, or the slowest, one line a call: the proxy's view
// where both sides measured it.
func (a *app) listCalls(ctx context.Context, db *store.DB, selection store.Selection, f callsFlags) error {
	order := store.Order{By: "newest"}
	if f.slowest {
		order.By = "slowest"
	}
	var calls []*call.Call
	at := map[[8]byte]int{} // by the client's span where there is one
	for c, err := range db.Calls(ctx, selection, order) {
		if err != nil {
			return err
		}
		key := c.SpanID
		if c.Side == call.Proxy && c.ParentSpan != [8]byte{} {
			key = c.ParentSpan
		}
		i, known := at[key]
		switch {
		case known && c.Side == call.Proxy && calls[i].Side == call.Client:
			calls[i] = c
		case known && c.Side == call.Client:
		default:
			at[key] = len(calls)
			calls = append(calls, c)
		}
		if f.limit > 0 && len(calls) > f.limit {
			break
		}
	}
	if f.limit > 0 {
		calls = calls[:min(f.limit, len(calls))]
	}
	if len(calls) == 0 {
		fmt.Fprintf(a.err, "no calls in %s for %s\n", db.Path, selection)
		fmt.Fprintf(a.err, "next: weir calls all%s, or weir demo to make some\n", dbFlag(f.db))
		return nil
	}
	// The proxy's view of the last ones may not have been read yet.
	for i, c := range calls {
		if c.Side != call.Client {
			continue
		}
		views, err := db.Call(ctx, report.SpanText(c))
		if err != nil {
			return err
		}
		for _, v := range views {
			if v.Side == call.Proxy && v.ParentSpan == c.SpanID {
				calls[i] = v
			}
		}
	}
	if !f.slowest {
		slices.Reverse(calls)
	}
	if err := a.writeCalls(calls, f); err != nil {
		return err
	}
	worth := calls[len(calls)-1]
	if f.slowest {
		worth = calls[0]
	}
	fmt.Fprintf(a.err, "next: weir calls %s%s\n", report.SpanText(worth), dbFlag(f.db))
	return nil
}

// writeCalls writes a table for people, or rows for a pipe.
func (a *app) writeCalls(calls []*call.Call, f callsFlags) error {
	if _, tty := terminal(a.out); tty && !f.json {
		report.List(a.out, calls, a.style(a.out))
		return nil
	}
	if !f.json {
		fmt.Fprintln(a.out, report.ListHead)
	}
	for _, c := range calls {
		if err := a.writeCall(c, f, a.style(a.out)); err != nil {
			return err
		}
	}
	return nil
}

// writeCall writes one line.
func (a *app) writeCall(c *call.Call, f callsFlags, style report.Style) error {
	_, tty := terminal(a.out)
	switch {
	case f.json:
		return report.CallLine(a.out, c)
	case tty:
		report.ListLine(a.out, c, style)
	default:
		report.ListRow(a.out, c)
	}
	return nil
}

// followCalls writes each call as it ends.
func (a *app) followCalls(ctx context.Context, db *store.DB, selection store.Selection, f callsFlags) error {
	if _, tty := terminal(a.out); !tty && !f.json {
		fmt.Fprintln(a.out, report.ListHead)
	}
	style := a.style(a.out)
	for c, err := range db.Follow(ctx, selection) {
		if err == nil {
			err = a.writeCall(c, f, style)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openCalls lists the calls that have not ended.
func (a *app) openCalls(ctx context.Context, db *store.DB, f callsFlags) error {
	open, err := db.InFlight(ctx)
	if err != nil {
		return err
	}
	var going, broken []*call.Call
	for _, o := range open {
		if o.Interrupted {
			broken = append(broken, o.Call)
		} else {
			going = append(going, o.Call)
		}
	}
	if len(going) == 0 {
		fmt.Fprintln(a.err, "no calls are in flight")
	} else if err := a.writeCalls(going, f); err != nil {
		return err
	}
	if len(broken) > 0 {
		ids := make([]string, 0, len(broken))
		for _, c := range broken[:min(5, len(broken))] {
			ids = append(ids, report.SpanText(c))
		}
		fmt.Fprintf(a.err, "! %d more never ended: the weir that carried them was killed (%s)\n", len(broken), strings.Join(ids, ", "))
	}
	fmt.Fprintln(a.err, "next: weir calls --follow"+dbFlag(f.db))
	return nil
}
