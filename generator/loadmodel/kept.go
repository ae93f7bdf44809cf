package loadmodel

// Kept is the part of the distribution, 0 to 1, that lies between Min and Max:
// what the cut leaves of it. Of a constant, and of one without a cut, it is 1.
func (d Dist) Kept() float64 {
	switch {
	case d.IsConstant(), d.Kind == "uniform", d.Kind == "zipf":
		return 1
	}
	c := d.cut(0)
	return c.to - c.from
}
