package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/store/call"
)

// tally is a report in the making.
type tally struct {
	report   *Report
	by       keys
	groups   map[string]*group
	total    group
	failures map[failureKey]*failures
	runs     []string // ids, as they came
	since    time.Time
}

type failureKey struct {
	group   string
	outcome call.Outcome
	status  int
	bound
}

// failures is a Failure in the making, with the explanations of its calls by
// their next step, which differ less than what happened.
type failures struct {
	Failure
	waits     waits
	explained map[string]*explanation
}

type explanation struct {
	what  string // of the first call
	calls int
}

// mostExplanations is how many are told apart; a further one is not counted.
const mostExplanations = 16

func (t *tally) add(p pair) {
	c := p.lead()
	if run := belongs(p); run != "" && !slices.Contains(t.runs, run) {
		t.runs = append(t.runs, run)
	}
	if at := c.Arrived.Time(); !at.IsZero() && (t.since.IsZero() || at.Before(t.since)) {
		t.since = at
	}
	switch {
	case c.WarmUp || p.client != nil && p.client.WarmUp:
		t.report.WarmUp++
		return
	case !c.WantsAnswer():
		t.report.NoGeneration++
		return
	}
	if p.proxy != nil && p.client != nil {
		t.report.BothViews++
	}
	values := t.by.of(p)
	key := strings.Join(values, "\x00")
	impaired := p.impaired()
	if impaired { // it stands apart from what is measured
		t.report.Impaired++
		key += "\x00" + impairedMark
		values[0] = strings.TrimSpace(values[0] + " " + impairedMark)
	}
	g := t.groups[key]
	if g == nil {
		g = &group{values: values, impaired: impaired}
		t.groups[key] = g
	}
	g.add(p)
	if !impaired {
		t.total.add(p)
	}
	if p.outcome() != call.OK {
		t.fail(key, values, p)
	}
}

// impairedMark stands behind the first value of a group of calls that were made
// worse on purpose.
const impairedMark = "(impaired)"

// belongs is the run of a call; empty when it belongs to none.
func belongs(p pair) string { return either(func(c *call.Call) string { return c.Run })(p) }

// lookUp adds what calls do not say themselves.
func (t *tally) lookUp(o *Options) error {
	if o.Runs != nil && len(t.runs) > 0 {
		runs, err := o.Runs(t.runs)
		if err != nil {
			return err
		}
		t.report.Runs = append(t.report.Runs, runs...)
	}
	if len(o.Order) == 0 && len(t.report.Runs) > 0 && t.by.names[0] == "scenario" {
		o.Order = t.report.Runs[0].Scenarios
	}
	if o.Lost != nil && !t.since.IsZero() {
		lost, err := o.Lost(t.since)
		if err != nil {
			return err
		}
		t.report.LostSpans = N(float64(lost))
	}
	if o.Interrupted != nil && !t.since.IsZero() {
		var err error
		if t.report.Interrupted, err = o.Interrupted(t.since, t.runs); err != nil {
			return err
		}
	}
	return nil
}

// fail counts a failed call, with what it said and what that means.
func (t *tally) fail(key string, values []string, p pair) {
	c := p.failure()
	k := failureKey{key, p.outcome(), c.Status, boundOf(c)}
	f := t.failures[k]
	if f == nil {
		f = &failures{
			Failure:   Failure{Group: values, Impaired: p.impaired(), Outcome: k.outcome, Status: k.status, Lane: k.lane, Limit: k.limit, Refusal: k.refusal, Messages: []string{}},
			explained: map[string]*explanation{},
		}
		t.failures[k] = f
	}
	f.Calls++
	if d := c.ExpectedWait; d > 0 {
		f.waits.add(d)
	}
	if m := failureMessage(c); m != "" && len(f.Messages) < 3 && !slices.Contains(f.Messages, m) {
		f.Messages = append(f.Messages, m)
	}
	what, next := c.Explain()
	if e := f.explained[next]; e != nil {
		e.calls++
	} else if len(f.explained) < mostExplanations {
		f.explained[next] = &explanation{what, 1}
	}
}

// close takes the most frequent explanation.
func (f *failures) close() Failure {
	f.WouldWait, f.WouldWaitMost = f.waits.mean(), f.waits.most()
	most := 0
	for next, e := range f.explained {
		if e.calls > most || e.calls == most && next < f.Next {
			most, f.What, f.Next = e.calls, e.what, next
		}
	}
	return f.Failure
}

// failureMessage is the provider's sentence where it gave one, else the
// beginning of what it sent.
func failureMessage(c *call.Call) string {
	m := c.ErrorMessage
	if m == "" {
		m = c.ErrorBody
	}
	if m == "" {
		m = c.ErrorType
	}
	m = strings.Join(strings.Fields(m), " ")
	const most = 300
	if len(m) > most {
		m = strings.ToValidUTF8(m[:most], "") + "…"
	}
	return m
}

// close turns groups into rows in their order.
func (t *tally) close(order []string) {
	r := t.report
	for _, g := range t.groups {
		r.Rows = append(r.Rows, g.row())
	}
	t.total.values = make([]string, len(t.by.names))
	r.Total = t.total.row()
	byGroup := func(a, b []string) int { return compareGroups(a, b, order) }
	slices.SortFunc(r.Rows, func(a, b Row) int { return byGroup(a.Group, b.Group) })
	for _, f := range t.failures {
		r.Failures = append(r.Failures, f.close())
	}
	slices.SortFunc(r.Failures, func(a, b Failure) int {
		if c := byGroup(a.Group, b.Group); c != 0 {
			return c
		}
		if a.Calls != b.Calls {
			return b.Calls - a.Calls
		}
		return strings.Compare(fmt.Sprint(a.Outcome, a.Status, a.Lane, a.Limit, a.Refusal), fmt.Sprint(b.Outcome, b.Status, b.Lane, b.Limit, b.Refusal))
	})
}

// compareGroups orders rows: by the order given for the first key, then by
// name; calls without a value come last.
func compareGroups(a, b, order []string) int {
	for i := range a {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if i == 0 {
			if p, q := place(order, x), place(order, y); p != q {
				return p - q
			}
		}
		if x == "" || y == "" {
			return len(y) - len(x)
		}
		return strings.Compare(x, y)
	}
	return 0
}

func place(order []string, v string) int {
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return len(order)
}
