package loadmodel

import "math"

// Kept is the part of the distribution, 0 to 1, that lies between Min and Max:
// what the cut leaves of it. Of a constant, and of one without a cut, it is 1. A
// zipf has no other end than its Max, so only its Min cuts it.
func (d Dist) Kept() float64 { return d.kept(0) }

// KeptInt is Kept for whole numbers, of which each stands for what is rounded to
// it.
func (d Dist) KeptInt() float64 { return d.kept(0.5) }

func (d Dist) kept(margin float64) float64 {
	switch d.Kind {
	case "", "constant", "uniform":
		return 1
	case "zipf":
		lo, hi := max(math.Ceil(d.lowest()), 1), math.Floor(d.highest())
		return powers(lo, hi, d.Exponent) / powers(1, hi, d.Exponent)
	}
	c := d.cut(margin)
	return c.to - c.from
}
