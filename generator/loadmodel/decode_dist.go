package loadmodel

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// quantity is what a distribution is of: the values that make sense.
type quantity struct {
	least, most float64
	whole       bool
}

var (
	tokens   = quantity{1, 10_000_000, true}
	turns    = quantity{1, 10_000, true}
	thinking = quantity{0, 86_400, false}
)

func (q quantity) String() string {
	if q.whole {
		return fmt.Sprintf("a whole number from %.0f to %.0f", q.least, q.most)
	}
	return fmt.Sprintf("%.0f to %.0f", q.least, q.most)
}

// value reads one value of a quantity.
func (r *reader) value(n node, what string, q quantity) float64 {
	v := r.number(n, what)
	if v < q.least || v > q.most || q.whole && v != math.Trunc(v) {
		r.fail(n.at, "%s %v: want %s", what, v, q)
	}
	return v
}

// kindFields are the fields that each kind of distribution takes beside its
// name.
var kindFields = map[string][]string{
	"uniform":     {"min", "max"},
	"constant":    {"value", "min", "max"},
	"normal":      {"min", "max", "mean", "stddev"},
	"lognormal":   {"min", "max", "median", "sigma", "p99"},
	"exponential": {"min", "max", "mean"},
	"zipf":        {"min", "max", "exponent"},
	"quantiles":   {"min", "max", "quantiles"},
}

// shaping reads one distribution.
type shaping struct {
	*reader
	n     node
	what  string // that errors call it
	q     quantity
	given map[string]node
	p99   float64
	d     Dist
}

// dist reads a distribution: a number, or an object with min, max and more.
func (r *reader) dist(n node, what string, q quantity) Dist {
	if n.kind == "number" {
		return Constant(r.value(n, what, q))
	}
	s := &shaping{reader: r, n: n, what: what, q: q, d: Dist{Kind: "uniform"}}
	named := func(field string) string { return what + ": " + field }
	bound := func(at *float64, field string) func(node) {
		return func(v node) { *at = r.value(v, named(field), q) }
	}
	above0 := func(at *float64, field string) func(node) {
		return func(v node) { *at = r.positive(v, named(field)) }
	}
	s.given = r.object(n, what, setters{
		"distribution": func(v node) {
			s.d.Kind = r.oneOf(v, named("distribution"), "uniform", "constant", "normal", "lognormal", "exponential", "zipf", "quantiles")
		},
		"min":    bound(&s.d.Min, "min"),
		"max":    bound(&s.d.Max, "max"),
		"value":  bound(&s.d.Value, "value"),
		"mean":   above0(&s.d.Average, "mean"),
		"stddev": above0(&s.d.StdDev, "stddev"),
		"median": above0(&s.d.Median, "median"),
		"sigma":  above0(&s.d.Sigma, "sigma"),
		"p99":    above0(&s.p99, "p99"),
		"exponent": func(v node) {
			if s.d.Exponent = r.positive(v, named("exponent")); s.d.Exponent > 20 {
				r.fail(v.at, "%s %v: want at most 20", named("exponent"), s.d.Exponent)
			}
		},
		"quantiles": func(v node) { s.d.Points = r.points(v, named("quantiles"), q) },
	})
	if r.err == nil {
		s.shape()
	}
	return s.d
}

func (s *shaping) has(field string) bool {
	_, ok := s.given[field]
	return ok
}

