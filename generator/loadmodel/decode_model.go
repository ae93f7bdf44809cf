package loadmodel

import (
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
	given := r.object(n, what, setters{
		"load_model": func(v node) { r.model(v, m) },
		"$schema":    func(v node) { r.string(v, "$schema") }, // where editors find schema.json
	})
	r.need(n, what, given, "load_model")
	return m
}

func (r *reader) model(n node, m *Model) {
	what := "load_model"
	given := r.object(n, what, setters{
		"name":             func(v node) { m.Name = r.string(v, "name") },
		"description":      func(v node) { m.Description = r.string(v, "description") },
		"scenarios":        func(node) {}, // read below, since a trace changes what they need
		"target_qps":       func(v node) { m.TargetQPS = r.rate(v, "target_qps") },
		"duration_seconds": func(v node) { m.Duration = r.seconds(v, "duration_seconds", false) },
		"ramp_up_seconds":  func(v node) { m.RampUp = r.seconds(v, "ramp_up_seconds", true) },
		"concurrency":      func(v node) { m.Concurrency = r.whole(v, "concurrency", 1) },
		"rates":            func(v node) { r.rates(v, m) },
		"trace":            func(v node) { r.trace(v, m) },
		"budget":           func(v node) { r.budget(v, m) },
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
	})
	if r.err != nil {
		return
	}
	if v, ok := given["scenarios"]; ok {
		if m.Trace != nil {
			r.traced(v)
		}
		r.scenarios(v, m)
	} else if m.Trace == nil {
		r.need(n, what, given, "scenarios")
	}
	if v, ok := given["limits"]; ok {
		r.limits(v, m)
	}
	r.paced(n, m, given)
	if v, both := given["models"]; both {
		r.spoken(v, m)
	}
}

// spoken checks that models with shares leave no doubt which model is asked, and
// through which API.
func (r *reader) spoken(models node, m *Model) {
	if m.Model != "" {
		r.fail(models.at, "model and models are both given; keep one")
	}
	if !slices.ContainsFunc(m.Models, func(s Share) bool { return s.API != "" }) {
		return
	}
	for i := range m.Scenarios {
		if s := &m.Scenarios[i]; s.API != "" && s.Model == "" {
			r.fail(models.at, "scenario %q has an api, and so have models; keep it in one place, or give the scenario a model", s.ID)
		}
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
				"api":   func(v node) { s.API = r.api(v) },
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

// written are the fields of a body, in any API, that hold what a load model says
// elsewhere: another value would not be what was planned and is reported.
var written = []string{"model", "stream", "messages", "prompt", "input", "contents", "system", "instructions", "systemInstruction", "system_instruction", "tools"}

func (r *reader) extra(v node) map[string]json.RawMessage {
	if v.kind != "object" {
		r.fail(v.at, "extra_body is %s; want an object in braces", article(v.kind))
		return nil
	}
	all := map[string]json.RawMessage{}
	for _, m := range v.members {
		if slices.Contains(written, m.name) {
			r.fail(m.at, "extra_body: %q is what weir writes; say it by the scenarios, model, api and tools", m.name)
			return nil
		}
		all[m.name] = m.value.json()
	}
	return all
}
