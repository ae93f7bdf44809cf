package loadmodel

import (
	"path/filepath"
	"slices"
	"strings"
)

// ways are the ways to say what is sent when, of which a model has one: what each
// replaces, and what it needs beside itself.
var ways = []struct {
	name           string
	replaces, need []string
}{
	{"trace", []string{"concurrency", "rates", "phases", "target_qps", "duration_seconds", "ramp_up_seconds", "arrivals", "warm_up_seconds"}, nil},
	{"concurrency", []string{"rates", "phases", "target_qps", "ramp_up_seconds", "arrivals"}, []string{"duration_seconds"}},
	{"rates", []string{"phases", "target_qps", "duration_seconds", "ramp_up_seconds"}, nil},
	{"phases", []string{"target_qps", "duration_seconds", "ramp_up_seconds"}, nil},
	{"", nil, []string{"target_qps", "duration_seconds"}},
}

// paced checks that the model says in one way what is sent when.
func (r *reader) paced(n node, m *Model, given map[string]node) {
	for _, way := range ways {
		if _, ok := given[way.name]; !ok && way.name != "" {
			continue
		}
		for _, name := range way.replaces {
			if v, both := given[name]; both {
				r.fail(v.at, "%s and %s are both given; keep one", name, way.name)
			}
		}
		r.need(n, "load_model", given, way.need...)
		break
	}
	if v, ok := given["target_qps"]; ok && m.TargetQPS == 0 {
		r.fail(v.at, "target_qps 0: want more than 0")
	}
	if v, ok := given["ramp_up_seconds"]; ok && m.RampUp > m.Duration {
		r.fail(v.at, "ramp_up_seconds %v is longer than duration_seconds %v, which holds it; shorten it", m.RampUp.Seconds(), m.Duration.Seconds())
	}
}

func (r *reader) arrivals(v node, m *Model) {
	given := r.object(v, "arrivals", setters{
		"process": func(v node) {
			m.Arrivals.Process = r.oneOf(v, "arrivals: process", "poisson", "constant", "gamma")
		},
		"cv": func(v node) {
			if m.Arrivals.CV = r.number(v, "arrivals: cv"); m.Arrivals.CV < 0.05 || m.Arrivals.CV > 20 {
				r.fail(v.at, "arrivals: cv %v: want 0.05 to 20; for even gaps the process is constant", m.Arrivals.CV)
			}
		},
	})
	_, cv := given["cv"]
	switch gamma := m.Arrivals.Process == "gamma"; {
	case gamma && !cv:
		r.fail(v.at, `arrivals: gamma needs cv, the coefficient of variation of its gaps, as "cv": 2.5`)
	case cv && !gamma:
		r.fail(given["cv"].at, "arrivals: cv belongs to the process gamma; take it out or name gamma")
	}
}

func (r *reader) phases(v node, m *Model) {
	if v.kind != "array" || len(v.items) == 0 {
		r.fail(v.at, "phases is %s; want a list of at least one phase", describe(v))
		return
	}
	for _, item := range v.items {
		var p Phase
		given := r.object(item, "phase", setters{
			"name":     func(v node) { p.Name = r.string(v, "phase: name") },
			"qps":      func(v node) { p.FromQPS = r.rate(v, "phase: qps"); p.ToQPS = p.FromQPS },
			"from_qps": func(v node) { p.FromQPS = r.rate(v, "phase: from_qps") },
			"to_qps":   func(v node) { p.ToQPS = r.rate(v, "phase: to_qps") },
			"seconds":  func(v node) { p.Length = r.seconds(v, "phase: seconds", false) },
		})
		r.need(item, "phase", given, "seconds")
		_, flat := given["qps"]
		_, from := given["from_qps"]
		_, to := given["to_qps"]
		if r.err == nil && (flat == (from || to) || from != to) {
			r.fail(item.at, "phase: want either qps, or from_qps and to_qps")
		}
		m.Phases = append(m.Phases, p)
	}
	if r.err == nil && !slices.ContainsFunc(m.Phases, func(p Phase) bool { return p.FromQPS > 0 || p.ToQPS > 0 }) {
		r.fail(v.at, "phases: the rate is 0 in all of them; want more in one")
	}
}

func (r *reader) rates(v node, m *Model) {
	if v.kind != "array" || len(v.items) == 0 {
		r.fail(v.at, `rates is %s; want a list of windows of time, as [{"qps": 2.5, "seconds": 60}]`, describe(v))
		return
	}
	for _, item := range v.items {
		var w Rate
		given := r.object(item, "rate", setters{
			"qps":     func(v node) { w.QPS = r.rate(v, "rate: qps") },
			"seconds": func(v node) { w.Length = r.seconds(v, "rate: seconds", false) },
		})
		r.need(item, "rate", given, "qps", "seconds")
		m.Rates = append(m.Rates, w)
	}
	if r.err == nil && !slices.ContainsFunc(m.Rates, func(w Rate) bool { return w.QPS > 0 }) {
		r.fail(v.at, "rates: the rate is 0 in all of them; want more in one")
	}
}

func (r *reader) budget(v node, m *Model) {
	r.object(v, "budget", setters{
		"tokens": func(v node) { m.Budget.Tokens = int64(r.whole(v, "budget: tokens", 1)) },
		"usd":    func(v node) { m.Budget.USD = r.positive(v, "budget: usd") },
	})
	if r.err == nil && m.Budget == (Budget{}) {
		r.fail(v.at, `budget limits nothing; want {"tokens": 5000000} or {"usd": 10}, or take it out`)
	}
}

func (r *reader) trace(v node, m *Model) {
	t := &TraceSpec{}
	given := r.object(v, "trace", setters{
		"file": func(v node) {
			if t.File = r.string(v, "trace: file"); t.File == "" {
				r.fail(v.at, "trace: file is empty; want the path of the trace")
			} else if !filepath.IsAbs(t.File) {
				t.File = filepath.Join(filepath.Dir(r.d.name), t.File)
			}
		},
		"format": func(v node) {
			t.Format = r.oneOf(v, "trace: format", TraceFormats()...)
		},
		"speed": func(v node) {
			if t.Speed = r.number(v, "trace: speed"); t.Speed < 1e-6 || t.Speed > 1e6 {
				r.fail(v.at, "trace: speed %v: want 0.000001 to 1000000; 2 plays it in half the time", t.Speed)
			}
		},
		"limit": func(v node) { t.Limit = r.whole(v, "trace: limit", 1) },
	})
	r.need(v, "trace", given, "file")
	m.Trace = t
}

// ofTrace are the fields of a scenario that a trace's rows say instead.
var ofTrace = []string{"input_tokens", "output_tokens", "turns", "think_seconds", "session", "joint", "prefix"}

// traced checks the scenarios of a model whose trace gives times and lengths.
func (r *reader) traced(scenarios node) {
	if len(scenarios.items) > 1 {
		r.fail(scenarios.items[1].at, "trace: its rows are sent as one scenario; keep one")
	}
	for _, item := range scenarios.items {
		for _, field := range item.members {
			if slices.Contains(ofTrace, field.name) {
				r.fail(field.at, "%s and trace are both given; the trace's rows say %s: take it out", field.name, strings.ReplaceAll(field.name, "_", " "))
			}
		}
	}
}
