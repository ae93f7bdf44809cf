package store

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir/proxy/wire"
	"weir/store/call"
)

// partNames are those of a call's account, in its order.
var partNames = [...]string{"read", "queue", "attempts", "connect", "send", "wait", "generate", "tail"}

// usedNames are the ends of the names of the counters of tokens, and what they
// count.
var usedNames = [...]struct{ name, what string }{
	{"input_tokens", "Input tokens used, those from the cache too."}, {"output_tokens", "Output tokens used, those of reasoning too."},
	{"cache_read.input_tokens", "Of the input tokens: read from the cache."}, {"cache_write.input_tokens", "Of the input tokens: written to the cache."},
	{"reasoning.output_tokens", "Of the output tokens: reasoning."},
}

// totals are the sums of a series, which readers are told when they ask: a call
// adds to fifteen of them, and to look for the series of each would cost more
// than the adding.
type totals struct {
	parts   [len(partNames)]float64 // seconds
	streams bool                    // there were some with gaps: their stalls are known, be it to be none
	stalls  int64
	stalled float64                    // seconds
	used    [len(usedNames)]wire.Count // of tokens

	partLabels [len(partNames)]*labelled // of those that were told
	usedLabels *labelled
}

// latency adds what the account of a call that went well says, and its stalls.
func (t *totals) latency(c *call.Call) {
	if p, ok := c.Account(); ok {
		for i, took := range [...]float64{
			p.Read.Seconds(), p.Queue.Seconds(), p.Attempts.Seconds(), p.Connect.Seconds(), p.Send.Seconds(), p.Wait.Seconds(), p.Generate.Seconds(), p.Tail.Seconds(),
		} {
			t.parts[i] += took
		}
	}
	if c.Gaps.N > 0 { // there are series of 0, which a first stall can be told from
		t.streams = true
		t.stalls += int64(c.Gaps.Stalls)
		t.stalled += c.Gaps.Stalled.Seconds()
	}
}

// usage adds the tokens that a provider reported: what it did not say is no zero.
func (t *totals) usage(u *wire.Usage) {
	for i, n := range [...]wire.Count{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning} {
		if n.Known {
			t.used[i].Known = true
			t.used[i].N += n.N
		}
	}
}

// totalled are the counters that the totals are told by.
type totalled struct {
	stalls         metric.Int64ObservableCounter
	stalled, parts metric.Float64ObservableCounter
	used           [len(usedNames)]metric.Int64ObservableCounter // nil where no profile has them
}

// tell tells a series' totals.
func (m *totalled) tell(to metric.Observer, s *series) {
	t := &s.totals
	for i, sum := range t.parts {
		if sum == 0 {
			continue
		}
		if t.partLabels[i] == nil {
			t.partLabels[i] = newLabelled(append(s.all[:len(s.all):len(s.all)], attribute.String(keyPart, partNames[i]))...)
		}
		to.ObserveFloat64(m.parts, sum, t.partLabels[i].option)
	}
	if t.streams {
		to.ObserveInt64(m.stalls, t.stalls, s.plain.option)
		to.ObserveFloat64(m.stalled, t.stalled, s.plain.option)
	}
	for i, n := range t.used {
		if !n.Known || m.used[i] == nil {
			continue
		}
		if t.usedLabels == nil {
			t.usedLabels = newLabelled(append(s.all[:len(s.all):len(s.all)], attribute.String(keyTokenModality, unknownModality))...)
		}
		to.ObserveInt64(m.used[i], n.N, t.usedLabels.option)
	}
}
