package report

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"time"

	"weir/store/call"
)

// Endpoint is what calls with one key asked of one model at one upstream, and
// where it began to refuse them, from the proxy's calls. Calls of a warm-up
// count here, since they are load like any other.
type Endpoint struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	Key      string `json:"key"`      // its fingerprint; empty where there was none
	Calls    int    `json:"calls"`    // that it took
	Refusals int    `json:"refusals"` // its answers 429, 503 and 529, those after which weir sent the call again included
	Onset    *Onset `json:"onset"`    // nil when it refused nothing

	// Passed is the most that went without a refusal, each figure by itself.
	Passed Load `json:"passed"`
}

// Onset is the load that an endpoint bore when it refused for the first time.
// No call that it refused is part of it, so that an endpoint that takes eight at
// once refuses at 8 in flight.
//
// The rates are those up to At. InFlight is the most that it had at once from
// then until its refusal came, or a second had passed: requests that are sent
// together reach it in another order, and another may end before the refusal is
// heard. Only calls that have ended are known.
type Onset struct {
	At     string `json:"at"`      // RFC 3339, UTC: the refused request was sent, or let go where weir sent it again
	After  Num    `json:"after_s"` // since the first request to the endpoint
	Status int    `json:"status"`  // HTTP; 0 where it is not known
	Load
	Window      Num `json:"window_s"`       // to which calls_per_s refers
	TokenWindow Num `json:"token_window_s"` // to which the tokens refer
}

// Load is how much an endpoint had to do, of what it did not refuse.
type Load struct {
	Calls    Num `json:"calls_per_s"`
	Tokens   Num `json:"tokens_per_min"` // input and output
	Input    Num `json:"input_tokens_per_min"`
	Output   Num `json:"output_tokens_per_min"`
	InFlight Num `json:"in_flight_calls"`
}

// Calls come in the order in which they ended, and load is counted in the order
// in which they were sent. What is known of each moment is held back until no
// call that ends is likely to have been sent before it: for heldBack, or while
// there is room for mostEvents. A call that is later still is passed over.
const (
	heldBack      = 10 * time.Minute
	mostEvents    = 1 << 19
	mostEndpoints = 100
)

// onsets find the onset of refusal at each endpoint.
type onsets struct {
	endpoints map[endpointKey]*endpoint
	events    eventHeap
	newest    call.Instant // end of a call
	clock     call.Instant // all before it is counted
	late      int          // calls that came too late to be counted
	beyond    int          // calls of more endpoints than mostEndpoints
}

func newOnsets() *onsets {
	return &onsets{endpoints: map[endpointKey]*endpoint{}, newest: never, clock: never}
}

type endpointKey struct{ upstream, model, key string }

// event is a moment at which an endpoint's load changes.
type event struct {
	at      call.Instant
	what    happening
	of      *endpoint
	tokens  int64        // of a request's input, below 0 where unknown; of a burst's output
	rate    float64      // of output, in tokens a nanosecond, that begins or ends
	unknown bool         // the output of this call is not known
	answers int          // that refused
	until   call.Instant // when the last of these may have come
	status  int
}

// happening is what an event is. Their order is that of events at one instant.
type happening uint8

const (
	ended happening = iota
	generating
	generated
	burst // an answer at once
	refused
	sent
)

// add counts a call.
func (o *onsets) add(c *call.Call) {
	if c.Side != call.Proxy || c.Operation != "" && !c.Operation.Generates() || !c.Done.Reached() {
		return
	}
	at, again := sentAt(c), c.Refusals > 0 && c.Admitted.Reached()
	first := at
	if again {
		first = c.Admitted // then its first attempt was sent
	}
	switch {
	case !first.Reached():
		return
	case first < o.clock:
		o.late++
		return
	}
	e := o.endpoint(c)
	if e == nil {
		o.beyond++
		return
	}
	if again {
		until := c.Done
		if c.Again.Reached() {
			until = c.Again
		}
		o.push(event{at: c.Admitted, what: refused, of: e, answers: c.Refusals, until: until, status: statusOf(c.HoldReason)})
	}
	switch {
	case !at.Reached(), c.Outcome == call.Refused, c.Refusals > 0 && !c.Again.Reached(), answeredByWeir(c):
		// What was sent was refused, and it was not sent again; or it was not sent.
	case c.RefusedForLoad():
		o.push(event{at: at, what: refused, of: e, answers: 1, until: max(at, c.Headers), status: c.Status})
	default:
		o.load(e, c, at)
	}
	o.newest = max(o.newest, c.Done)
	for len(o.events) > mostEvents || len(o.events) > 0 && o.events[0].at < o.newest-call.Instant(heldBack) {
		o.count()
	}
}

// load adds the events of a call that the endpoint took. One that failed and
// reported nothing counts as having used nothing, as nearly all of them.
func (o *onsets) load(e *endpoint, c *call.Call, at call.Instant) {
	input, output := c.Usage.Input, c.Usage.Output
	unknown := !output.Known && c.Outcome == call.OK
	if !input.Known && c.Outcome == call.OK {
		input.N = -1
	}
	done := max(c.Done, at)
	o.push(event{at: at, what: sent, of: e, tokens: input.N, unknown: unknown})
	o.push(event{at: done, what: ended, of: e, unknown: unknown})
	if !output.Known || output.N <= 0 {
		return
	}
	from, to := max(c.FirstToken.Received, at), min(c.LastToken.Received, done)
	if !c.FirstToken.Reached() || to <= from {
		o.push(event{at: done, what: burst, of: e, tokens: output.N})
		return
	}
	rate := float64(output.N) / float64(to-from)
	o.push(event{at: from, what: generating, of: e, rate: rate})
	o.push(event{at: to, what: generated, of: e, rate: rate})
}

// answeredByWeir says whether an impairment answered in the endpoint's place:
// that is no word of the endpoint's. One that the endpoint itself refused is,
// whatever else was meant for it.
func answeredByWeir(c *call.Call) bool { return c.Worsened() && c.Attempts == 0 }

// sentAt is when the request was at the endpoint: out, or answered before that.
func sentAt(c *call.Call) call.Instant {
	at := c.Sent
	if c.Headers.Reached() && (!at.Reached() || c.Headers < at) {
		at = c.Headers
	}
	return at
}

// statusOf reads the status of refused attempts out of why their lane was
// held; 0 where that was something else.
func statusOf(reason string) int {
	status, err := strconv.Atoi(reason)
	if err != nil {
		return 0
	}
	return status
}

func (o *onsets) endpoint(c *call.Call) *endpoint {
	key := endpointKey{c.Upstream, c.Request.Model, c.KeyFingerprint}
	e := o.endpoints[key]
	if e == nil && len(o.endpoints) < mostEndpoints {
		e = newEndpoint(key)
		o.endpoints[key] = e
	}
	return e
}

func (o *onsets) push(e event) { heap.Push(&o.events, e) }

// count takes the earliest event.
func (o *onsets) count() {
	e := heap.Pop(&o.events).(event)
	o.clock = e.at
	e.of.take(&e)
}

// close counts what is left and gives the endpoints in the order of their names.
func (o *onsets) close() []Endpoint {
	for len(o.events) > 0 {
		o.count()
	}
	all := []Endpoint{}
	for _, e := range o.endpoints {
		all = append(all, e.Endpoint)
	}
	slices.SortFunc(all, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// eventHeap has the earliest event first.
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].what < h[j].what
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
