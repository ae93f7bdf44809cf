package loadmodel

import (
	"fmt"
	"time"
)

// Survey is what reading a trace through tells of it.
type Survey struct {
	Rows  int
	Span  time.Duration // from the first row to the last, in the trace's own time
	Notes []string      // what is odd, to be told before anything is sent
}

// half is what a survey counts in each half of a trace's time.
type half struct{ rows, inputs, outputs float64 }

// Survey reads a trace to its end, or its limit, twice, and keeps nothing of
// it. It notes a clock too coarse for its rate, rows that go back in time or
// have no tokens, failures, turns that do not count their history, and load
// that drifts between the trace's halves.
func (t *Trace) Survey() (Survey, error) {
	var s Survey
	var zero, failed, back, ticks, later, shrunk int
	var last time.Duration
	var held recent[string, int] // tokens after the last turn of each session
	err := t.each(func(row Row, at time.Duration) {
		if row.Failed {
			failed++
		} else if row.Input == 0 || row.Output == 0 {
			zero++
		}
		switch {
		case s.Rows == 0 || at > last:
			ticks++
			last = at
		case at < last:
			back++
		}
		if row.Session != "" {
			if before, ok := held.get(row.Session); ok {
				later++
				if row.Input < before {
					shrunk++
				}
			}
			held.put(row.Session, row.Input+row.Output)
		}
		s.Span = last
		s.Rows++
	})
	if err != nil {
		return s, err
	}
	var halves [2]half
	err = t.each(func(row Row, at time.Duration) {
		h := &halves[0]
		if at >= s.Span/2 {
			h = &halves[1]
		}
		h.rows++
		h.inputs += float64(row.Input)
		h.outputs += float64(row.Output)
	})
	note := func(odd bool, format string, a ...any) {
		if odd {
			s.Notes = append(s.Notes, fmt.Sprintf(format, a...))
		}
	}
	if t.Tick > 0 {
		how := "rows of one tick are spread over it by chance"
		if t.options.Verbatim {
			how = "played as it is, each tick is a burst that no user made"
		}
		note(true, "its clock is coarse: %d rows stand on %d ticks, some %s apart; %s", s.Rows, ticks, t.Tick.Round(time.Millisecond), how)
	}
	note(failed > 0, "%d of %d rows are of requests that failed: they are sent with at least 1 token to be answered", failed, s.Rows)
	note(zero > 0, "%d of %d rows have no prompt or no answer tokens: they are sent with at least 1", zero, s.Rows)
	note(back > 0, "%d of %d rows go back in time: each is sent with the row before it", back, s.Rows)
	note(later >= 20 && 2*shrunk > later, "most later turns of its sessions (%d of %d) have shorter prompts than the turn before left behind: they seem to count only what is new, and are sent as they stand", shrunk, later)
	a, b := halves[0], halves[1]
	if a.rows >= 50 && b.rows >= 50 {
		note(apart(a.rows, b.rows) > 0.2, "its rate drifts: %.0f rows in its first half, %.0f in its second", a.rows, b.rows)
		note(apart(a.inputs/a.rows, b.inputs/b.rows) > 0.2, "its prompts drift: %.0f tokens on average in its first half, %.0f in its second", a.inputs/a.rows, b.inputs/b.rows)
		note(apart(a.outputs/a.rows, b.outputs/b.rows) > 0.2, "its answers drift: %.0f tokens on average in its first half, %.0f in its second", a.outputs/a.rows, b.outputs/b.rows)
	}
	return s, err
}

// each gives every row with its time since the first one, as it stands in the
// file.
func (t *Trace) each(use func(row Row, at time.Duration)) error {
	var first time.Duration
	n := 0
	for r, err := range t.records() {
		if err != nil {
			return err
		}
		if n == 0 {
			first = r.at
		}
		use(r.Row, r.at-first)
		if n++; n == t.options.Limit {
			break
		}
	}
	return nil
}

// apart is how far two values lie apart, as a share of the larger.
func apart(a, b float64) float64 {
	if largest := max(a, b); largest > 0 {
		return 1 - min(a, b)/largest
	}
	return 0
}
