package loadmodel

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// records are the rows with the file's own clock, whatever the options.
func (t *Trace) records() iter.Seq2[record, error] { return formats[t.Format].records(t) }

// chosen are the records of the window, as many as the limit lets pass. Their
// times count from the window's beginning. Where the clock goes back, a record
// keeps the time of the one before.
func (t *Trace) chosen() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		o := &t.options
		first, now, sent := time.Duration(-1), time.Duration(0), 0
		if formats[t.Format].fromZero {
			first = 0
		}
		for r, err := range t.records() {
			if err != nil {
				yield(record{}, err)
				return
			}
			if first < 0 {
				first = r.at
			}
			at := r.at - first
			r.back = at < now
			r.silent = r.silent || !formats[t.Format].streams
			now = max(at, now)
			if o.To > 0 && now >= o.To {
				return
			}
			if now < o.From {
				continue
			}
			r.at = now - o.From
			if !yield(r, nil) {
				return
			}
			if sent++; sent == o.Limit {
				return
			}
		}
	}
}

// fullest is the most rows of one tick, or of one minute that is drawn anew,
// that are held to be spread, and fullestIDs the most hash ids of theirs.
const (
	fullest    = 1 << 16
	fullestIDs = 1 << 22
)

// minute is the time over which a resampled trace keeps its rate.
const minute = time.Minute

// Rows reads the rows in their order, at the speed asked for. Rows whose time
// goes back keep the time of the row before. After an error, which names its
// line, there are no more.
func (t *Trace) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		g := gathering{trace: t, yield: yield}
		g.rng = rand.New(rand.NewPCG(t.options.Seed, 0x7472616365)) //nolint:gosec // chance that can be repeated is the point
		var fault error
		for r, err := range t.chosen() {
			if err != nil {
				fault = err
				break
			}
			if !g.add(&r) {
				return
			}
		}
		if g.give(g.end(math.MaxInt64)) && fault != nil {
			yield(Row{}, fault)
		}
	}
}

// gathering holds the rows that share a stretch of time, over which they are
// then spread.
type gathering struct {
	trace *Trace
	yield func(Row, error) bool
	rng   *rand.Rand
	rows  []Row
	ids   int           // of rows
	begin time.Duration // of the stretch
	last  time.Duration // of the rows

	offsets []time.Duration // to be used again
}

// add takes a row, and gives those of the stretch before when it begins a new
// one; false when no more is wanted.
func (g *gathering) add(r *record) bool {
	if len(g.rows) > 0 && (!g.together(r.at) || g.full()) && !g.give(g.end(r.at)) {
		return false
	}
	if len(g.rows) == 0 {
		// A stretch that was too full goes on behind those that were given.
		g.begin = max(g.stretch(r.at), g.begin)
	}
	g.last = r.at
	g.rows = append(g.rows, r.Row)
	g.ids += len(r.HashIDs)
	return true
}

func (g *gathering) full() bool { return len(g.rows) >= fullest || g.ids >= fullestIDs }

// stretch is where the stretch of an instant begins.
func (g *gathering) stretch(at time.Duration) time.Duration {
	if g.trace.options.Times == Resampled {
		return at.Truncate(minute)
	}
	return at
}

func (g *gathering) together(at time.Duration) bool { return g.stretch(at) == g.stretch(g.last) }

// end is where the stretch ends when the next row stands at an instant.
func (g *gathering) end(next time.Duration) time.Duration {
	switch g.trace.options.Times {
	case Verbatim:
		return g.begin
	case Resampled:
		if g.together(next) { // it was too full
			return g.last
		}
		end := g.stretch(g.last) + minute
		if to := g.trace.options.To; to > 0 {
			end = min(end, to-g.trace.options.From)
		}
		if next == math.MaxInt64 { // the trace ends in the midst of it
			end = min(end, max(g.last, g.begin))
		}
		return end
	}
	return min(g.begin+g.trace.Tick, next)
}

// give gives the rows, spread up to an instant by chance; false when no more is
// wanted.
func (g *gathering) give(end time.Duration) bool {
	offsets := slices.Grow(g.offsets[:0], len(g.rows))[:len(g.rows)]
	clear(offsets)
	if over := end - g.begin; over > 0 {
		for i := range offsets {
			offsets[i] = time.Duration(g.rng.Float64() * float64(over))
		}
		slices.Sort(offsets)
	}
	begin := g.begin
	g.begin, g.offsets = max(end, begin), offsets
	for i, row := range g.rows {
		row.At = g.trace.played(begin + offsets[i])
		if !g.yield(row, nil) {
			return false
		}
	}
	clear(g.rows)
	g.rows, g.ids = g.rows[:0], 0
	return true
}

// played is when a row is sent that stands at a time of the window.
func (t *Trace) played(at time.Duration) time.Duration {
	if t.options.Speed == 0 || t.options.Speed == 1 {
		return at
	}
	return time.Duration(min(float64(at)/t.options.Speed, math.MaxInt64/2))
}
