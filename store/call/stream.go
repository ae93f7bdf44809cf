package call

import (
	"slices"
	"time"

	"weir/proxy/wire"
)

// stream is what a Meter remembers of a stream beside what stands in the call.
type stream struct {
	terminal bool // the dialect's last event came
	failed   bool // an error event came

	timed       Instant // up to which the timeline goes: Arrived and whole microseconds
	lastToken   Instant // timed, at the last token event
	close       int64   // gaps of at most a millisecond
	textBytes   int64   // of text, refusals and tool calls
	outputStale bool    // token events came after the last figure for output tokens
	outputFinal bool    // that figure came with the finish reason, or after it
}

// defaultStall is the gap above which a stream stalled, unless a Meter says
// otherwise.
const defaultStall = time.Second

// coalescedWithin is how close events of one buffer come; coalescedOver is how
// long generation must have taken for that to be odd, and coalescedEvents how
// many events there must be: a tool's name and arguments often share a read.
const (
	coalescedWithin = time.Millisecond
	coalescedOver   = time.Second
	coalescedEvents = 8
)

// measure takes an event into the call: instants, counts, facts, timeline.
func (m *Meter) measure(ev *wire.Event, bytes int) {
	c, s := m.call, &m.stream
	mark := Mark{m.received, m.delivered}
	c.Events++
	if !c.FirstEvent.Reached() {
		c.FirstEvent = mark
	}
	if ev.Unknown {
		c.UnknownEvents++
	}
	if !s.timed.Reached() {
		s.timed = c.Arrived
	}
	us := max(int64(m.received-s.timed)/int64(time.Microsecond), 0)
	s.timed += Instant(us) * Instant(time.Microsecond)
	output := ev.Output()
	c.Timeline = c.Timeline.add(us, output, bytes)
	if output != 0 {
		m.token(ev, output, mark)
	}
	keepName(&c.ResponseID, ev.ID)
	keepName(&c.ServedModel, ev.Model)
	keepName(&c.Finish, ev.Finish)
	keepName(&c.ServiceTier, ev.ServiceTier)
	keepName(&c.SystemFingerprint, ev.SystemFingerprint)
	if ev.Usage.Known() {
		c.Usage.Merge(ev.Usage)
		if ev.Usage.Output.Known {
			s.outputStale, s.outputFinal = false, c.Finish != ""
		}
	}
	s.terminal = s.terminal || ev.Terminal
}

// token takes an event that holds generated output.
func (m *Meter) token(ev *wire.Event, output wire.Kind, mark Mark) {
	c, s := m.call, &m.stream
	first := func(have *Mark, of wire.Kind) {
		if output&of != 0 && !have.Reached() {
			*have = mark
		}
	}
	first(&c.FirstToken, wire.Output)
	first(&c.FirstReasoning, wire.KindReasoning)
	first(&c.FirstText, wire.KindText|wire.KindRefusal)
	first(&c.FirstTool, wire.KindTool)
	c.LastToken = mark

	if c.TokenEvents > 0 {
		m.gap(time.Duration(s.timed - s.lastToken))
	}
	c.TokenEvents++
	s.lastToken = s.timed
	s.outputStale = true
	s.textBytes += int64(len(ev.Text) + len(ev.Refusal))
	for i := range ev.Tools {
		s.textBytes += int64(len(ev.Tools[i].Name) + len(ev.Tools[i].Arguments))
	}
}

func (m *Meter) gap(d time.Duration) {
	g := &m.call.Gaps
	g.N++
	g.Longest = max(g.Longest, d)
	threshold := m.StallAfter
	if threshold <= 0 {
		threshold = defaultStall
	}
	if d > threshold {
		g.Stalls++
		g.Stalled += d
	}
	if d <= coalescedWithin {
		m.stream.close++
	}
}

// closeGaps computes what needs all gaps. A stream is coalesced when over half
// of its token events came within 1 ms of the one before although generation,
// from the end of the request to the last token, took over 1 s; below 8 token
// events nothing is said.
func (m *Meter) closeGaps() {
	c := m.call
	if c.Gaps.N == 0 {
		return
	}
	gaps := tokenGaps(c)
	slices.Sort(gaps)
	c.Gaps.P50, c.Gaps.P99 = Percentile(gaps, 50), Percentile(gaps, 99)

	start := c.sentCut()
	if !start.Reached() {
		start = c.Arrived
	}
	took, ok := between(start, c.LastToken.Received)
	c.Gaps.Coalesced = ok && took > coalescedOver && c.TokenEvents >= coalescedEvents && 2*m.stream.close > c.TokenEvents
}

// tokenGaps are the gaps between the token events of a timeline; of one that
// was cut at its limit, those of its beginning.
func tokenGaps(c *Call) []time.Duration {
	gaps := make([]time.Duration, 0, c.Gaps.N)
	last := time.Duration(-1)
	for e := range c.Timeline.Events() {
		if e.Output == 0 {
			continue
		}
		if last >= 0 {
			gaps = append(gaps, e.After-last)
		}
		last = e.After
	}
	return gaps
}
