package report

import (
	"encoding/json"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"weir/store/call"
)

// bench are the calls of a benchmark, each once, as other tools' files have
// them: the view of the client where there is one, else the proxy's.
type bench struct {
	calls      []sample
	begin, end call.Instant
	model      string // asked for by all; empty when they asked for several
}

// sample is what a benchmark's file says of one call. Latencies are absent
// unless the call went well.
type sample struct {
	outcome          call.Outcome
	failure          string // why it did not go well
	ttft, tpot       Num    // ms
	last, done       Num    // ms, from the send to the last token and to the end
	perToken         Num    // ms, to the last token and by all of them, the first one too
	input, output    Num    // tokens
	gaps             []float64
	began, completed call.Instant
}

// benchmark writes one document of all calls.
func benchmark(w io.Writer, format string, calls iter.Seq2[*call.Call, error]) (int, error) {
	b, err := gather(calls)
	if err != nil {
		return 0, err
	}
	var document any
	switch format {
	case "vllm":
		document = b.vllm()
	case "aiperf":
		document = b.aiperf()
	case "guidellm":
		document = b.guidellm()
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return len(b.calls), enc.Encode(document)
}

// gather takes in the calls that belong to figures: those that ask for an
// answer, were no warm-up and were not made worse on purpose.
func gather(calls iter.Seq2[*call.Call, error]) (*bench, error) {
	type view struct {
		sample
		span, parent [8]byte
		side         call.Side
		model        string
	}
	var views []view
	clients := map[[8]byte]bool{}
	for c, err := range calls {
		if err != nil {
			return nil, err
		}
		if !c.WantsAnswer() || c.WarmUp || len(c.Impaired) > 0 {
			continue
		}
		if c.Side == call.Client {
			clients[c.SpanID] = true
		}
		views = append(views, view{sampleOf(c), c.SpanID, c.ParentSpan, c.Side, c.Request.Model})
	}
	b := &bench{}
	for i, v := range views {
		if v.side == call.Proxy && clients[v.parent] {
			continue
		}
		if len(b.calls) == 0 || v.began < b.begin {
			b.begin = v.began
		}
		b.end = max(b.end, v.completed)
		if len(b.calls) == 0 {
			b.end, b.model = v.completed, v.model
		} else if v.model != b.model {
			b.model = ""
		}
		b.calls = append(b.calls, views[i].sample)
	}
	slices.SortStableFunc(b.calls, func(x, y sample) int { return int(max(min(x.began-y.began, 1), -1)) })
	return b, nil
}

func sampleOf(c *call.Call) sample {
	s := sample{outcome: c.Outcome, began: c.Arrived, completed: c.Done}
	if u := c.Usage.Input; u.Known {
		s.input = N(float64(u.N))
	}
	if u := c.Usage.Output; u.Known {
		s.output = N(float64(u.N))
	}
	if c.Outcome != call.OK {
		s.failure = string(c.Outcome)
		if c.ErrorMessage != "" {
			s.failure += ": " + c.ErrorMessage
		}
		return s
	}
	s.ttft, s.tpot = msIf(c.TTFTFelt()), msIf(c.TPOT())
	s.last, s.done = msIf(c.ToLastToken()), msIf(c.Duration())
	if _, counted := c.TokensPerEvent(); counted && s.last.Known && s.output.V > 0 {
		s.perToken = N(s.last.V / s.output.V)
	}
	s.gaps = tokenGaps(c)
	return s
}

// tokenGaps are the times between tokens in ms; nil where events are not known
// to hold one token each, since then only the times between chunks are known.
func tokenGaps(c *call.Call) []float64 {
	if n, ok := c.TokensPerEvent(); !ok || n != 1 {
		return nil
	}
	gaps := []float64{}
	var last time.Duration
	first := true
	for e := range c.Timeline.Events() {
		if e.Output == 0 {
			continue
		}
		if !first {
			gaps = append(gaps, round(float64(e.After-last)/float64(time.Millisecond)))
		}
		first, last = false, e.After
	}
	if int64(len(gaps)) != c.TokenEvents-1 { // the timeline holds only the beginning
		return nil
	}
	return gaps
}

// seconds is the benchmark's length, from the first send to the last end;
// absent when no call has ended.
func (b *bench) seconds() Num {
	if len(b.calls) == 0 || b.end <= b.begin {
		return Num{}
	}
	return N(time.Duration(b.end - b.begin).Seconds())
}

// perSecond is a rate over the benchmark's length.
func (b *bench) perSecond(n Num) Num {
	s := b.seconds()
	if !s.Known || !n.Known {
		return Num{}
	}
	return N(n.V / s.V)
}

// count is how many calls went as wanted.
func (b *bench) count(want func(call.Outcome) bool) int {
	n := 0
	for _, s := range b.calls {
		if want(s.outcome) {
			n++
		}
	}
	return n
}

func isOK(o call.Outcome) bool { return o == call.OK }

// figures are one figure of all calls that went well and have it, sorted.
func (b *bench) figures(of func(*sample) Num) []float64 {
	var all []float64
	for i := range b.calls {
		if s := &b.calls[i]; s.outcome == call.OK {
			if n := of(s); n.Known {
				all = append(all, n.V)
			}
		}
	}
	slices.Sort(all)
	return all
}

// total is a sum over the calls that went well; absent unless all have it.
func (b *bench) total(of func(*sample) Num) Num {
	all := b.figures(of)
	if len(all) == 0 || len(all) != b.count(isOK) {
		return Num{}
	}
	var sum float64
	for _, v := range all {
		sum += v
	}
	return N(sum)
}

func average(values []float64) Num {
	if len(values) == 0 {
		return Num{}
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return N(sum / float64(len(values)))
}

// deviation is the standard deviation of all values, not an estimate from a
// sample.
func deviation(values []float64) Num {
	m := average(values)
	if !m.Known {
		return m
	}
	var sum float64
	for _, v := range values {
		sum += (v - m.V) * (v - m.V)
	}
	return N(math.Sqrt(sum / float64(len(values))))
}

// rank is a percentile by nearest rank of sorted values.
func rank(sorted []float64, permille int) Num {
	if len(sorted) == 0 {
		return Num{}
	}
	at := (len(sorted)*permille + 999) / 1000
	return N(sorted[min(max(at, 1), len(sorted))-1])
}
