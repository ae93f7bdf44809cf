package loadmodel

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Dist is a distribution of non-negative numbers, cut to [Min, Max]. It is cut
// by drawing only from the part of the distribution that lies between, as if
// every draw outside were drawn again; nothing piles up on the ends. The zero
// Dist is the constant 0.
type Dist struct {
	Kind string // "constant", "uniform", "normal", "lognormal", "exponential", "zipf", "quantiles"

	Min, Max       float64
	HasMin, HasMax bool

	Value        float64      // constant
	Mean, StdDev float64      // normal; exponential has Mean
	Median       float64      // lognormal
	Sigma        float64      // lognormal: of the logarithm
	Exponent     float64      // zipf: P(k) falls as k to the power −Exponent
	Points       [][2]float64 // quantiles: probability and value, rising
}

// Constant is the distribution of one value.
func Constant(v float64) Dist { return Dist{Kind: "constant", Value: v} }

// Range is the uniform distribution between two values.
func Range(min, max float64) Dist {
	return Dist{Kind: "uniform", Min: min, Max: max, HasMin: true, HasMax: true}
}

// IsConstant says whether only one value can come.
func (d Dist) IsConstant() bool {
	return d.Kind == "" || d.Kind == "constant" || d.HasMin && d.HasMax && d.Min == d.Max
}

// Quantile is the value below which a draw lies with probability p.
func (d Dist) Quantile(p float64) float64 {
	switch d.Kind {
	case "", "constant":
		return d.Value
	case "uniform":
		return d.Min + p*(d.Max-d.Min)
	case "quantiles":
		return readOff(d.Points, p, d.lowest(), d.highest())
	case "zipf":
		return d.zipf(p)
	}
	base := d.base()
	lo, hi := 0.0, 1.0
	if low := d.lowest(); !math.IsInf(low, -1) {
		lo = base.CDF(low)
	}
	if high := d.highest(); !math.IsInf(high, 1) {
		hi = base.CDF(high)
	}
	v := base.Quantile(math.Min(lo+p*(hi-lo), 1))
	return math.Min(math.Max(v, d.lowest()), d.highest())
}

type continuous interface {
	CDF(float64) float64
	Quantile(float64) float64
}

// base is the distribution before it is cut.
func (d Dist) base() continuous {
	switch d.Kind {
	case "normal":
		return distuv.Normal{Mu: d.Mean, Sigma: d.StdDev}
	case "lognormal":
		return distuv.LogNormal{Mu: math.Log(d.Median), Sigma: d.Sigma}
	case "exponential":
		return distuv.Exponential{Rate: 1 / d.Mean}
	}
	panic(fmt.Sprintf("loadmodel: distribution %q has no continuous form", d.Kind))
}

func (d Dist) lowest() float64 {
	if d.HasMin {
		return d.Min
	}
	return 0
}

func (d Dist) highest() float64 {
	if d.HasMax {
		return d.Max
	}
	return math.Inf(1)
}

// readOff reads a value off points of probability and value: in proportion on
// a logarithmic scale of values, or a linear one next to 0.
func readOff(points [][2]float64, p, low, high float64) float64 {
	at := func(p float64) float64 {
		for i := 1; i < len(points); i++ {
			a, b := points[i-1], points[i]
			if p > b[0] && i < len(points)-1 {
				continue
			}
			f := 0.0
			if b[0] > a[0] {
				f = math.Min(math.Max((p-a[0])/(b[0]-a[0]), 0), 1)
			}
			if a[1] <= 0 || b[1] <= 0 {
				return a[1] + f*(b[1]-a[1])
			}
			return a[1] * math.Pow(b[1]/a[1], f)
		}
		return points[0][1]
	}
	// The part between low and high is found by halving: the curve rises.
	where := func(v float64) float64 {
		a, b := 0.0, 1.0
		for range 60 {
			if m := (a + b) / 2; at(m) < v {
				a = m
			} else {
				b = m
			}
		}
		return (a + b) / 2
	}
	from, to := 0.0, 1.0
	if at(0) < low {
		from = where(low)
	}
	if at(1) > high {
		to = where(high)
	}
	return math.Min(math.Max(at(from+p*(to-from)), low), high)
}

// zipf walks the whole numbers from Min to Max.
func (d Dist) zipf(p float64) float64 {
	lo, hi := int(math.Max(d.lowest(), 1)), int(d.Max)
	var sum float64
	for k := lo; k <= hi; k++ {
		sum += math.Pow(float64(k), -d.Exponent)
	}
	var below float64
	for k := lo; k < hi; k++ {
		below += math.Pow(float64(k), -d.Exponent) / sum
		if below >= p {
			return float64(k)
		}
	}
	return float64(hi)
}

// Draw draws a number.
func (d Dist) Draw(rng *rand.Rand) float64 {
	if d.IsConstant() {
		return d.Quantile(0)
	}
	return d.Quantile(rng.Float64())
}

// QuantileInt is Quantile for whole numbers. A uniform distribution gives each
// whole number between its ends, and the ends themselves, the same share; any
// other is rounded.
func (d Dist) QuantileInt(p float64) int {
	if d.Kind == "uniform" {
		lo, hi := math.Ceil(d.Min), math.Floor(d.Max)
		return int(math.Min(lo+math.Floor(p*(hi-lo+1)), hi))
	}
	return int(math.Round(d.Quantile(p)))
}

// DrawInt draws a whole number.
func (d Dist) DrawInt(rng *rand.Rand) int {
	if d.IsConstant() {
		return d.QuantileInt(0)
	}
	return d.QuantileInt(rng.Float64())
}

// MeanInt is the mean of DrawInt.
func (d Dist) MeanInt() float64 {
	switch {
	case d.IsConstant():
		return float64(d.QuantileInt(0))
	case d.Kind == "uniform":
		return (math.Ceil(d.Min) + math.Floor(d.Max)) / 2
	}
	// The mean is the integral of the quantile function.
	const steps = 20_000
	var sum float64
	for i := range steps {
		sum += float64(d.QuantileInt((float64(i) + 0.5) / steps))
	}
	return sum / steps
}
