package call

import "time"

// Gaps describe the time between token events: chunk gaps, not inter-token
// latency, since an event may hold many tokens.
type Gaps struct {
	N                 int // gaps measured; the other fields are absent when 0
	P50, P99, Longest time.Duration
	Stalls            int           // gaps above the stall threshold
	Stalled           time.Duration // their sum
	Coalesced         bool          // something upstream buffered the stream
}

// Parts are the account of a call: they add up to Done − Arrived.
type Parts struct {
	Read, Queue, Connect, Send, Wait, Generate, Tail time.Duration
}

// Account splits the call's time; ok is false when it has not ended.
func (c *Call) Account() (p Parts, ok bool) { panic("call: being written") }

// TTFTUpstream is first_token.received − sent: the model's and the network's
// share. ok is false when there was no first token.
func (c *Call) TTFTUpstream() (d time.Duration, ok bool) { panic("call: being written") }

// TTFTFelt is first_token.delivered − arrived: what the caller felt. For the
// generator's own calls it is first_token.received − arrived.
func (c *Call) TTFTFelt() (d time.Duration, ok bool) { panic("call: being written") }

// TTFTResponse is first_token − due, for the generator's calls.
func (c *Call) TTFTResponse() (d time.Duration, ok bool) { panic("call: being written") }

// TPOT is the time per output token after the first, from the provider's
// usage; absent without usage or below 2 tokens.
func (c *Call) TPOT() (d time.Duration, ok bool) { panic("call: being written") }

// Lag is how late the generator sent: arrived − due.
func (c *Call) Lag() (d time.Duration, ok bool) { panic("call: being written") }

// Duration is done − arrived.
func (c *Call) Duration() (d time.Duration, ok bool) { panic("call: being written") }

// ToLastToken is last_token.received − arrived.
func (c *Call) ToLastToken() (d time.Duration, ok bool) { panic("call: being written") }
