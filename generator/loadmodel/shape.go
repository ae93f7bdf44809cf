package loadmodel

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// shape is a distribution before it is cut.
type shape interface {
	CDF(x float64) float64
	Quantile(p float64) float64
}

// cut is the part of a shape between two values.
type cut struct {
	shape
	low, high float64
	from, to  float64 // the probabilities of being below low, and at most high
}

// cut cuts the distribution wider by margin on either side.
func (d Dist) cut(margin float64) cut {
	c := cut{low: d.lowest() - margin, high: d.highest() + margin, to: 1}
	switch d.Kind {
	case "uniform":
		c.shape = distuv.Uniform{Min: c.low, Max: c.high}
	case "normal":
		c.shape = distuv.Normal{Mu: d.Average, Sigma: d.StdDev}
	case "lognormal":
		c.shape = distuv.LogNormal{Mu: math.Log(d.Median), Sigma: d.Sigma}
	case "exponential":
		c.shape = distuv.Exponential{Rate: 1 / d.Average}
	case "zipf":
		c.shape = zipf{max(math.Ceil(d.lowest()), 1), math.Floor(d.highest()), d.Exponent}
	case "quantiles":
		c.shape = curve(d.Points)
	default:
		panic(fmt.Sprintf("loadmodel: no distribution is called %q", d.Kind))
	}
	// What lies on low itself belongs to the part: a curve may have a whole
	// share of its draws on one value. Only a normal has any below 0.
	if below := math.Nextafter(c.low, math.Inf(-1)); below > 0 || d.Kind == "normal" {
		c.from = c.CDF(below)
	}
	if !math.IsInf(c.high, 1) {
		c.to = c.CDF(c.high)
	}
	return c
}

// quantile is kept between the ends only against the last bit's rounding.
func (c cut) quantile(p float64) float64 {
	return min(max(c.Quantile(min(c.from+p*(c.to-c.from), c.to)), c.low), c.high)
}

func (c cut) cdf(x float64) float64 {
	switch {
	case x < c.low:
		return 0
	case x >= c.high:
		return 1
	}
	return (c.CDF(x) - c.from) / (c.to - c.from)
}

func (c cut) mean() float64 {
	share := c.to - c.from
	standard := distuv.UnitNormal
	switch s := c.shape.(type) {
	case distuv.Uniform:
		return (c.low + c.high) / 2
	case distuv.Normal:
		a, b := (c.low-s.Mu)/s.Sigma, (c.high-s.Mu)/s.Sigma
		return s.Mu + s.Sigma*(standard.Prob(a)-standard.Prob(b))/share
	case distuv.LogNormal:
		a, b := (math.Log(max(c.low, 0))-s.Mu)/s.Sigma, (math.Log(c.high)-s.Mu)/s.Sigma
		return math.Exp(s.Mu+s.Sigma*s.Sigma/2) * (standard.CDF(b-s.Sigma) - standard.CDF(a-s.Sigma)) / share
	case distuv.Exponential:
		a, mean := max(c.low, 0), 1/s.Rate
		m := (a + mean) * math.Exp(-a/mean)
		if !math.IsInf(c.high, 1) {
			m -= (c.high + mean) * math.Exp(-c.high/mean)
		}
		return m / share
	case zipf:
		return powers(s.lo, s.hi, s.exponent-1) / powers(s.lo, s.hi, s.exponent)
	case curve:
		return s.mean(c.from, c.to)
	}
	panic(fmt.Sprintf("loadmodel: no mean of %T", c.shape))
}

// curve is a distribution given by some of its quantiles: probability and
// value, both rising, the first probability 0 and the last 1. Between two of
// them the logarithm of the value is in proportion to the probability, or the
// value itself next to 0. Two equal values have all draws between their
// probabilities.
type curve [][2]float64

func (c curve) Quantile(p float64) float64 {
	for i := 1; i < len(c); i++ {
		if a, b := c[i-1], c[i]; p <= b[0] || i == len(c)-1 {
			f := min(max((p-a[0])/(b[0]-a[0]), 0), 1)
			if a[1] <= 0 {
				return a[1] + f*(b[1]-a[1])
			}
			return a[1] * math.Pow(b[1]/a[1], f)
		}
	}
	return c[0][1]
}

func (c curve) CDF(x float64) float64 {
	if x < c[0][1] {
		return 0
	}
	for i := len(c) - 1; i > 0; i-- {
		a, b := c[i-1], c[i]
		switch {
		case x >= b[1]:
			return b[0]
		case x < a[1]:
			continue
		case a[1] <= 0:
			return a[0] + (b[0]-a[0])*(x-a[1])/(b[1]-a[1])
		}
		return a[0] + (b[0]-a[0])*math.Log(x/a[1])/math.Log(b[1]/a[1])
	}
	return 0
}

// mean is that of the part between two probabilities: each stretch's mean by
// its share.
func (c curve) mean(from, to float64) float64 {
	var sum float64
	for i := 1; i < len(c); i++ {
		p, q := max(c[i-1][0], from), min(c[i][0], to)
		if q <= p {
			continue
		}
		stretch := curve{c[i-1], c[i]}
		a, b := stretch.Quantile(p), stretch.Quantile(q)
		mean := (a + b) / 2
		if a > 0 && b > a*(1+1e-9) && c[i-1][1] > 0 {
			mean = (b - a) / math.Log(b/a)
		}
		sum += (q - p) * mean
	}
	return sum / (to - from)
}

// zipf gives the whole numbers from lo to hi, the more seldom the larger.
type zipf struct{ lo, hi, exponent float64 }

func (z zipf) CDF(x float64) float64 {
	k := math.Floor(x)
	switch {
	case k < z.lo:
		return 0
	case k >= z.hi:
		return 1
	}
	return powers(z.lo, k, z.exponent) / powers(z.lo, z.hi, z.exponent)
}

func (z zipf) Quantile(p float64) float64 {
	want := p * powers(z.lo, z.hi, z.exponent)
	lo, hi := z.lo, z.hi
	for lo < hi {
		if k := math.Floor((lo + hi) / 2); powers(z.lo, k, z.exponent) >= want {
			hi = k
		} else {
			lo = k + 1
		}
	}
	return lo
}

// powers is the sum of k to the power −s over the whole numbers k from a to b:
// term by term at first, and from there on by Euler and Maclaurin's formula,
// which is then exact to some ten digits.
func powers(a, b, s float64) float64 {
	var sum float64
	for stop := min(b+1, a+14); a < stop; a++ {
		sum += math.Pow(a, -s)
	}
	if a > b {
		return sum
	}
	fa, fb, area := math.Pow(a, -s), math.Pow(b, -s), math.Log(b/a)
	if s != 1 {
		area = a * fa * math.Expm1((1-s)*area) / (1 - s)
	}
	rise := s // the next derivative's factor
	sum += area + (fa+fb)/2
	fa, fb = fa/a, fb/b
	sum += rise * (fa - fb) / 12
	rise *= (s + 1) * (s + 2)
	fa, fb = fa/(a*a), fb/(b*b)
	sum -= rise * (fa - fb) / 720
	rise *= (s + 3) * (s + 4)
	return sum + rise*(fa/(a*a)-fb/(b*b))/30240
}