// shape checks that a distribution has what its kind needs, and nothing else.
func (s *shaping) shape() {
	d := &s.d
	if s.has("quantiles") && !s.has("distribution") {
		d.Kind = "quantiles"
	}
	for _, m := range s.n.members {
		if m.name != "distribution" && !slices.Contains(kindFields[d.Kind], m.name) {
			s.fail(m.at, "%s: field %q does not belong to the distribution %s, which takes %s", s.what, m.name, d.Kind, strings.Join(kindFields[d.Kind], ", "))
			return
		}
	}
	d.HasMin, d.HasMax = s.has("min"), s.has("max")
	if d.HasMin && d.HasMax && d.Min > d.Max {
		s.fail(s.given["min"].at, "%s: min %v is greater than max %v; swap them", s.what, d.Min, d.Max)
		return
	}
	switch d.Kind {
	case "uniform":
		s.need(s.n, s.what, s.given, "min", "max")
	case "constant":
		if s.has("value") == (d.HasMin || d.HasMax) || !s.has("value") && (d.HasMin != d.HasMax || d.Min != d.Max) {
			s.fail(s.n.at, "%s: a constant has one value: want value, or a plain number", s.what)
		} else if !s.has("value") {
			d.Value = d.Min
		}
		*d = Constant(d.Value)
		return
	case "normal":
		s.need(s.n, s.what, s.given, "mean", "stddev")
	case "lognormal":
		s.lognormal()
	case "exponential":
		s.need(s.n, s.what, s.given, "mean")
	case "zipf":
		s.need(s.n, s.what, s.given, "max")
		if !s.q.whole {
			s.fail(s.n.at, "%s: a zipf distribution is of whole numbers, and seconds are not; want another", s.what)
		}
		if d.Exponent == 0 {
			d.Exponent = 1
		}
	case "quantiles":
		s.need(s.n, s.what, s.given, "quantiles")
	}
	if s.err != nil {
		return
	}
	// What the file leaves open ends where values make no sense any more.
	if !d.HasMin {
		d.HasMin, d.Min = true, s.q.least
	}
	if !d.HasMax {
		d.HasMax, d.Max = true, s.q.most
	}
	s.reachable()
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// lognormal has a median and a spread, given, or by min and max alone: then
// these are equally far from the median, and max is the 99th percentile.
func (s *shaping) lognormal() {
	d := &s.d
	switch {
	case s.has("median") && s.has("sigma") != s.has("p99"):
		if s.has("p99") && s.p99 <= d.Median {
			s.fail(s.given["p99"].at, "%s: p99 %v is not above the median %v; raise it", s.what, s.p99, d.Median)
		} else if s.has("p99") {
			d.Sigma = math.Log(s.p99/d.Median) / z99
		}
	case !s.has("median") && !s.has("sigma") && !s.has("p99") && d.HasMin && d.HasMax:
		if d.Min <= 0 {
			s.fail(s.given["min"].at, "%s: min %v: a lognormal by min and max alone needs a min above 0; or give median and sigma", s.what, d.Min)
			return
		}
		d.Median = math.Sqrt(d.Min * d.Max)
		d.Sigma = math.Log(d.Max/d.Median) / z99
	default:
		s.fail(s.n.at, "%s: a lognormal needs min and max, or median and sigma, or median and p99", s.what)
	}
}

// reachable fails where min and max leave nothing of the distribution, or so
// little that its shape is lost in rounding.
func (s *shaping) reachable() {
	if s.d.IsConstant() {
		return
	}
	if c := s.d.cut(0); !(c.to-c.from >= 1e-6) {
		s.fail(s.n.at, "%s: less than a millionth of the distribution lies between min %v and max %v; widen them", s.what, s.d.Min, s.d.Max)
	}
}

// points reads [[probability, value], …].
func (r *reader) points(n node, what string, q quantity) [][2]float64 {
	const shape = "[[0, 39], [0.5, 1020], [1, 14050]]"
	if n.kind != "array" || len(n.items) < 2 {
		r.fail(n.at, "%s: want a list of two or more pairs of a probability and a value, as %s", what, shape)
		return nil
	}
	var points [][2]float64
	for _, item := range n.items {
		if item.kind != "array" || len(item.items) != 2 {
			r.fail(item.at, "%s: want pairs of a probability and a value, as %s", what, shape)
			return nil
		}
		p := [2]float64{r.number(item.items[0], what), r.number(item.items[1], what)}
		if p[0] < 0 || p[0] > 1 {
			r.fail(item.items[0].at, "%s: probability %v: want 0 to 1", what, p[0])
		}
		if p[1] < 0 || p[1] > q.most {
			r.fail(item.items[1].at, "%s: value %v: want 0 to %.0f", what, p[1], q.most)
		}
		if k := len(points) - 1; k >= 0 && (p[0] <= points[k][0] || p[1] < points[k][1]) {
			r.fail(item.at, "%s: [%v, %v] comes after [%v, %v]; probabilities must rise, and values not fall", what, p[0], p[1], points[k][0], points[k][1])
		}
		points = append(points, p)
	}
	if r.err == nil && (points[0][0] != 0 || points[len(points)-1][0] != 1) {
		r.fail(n.at, "%s: want the first probability to be 0 and the last 1, as %s", what, shape)
	}
	return points
}
