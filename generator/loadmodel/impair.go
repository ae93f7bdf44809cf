package loadmodel

import "weir/shaper"

// Impairments are what befalls the calls of all scenarios on purpose, in the
// file's order.
func (m *Model) Impairments() []shaper.Impairment {
	var all []shaper.Impairment
	for i := range m.Scenarios {
		all = append(all, m.Scenarios[i].Impair...)
	}
	return all
}

// impair reads "first_token+800ms, cut:1%", or a list of such texts.
func (r *reader) impair(n node, what string) []shaper.Impairment {
	texts := n.items
	if n.kind != "array" {
		texts = []node{n}
	}
	if len(texts) == 0 {
		r.fail(n.at, `%s is empty; want something like "first_token+800ms, cut:1%%", or take it out`, what)
	}
	var all []shaper.Impairment
	for _, v := range texts {
		text := r.string(v, what)
		if r.err != nil {
			return nil
		}
		list, err := shaper.ParseImpairments(text)
		if err != nil {
			r.fail(v.at, "%s: %v", what, err)
			return nil
		}
		if list[0].Select.Scenario != "" {
			r.fail(v.at, "%s: impairment %q: whose calls are meant is said by where it stands; take scenario=%s out", what, text, list[0].Select.Scenario)
		}
		all = append(all, list...)
	}
	return all
}
