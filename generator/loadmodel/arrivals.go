package loadmodel

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// piece is a stretch in which a rate goes linearly from one value to another.
type piece struct{ length, from, to float64 } // seconds, per second

func (p piece) count() float64 { return p.length * (p.from + p.to) / 2 }

// rate is how many starts a second are meant, over time.
type rate []piece

func (m *Model) rate() rate {
	if len(m.Phases) > 0 {
		r := make(rate, len(m.Phases))
		for i, p := range m.Phases {
			r[i] = piece{p.Length.Seconds(), p.FromQPS, p.ToQPS}
		}
		return r
	}
	ramp := min(m.RampUp, m.Duration)
	return rate{{ramp.Seconds(), 0, m.TargetQPS}, {(m.Duration - ramp).Seconds(), m.TargetQPS, m.TargetQPS}}
}

// total is how many starts are meant in all.
func (r rate) total() float64 {
	var sum float64
	for _, p := range r {
		sum += p.count()
	}
	return sum
}

// when is the time at which n starts are meant to have been: the inverse of
// the rate's integral. It is +Inf when there are never so many.
func (r rate) when(n float64) float64 {
	var start float64
	for _, p := range r {
		if c := p.count(); n > c {
			n -= c
			start += p.length
			continue
		}
		slope := (p.to - p.from) / p.length
		if p.length == 0 {
			continue
		}
		if math.Abs(slope)*p.length < 1e-12*math.Max(p.from, p.to) {
			return start + n/p.from
		}
		// n = from·t + slope·t²/2
		return start + (math.Sqrt(math.Max(p.from*p.from+2*slope*n, 0))-p.from)/slope
	}
	return math.Inf(1)
}

// Starts are the instants at which sessions start, from 0 on, rising. Sessions
// of one request start at the model's rate; perStart is how many requests a
// session brings on average (see SessionShares), and makes starts so much
// rarer. Gaps come from the arrival process at rate 1 and are stretched by the
// model's rate, so that the process keeps its character through ramps.
func (m *Model) Starts(rng *rand.Rand, perStart float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		r := m.rate()
		gap := m.Arrivals.gaps(rng)
		for n := m.Arrivals.first(gap); ; n += gap() {
			t := r.when(n * perStart)
			if math.IsInf(t, 1) || !yield(time.Duration(t*float64(time.Second))) {
				return
			}
		}
	}
}

// gaps draws the gaps between starts, of mean 1.
func (a Arrivals) gaps(rng *rand.Rand) func() float64 {
	switch a.Process {
	case "constant":
		return func() float64 { return 1 }
	case "gamma":
		shape := 1 / (a.CV * a.CV)
		return func() float64 { return distuv.Gamma{Alpha: shape, Beta: shape, Src: rng}.Rand() }
	}
	return rng.ExpFloat64
}

// first is how long the first start is waited for. Evenly spaced starts begin
// in the middle of a gap, so that a run holds as many as it means to.
func (a Arrivals) first(gap func() float64) float64 {
	if a.Process == "constant" {
		return 0.5
	}
	return gap()
}
