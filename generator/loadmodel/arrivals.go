package loadmodel

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Arrivals say how starts are spread in time. The zero Arrivals are Poisson's.
type Arrivals struct {
	Process string  // "poisson", "constant" or "gamma"; empty is poisson
	CV      float64 // coefficient of variation of gamma's gaps
}

// Phase is a stretch of time in which the rate goes linearly from one value to
// another.
type Phase struct {
	Name    string
	FromQPS float64
	ToQPS   float64
	Length  time.Duration
}

// Rate is a window of time with an even rate, as a rate that drifts is learned
// from a recording: window after window.
type Rate struct {
	QPS    float64
	Length time.Duration
}

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
	if len(m.Rates) > 0 {
		r := make(rate, len(m.Rates))
		for i, w := range m.Rates {
			r[i] = piece{w.Length.Seconds(), w.QPS, w.QPS}
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

// before is how many starts are meant before the time of t seconds.
func (r rate) before(t float64) float64 {
	var sum float64
	for _, p := range r {
		if t <= 0 {
			break
		}
		if t < p.length {
			p.to = p.from + (p.to-p.from)*t/p.length
			p.length = t
		}
		sum += p.count()
		t -= p.length
	}
	return sum
}

// course goes along a rate: it finds the times of rising numbers of starts, and
// passes each piece once however many there are.
type course struct {
	ahead  rate
	starts float64 // meant before the first piece ahead
	begin  float64 // of that piece, in seconds
}

// when is the time at which n starts are meant to have been, in seconds: the
// inverse of before. n must not fall from call to call. It is +Inf when there
// are never so many.
func (c *course) when(n float64) float64 {
	for len(c.ahead) > 0 {
		p := c.ahead[0]
		count := p.count()
		rest := n - c.starts
		if rest > count || count == 0 {
			c.starts += count
			c.begin += p.length
			c.ahead = c.ahead[1:]
			continue
		}
		// rest = from·t + slope·t²/2, solved for t in the form that loses
		// nothing when the slope is small.
		slope := (p.to - p.from) / p.length
		t := 2 * rest / (p.from + math.Sqrt(max(p.from*p.from+2*slope*rest, 0)))
		if rest <= 0 {
			t = 0
		}
		return c.begin + min(t, p.length)
	}
	return math.Inf(1)
}

// RequestsBefore is how many requests the model means to have started by the
// time, counted from the start. Sessions of several turns run behind it, since
// their later turns come after their first one's answer.
func (m *Model) RequestsBefore(t time.Duration) float64 { return m.rate().before(t.Seconds()) }

// Requests is how many requests the model means to send.
func (m *Model) Requests() float64 { return m.rate().total() }

// Starts are the instants at which sessions start, from 0 on, rising. Sessions
// of one request start at the model's rate; perStart is how many requests a
// session brings on average (see SessionShares), and makes starts so much
// rarer. Gaps come from the arrival process at rate 1 and are stretched by the
// model's rate, so that the process keeps its character through ramps. They are
// drawn as they are asked for: the length of a run costs no memory.
func (m *Model) Starts(rng *rand.Rand, perStart float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		c := course{ahead: m.rate()}
		for n := m.Arrivals.first(rng); ; n += m.Arrivals.gap(rng) {
			t := c.when(n * perStart)
			if math.IsInf(t, 1) || !yield(time.Duration(t*float64(time.Second))) {
				return
			}
		}
	}
}

// gap draws the gap between two starts, of mean 1.
func (a Arrivals) gap(rng *rand.Rand) float64 {
	switch a.Process {
	case "constant":
		return 1
	case "gamma":
		shape := 1 / (a.CV * a.CV)
		return distuv.Gamma{Alpha: shape, Beta: shape, Src: rng}.Rand()
	}
	return rng.ExpFloat64()
}

// first draws how long the first start is waited for by one who comes at any
// moment, so that a run holds as many starts as it means to, on average. Whoever
// comes at any moment comes into a long gap more often than into a short one:
// the gap is drawn by its length, and the rest of it is any part. Evenly spaced
// starts begin in the middle of a gap.
func (a Arrivals) first(rng *rand.Rand) float64 {
	switch a.Process {
	case "constant":
		return 0.5
	case "gamma":
		shape := 1 / (a.CV * a.CV)
		return rng.Float64() * distuv.Gamma{Alpha: shape + 1, Beta: shape, Src: rng}.Rand()
	}
	return rng.ExpFloat64()
}
