package loadmodel

import (
	"math"
	"math/rand/v2"
)

// Dist is a distribution of non-negative numbers, cut to [Min, Max]. It is cut
// by drawing only from the part of the distribution that lies between, which is
// the same as drawing again until a draw lies there; nothing piles up on the
// ends. Decode gives only distributions that can be drawn from. The zero Dist
// is the constant 0.
type Dist struct {
	Kind string // "constant", "uniform", "normal", "lognormal", "exponential", "zipf", "quantiles"; empty is constant

	Min, Max       float64
	HasMin, HasMax bool // without Min it is cut at 0

	Value    float64      // constant
	Average  float64      // normal and exponential: the mean before the cut
	StdDev   float64      // normal
	Median   float64      // lognormal
	Sigma    float64      // lognormal: of the logarithm
	Exponent float64      // zipf: P(k) falls as k to the power −Exponent
	Points   [][2]float64 // quantiles: probability and value, rising, from 0 to 1
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

// only is the value of a constant.
func (d Dist) only() float64 {
	if d.Kind == "" || d.Kind == "constant" {
		return d.Value
	}
	return d.Min
}

// Quantile is the value below which a draw lies with probability p, 0 to 1.
func (d Dist) Quantile(p float64) float64 {
	if d.IsConstant() {
		return d.only()
	}
	return d.cut(0).quantile(p)
}

// CDF is the probability that a draw is x or less.
func (d Dist) CDF(x float64) float64 {
	if d.IsConstant() {
		if x < d.only() {
			return 0
		}
		return 1
	}
	return d.cut(0).cdf(x)
}

// Draw draws a number.
func (d Dist) Draw(rng *rand.Rand) float64 {
	if d.IsConstant() {
		return d.only()
	}
	return d.Quantile(rng.Float64())
}

// Whole numbers. A whole number k stands for what lies between k − ½ and k + ½,
// at the ends as everywhere: the distribution is cut at Min − ½ and Max + ½ and
// then rounded. So a uniform one gives every whole number from Min to Max the
// same share, and no other loses half of what its ends deserve.

// QuantileInt is Quantile for whole numbers.
func (d Dist) QuantileInt(p float64) int {
	if d.IsConstant() {
		return int(math.Round(d.only()))
	}
	k := math.Floor(d.cut(0.5).quantile(p) + 0.5)
	return int(min(max(k, d.lowest()), d.highest())) // only p = 1 needs it
}

// DrawInt draws a whole number.
func (d Dist) DrawInt(rng *rand.Rand) int {
	if d.IsConstant() {
		return d.QuantileInt(0)
	}
	return d.QuantileInt(rng.Float64())
}

// Mean is the mean of Draw.
func (d Dist) Mean() float64 {
	if d.IsConstant() {
		return d.only()
	}
	return d.cut(0).mean()
}

// widest is the number of whole numbers up to which their mean is summed.
const widest = 100_000

// MeanInt is the mean of DrawInt: exact where no more than 100,000 whole
// numbers can come, and otherwise that of what is rounded.
func (d Dist) MeanInt() float64 {
	lo, hi := d.lowest(), d.highest()
	switch {
	case d.IsConstant():
		return float64(d.QuantileInt(0))
	case d.Kind == "uniform":
		return (lo + hi) / 2
	case d.Kind == "zipf" || hi-lo > widest:
		return d.cut(0.5).mean()
	}
	// The mean is lo and, for each k from lo on, the chance to be above it.
	c, mean := d.cut(0.5), lo
	for k := lo; k < hi; k++ {
		mean += 1 - c.cdf(k+0.5)
	}
	return mean
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
