package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir/proxy/wire"
)

// GenAIProfiles are the versions of the GenAI conventions whose metrics weir
// knows, the default first: the conventions' own first release, and the last one
// of the core conventions that had them.
var GenAIProfiles = []string{"0.1", "1.41"}

// ParseGenAIProfiles reads one profile, or several with commas between.
func ParseGenAIProfiles(text string) ([]string, error) {
	var profiles []string
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		known := false
		for _, p := range GenAIProfiles {
			known = known || p == word
		}
		if !known {
			return nil, fmt.Errorf("GenAI profile %q: want %s, or both with a comma between", word, strings.Join(GenAIProfiles, " or "))
		}
		profiles = append(profiles, word)
	}
	return profiles, nil
}

const (
	keyTokenType     = "gen_ai.token.type"     // in 1.41: input, output
	keyTokenModality = "gen_ai.token.modality" // in 0.1
)

// The modality of tokens is unknown: no API splits all of its figures by it, and
// a part of them would be told twice.
const unknownModality = "unknown"

// genAI are the metrics of one profile. Those about a model's server are none of
// weir's: it sees the client's side.
type genAI struct {
	duration, firstChunk *histogram

	// input and output are both profiles' histograms of tokens; in 1.41 they are
	// one, told apart by an attribute.
	input, output metric.Int64Histogram
	typed         bool
}

// genAIPrefix is how the names of a profile's metrics begin.
func genAIPrefix(profile string) string {
	if profile == "1.41" {
		return "gen_ai.client.operation."
	}
	return "gen_ai.client.inference."
}

// newGenAI makes the instruments of a profile. Tokens used are totals.
func newGenAI(meter metric.Meter, profile string, seconds *histograms, totals *totalled) (*genAI, error) {
	var errs []error
	prefix := genAIPrefix(profile)
	tokens := func(name, what string) metric.Int64Histogram {
		h, err := meter.Int64Histogram(name, metric.WithUnit("{token}"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(tokenBuckets()...))
		errs = append(errs, err)
		return h
	}
	g := &genAI{}
	var err error
	g.duration, err = seconds.make(meter, "How long calls took, failed ones too.", secondBuckets(), prefix+"duration")
	errs = append(errs, err)
	g.firstChunk, err = seconds.make(meter, "From the request's end to the first event of a stream, which is no first token.", secondBuckets(), prefix+"time_to_first_chunk")
	errs = append(errs, err)
	if profile == "1.41" {
		g.typed = true
		g.input = tokens("gen_ai.client.token.usage", "Tokens that calls used, as the provider reported.")
		g.output = g.input
		return g, errors.Join(errs...)
	}
	g.input = tokens(prefix+"operation.input_tokens", "Input tokens of a call, those from the cache too.")
	g.output = tokens(prefix+"operation.output_tokens", "Output tokens of a call, those of its reasoning too.")
	for i, u := range usedNames {
		totals.used[i], err = meter.Int64ObservableCounter(prefix+"usage."+u.name, metric.WithUnit("{token}"), metric.WithDescription(u.what))
		errs = append(errs, err)
	}
	return g, errors.Join(errs...)
}

// tokens records what a call used, as far as the provider said: what it did not
// say is no zero. set gives the attributes of the series with others added.
func (g *genAI) tokens(ctx context.Context, u *wire.Usage, failure []attribute.KeyValue, set func(more ...attribute.KeyValue) *labelled) {
	of := func(h metric.Int64Histogram, n wire.Count, kind string) {
		if !n.Known {
			return
		}
		more := failure
		if g.typed {
			more = append(failure[:len(failure):len(failure)], attribute.String(keyTokenType, kind))
		}
		h.Record(ctx, n.N, set(more...).record...)
	}
	of(g.input, u.Input, "input")
	of(g.output, u.Output, "output")
}

// doubled are histogram bounds: the first one, and n-1 more, each so many times
// the one before.
func doubled(first, times float64, n int) []float64 {
	bounds := make([]float64, 0, n)
	for range n {
		bounds = append(bounds, first)
		first *= times
	}
	return bounds
}

// secondBuckets are the conventions' advice, 10 ms doubled up to 82 s, and go on
// to eleven minutes, since there are answers that take so long; tokenBuckets are
// the powers of 4 up to 67 million.
func secondBuckets() []float64 { return doubled(0.01, 2, 17) }
func tokenBuckets() []float64  { return doubled(1, 4, 14) }
