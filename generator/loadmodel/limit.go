package loadmodel

import (
	"encoding/json"
	"errors"

	"weir/shaper"
)

// Rules are the limits of the model as rules of a shaper: that of all calls,
// those of the scenarios, and the rest, in the file's order. Each speaks of
// other calls, and limits them.
func (m *Model) Rules() []shaper.Rule {
	var rules []shaper.Rule
	if m.Limit != (shaper.Limit{}) {
		rules = append(rules, shaper.Rule{Limit: m.Limit})
	}
	for i := range m.Scenarios {
		if s := &m.Scenarios[i]; s.Limit != (shaper.Limit{}) {
			rules = append(rules, shaper.Rule{Select: shaper.Selector{Scenario: s.ID}, Limit: s.Limit})
		}
	}
	return append(rules, m.Limits...)
}

// limit reads {"rps": 2, "concurrency": "adaptive"}.
func (r *reader) limit(n node, what string) (l shaper.Limit) {
	s := setters{}
	for _, name := range shaper.LimitNames() {
		s[name] = func(v node) {
			text, ok := v.value.(string)
			if num, isNumber := v.value.(json.Number); isNumber {
				text, ok = num.String(), true
			}
			if !ok || text == "" {
				r.fail(v.at, "%s: %s is %s; want a number, or text in quotes", what, name, describe(v))
				return
			}
			if err := l.Set(name, text); err != nil {
				r.fail(v.at, "%s: %v", what, err)
			}
		}
	}
	given := r.object(n, what, s)
	_, rps := given["rps"]
	_, rpm := given["rpm"]
	if rps && rpm {
		r.fail(given["rpm"].at, "%s: rps and rpm are one limit; keep one", what)
	}
	if r.err == nil && l == (shaper.Limit{}) {
		r.fail(n.at, `%s limits nothing; want something like {"rps": 2}, or take it out`, what)
	}
	return l
}

// limits reads ["model=gpt-* rps=2"], and finds what is limited twice.
func (r *reader) limits(n node, m *Model) {
	if n.kind != "array" || len(n.items) == 0 {
		r.fail(n.at, `limits is %s; want a list of rules, as ["model=gpt-* rps=2"]`, describe(n))
		return
	}
	seen := map[shaper.Selector]bool{}
	for _, rule := range m.Rules() {
		seen[rule.Select] = true
	}
	for _, item := range n.items {
		text := r.string(item, "limits")
		if r.err != nil {
			return
		}
		rule, err := shaper.ParseRule(text)
		var unknown *shaper.UnknownName
		switch {
		case errors.As(err, &unknown) && Nearest(unknown.Name, unknown.Known) != "":
			r.fail(item.at, "limits: %q is no limit: did you mean %q?", unknown.Name, Nearest(unknown.Name, unknown.Known))
		case err != nil:
			r.fail(item.at, "%v", err)
		case rule.Limit == shaper.Limit{}:
			r.fail(item.at, "limit %q limits nothing; want something like scenario=rag rps=2", text)
		case seen[rule.Select]:
			r.fail(item.at, "limit %q: %s is limited twice in this file; keep one", text, rule.Select)
		}
		seen[rule.Select] = true
		m.Limits = append(m.Limits, rule)
	}
}
