package loadmodel

import (
	"fmt"
	"os"
	"time"
)

// Survey is what reading a trace through tells of it.
type Survey struct {
	Rows  int
	Span  time.Duration // from the first row to the last, in the trace's own time
	Notes []string      // what is odd, to be told before anything is sent
}

// Survey reads a trace to its end, or its limit, twice, and keeps nothing of
// it. It notes a clock too coarse for its rate, rows that go back in time or
// have no tokens, and load that drifts between the trace's halves.
func (t *Trace) Survey() (Survey, error) {
	var s Survey
	var zero, back, ticks int
	var last time.Duration
	err := t.scan(func(row Row, at time.Duration) {
		if row.Input == 0 || row.Output == 0 {
			zero++
		}
		switch {
		case s.Rows == 0 || at > last:
			ticks++
			last = at
		case at < last:
			back++
		}
		s.Span = last
		s.Rows++
	})
	if err != nil || s.Rows == 0 {
		s.Notes = append(s.Notes, "the trace has no rows")
		return s, err
	}
	var rows, inputs [2]float64
	err = t.scan(func(row Row, at time.Duration) {
		half := 0
		if at >= s.Span/2 {
			half = 1
		}
		rows[half]++
		inputs[half] += float64(row.Input)
	})
	note := func(odd bool, format string, a ...any) {
		if odd {
			s.Notes = append(s.Notes, fmt.Sprintf(format, a...))
		}
	}
	note(zero > 0, "%d of %d rows have no prompt or no answer tokens: they are sent with at least 1", zero, s.Rows)
	note(back > 0, "%d of %d rows go back in time: each is sent with the row before it", back, s.Rows)
	note(s.Rows >= 50 && 2*ticks < s.Rows, "its clock is coarse: %d rows stand on %d ticks, some %s apart: played as it is, each tick is a burst that no user made",
		s.Rows, ticks, (s.Span / time.Duration(max(ticks-1, 1))).Round(time.Millisecond))
	if rows[0] >= 50 && rows[1] >= 50 {
		note(apart(rows[0], rows[1]) > 0.2, "its rate drifts: %.0f rows in its first half, %.0f in its second", rows[0], rows[1])
		a, b := inputs[0]/rows[0], inputs[1]/rows[1]
		note(apart(a, b) > 0.2, "its prompts drift: %.0f tokens on average in its first half, %.0f in its second", a, b)
	}
	return s, err
}

// scan gives each row with its time since the first one, as it stands in the
// file.
func (t *Trace) scan(use func(row Row, at time.Duration)) (err error) {
	f, err := os.Open(t.Path)
	if err != nil {
		return fmt.Errorf("trace %s: %s", t.Path, reason(err))
	}
	defer f.Close()
	var first time.Duration
	n := 0
	for row, at := range t.records(f, func(line int, fault error) { err = fmt.Errorf("trace %s:%d: %w", t.Path, line, fault) }) {
		if n == 0 {
			first = at
		}
		use(row, at-first)
		if n++; n == t.options.Limit {
			break
		}
	}
	return err
}

// apart is how far two values lie apart, as a share of the larger.
func apart(a, b float64) float64 {
	if largest := max(a, b); largest > 0 {
		return 1 - min(a, b)/largest
	}
	return 0
}
