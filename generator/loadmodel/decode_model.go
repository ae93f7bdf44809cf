package loadmodel

import (
	"bytes"
	"encoding/json"
	"slices"
)

func (r *reader) root(n node) *Model {
	m := &Model{}
	const what = "the document"
	if n.kind == "object" && slices.ContainsFunc(n.members, func(m member) bool { return m.name == "scenarios" }) {
		r.fail(n.at, `%s: field "load_model" is missing: put {"load_model": … } around it`, what)
		return m
	}
	given := r.object(n, what, setters{"load_model": func(v node) { r.model(v, m) }})
	r.need(n, what, given, "load_model")
	return m
}

func (r *reader) model(n node, m *Model) {
	what := "load_model"
	given := r.object(n, what, setters{
		"name":             func(v node) { m.Name = r.string(v, "name") },
		"description":      func(v node) { m.Description = r.string(v, "description") },
		"scenarios":        func(v node) { r.scenarios(v, m) },
		"target_qps":       func(v node) { m.TargetQPS = r.rate(v, "target_qps") },
		"duration_seconds": func(v node) { m.Duration = r.seconds(v, "duration_seconds", false) },
		"ramp_up_seconds":  func(v node) { m.RampUp = r.seconds(v, "ramp_up_seconds", true) },
		"arrivals":         func(v node) { r.arrivals(v, m) },
		"phases":           func(v node) { r.phases(v, m) },
		"seed":             func(v node) { m.Seed, m.HasSeed = r.seed(v), true },
		"api":              func(v node) { m.API = r.api(v) },
		"model":            func(v node) { m.Model = r.string(v, "model") },
		"models":           func(v node) { r.models(v, m) },
		"warm_up_seconds":  func(v node) { m.WarmUp = r.seconds(v, "warm_up_seconds", true) },
		"max_in_flight":    func(v node) { m.MaxInFlight = r.whole(v, "max_in_flight", 1) },
		"timeout_seconds":  func(v node) { m.Timeout = r.seconds(v, "timeout_seconds", false) },
		"extra_body":       func(v node) { m.ExtraBody = r.extra(v) },
		"limit":            func(v node) { m.Limit = r.limit(v, "limit") },
		"limits":           func(node) {}, // read below, beside the scenarios' own
	}, "concurrency", "rates", "budget", "trace")
	if r.err != nil {
		return
	}
	r.need(n, what, given, "scenarios")
	if v, ok := given["limits"]; ok {
		r.limits(v, m)
	}
	if _, phased := given["phases"]; phased {
		for _, name := range []string{"target_qps", "duration_seconds", "ramp_up_seconds"} {
			if v, both := given[name]; both {
				r.fail(v.at, "%s and phases are both given; phases replace it: keep one", name)
			}
		}
	} else {
		r.need(n, what, given, "target_qps", "duration_seconds")
		if v, ok := given["target_qps"]; ok && m.TargetQPS == 0 {
			r.fail(v.at, "target_qps 0: want more than 0")
		}
		if m.RampUp > m.Duration {
			r.fail(given["ramp_up_seconds"].at, "ramp_up_seconds %v is longer than duration_seconds %v, which holds it; shorten it", m.RampUp.Seconds(), m.Duration.Seconds())
		}
	}
	if v, both := given["models"]; both && m.Model != "" {
		r.fail(v.at, "model and models are both given; keep one")
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
	if r.err == nil && m.PeakQPS() == 0 {
		r.fail(v.at, "phases: the rate is 0 in all of them; want more in one")
	}
}

func (r *reader) models(v node, m *Model) {
	if v.kind != "array" || len(v.items) == 0 {
		r.fail(v.at, "models is %s; want a list of names, or of objects with name and share", describe(v))
		return
	}
	var sum float64
	for _, item := range v.items {
		s := Share{Share: 1 / float64(len(v.items))}
		if item.kind == "string" {
			s.Name = r.string(item, "models")
		} else {
			given := r.object(item, "models", setters{
				"name":  func(v node) { s.Name = r.string(v, "models: name") },
				"share": func(v node) { s.Share = r.notNegative(v, "models: share") },
			})
			r.need(item, "models", given, "name", "share")
		}
		sum += s.Share
		m.Models = append(m.Models, s)
	}
	if r.err == nil && !isOne(sum) {
		r.fail(v.at, "the models' shares sum to %v; want 1", sum)
	}
}

func (r *reader) extra(v node) map[string]json.RawMessage {
	if v.kind != "object" {
		r.fail(v.at, "extra_body is %s; want an object in braces", article(v.kind))
		return nil
	}
	all := map[string]json.RawMessage{}
	for _, m := range v.members {
		all[m.name] = bytes.Clone(m.value.raw)
	}
	return all
}
