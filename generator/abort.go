package generator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/store/call"
)

// Condition is one under which a run ends itself, as "error rate > 20% for 10s".
type Condition struct {
	Figure  string        // "error rate", "ttft", "response ttft", "lag", "e2e", "in flight"
	Rank    float64       // of a latency, 0 to 1; 1 is the largest
	Above   bool          // it ends the run above Limit, else below it
	Limit   float64       // a share, seconds, or calls
	For     time.Duration // over which it is looked at
	written string
}

// String is the condition as it was written.
func (c Condition) String() string { return c.written }

// figure is what a condition can be about.
type figure struct {
	name string
	unit string // of the limit: "%", "time" or "calls"
	of   func(*call.Call) (time.Duration, bool)
}

var abortFigures = []figure{
	{name: "error rate", unit: "%"},
	{"response ttft", "time", (*call.Call).TTFTResponse},
	{"ttft", "time", (*call.Call).TTFTUpstream},
	{"lag", "time", func(c *call.Call) (time.Duration, bool) { return max(time.Duration(c.Arrived-c.Due), 0), true }},
	{"e2e", "time", (*call.Call).Duration},
	{name: "in flight", unit: "calls"},
}

// ranks are the percentiles that a condition may name.
var ranks = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1}

const (
	abortWindow  = 10 * time.Second // where a condition says none
	abortSlots   = 20               // that a window is kept in
	abortLeast   = 3                // calls, below which a window says nothing
	longestAbort = time.Hour
)

// ParseCondition reads "error rate > 20% for 10s", "ttft p95 > 8s for 30s",
// "lag p99 > 50ms", "in flight > 500 for 5s".
func ParseCondition(text string) (Condition, error) {
	c := Condition{written: strings.Join(strings.Fields(text), " "), For: abortWindow}
	fail := func(format string, a ...any) (Condition, error) {
		return Condition{}, fmt.Errorf("%q: %s; as 'error rate > 20%% for 10s' or 'ttft p95 > 8s'", c.written, fmt.Sprintf(format, a...))
	}
	at := strings.IndexAny(c.written, "<>")
	if at < 0 {
		return fail("says neither > nor <")
	}
	c.Above = c.written[at] == '>'
	what, rest := strings.TrimSpace(c.written[:at]), strings.TrimSpace(strings.TrimPrefix(c.written[at+1:], "="))
	limit, during, timed := strings.Cut(rest, " for ")
	if timed {
		d, err := time.ParseDuration(strings.TrimSpace(during))
		if err != nil || d < time.Second || d > longestAbort {
			return fail("for %s: want a time from 1s to 1h", during)
		}
		c.For = d
	}
	f := figureOf(what)
	if f == nil {
		return fail("%q is no figure; want %s", what, figureNames())
	}
	c.Figure = f.name
	if f.unit == "time" {
		rank := strings.TrimSpace(strings.TrimPrefix(what, f.name))
		var ok bool
		if c.Rank, ok = ranks[rank]; !ok {
			return fail("%s needs p50, p90, p95, p99 or max behind it", f.name)
		}
	}
	var problem string
	if c.Limit, problem = readLimit(f.unit, strings.TrimSpace(limit)); problem != "" {
		return fail("%s", problem)
	}
	return c, nil
}

// readLimit reads what a figure is held against.
func readLimit(unit, text string) (limit float64, problem string) {
	switch unit {
	case "%":
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil || !strings.HasSuffix(text, "%") || !(v >= 0 && v <= 100) {
			return 0, fmt.Sprintf("%s: want a share, as 20%%", text)
		}
		return v / 100, ""
	case "time":
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Sprintf("%s: want a time, as 8s or 50ms", text)
		}
		return d.Seconds(), ""
	}
	v, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Sprintf("%s: want a number of calls, as 500", text)
	}
	return float64(v), ""
}

// figureOf finds the figure that text begins with; nil when there is none.
func figureOf(text string) *figure {
	for i := range abortFigures {
		f := &abortFigures[i]
		if text == f.name || f.unit == "time" && strings.HasPrefix(text, f.name+" ") {
			return f
		}
	}
	return nil
}

