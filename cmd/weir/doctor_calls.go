package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// incident is one call that failed or is odd.
type incident struct {
	outcome    call.Outcome
	status     int
	what, next string
	started    time.Time
	id         string
	lane       lane
	client     bool // as the generator saw it
}

// lane is where a call went: what works there again is no trouble any more.
type lane struct{ host, path, model string }

func laneOf(c *call.Call) lane { return lane{c.Host, c.Path, c.Request.Model} }

// trouble is several incidents for which the same is to be done.
type trouble struct {
	newest incident
	calls  int
}

// mostTroubles is how many are shown, the most frequent ones.
const mostTroubles = 6

// recentFailures groups the last hour's calls that failed, or that are odd, by
// what is to be done. works says that the endpoint was found to work now: what
// failed before is then only told.
func (a *app) recentFailures(ctx context.Context, path string, works bool) ([]report.Finding, error) {
	db, err := a.recorded(ctx, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return []report.Finding{{Mark: report.Skipped, Cells: []string{"nothing was recorded yet"}}}, nil
	case err != nil:
		return nil, err
	}
	troubles, calls, mended, err := readTroubles(ctx, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	var found []report.Finding
	for _, t := range troubles[:min(len(troubles), mostTroubles)] {
		i := &t.newest
		head := string(i.outcome)
		if i.status != 0 && i.outcome != call.OK {
			head = fmt.Sprintf("%s %d", i.outcome, i.status)
		}
		ago := time.Since(i.started).Round(time.Second)
		f := report.Finding{Cells: []string{head, plural(t.calls, "call"), fmt.Sprintf("last %s ago: weir calls %s%s", ago, i.id, dbFlag(path))}, What: i.what, Next: i.next}
		switch {
		case i.outcome == call.OK || i.outcome == call.ClientGone || works:
			f.Mark = report.Odd
		case mended[i.lane].After(i.started):
			f.Mark = report.Odd
			f.Notes = []string{"the same worked again since"}
		default:
			f.Mark = report.Bad
		}
		found = append(found, f)
	}
	if more := len(troubles) - mostTroubles; more > 0 {
		found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{plural(more, "more kind") + " of failure: weir report since:1h" + dbFlag(path)}})
	}
	switch {
	case len(found) > 0:
	case calls == 0:
		found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{"none"}})
	default:
		found = append(found, report.Finding{Cells: []string{plural(calls, "call") + ", all well"}})
	}
	return found, nil
}

// recorded opens the database if there is one.
func (a *app) recorded(ctx context.Context, path string) (*store.DB, error) {
	where := path
	var err error
	if where == "" {
		if where, err = store.DefaultPath(a.env); err != nil {
			return nil, usage(err)
		}
	}
	if _, err := os.Stat(where); errors.Is(err, os.ErrNotExist) && path == "" {
		return nil, err
	}
	return a.openToRead(ctx, where)
}

// readTroubles reads the last hour: what went wrong, the most frequent first;
// how many calls there were; and when each lane worked last. A call that both
// sides measured counts once, as the proxy saw it.
func readTroubles(ctx context.Context, db *store.DB) (all []*trouble, calls int, mended map[lane]time.Time, err error) {
	selection, err := store.ParseSelection([]string{"since:1h"})
	if err != nil {
		return nil, 0, nil, err
	}
	mended = map[lane]time.Time{}
	incidents := map[[16]byte]incident{}
	seen := map[[16]byte]bool{}
	for c, err := range db.Calls(ctx, selection, store.Order{By: "oldest"}) {
		if err != nil {
			return nil, 0, nil, err
		}
		if !seen[c.TraceID] {
			seen[c.TraceID] = true
			calls++
		}
		if c.Outcome == call.OK {
			mended[laneOf(c)] = c.Started()
		}
		what, next := c.Explain()
		if before, known := incidents[c.TraceID]; what != "" && (!known || before.client) {
			incidents[c.TraceID] = incident{c.Outcome, c.Status, what, next, c.Started(), report.SpanText(c)[:8], laneOf(c), c.Side == call.Client}
		}
	}
	return groupIncidents(incidents), calls, mended, nil
}

// groupIncidents puts together what calls for the same step.
func groupIncidents(incidents map[[16]byte]incident) []*trouble {
	type key struct {
		outcome call.Outcome
		status  int
		next    string
	}
	var all []*trouble
	groups := map[key]*trouble{}
	for _, i := range incidents {
		k := key{i.outcome, i.status, i.next}
		t := groups[k]
		if t == nil {
			t = &trouble{}
			groups[k] = t
			all = append(all, t)
		}
		t.calls++
		if t.newest.id == "" || i.started.After(t.newest.started) {
			t.newest = i
		}
	}
	slices.SortFunc(all, func(x, y *trouble) int {
		if x.calls != y.calls {
			return y.calls - x.calls
		}
		return y.newest.started.Compare(x.newest.started)
	})
	return all
}
