package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Propagation says which trace an upstream is told of. Baggage never passes:
// it may say anything of the caller. The zero Propagation is PropagateStrip.
type Propagation string

// The propagations.
const (
	PropagateStrip   Propagation = "strip"   // none: upstreams are mostly third parties
	PropagatePass    Propagation = "pass"    // the caller's, as it came
	PropagateReplace Propagation = "replace" // the caller's with the call's own span as the parent, or weir's own
)

// Propagations are the ones there are.
var Propagations = []Propagation{PropagateStrip, PropagatePass, PropagateReplace}

// propagate puts the trace into the headers that go to the upstream, which hold
// none yet.
func (x *exchange) propagate(out http.Header) {
	switch x.p.Propagate {
	case PropagatePass:
		for _, name := range []string{"Traceparent", "Tracestate"} {
			if values := x.r.Header[name]; len(values) > 0 {
				out[name] = slices.Clone(values)
			}
		}
	case PropagateReplace:
		if !x.unseen {
			propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), x.span), propagation.HeaderCarrier(out))
		}
	}
}

// longestBaggage bounds what a label takes from a request's baggage.
const longestBaggage = 256

// baggageLabels adds the members of the request's baggage that were chosen to
// the call's labels. What X-Weir-Label says of the same name counts; baggage
// that cannot be read, and members that are too long, give nothing.
func (p *Proxy) baggageLabels(h http.Header, labels map[string]string) map[string]string {
	if len(p.BaggageLabels) == 0 || len(h["Baggage"]) == 0 {
		return labels
	}
	b, err := baggage.Parse(strings.Join(h["Baggage"], ","))
	if err != nil {
		return labels
	}
	for _, key := range p.BaggageLabels {
		value := b.Member(key).Value()
		if _, said := labels[key]; said || value == "" || len(value) > longestBaggage {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels
}
