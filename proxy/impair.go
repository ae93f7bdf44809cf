package proxy

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"weir/proxy/client"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// headerImpaired tells the client what befalls its call, so that weir's own
// generator does not take it for a clean one. It goes out before the answer
// does, and names what can befall it by then: whether a stream comes to its
// fifth event, for cut@5, only its end shows, and the span tells.
const headerImpaired = headerPrefix + "Impaired"

// errOnPurpose is why a call ended that an impairment ended.
var errOnPurpose = errors.New("weir broke the connection on purpose, as --impair says")

// worse makes one call worse on purpose.
type worse struct {
	x     *exchange
	harms []harm
	sight
	way
}

// harm is one thing that befalls the call. It has befallen it when done is set.
type harm struct {
	shaper.Harm
	done bool
	why  string // it could not; empty: there was no occasion
}

// impair draws what befalls the call, if anything does. What asks for
// no answer is spared, and so is a warm-up, which is in no figure and proves the
// way for a load.
func (x *exchange) impair() {
	c := x.c
	if x.unseen || x.format == nil || x.up == nil || c.WarmUp || !c.WantsAnswer() && upgradeOf(x.r.Header) == "" {
		return
	}
	ask := shaper.Ask{Scenario: c.Scenario, Upstream: c.Upstream, Model: c.Request.Model, Key: c.KeyFingerprint, Session: c.Session}
	if upgradeOf(x.r.Header) != "" {
		if c.ScenarioFrom == "default" {
			ask.Scenario = "" // each request over it has its own, by the rules or its class
		}
		if c.API == wire.Responses && strings.EqualFold(upgradeOf(x.r.Header), "websocket") && x.p.Impair.MayBefall(ask) {
			x.worse = &worse{x: x, harms: []harm{{Harm: shaper.Harm{Kind: noWebSocket}}}}
		}
		return
	}
	picked := x.p.Impair.Pick(ask)
	if len(picked) == 0 {
		return
	}
	w := &worse{x: x}
	for _, h := range picked {
		w.harms = append(w.harms, harm{Harm: h})
	}
	if slices.ContainsFunc(w.harms, harm.needsEvents) {
		x.r.Header.Set("Accept-Encoding", "identity") // events cannot be told apart in what is compressed
	}
	x.worse = w
	w.stamp("no answer came")
}

// escapes is what should befall a call that came over a WebSocket, and cannot:
// when that was opened, nothing spoke of such calls.
func (x *exchange) escapes() []shaper.Harm {
	c := x.c
	if x.p.Impair == nil || c.WarmUp || c.Purpose == client.Prewarm {
		return nil
	}
	return x.p.Impair.Pick(shaper.Ask{Scenario: c.Scenario, Upstream: c.Upstream, Model: c.Request.Model, Key: c.KeyFingerprint, Session: c.Session})
}

// noWebSocket is what befalls a WebSocket that asks for calls to be impaired:
// it is refused, and the client falls back to requests, which can be.
const noWebSocket shaper.ImpairmentKind = "no_websocket"

// needsEvents says whether the events of the answer must be seen.
func (h harm) needsEvents() bool {
	return h.Kind != shaper.Bandwidth && refusals[h.Kind].status == 0 && !h.atOnce()
}

// needsStream says whether a document that comes as one gives no occasion for it.
func (h harm) needsStream() bool {
	return h.Kind == shaper.ErrorEvent || h.Kind == shaper.SlowTokens || h.Kind == shaper.Coalesce
}

func (h harm) pings() bool { return h.Kind == shaper.Pings || h.Kind == shaper.PingsThroughout }

func (h harm) atOnce() bool { return h.Kind == shaper.Reset && h.Event == 0 }

// find gives the harm of a kind that can befall the call; nil when there is none.
func (w *worse) find(kind shaper.ImpairmentKind) *harm {
	for i := range w.harms {
		if h := &w.harms[i]; h.Kind == kind && h.why == "" {
			return h
		}
	}
	return nil
}

// madeUp is an answer that weir gives without asking the endpoint.
type madeUp struct {
	status       int
	kind, detail string
}

