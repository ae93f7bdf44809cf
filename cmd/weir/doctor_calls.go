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
	beside     bool // it asked no model: tools look around, and do without what is not there
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

// recent is what the last hour's calls tell.
type recent struct {
	flag     string // --db as it was given
	recorded bool   // there is a database
	calls    int
	troubles []*trouble         // the most frequent first
	worked   map[lane]time.Time // when each lane did last
}

// recentCalls reads the last hour's calls. wanted says that there must be a
// database, since there is little else to look at.
func (a *app) recentCalls(ctx context.Context, path string, wanted bool) (*recent, error) {
	db, err := a.recorded(ctx, path, wanted)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &recent{flag: path}, nil
	case err != nil:
		return nil, err
	}
	r := &recent{flag: path, recorded: true, worked: map[lane]time.Time{}}
	return r, errors.Join(r.read(ctx, db), db.Close())
}

// findings tells of the calls that failed, or are odd, by what is to be done.
// works says that the endpoint was found to work now: what failed before is
// then only told.
func (r *recent) findings(works bool) []report.Finding {
	switch {
	case !r.recorded:
		return []report.Finding{{Mark: report.Skipped, Cells: []string{"nothing was recorded yet" + r.where()}}}
	case r.calls == 0:
		return []report.Finding{{Mark: report.Skipped, Cells: []string{"none"}}}
	case len(r.troubles) == 0:
		return []report.Finding{{Cells: []string{counted(r.calls, "call") + ", all well"}}}
	}
	var found []report.Finding
	for _, t := range r.troubles[:min(len(r.troubles), mostTroubles)] {
		found = append(found, r.finding(t, works))
	}
	if more := len(r.troubles) - mostTroubles; more > 0 {
		found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{fmt.Sprintf("%s: weir report since:1h%s", counted(more, "more kind"), dbFlag(r.flag))}})
	}
	return found
}

func (r *recent) finding(t *trouble, works bool) report.Finding {
	i := &t.newest
	head := string(i.outcome)
	if i.status != 0 && i.outcome != call.OK {
		head = fmt.Sprintf("%s %d", i.outcome, i.status)
	}
	ago := time.Since(i.started).Round(time.Second)
	f := report.Finding{Mark: report.Bad, What: i.what, Next: i.next,
		Cells: []string{head, counted(t.calls, "call"), fmt.Sprintf("last %s ago: weir calls %s%s", ago, i.id, dbFlag(r.flag))}}
	switch {
	case i.outcome == call.OK || i.outcome == call.ClientGone || i.beside || works:
		f.Mark = report.Odd
	case r.worked[i.lane].After(i.started):
		f.Mark, f.Notes = report.Odd, []string{"the same worked again since"}
	}
	return f
}

// where names the database that the user named.
func (r *recent) where() string {
	if r.flag == "" {
		return ""
	}
	return ": there is no " + r.flag
}

// recorded opens the database if there is one, or must be.
func (a *app) recorded(ctx context.Context, path string, wanted bool) (*store.DB, error) {
	where := path
	var err error
	if where == "" {
		if where, err = store.DefaultPath(a.env); err != nil {
			return nil, usage(err)
		}
	}
	if _, err := os.Stat(where); errors.Is(err, os.ErrNotExist) && !wanted {
		return nil, err
	}
	return a.openToRead(ctx, where)
}

// read reads the last hour. A call that both sides measured counts once, as the
// proxy saw it.
func (r *recent) read(ctx context.Context, db *store.DB) error {
	selection, err := store.ParseSelection([]string{"since:1h"})
	if err != nil {
		return err
	}
	incidents := map[[16]byte]incident{}
	seen := map[[16]byte]bool{}
	for c, err := range db.Calls(ctx, selection, store.Order{By: "oldest"}) {
		if err != nil {
			return err
		}
		if c.Scenario == doctorScenario {
			continue // an earlier examination
		}
		if !seen[c.TraceID] {
			seen[c.TraceID] = true
			r.calls++
		}
		if c.Outcome == call.OK {
			r.worked[laneOf(c)] = c.Started()
		}
		what, next := c.Explain()
		if before, known := incidents[c.TraceID]; what != "" && (!known || before.client) {
			incidents[c.TraceID] = incident{c.Outcome, c.Status, what, next, c.Started(), report.SpanText(c)[:8], laneOf(c), c.Side == call.Client, !c.WantsAnswer()}
		}
	}
	r.troubles = groupIncidents(incidents)
	return nil
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
