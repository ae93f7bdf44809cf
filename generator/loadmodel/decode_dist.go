package loadmodel

import "math"

// dist reads a distribution: a number, or an object with min, max and more.
// least is the smallest value that makes sense.
func (r *reader) dist(n node, what string, least float64) Dist {
	if n.kind == "number" {
		v := r.number(n, what)
		if v < least {
			r.fail(n.at, "%s %g: want %g or more", what, v, least)
		}
		return Constant(v)
	}
	d := Dist{Kind: "uniform"}
	set := func(at *float64, field string) func(node) {
		return func(v node) { *at = r.number(v, what+": "+field) }
	}
	var p99 float64
	given := r.object(n, what, setters{
		"distribution": func(v node) {
			d.Kind = r.oneOf(v, what+": distribution", "uniform", "constant", "normal", "lognormal", "exponential", "zipf", "quantiles")
		},
		"min":       set(&d.Min, "min"),
		"max":       set(&d.Max, "max"),
		"value":     set(&d.Value, "value"),
		"mean":      set(&d.Mean, "mean"),
		"stddev":    set(&d.StdDev, "stddev"),
		"median":    set(&d.Median, "median"),
		"sigma":     set(&d.Sigma, "sigma"),
		"p99":       set(&p99, "p99"),
		"exponent":  set(&d.Exponent, "exponent"),
		"quantiles": func(v node) { d.Points = r.points(v, what+": quantiles") },
	})
	if r.err != nil {
		return d
	}
	if _, ok := given["quantiles"]; ok {
		if _, named := given["distribution"]; !named {
			d.Kind = "quantiles"
		}
	}
	_, d.HasMin = given["min"]
	_, d.HasMax = given["max"]
	if d.HasMin && d.Min < least {
		r.fail(given["min"].at, "%s: min %g: want %g or more", what, d.Min, least)
	}
	if d.HasMin && d.HasMax && d.Min > d.Max {
		r.fail(given["min"].at, "%s: min %g is greater than max %g", what, d.Min, d.Max)
	}
	if !d.HasMin && d.Kind != "constant" {
		d.HasMin, d.Min = true, least
	}
	r.shape(n, what, &d, given, p99)
	return d
}

// kindFields are the fields that each kind of distribution takes beside min,
// max and its name.
var kindFields = map[string][]string{
	"uniform": {}, "constant": {"value"}, "normal": {"mean", "stddev"}, "lognormal": {"median", "sigma", "p99"},
	"exponential": {"mean"}, "zipf": {"exponent"}, "quantiles": {"quantiles"},
}

// shape checks that a distribution has what its kind needs, and nothing else.
func (r *reader) shape(n node, what string, d *Dist, given map[string]node, p99 float64) {
	allowed := append([]string{"distribution", "min", "max"}, kindFields[d.Kind]...)
	for _, m := range n.members {
		ok := false
		for _, a := range allowed {
			ok = ok || a == m.name
		}
		if !ok {
			r.fail(m.at, "%s: %q does not belong to the distribution %s", what, m.name, d.Kind)
			return
		}
	}
	switch d.Kind {
	case "uniform":
		r.need(n, what, given, "max")
	case "constant":
		_, hasValue := given["value"]
		switch {
		case hasValue:
		case d.HasMin && d.HasMax && d.Min == d.Max:
			d.Value = d.Min
		default:
			r.fail(n.at, "%s: a constant needs value", what)
		}
	case "normal":
		r.need(n, what, given, "mean", "stddev")
		if d.StdDev <= 0 && r.err == nil {
			r.fail(n.at, "%s: stddev %g: want more than 0", what, d.StdDev)
		}
	case "lognormal":
		r.lognormal(n, what, d, given, p99)
	case "exponential":
		r.need(n, what, given, "mean")
		if d.Mean <= 0 && r.err == nil {
			r.fail(n.at, "%s: mean %g: want more than 0", what, d.Mean)
		}
	case "zipf":
		r.need(n, what, given, "max")
		if _, ok := given["exponent"]; !ok {
			d.Exponent = 1
		}
		if d.Max > 1e6 || d.Exponent <= 0 {
			r.fail(n.at, "%s: a zipf distribution needs an exponent above 0 and a max of at most 1000000", what)
		}
	case "quantiles":
		r.need(n, what, given, "quantiles")
	}
	if r.err == nil && d.Kind != "constant" && d.Kind != "zipf" && !d.IsConstant() {
		r.reachable(n, what, *d)
	}
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// lognormal has a median and a spread: as given, or so that min and max are
// its middle's distance apart and max its 99th percentile.
func (r *reader) lognormal(n node, what string, d *Dist, given map[string]node, p99 float64) {
	_, median := given["median"]
	_, sigma := given["sigma"]
	_, hasP99 := given["p99"]
	_, hasMin := given["min"]
	switch {
	case median && sigma != hasP99:
		if hasP99 {
			if p99 <= d.Median {
				r.fail(given["p99"].at, "%s: p99 %g is not above the median %g", what, p99, d.Median)
				return
			}
			d.Sigma = math.Log(p99/d.Median) / z99
		}
	case !median && !sigma && !hasP99 && hasMin && d.HasMax:
		if d.Min <= 0 {
			r.fail(given["min"].at, "%s: min %g: a lognormal's min must be above 0, or give median and sigma", what, d.Min)
			return
		}
		d.Median = math.Sqrt(d.Min * d.Max)
		d.Sigma = math.Log(d.Max/d.Median) / z99
		if d.Sigma == 0 {
			*d = Constant(d.Min)
			return
		}
	default:
		r.fail(n.at, "%s: a lognormal needs min and max, or median and sigma, or median and p99", what)
		return
	}
	if d.Median <= 0 || d.Sigma <= 0 {
		r.fail(n.at, "%s: a lognormal's median and sigma must be above 0", what)
	}
}

// reachable fails where min and max leave nothing of the distribution.
func (r *reader) reachable(n node, what string, d Dist) {
	if d.Kind == "uniform" || d.Kind == "quantiles" {
		return
	}
	base := d.base()
	if mass := base.CDF(d.highest()) - base.CDF(d.lowest()); mass < 1e-6 {
		r.fail(n.at, "%s: between min and max lies less than a millionth of the distribution", what)
	}
}

// points reads [[probability, value], …].
func (r *reader) points(n node, what string) [][2]float64 {
	if n.kind != "array" || len(n.items) < 2 {
		r.fail(n.at, "%s: want a list of at least two pairs, [[0, 39], [1, 14050]]", what)
		return nil
	}
	var points [][2]float64
	for _, item := range n.items {
		if item.kind != "array" || len(item.items) != 2 {
			r.fail(item.at, "%s: want a pair of a probability and a value", what)
			return nil
		}
		p := [2]float64{r.number(item.items[0], what), r.number(item.items[1], what)}
		if k := len(points); k > 0 && (p[0] <= points[k-1][0] || p[1] < points[k-1][1]) {
			r.fail(item.at, "%s: probabilities and values must rise", what)
		}
		if p[0] < 0 || p[0] > 1 || p[1] < 0 {
			r.fail(item.at, "%s: want a probability from 0 to 1 and a value of 0 or more", what)
		}
		points = append(points, p)
	}
	if r.err == nil && (points[0][0] != 0 || points[len(points)-1][0] != 1) {
		r.fail(n.at, "%s: the first probability is 0 and the last is 1", what)
	}
	return points
}