func figureNames() string {
	var names []string
	for _, f := range abortFigures {
		name := f.name
		if f.unit == "time" {
			name += " p95"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// lookout watches one condition. It keeps the last For of a run in slots, so
// that it takes the same memory at any rate.
type lookout struct {
	Condition
	of func(*call.Call) (time.Duration, bool)

	mu    sync.Mutex
	slots []slot // the newest last; at most abortSlots
}

// slot is a stretch of a window.
type slot struct {
	calls, failed   int // that ended in it
	values          *sketch
	lowest, highest int // calls in flight
}

func newLookout(c Condition) *lookout {
	l := &lookout{Condition: c, of: figureOf(c.Figure).of}
	l.slots = []slot{l.slot(0)}
	return l
}

func (l *lookout) slot(inFlight int) slot {
	s := slot{lowest: inFlight, highest: inFlight}
	if l.of != nil {
		s.values = &sketch{}
	}
	return s
}

// ended counts a call.
func (l *lookout) ended(c *call.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slots[len(l.slots)-1]
	s.calls++
	if c.Outcome != call.OK {
		s.failed++
	}
	if l.of == nil || c.Outcome != call.OK && l.Figure != "lag" {
		return
	}
	if d, ok := l.of(c); ok {
		s.values.add(d)
	}
}

// flying takes down how many calls are in flight.
func (l *lookout) flying(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slots[len(l.slots)-1]
	s.lowest, s.highest = min(s.lowest, n), max(s.highest, n)
}

// turn ends a slot and says what the window shows when that ends the run;
// empty else. Before a whole window has passed it says nothing.
func (l *lookout) turn(inFlight int) (why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slots) == abortSlots {
		if got, known := l.figure(); known && (l.Above && got > l.Limit || !l.Above && got < l.Limit) {
			why = fmt.Sprintf("%s was %s, and %s ends the run", l.name(), l.write(got), l.Condition)
		}
		l.slots = slices.Delete(l.slots, 0, 1)
	}
	l.slots = append(l.slots, l.slot(inFlight))
	return why
}

// figure is the window's, needs the lock.
func (l *lookout) figure() (v float64, known bool) {
	calls, failed := 0, 0
	lowest, highest := l.slots[0].lowest, l.slots[0].highest
	var all sketch
	for i := range l.slots {
		s := &l.slots[i]
		calls, failed = calls+s.calls, failed+s.failed
		lowest, highest = min(lowest, s.lowest), max(highest, s.highest)
		if s.values != nil {
			all.merge(s.values)
		}
	}
	switch {
	case l.Figure == "in flight" && l.Above:
		return float64(lowest), true // so it was all the time
	case l.Figure == "in flight":
		return float64(highest), true
	case l.of != nil:
		return all.quantile(l.Rank).Seconds(), all.n >= abortLeast
	}
	return float64(failed) / float64(max(calls, 1)), calls >= abortLeast
}

func (l *lookout) name() string {
	for name, rank := range ranks {
		if l.of != nil && rank == l.Rank {
			return l.Figure + " " + name
		}
	}
	return l.Figure
}

// write is a value with its unit.
func (l *lookout) write(v float64) string {
	switch {
	case l.of != nil:
		return round(time.Duration(v * float64(time.Second))).String()
	case l.Figure == "in flight" && l.Above:
		return fmt.Sprintf("never below %.0f", v)
	case l.Figure == "in flight":
		return fmt.Sprintf("never above %.0f", v)
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

// watchOut looks at the conditions until the run has ended; end ends that.
func (u *running) watchOut() (end func()) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	for _, l := range u.lookouts {
		wg.Go(func() {
			t := time.NewTicker(l.For / abortSlots)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					if why := l.turn(u.tally.flying()); why != "" {
						u.halt(why)
						return
					}
				case <-quit:
					return
				}
			}
		})
	}
	return func() {
		close(quit)
		wg.Wait()
	}
}
