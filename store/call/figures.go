package call

import "time"

// Gaps describe the time between token events: chunk gaps, not inter-token
// latency, since an event may hold many tokens. Events that came in one read
// have no time between them. All are to the microsecond, as the Timeline is.
type Gaps struct {
	N                 int // gaps measured; the other fields are absent when 0
	P50, P99, Longest time.Duration
	Stalls            int           // gaps above the stall threshold
	Stalled           time.Duration // their sum
	Coalesced         bool          // something upstream buffered the stream
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

// Parts are the account of a call: they add up to Done − Arrived. Attempts is
// the time from the first leave of the shaper to that for the attempt that
// answered: 0 where the first one did.
type Parts struct {
	Read, Queue, Attempts, Connect, Send, Wait, Generate, Tail time.Duration
}

// Account splits the call's time; ok is false when it has not ended, and for
// calls of other programs, which do not say what they waited for.
//
// The instants form one non-decreasing sequence: arrived ≤ body ≤ admitted ≤
// again ≤ connected ≤ sent ≤ first token ≤ last token ≤ done. One that was not reached
// takes the next one's value, one that came after its successor is cut at it,
// and sent is cut at the first response byte. The instants of the call itself
// stay as they were seen.
func (c *Call) Account() (p Parts, ok bool) {
	if c.Side == Imported || !c.Arrived.Reached() || !c.Done.Reached() || c.Done < c.Arrived {
		return Parts{}, false
	}
	again := c.Again
	if !again.Reached() {
		again = c.Admitted
	}
	connected, sent := c.Connected, c.sentCut()
	if c.HeldToTheEnd() { // these are of an attempt that was refused
		again, connected, sent = c.Done, 0, 0
	}
	seq := [...]Instant{
		c.Arrived, c.Body, c.Admitted, again, connected, sent,
		c.FirstToken.Received, c.LastToken.Received, c.Done,
	}
	for i := len(seq) - 2; i > 0; i-- {
		if !seq[i].Reached() || seq[i] > seq[i+1] {
			seq[i] = seq[i+1]
		}
		seq[i] = max(seq[i], c.Arrived)
	}
	part := func(i int) time.Duration { return time.Duration(seq[i+1] - seq[i]) }
	return Parts{part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7)}, true
}

// HeldToTheEnd says whether the endpoint refused the call, and weir held it to
// send it again and never did: it refused it in the end, or the client left.
func (c *Call) HeldToTheEnd() bool {
	return c.Refusals > 0 && !c.Headers.Reached() && (c.Outcome == Refused || c.Outcome == ClientGone && !c.Again.Reached())
}

// sentCut is the end of the request, at the latest the first sign of an
// answer: an upstream may answer before the body is out. When the request was
// never out but an answer came, it is that first sign. Nobody knows it of the
// calls of other programs.
func (c *Call) sentCut() Instant {
	if c.Side == Imported {
		return 0
	}
	sent := c.Sent
	for _, sign := range [...]Instant{c.Headers, c.FirstByte.Received, c.FirstToken.Received} {
		if sign.Reached() && (!sent.Reached() || sent > sign) {
			sent = sign
		}
	}
	return sent
}

// between is to − from, where both were reached.
func between(from, to Instant) (time.Duration, bool) {
	if !from.Reached() || !to.Reached() {
		return 0, false
	}
	return time.Duration(to - from), true
}

// FirstChunk is the time from the request's end to the first event of a stream,
// of any kind: no first token. Of another program's call it is the time from its
// beginning, as the conventions have it. ok is false where nothing was streamed.
func (c *Call) FirstChunk() (d time.Duration, ok bool) {
	if !c.Streamed {
		return 0, false
	}
	if c.Side == Imported {
		return between(c.Arrived, c.FirstEvent.Received)
	}
	return between(c.sentCut(), c.FirstEvent.Received)
}

// TTFTUpstream is first_token.received − sent: the model's and the network's
// share. ok is false when there was no first token, or when the end of the
// request was not seen. Sent is cut at the first response byte.
func (c *Call) TTFTUpstream() (d time.Duration, ok bool) {
	if !c.Sent.Reached() {
		return 0, false
	}
	return between(c.sentCut(), c.FirstToken.Received)
}

// TTFTFelt is first_token.delivered − arrived: what the caller felt. For the
// generator's own calls, and for those of others that were imported, it is
// first_token.received − arrived: they were measured where they were made.
func (c *Call) TTFTFelt() (d time.Duration, ok bool) {
	if c.Side == Client || c.Side == Imported {
		return between(c.Arrived, c.FirstToken.Received)
	}
	return between(c.Arrived, c.FirstToken.Delivered)
}

// TTFTResponse is first_token − due, for the generator's calls.
func (c *Call) TTFTResponse() (d time.Duration, ok bool) {
	return between(c.Due, c.FirstToken.Received)
}

// TPOT is the time per output token after the first, from the provider's
// usage: (last_token − first_token) / (output − 1). It is absent without usage
// or below 2 tokens, where usage was estimated or contradicts the stream, and
// where all tokens came at one instant, so that there is no time to divide.
func (c *Call) TPOT() (d time.Duration, ok bool) {
	switch c.UsageSource {
	case UsageMissing, UsageEstimated, UsageSuspicious:
		return 0, false
	}
	span, ok := between(c.FirstToken.Received, c.LastToken.Received)
	if !ok || span <= 0 || !c.Usage.Output.Known || c.Usage.Output.N < 2 {
		return 0, false
	}
	return span / time.Duration(c.Usage.Output.N-1), true
}

// TokensPerEvent is output tokens over token events: above 1 the server
// batches, and chunk gaps are not token gaps. It is absent where TPOT's usage
// would be.
func (c *Call) TokensPerEvent() (n float64, ok bool) {
	switch c.UsageSource {
	case UsageMissing, UsageEstimated, UsageSuspicious:
		return 0, false
	}
	if c.TokenEvents == 0 || !c.Usage.Output.Known {
		return 0, false
	}
	return float64(c.Usage.Output.N) / float64(c.TokenEvents), true
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

// StreamUnknown says that nobody knows whether the answer was a stream: most
// other programs say so only of those that were.
func (c *Call) StreamUnknown() bool {
	return c.Side == Imported && !c.Streamed && c.NoFirstToken != AbsentNotStreamed
}

// generates says whether the call could have had a first token.
func (c *Call) generates() bool { return c.Operation == "" || c.Operation.Generates() }

// WantsAnswer says whether the call asks a model for an answer, and so belongs
// to the figures: a list of models does not, nor does a prewarm, which asks the
// same operation for none.
func (c *Call) WantsAnswer() bool {
	return c.generates() && c.Purpose != PurposePrewarm && c.Purpose != PurposeConnection
}

// Overhead is what weir itself added to the first token of a call that passed
// it: from the body's end to the leave of a shaper that did not hold the call,
// and from the first token's arrival to its delivery, a slow client's time
// included. ok is false where a part is unknown, or the call had to wait.
func (c *Call) Overhead() (d time.Duration, ok bool) {
	before, ok := c.Queued()
	after, delivered := between(c.FirstToken.Received, c.FirstToken.Delivered)
	if !ok || !delivered || c.QueuePosition > 0 || c.Injected > 0 {
		return 0, false
	}
	return before + after, true
}
