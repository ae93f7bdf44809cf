package main

import (
	"slices"
	"sync"
	"sync/atomic"

	"weir/generator/loadmodel"
	"weir/shaper"
)

// rulebook is what a running proxy goes by and what can change meanwhile: the
// rules that give calls their scenario, and the limits.
type rulebook struct {
	file   string // of the load model; empty: there is none
	edits  []edit // what the command line says of limits
	shaper *shaper.Shaper

	impairments []shaper.Impairment // that the command line says
	impair      *shaper.Impairer    // nil: neither it nor a load model may say any

	model atomic.Pointer[loadmodel.Model] // nil without a file

	mu      sync.Mutex
	changed []shaper.Rule // by weir limit, as they are since; without a limit: gone
}

// openRulebook begins with a model, which is nil when there is none.
func openRulebook(file string, m *loadmodel.Model, f *laneFlags, worse *impairFlags) (*rulebook, error) {
	edits, err := f.edits()
	if err != nil {
		return nil, err
	}
	b := &rulebook{file: file, edits: edits, shaper: &shaper.Shaper{}}
	b.model.Store(m)
	if b.impairments, err = worse.read(); err != nil {
		return nil, err
	}
	if file != "" || len(b.impairments) > 0 {
		b.impair = shaper.NewImpairer(b.statedImpairments(), worse.seed)
	}
	return b, b.shaper.Configure(b.stated())
}

// stated are the limits as the model and the command line state them.
func (b *rulebook) stated() []shaper.Rule {
	var rules []shaper.Rule
	if m := b.model.Load(); m != nil {
		rules = m.Rules()
	}
	return over(rules, b.edits)
}

// statedImpairments are what befalls calls as the command line and the model
// state it. Of one kind the first that is drawn befalls a call.
func (b *rulebook) statedImpairments() []shaper.Impairment {
	all := slices.Clone(b.impairments)
	if m := b.model.Load(); m != nil {
		all = append(all, m.Impairments()...)
	}
	return all
}

// match gives the scenario that a request belongs to by the model's rules.
func (b *rulebook) match(f loadmodel.Facts) (scenario string, ok bool) {
	if m := b.model.Load(); m != nil {
		return m.Match(f)
	}
	return "", false
}

// change changes one limit, as shaper.Shaper.Change does.
func (b *rulebook) change(text string) (old, now shaper.Rule, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, now, err = b.shaper.Change(text); err != nil {
		return old, now, err
	}
	b.changed = append(without(b.changed, now.Select), now)
	return old, now, nil
}

// reset goes back to what the model and the command line state.
func (b *rulebook) reset() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = nil
	return b.shaper.Configure(b.stated())
}

// replace goes by another model from now on. What weir limit has changed stays,
// but for limits of which the model speaks: gaveWay names those.
func (b *rulebook) replace(m *loadmodel.Model) (gaveWay []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.model.Store(m)
	b.impair.Configure(b.statedImpairments())
	for _, r := range m.Rules() {
		if rest := without(b.changed, r.Select); len(rest) < len(b.changed) {
			b.changed = rest
			gaveWay = append(gaveWay, r.Select.String())
		}
	}
	rules := b.stated()
	for _, r := range b.changed {
		i := slices.IndexFunc(rules, func(other shaper.Rule) bool { return other.Select == r.Select })
		switch gone := r.Limit == (shaper.Limit{}); {
		case i >= 0 && gone:
			rules = slices.Delete(rules, i, i+1)
		case i >= 0:
			rules[i] = r
		case !gone:
			rules = append(rules, r)
		}
	}
	return gaveWay, b.shaper.Configure(rules)
}

// without are the rules but for that of a selector.
func without(rules []shaper.Rule, who shaper.Selector) []shaper.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r shaper.Rule) bool { return r.Select == who })
}
