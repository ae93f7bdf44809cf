package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"weir/generator/loadmodel"
	"weir/shaper"
)

// impairFlags are the flags that make calls worse on purpose.
type impairFlags struct {
	texts impairTexts
	seed  uint64
}

// impairTexts are impairments as they are written.
type impairTexts struct{ ruleTexts }

// Set adds impairments, of which there has to be one.
func (t *impairTexts) Set(text string) error {
	before := len(t.texts)
	if err := t.ruleTexts.Set(text); err != nil {
		return err
	}
	if len(t.texts) == before {
		return errors.New("nothing is said; want what befalls calls, as cut:1%, or leave the flag out")
	}
	return nil
}

func (f *impairFlags) add(fl *pflag.FlagSet) {
	fl.Var(&f.texts, "impair", "make some calls worse on purpose, as 'scenario=agent: first_token+800ms, cut:1%'; may be repeated, and weir proxy --help has the ways")
	fl.Uint64Var(&f.seed, "impair-seed", 1, "seed by which calls are chosen to be impaired")
}

// read reads what the flags say.
func (f *impairFlags) read() ([]shaper.Impairment, error) {
	var all []shaper.Impairment
	for _, text := range f.texts.texts {
		list, err := shaper.ParseImpairments(text)
		if err != nil {
			return nil, usagef("--impair: %w", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// impairer is nil where nothing is to be impaired.
func (f *impairFlags) impairer() (*shaper.Impairer, error) {
	list, err := f.read()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return shaper.NewImpairer(list, f.seed), nil
}

// impairerOf is what a load model says; nil where that is nothing.
func impairerOf(m *loadmodel.Model, seed uint64) *shaper.Impairer {
	if m == nil || len(m.Impairments()) == 0 {
		return nil
	}
	return shaper.NewImpairer(m.Impairments(), seed)
}

// tellImpairments says plainly that calls are made worse.
func tellImpairments(w io.Writer, p *shaper.Impairer) {
	if p == nil || len(p.Impairments()) == 0 {
		return
	}
	fmt.Fprintf(w, "  ! impairments are on (seed %d): calls are made worse on purpose, and stand apart in reports\n", p.Seed())
	for _, m := range p.Impairments() {
		fmt.Fprintf(w, "    %s\n", m)
	}
}