var refusals = map[shaper.ImpairmentKind]madeUp{
	shaper.RateLimited: {http.StatusTooManyRequests, "rate_limit_error", "rate limited"},
	shaper.ServerError: {http.StatusInternalServerError, "api_error", "a server error"},
	shaper.Overloaded:  {529, "overloaded_error", "overloaded"},
	noWebSocket:        {http.StatusUpgradeRequired, "invalid_request_error", "calls are impaired over HTTP only, and this WebSocket would carry some"},
}

// instead answers the call, or breaks it, in the endpoint's place where that
// is what befalls it.
func (w *worse) instead() bool {
	x := w.x
	for _, h := range w.harms {
		refused, refuses := refusals[h.Kind]
		if !refuses && !h.atOnce() {
			continue
		}
		x.c.Impaired = []string{h.String()}
		x.c.Admitted = call.Now()
		if x.key != nil { // which had nothing to do with it
			x.up.keyring.give(x.key, &call.Call{})
			x.key = nil
		}
		if refuses {
			w.refuse(refused, h)
			return true
		}
		x.reset()
		x.end(call.EndBroken, errOnPurpose)
		panic(http.ErrAbortHandler)
	}
	return false
}

func (w *worse) refuse(r madeUp, h harm) {
	x := w.x
	head := x.w.Header()
	head.Set("Content-Type", "application/json")
	head.Set(headerImpaired, h.String())
	if r.status == http.StatusUpgradeRequired {
		head.Set("Connection", "Upgrade")
		head.Set("Upgrade", "HTTP/1.1")
	}
	if h.Time > 0 {
		head.Set("Retry-After", strconv.Itoa(int(math.Ceil(h.Time.Seconds()))))
	}
	body := x.format.AppendError(nil, &wire.Error{Status: r.status, Type: r.kind, Message: "weir refuses this call on purpose, as --impair says: " + r.detail})
	at := call.Now()
	x.meter.Begin(r.status, head, at)
	x.kept.head(head)
	x.w.WriteHeader(r.status)
	x.w.Write(body)
	x.measure(body, at, call.Now())
	x.end(call.EndClean, nil)
}

// measure lets the meter look at bytes on their way.
func (x *exchange) measure(p []byte, received, delivered call.Instant) {
	x.kept.response(p)
	if x.blind {
		x.c.ResponseBytes += int64(len(p))
		return
	}
	defer x.spare()
	x.meter.Observe(p, received, delivered)
}

// head says what cannot befall the answer that has begun, and prepares its
// head, which is h, for the rest. It gives false where nothing is left.
func (w *worse) head(resp *http.Response, h http.Header) bool {
	coding := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	if strings.EqualFold(coding, "identity") {
		coding = ""
	}
	w.sight = sight{contentType: resp.Header.Get("Content-Type"), asked: w.x.c.Request.Stream, dark: coding != ""}
	framing := wire.FramingOf(w.contentType, w.asked)
	left := false
	for i := range w.harms {
		m := &w.harms[i]
		switch {
		case resp.StatusCode != http.StatusOK:
			m.why = "status " + strconv.Itoa(resp.StatusCode)
		case coding != "" && m.needsEvents():
			m.why = "the answer is compressed: " + coding
		case m.needsStream() && framing == wire.Whole && !w.asked:
			m.why = "the answer is no stream"
		case m.pings() && framing != wire.SSE:
			m.why = "the answer is no event stream"
		default:
			h.Add(headerImpaired, m.String())
			left = true
		}
	}
	for _, kind := range []shaper.ImpairmentKind{shaper.NoUsage, shaper.ErrorEvent, shaper.Pings, shaper.PingsThroughout} {
		if w.find(kind) != nil {
			h.Del("Content-Length") // it will not be what was announced
		}
	}
	w.stamp("")
	return left
}

// stamp writes into the call what befalls it, and what of that did not: so far
// because of why.
func (w *worse) stamp(why string) {
	c := w.x.c
	c.Impaired = nil
	for _, h := range w.harms {
		text := h.String()
		switch {
		case h.why != "":
			text = call.NotApplied(text, h.why)
		case !h.done && why != "":
			text = call.NotApplied(text, why)
		}
		c.Impaired = append(c.Impaired, text)
	}
}
