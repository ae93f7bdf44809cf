package report

import (
	"math"
	"sort"
	"time"

	"weir/store/call"
)

// The windows over which load is counted: ten seconds for calls, as the lanes'
// own rate is, and a minute for tokens, since providers limit them by the
// minute. Before so long has passed, the window is what has; of less than a
// tenth of it no rate is told, since a single burst would be all of it.
const (
	callWindow  = 10 * time.Second
	tokenWindow = time.Minute
	leastWindow = 10 // of a window: a tenth
)

// refusalTime is for how long after a request was sent its refusal is looked
// for: a refused attempt after which weir sent the call again left no word of
// when it was answered.
const refusalTime = time.Second

// never is before all instants.
const never = call.Instant(math.MinInt64)

// endpoint is an Endpoint in the making: its load at the moment up to which
// events have been taken. Output is spread evenly from a call's first token to
// its last.
type endpoint struct {
	Endpoint
	first call.Instant // request; never before it

	inFlight int
	calls    recent // requests of the call window
	input    recent // tokens of the token window

	generated float64 // tokens up to at
	rate      float64 // a nanosecond
	streams   int     // that generate
	at        call.Instant
	curve     []point // generated at the moments when the rate changed, of the token window and the one before

	inputUnknown  call.Instant // when a call with unknown input was last sent
	outputUnknown call.Instant // when a call with unknown output last ended
	unknown       int          // such calls in flight

	troubled call.Instant // until then a refusal may have come
	refusing call.Instant // until then the first one may have come
}

func newEndpoint(k endpointKey) *endpoint {
	return &endpoint{
		Endpoint: Endpoint{Upstream: k.upstream, Model: k.model, Key: k.key},
		first:    never, inputUnknown: never, outputUnknown: never, troubled: never, refusing: never,
	}
}

// point is how much had been generated at a moment.
type point struct {
	at        call.Instant
	generated float64
}

// take counts an event; events come in their order.
func (e *endpoint) take(ev *event) {
	e.generated += e.rate * float64(ev.at-e.at)
	e.at = ev.at
	if e.first == never && (ev.what == sent || ev.what == refused) {
		e.first = ev.at
	}
	switch ev.what {
	case ended:
		e.inFlight--
		if ev.unknown {
			e.unknown--
			e.outputUnknown = ev.at
		}
	case generating:
		e.streams++
		e.turn(e.rate + ev.rate)
	case generated:
		e.streams--
		if e.streams == 0 {
			ev.rate = e.rate // so that nothing is left of rounding
		}
		e.turn(e.rate - ev.rate)
	case burst:
		e.turn(e.rate)
		e.generated += float64(ev.tokens)
		e.turn(e.rate)
	case sent:
		e.took(ev)
	case refused:
		e.Refusals += ev.answers
		if e.Onset == nil {
			e.Onset = e.onset(ev)
			e.refusing = min(ev.until, ev.at+call.Instant(refusalTime))
		}
		e.troubled = max(e.troubled, ev.until)
	}
}

// took counts a request that was not refused, and whether the load with it is
// the most that passed.
func (e *endpoint) took(ev *event) {
	e.Calls++
	e.inFlight++
	e.calls.add(ev.at, 1)
	e.input.add(ev.at, max(ev.tokens, 0))
	if ev.tokens < 0 {
		e.inputUnknown = ev.at
	}
	if ev.unknown {
		e.unknown++
	}
	most := func(n *Num, v Num) {
		if v.Known && (!n.Known || v.V > n.V) {
			*n = v
		}
	}
	most(&e.Passed.InFlight, N(float64(e.inFlight)))
	if ev.at < e.refusing {
		most(&e.Onset.InFlight, N(float64(e.inFlight)))
	}
	// The window ends with this request, and so begins just behind the one
	// that was sent a whole window before it.
	if from := ev.at - call.Instant(callWindow); from >= e.first && from > e.troubled {
		most(&e.Passed.Calls, N(float64(e.calls.since(from+1))/callWindow.Seconds()))
	}
	if from := ev.at - call.Instant(tokenWindow); from >= e.first && from > e.troubled {
		l := e.tokens(from+1, tokenWindow)
		most(&e.Passed.Tokens, l.Tokens)
		most(&e.Passed.Input, l.Input)
		most(&e.Passed.Output, l.Output)
	}
}

// onset is the load up to a refusal's request.
func (e *endpoint) onset(ev *event) *Onset {
	o := &Onset{
		At: ev.at.Time().UTC().Format(time.RFC3339Nano), After: N(time.Duration(ev.at - e.first).Seconds()), Status: ev.status,
		Load: Load{InFlight: N(float64(e.inFlight))},
	}
	passed := time.Duration(ev.at - e.first)
	if w := min(passed, callWindow); w >= callWindow/leastWindow {
		o.Window = N(w.Seconds())
		o.Calls = N(float64(e.calls.since(ev.at-call.Instant(w))) / w.Seconds())
	}
	if w := min(passed, tokenWindow); w >= tokenWindow/leastWindow {
		o.TokenWindow = N(w.Seconds())
		l := e.tokens(ev.at-call.Instant(w), w)
		o.Tokens, o.Input, o.Output = l.Tokens, l.Input, l.Output
	}
	return o
}

// tokens are those of the window from a moment to now.
func (e *endpoint) tokens(from call.Instant, window time.Duration) Load {
	var l Load
	if e.inputUnknown < from {
		l.Input = N(float64(e.input.since(from)) / window.Minutes())
	}
	if e.unknown == 0 && e.outputUnknown < from {
		l.Output = N(max(e.generated-e.generatedAt(from), 0) / window.Minutes())
	}
	if l.Input.Known && l.Output.Known {
		l.Tokens = N(l.Input.V + l.Output.V)
	}
	return l
}

// turn changes the rate from now on.
func (e *endpoint) turn(rate float64) {
	e.rate = max(rate, 0)
	e.curve = append(e.curve, point{e.at, e.generated})
	old := e.at - call.Instant(tokenWindow)
	for len(e.curve) > 1 && e.curve[1].at <= old {
		e.curve = e.curve[1:]
	}
}

// generatedAt is how much had been generated at a moment of the token window:
// on the line between the two points around it.
func (e *endpoint) generatedAt(at call.Instant) float64 {
	i := sort.Search(len(e.curve), func(i int) bool { return e.curve[i].at > at })
	if i == 0 {
		return 0 // nothing was generated before the first point
	}
	before, after := e.curve[i-1], point{e.at, e.generated}
	if i < len(e.curve) {
		after = e.curve[i]
	}
	if after.at <= before.at {
		return before.generated
	}
	share := float64(at-before.at) / float64(after.at-before.at)
	return before.generated + share*(after.generated-before.generated)
}

// recent are amounts at moments of a window that moves on.
type recent struct {
	amounts []amount
	sum     int64
}

type amount struct {
	at call.Instant
	n  int64
}

func (r *recent) add(at call.Instant, n int64) {
	r.amounts = append(r.amounts, amount{at, n})
	r.sum += n
}

// since is the sum from a moment on, which is never before that of the call
// before: what is older is forgotten.
func (r *recent) since(from call.Instant) int64 {
	for len(r.amounts) > 0 && r.amounts[0].at < from {
		r.sum -= r.amounts[0].n
		r.amounts = r.amounts[1:]
	}
	return r.sum
}
