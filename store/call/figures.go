package call

import (
	"slices"
	"time"
)

// Gaps describe the time between token events: chunk gaps, not inter-token
// latency, since an event may hold many tokens.
type Gaps struct {
	N                 int // gaps measured; the other fields are absent when 0
	P50, P99, Longest time.Duration
	Stalls            int           // gaps above the stall threshold
	Stalled           time.Duration // their sum
	Coalesced         bool          // something upstream buffered the stream
}

// Stalls are gaps above this, unless a Meter says otherwise.
const defaultStall = time.Second

// gapsOf measures the gaps of a timeline. took is the time from the request's
// end to the last token: a stream is coalesced when over half of its gaps are
// below a millisecond although took is above a second. Below 8 gaps nothing
// can be said of that.
func gapsOf(t Timeline, took, stall time.Duration) Gaps {
	var gaps []time.Duration
	var last time.Duration
	tokens, close := 0, 0
	for e := range t.Events() {
		if e.Output == 0 {
			continue
		}
		if tokens > 0 {
			gap := e.After - last
			gaps = append(gaps, gap)
			if gap < time.Millisecond {
				close++
			}
		}
		tokens++
		last = e.After
	}
	g := Gaps{N: len(gaps)}
	if g.N == 0 {
		return g
	}
	slices.Sort(gaps)
	g.P50, g.P99, g.Longest = Percentile(gaps, 50), Percentile(gaps, 99), gaps[len(gaps)-1]
	for i := len(gaps) - 1; i >= 0 && gaps[i] > stall; i-- {
		g.Stalls++
		g.Stalled += gaps[i]
	}
	g.Coalesced = g.N >= 8 && 2*close > g.N && took > time.Second
	return g
}

// Percentile is the p-th percentile of sorted values by nearest rank: the
// smallest value that at least p percent of them do not exceed. It is 0 for
// none.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p / 100 * float64(len(sorted)))
	if float64(rank) < p/100*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Parts are the account of a call: they add up to Done − Arrived.
type Parts struct {
	Read, Queue, Connect, Send, Wait, Generate, Tail time.Duration
}

// Account splits the call's time; ok is false when it has not ended. An
// instant that was not reached takes the next one's, and Sent is cut at the
// first byte of the response when an upstream answers before the request is
// out, so that the instants form one sequence that never goes back.
func (c *Call) Account() (p Parts, ok bool) {
	if !c.Arrived.Reached() || !c.Done.Reached() {
		return Parts{}, false
	}
	sent := c.Sent
	for _, first := range []Instant{c.FirstByte.Received, c.Headers} {
		if sent.Reached() && first.Reached() && first < sent {
			sent = first
		}
	}
	at := [8]Instant{c.Arrived, c.Body, c.Admitted, c.Connected, sent, c.FirstToken.Received, c.LastToken.Received, c.Done}
	for i := len(at) - 2; i > 0; i-- {
		if !at[i].Reached() || at[i] > at[i+1] {
			at[i] = at[i+1]
		}
	}
	for i := 1; i < len(at); i++ {
		at[i] = max(at[i], at[i-1])
	}
	part := func(i int) time.Duration { return time.Duration(at[i+1] - at[i]) }
	return Parts{part(0), part(1), part(2), part(3), part(4), part(5), part(6)}, true
}

// between is to − from, where both were reached.
func between(from, to Instant) (time.Duration, bool) {
	if !from.Reached() || !to.Reached() {
		return 0, false
	}
	return time.Duration(to - from), true
}

// TTFTUpstream is first_token.received − sent: the model's and the network's
// share. ok is false when there was no first token. Where the answer began
// before the request was out, it counts from the answer's beginning, as in the
// account.
func (c *Call) TTFTUpstream() (d time.Duration, ok bool) {
	sent := c.Sent
	if c.Headers.Reached() && c.Headers < sent {
		sent = c.Headers
	}
	return between(sent, c.FirstToken.Received)
}

// TTFTFelt is first_token.delivered − arrived: what the caller felt. For the
// generator's own calls it is first_token.received − arrived.
func (c *Call) TTFTFelt() (d time.Duration, ok bool) {
	if c.Side == Client {
		return between(c.Arrived, c.FirstToken.Received)
	}
	return between(c.Arrived, c.FirstToken.Delivered)
}

// TTFTResponse is first_token − due, for the generator's calls.
func (c *Call) TTFTResponse() (d time.Duration, ok bool) {
	return between(c.Due, c.FirstToken.Received)
}

// TPOT is the time per output token after the first, from the provider's
// usage; absent without usage or below 2 tokens.
func (c *Call) TPOT() (d time.Duration, ok bool) {
	spent, ok := between(c.FirstToken.Received, c.LastToken.Received)
	if !ok || !c.Usage.Output.Known || c.Usage.Output.N < 2 || c.UsageSource == UsageSuspicious {
		return 0, false
	}
	return spent / time.Duration(c.Usage.Output.N-1), true
}

// Lag is how late the generator sent: arrived − due.
func (c *Call) Lag() (d time.Duration, ok bool) { return between(c.Due, c.Arrived) }

// Duration is done − arrived.
func (c *Call) Duration() (d time.Duration, ok bool) { return between(c.Arrived, c.Done) }

// ToLastToken is last_token.received − arrived.
func (c *Call) ToLastToken() (d time.Duration, ok bool) {
	return between(c.Arrived, c.LastToken.Received)
}

// Queued is how long the shaper held the call.
func (c *Call) Queued() (d time.Duration, ok bool) { return between(c.Body, c.Admitted) }
