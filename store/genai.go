package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir/proxy/wire"
	"weir/store/call"
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
	duration, firstChunk metric.Float64Histogram

	// Of 0.1; nil in 1.41.
	used map[string]metric.Int64Counter // by their names' ends
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

// newGenAI makes the instruments of a profile.
func newGenAI(meter metric.Meter, profile string) (*genAI, error) {
	var errs []error
	prefix := genAIPrefix(profile)
	seconds := func(name, what string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(prefix+name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(secondBuckets()...))
		errs = append(errs, err)
		return h
	}
	tokens := func(name, what string) metric.Int64Histogram {
		h, err := meter.Int64Histogram(name, metric.WithUnit("{token}"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(tokenBuckets()...))
		errs = append(errs, err)
		return h
	}
	g := &genAI{
		duration:   seconds("duration", "How long calls took, failed ones too."),
		firstChunk: seconds("time_to_first_chunk", "From the request's end to the first event of a stream, which is no first token."),
	}
	if profile == "1.41" {
		g.typed = true
		g.input = tokens("gen_ai.client.token.usage", "Tokens that calls used, as the provider reported.")
		g.output = g.input
		return g, errors.Join(errs...)
	}
	g.input = tokens(prefix+"operation.input_tokens", "Input tokens of a call, those from the cache too.")
	g.output = tokens(prefix+"operation.output_tokens", "Output tokens of a call, those of its reasoning too.")
	g.used = map[string]metric.Int64Counter{}
	for name, what := range map[string]string{
		"input_tokens": "Input tokens used, those from the cache too.", "output_tokens": "Output tokens used, those of reasoning too.",
		"cache_read.input_tokens": "Of the input tokens: read from the cache.", "cache_write.input_tokens": "Of the input tokens: written to the cache.",
		"reasoning.output_tokens": "Of the output tokens: reasoning.",
	} {
		c, err := meter.Int64Counter(prefix+"usage."+name, metric.WithUnit("{token}"), metric.WithDescription(what))
		errs = append(errs, err)
		g.used[name] = c
	}
	return g, errors.Join(errs...)
}

// tokens records what a call used, as far as the provider said: what it did not
// say is no zero. set gives the attributes of the series with others added.
func (g *genAI) tokens(ctx context.Context, c *call.Call, failure []attribute.KeyValue, set func(more ...attribute.KeyValue) metric.MeasurementOption) {
	switch c.UsageSource {
	case call.UsageReported, call.UsageInjected:
	default:
		return
	}
	of := func(h metric.Int64Histogram, n wire.Count, kind string) {
		if !n.Known {
			return
		}
		more := failure
		if g.typed {
			more = append(failure[:len(failure):len(failure)], attribute.String(keyTokenType, kind))
		}
		h.Record(ctx, n.N, set(more...))
	}
	of(g.input, c.Usage.Input, "input")
	of(g.output, c.Usage.Output, "output")
	if g.typed {
		return
	}
	modality := set(attribute.String(keyTokenModality, unknownModality))
	for name, n := range map[string]wire.Count{
		"input_tokens": c.Usage.Input, "output_tokens": c.Usage.Output, "cache_read.input_tokens": c.Usage.CacheRead,
		"cache_write.input_tokens": c.Usage.CacheWrite, "reasoning.output_tokens": c.Usage.Reasoning,
	} {
		if n.Known {
			g.used[name].Add(ctx, n.N, modality)
		}
	}
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
