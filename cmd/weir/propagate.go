package main

import (
	"slices"

	"github.com/spf13/pflag"

	"weir/proxy"
)

// propagateFlags say what becomes of the callers' traces.
type propagateFlags struct {
	propagation proxy.Propagation
	baggage     []string
}

func (f *propagateFlags) add(fl *pflag.FlagSet) {
	fl.StringVar((*string)(&f.propagation), "propagate", string(proxy.PropagateStrip), "trace that upstreams are told of by traceparent: strip tells of none, pass of the caller's, replace of weir's own span in it; baggage never passes")
	fl.StringArrayVar(&f.baggage, "baggage-label", nil, "member of a request's baggage that becomes a label of the call; may be repeated")
}

func (f *propagateFlags) check() error {
	if !slices.Contains(proxy.Propagations, f.propagation) {
		return usagef("--propagate %s: want strip, pass or replace", string(f.propagation))
	}
	return nil
}
