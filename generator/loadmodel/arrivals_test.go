package loadmodel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestWeightsAreSharesOfRequests(t *testing.T) {
	m := quickstart(t)
	shares, perStart := m.SessionShares()
	// Turns 3 to 8 are 5.5 on average: 0.25 of the requests take 0.25/5.5 of a
	// session each.
	if want := 1 / (0.3 + 0.25 + 0.25/5.5 + 0.2); math.Abs(perStart-want) > 1e-12 {
		t.Errorf("%.6f requests a start, want %.6f", perStart, want)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	requests := make([]float64, len(shares))
	var all float64
	for range 100_000 {
		u, i := rng.Float64(), 0
		for ; i < len(shares)-1 && u >= shares[i]; i++ {
			u -= shares[i]
		}
		n := float64(m.Scenarios[i].Turns.DrawInt(rng))
		requests[i] += n
		all += n
	}
	for i, s := range m.Scenarios {
		if got := requests[i] / all; math.Abs(got-s.Weight) > 0.005 {
			t.Errorf("%s has %.4f of the requests, want %g", s.ID, got, s.Weight)
		}
	}
	m.Scenarios[2].Flattened = true
	if _, perStart := m.SessionShares(); perStart != 1 {
		t.Errorf("flattened sessions are one request, and a start brings %g", perStart)
	}
}

var (
	ramped = &Model{TargetQPS: 200, Duration: 100 * time.Second, RampUp: 40 * time.Second, Arrivals: Arrivals{Process: "constant"}}
	phased = &Model{Arrivals: Arrivals{Process: "constant"}, Phases: []Phase{
		{FromQPS: 10, ToQPS: 10, Length: 10 * time.Second},
		{FromQPS: 10, ToQPS: 100, Length: 10 * time.Second},
		{FromQPS: 0, ToQPS: 0, Length: 5 * time.Second},
		{FromQPS: 100, ToQPS: 0, Length: 10 * time.Second},
	}}
)

func TestStartsFollowTheRate(t *testing.T) {
	for _, row := range []struct {
		name     string
		m        *Model
		from, to time.Duration
		want     float64
	}{
		{"all of a ramped run → the ramp's half and the rest", ramped, 0, time.Hour, 16_000},
		{"the first half of the ramp → a quarter of its starts", ramped, 0, 20 * time.Second, 1000},
		{"after the ramp → the target", ramped, 50 * time.Second, 60 * time.Second, 2000},
		{"all phases → their sum", phased, 0, time.Hour, 1150},
		{"a step → its rate", phased, 0, 10 * time.Second, 100},
		{"a phase's ramp, first half → below its mean", phased, 10 * time.Second, 15 * time.Second, 162.5},
		{"a phase of rate 0 → none", phased, 20 * time.Second, 25 * time.Second, 0},
		{"a ramp down, first half → three quarters", phased, 25 * time.Second, 30 * time.Second, 375},
	} {
		var got float64
		for at := range row.m.Starts(rand.New(rand.NewPCG(9, 9)), 1) {
			if at >= row.from && at < row.to {
				got++
			}
		}
		if math.Abs(got-row.want) > 1 {
			t.Errorf("%s: %g starts, want %g", row.name, got, row.want)
		}
		if meant := row.m.RequestsBefore(row.to) - row.m.RequestsBefore(row.from); math.Abs(meant-row.want) > 1e-6 {
			t.Errorf("%s: RequestsBefore says %g, want %g", row.name, meant, row.want)
		}
	}
}

func TestWhenIsTheInverseOfBefore(t *testing.T) {
	for _, m := range []*Model{ramped, phased} {
		r := m.rate()
		for n := 0.5; n < r.total(); n += 7.3 {
			if got := r.before((&course{ahead: r}).when(n)); math.Abs(got-n) > 1e-6 {
				t.Errorf("%g starts are reached when %g are meant", n, got)
			}
		}
		if !math.IsInf((&course{ahead: r}).when(r.total()+1), 1) {
			t.Error("more starts than are meant have a time")
		}
	}
}

// Sessions of several requests start as much more seldom.
func TestStartsOfSessionsAreRarer(t *testing.T) {
	n := 0
	for range ramped.Starts(rand.New(rand.NewPCG(1, 1)), 4) {
		n++
	}
	if n != 4000 {
		t.Errorf("%d starts of 4 requests each, want 16000 in all", n)
	}
}

func TestArrivalProcessesKeepTheirCharacter(t *testing.T) {
	for _, row := range []struct {
		process string
		cv      float64
	}{{"", 1}, {"poisson", 1}, {"gamma", 2.5}, {"gamma", 0.3}, {"constant", 0}} {
		m := &Model{TargetQPS: 100, Duration: 1000 * time.Second, Arrivals: Arrivals{Process: row.process, CV: row.cv}}
		starts := slices.Collect(m.Starts(rand.New(rand.NewPCG(11, 1)), 1))
		var gaps []float64
		for i := 1; i < len(starts); i++ {
			gaps = append(gaps, (starts[i] - starts[i-1]).Seconds())
		}
		mean, variance := moments(gaps)
		if cv := math.Sqrt(variance) / mean; math.Abs(cv-row.cv) > 0.03*math.Max(row.cv, 0.1) {
			t.Errorf("%s: gaps have CV %.3f, want %.3f", row.process, cv, row.cv)
		}
		if n := float64(len(starts)); math.Abs(n-100_000) > 4*math.Max(row.cv, 0.01)*math.Sqrt(100_000) {
			t.Errorf("%s: %.0f starts, want about 100000", row.process, n)
		}
		if last := starts[len(starts)-1]; !slices.IsSorted(starts) || last > m.Length() {
			t.Errorf("%s: starts fall, or end at %v", row.process, last)
		}
	}
}

// The dispersion of counts (variance over mean) in windows of t mean gaps is that
// of a renewal process: CV² + (1 − CV⁴)/6t where gaps are gamma's, of which
// Poisson's are those of CV 1. 10,000 windows give it within √(2/10⁴) = 1.4 %,
// of which the bound is five.
func TestCountsAreAsDispersedAsTheProcessSays(t *testing.T) {
	const windows, each = 10_000, 100
	steady := &Model{TargetQPS: each, Duration: windows * time.Second}
	// Windows of a tenth and of three times the rate, each with as many starts.
	drifting := &Model{}
	for range windows / 2 {
		drifting.Rates = append(drifting.Rates, Rate{QPS: each / 10, Length: 10 * time.Second}, Rate{QPS: each * 4, Length: time.Second / 4})
	}
	for _, a := range []Arrivals{{}, {Process: "gamma", CV: 2.5}, {Process: "gamma", CV: 0.3}, {Process: "constant"}} {
		cv := a.CV
		if a.Process == "" {
			cv = 1
		}
		want := cv*cv + (1-cv*cv*cv*cv)/6/each
		if a.Process == "constant" {
			want = 0
		}
		for name, m := range map[string]*Model{"a steady rate": steady, "rates by windows": drifting} {
			model := *m
			model.Arrivals = a
			var ends []time.Duration // of the windows
			var end time.Duration
			for i := range windows {
				length := time.Second
				if m == drifting {
					length = m.Rates[i].Length
				}
				end += length
				ends = append(ends, end)
			}
			counts := make([]float64, windows)
			i := 0
			for at := range model.Starts(rand.New(rand.NewPCG(21, 1)), 1) {
				for i < windows-1 && at >= ends[i] {
					i++
				}
				counts[i]++
			}
			mean, variance := moments(counts)
			if got := variance / mean; math.Abs(got-want) > 5*math.Sqrt(2.0/windows)*want+0.001 {
				t.Errorf("%s, %+v: counts have dispersion %.4f, want %.4f", name, a, got, want)
			}
			// Their mean is off by what the whole run's count is.
			if math.Abs(mean-each) > 5*cv*math.Sqrt(each)/math.Sqrt(windows)+0.01 {
				t.Errorf("%s, %+v: %.3f starts a window, want %d", name, a, mean, each)
			}
		}
	}
}

func TestRatesSayHowManyStartWhen(t *testing.T) {
	m := decoded(t, withRows) // 2.5/s for a minute, then nothing for half a second
	m.Arrivals.Process = "constant"
	if got := len(slices.Collect(m.Starts(rand.New(rand.NewPCG(1, 1)), 1))); got != 150 {
		t.Errorf("%d starts, want 150", got)
	}
	if m.Length() != 60500*time.Millisecond || m.Requests() != 150 || m.PeakQPS() != 2.5 {
		t.Errorf("%s, %g requests, at most %g/s", m.Length(), m.Requests(), m.PeakQPS())
	}
	if short := m.Scaled(6050 * time.Millisecond); short.Rates[0] != (Rate{2.5, 6 * time.Second}) || m.Rates[0].Length != time.Minute {
		t.Errorf("scaled to %+v, and now of %+v", short.Rates, m.Rates)
	}
	if fast := m.AtQPS(10); fast.Rates[0].QPS != 10 || fast.Rates[1].QPS != 0 || m.Rates[0].QPS != 2.5 {
		t.Errorf("at 10/s: %+v, and now %+v", fast.Rates, m.Rates)
	}
	if warm := m.AtPeak(time.Second); warm.TargetQPS != 2.5 || warm.Length() != time.Second || warm.Requests() != 2.5 {
		t.Errorf("at its peak: %g requests in %s", warm.Requests(), warm.Length())
	}
	loop := decoded(t, inALoop)
	if loop.Concurrency != 8 || loop.Length() != time.Minute || loop.PeakQPS() != 0 || loop.Requests() != 0 {
		t.Errorf("a closed loop: %+v", loop)
	}
	if open := loop.AtQPS(3); open.Concurrency != 0 || open.TargetQPS != 3 || loop.Concurrency != 8 {
		t.Errorf("a closed loop at a rate: %+v", open)
	}
}

// The wait for the first start has no bias: short runs hold as many as they
// mean to, however much their arrivals bunch.
func TestShortRunsHoldWhatTheyMeanTo(t *testing.T) {
	for _, a := range []Arrivals{{}, {Process: "gamma", CV: 3}, {Process: "gamma", CV: 0.4}} {
		m := &Model{TargetQPS: 10, Duration: 2 * time.Second, Arrivals: a}
		const runs = 20_000
		n := 0
		for seed := range uint64(runs) {
			for range m.Starts(rand.New(rand.NewPCG(seed, 5)), 1) {
				n++
			}
		}
		if got := float64(n) / runs; math.Abs(got-20) > 0.4 {
			t.Errorf("%+v: %.2f starts on average, want 20", a, got)
		}
	}
}

func TestSameSeedSameStarts(t *testing.T) {
	m := quickstart(t)
	read := func(seed uint64) []time.Duration {
		return slices.Collect(m.Starts(rand.New(rand.NewPCG(seed, 0)), 1.2))
	}
	if !slices.Equal(read(1), read(1)) || slices.Equal(read(1), read(2)) {
		t.Error("starts do not come from the seed")
	}
}

func TestScalingKeepsTheRate(t *testing.T) {
	m := quickstart(t)
	short := m.Scaled(20 * time.Second)
	if short.Duration != 20*time.Second || short.RampUp != 4*time.Second || short.TargetQPS != 20 {
		t.Errorf("scaled to %v with a ramp of %v at %g/s", short.Duration, short.RampUp, short.TargetQPS)
	}
	if got := short.Requests(); got != 360 {
		t.Errorf("%g requests, want 20·(20−4/2)", got)
	}
	phases := phased.Scaled(7 * time.Second)
	if got := phases.Requests(); math.Abs(got-230) > 1e-6 || phases.Length() != 7*time.Second || phased.Length() != 35*time.Second {
		t.Errorf("phases scaled to %v with %g requests; the model itself is now of %v", phases.Length(), got, phased.Length())
	}
}

func TestAnotherRateKeepsTheTime(t *testing.T) {
	if m := quickstart(t).AtQPS(5); m.TargetQPS != 5 || m.Length() != 300*time.Second {
		t.Errorf("at 5/s: %g/s for %v", m.TargetQPS, m.Length())
	}
	m := phased.AtQPS(50)
	if m.PeakQPS() != 50 || m.Phases[0].ToQPS != 5 || phased.PeakQPS() != 100 {
		t.Errorf("phases at 50/s: %+v", m.Phases)
	}
}
