package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir/proxy/client"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// exchange is one call on its way through the proxy.
type exchange struct {
	// What every read of a stream touches stands together: among many streams
	// nothing of one is in the cache when its next event comes.
	to     io.Writer // the response's body goes there: to the client, or unasked before it
	kept   *capture  // what is kept of the call's content; nil: nothing
	unread unread

	p      *Proxy
	w      http.ResponseWriter
	r      *http.Request
	c      *call.Call
	origin *url.URL    // where the client said it goes; nil in the reverse door
	parent *exchange   // the connection that the call came by, where that is a call too
	lane   string      // of that connection; empty for the one without a name
	format wire.Format // nil where the path belongs to no dialect
	route  wire.Route
	up     *Upstream
	path   string   // of the request to the upstream, escaped
	key    *heldKey // of weir's own; nil: the client's
	secret Secret   // the key that is sent

	body       *body
	plainBytes int64 // of the body, with its coding undone, without pictures and the like
	media      int   // pictures and the like in it
	partly     bool  // not all of the body could be looked at
	shape      wire.Shape
	at         client.Place // where the call belongs
	permit     *shaper.Permit
	worse      *worse       // what befalls the call on purpose; nil: nothing
	headed     call.Instant // when the last attempt's answer began

	meter  *call.Meter
	timing timing
	injection
	span trace.Span // touched by the recording alone, once it is begun

	unseen   bool // it is carried, and not measured
	verbatim bool // the path is not joined to the upstream's own
	placed   bool
	blind    bool // the meter failed: bytes are passed on and counted
	spanned  bool // its span was asked for
}

// serve carries one request that was sent to weir itself.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) { p.carry(w, r, doorReverse, nil) }

// carry carries one request, in the order in which things happen to it. origin
// is where a forward proxy's client wants it to go, and its user names what the
// call belongs to; nil leaves that to weir.
func (p *Proxy) carry(w http.ResponseWriter, r *http.Request, door string, origin *url.URL) {
	x := &exchange{p: p, w: w, r: r, origin: origin, c: &call.Call{Side: call.Proxy, Door: door}}
	x.c.Arrived = call.Now()
	p.under.begin()
	defer p.under.end()
	x.unseen = origin != nil && !p.forward.measures(origin)
	if !x.unseen {
		x.kept = p.Keep.begin()
	}
	x.readPath()
	if origin == nil && !p.admitted(r) { // which is no call
		x.writeError(http.StatusForbidden, "permission_error", "weir wants its client token in the header "+headerToken)
		return
	}
	defer x.recordPanic()
	bodyErr := x.readBody()
	x.describe()
	if p.Impair != nil {
		x.impair()
	}
	x.meter = call.NewMeter(x.c, x.format)
	x.hear()
	x.begin()
	if bodyErr != nil {
		x.failBody(bodyErr)
		return
	}
	if x.up == nil {
		x.failRoute()
		return
	}
	if x.key != nil && x.fromAWebPage() {
		x.refuse(http.StatusForbidden, "permission_error", errWebPage.Error(), errWebPage)
		return
	}
	// What never reaches the endpoint takes nothing of its limits from others.
	if x.worse != nil && x.worse.instead() {
		return
	}
	if !x.unseen && !x.admit() {
		return
	}
	resp, err := x.send()
	for err == nil && x.refused(resp) {
		if !x.admitAgain(resp) {
			return
		}
		resp, err = x.send()
	}
	if err != nil {
		x.failSend(err)
		return
	}
	x.begun(resp)
	x.answer(resp)
}

// readPath takes the tags off the request and names its API.
func (x *exchange) readPath() {
	t, rest := tags{}, x.r.URL.EscapedPath()
	if x.origin == nil {
		t, rest = readTags(x.r.Header, rest)
	} else { // the path is the host's own
		t, _ = readTags(x.r.Header, (&url.URL{Path: "/" + x.origin.User.Username()}).EscapedPath())
		if t.from == "path" {
			t.from = "proxy"
		}
	}
	c := x.c
	c.Scenario, c.ScenarioFrom = t.scenario, t.from
	c.Run, c.Session, c.Turn, c.WarmUp, c.Labels = t.run, t.session, t.turn, t.warmUp, x.p.baggageLabels(x.r.Header, t.labels)
	x.path = rest
	plain, err := url.PathUnescape(rest)
	if err != nil {
		plain = rest
	}
	x.route = wire.Find(x.r.Method, plain)
	x.format = wire.For(x.route.API)
	c.API, c.Operation = x.route.API, x.route.Operation
	if len(plain) > longestPlainPath {
		plain = call.NewKeys(carried(x.r)...).Redact(plain)
	}
	c.Method, c.Path = x.r.Method, plain
}

// longestPlainPath is a length of paths that cannot hold a key beside the name
// of an operation. Longer ones may: some gateways want it there.
const longestPlainPath = 24

// readBody reads the request's body and what it says of itself.
func (x *exchange) readBody() error {
	c := x.c
	inspected := x.format != nil && x.r.Method == http.MethodPost && !x.unseen
	if !inspected && x.kept == nil && waits(x.r) {
		x.body, c.Body = keptBack(x.r), call.Now()
		return nil
	}
	b, err := readBody(x.r, x.p.holds())
	x.body = b
	c.Body = call.Now()
	x.kept.request(b.held, x.r.Header.Get("Content-Encoding"))
	c.RequestBytes = int64(len(b.held))
	if x.format != nil && x.r.Method == http.MethodPost {
		x.inspect()
	}
	if x.route.Model != "" {
		c.Request.Model = x.route.Model
	}
	c.Request.Stream = c.Request.Stream || x.route.Stream
	return err
}

// end closes the call, gives its permit back and has it recorded. It does so
// once, on whatever path the call ends.
func (x *exchange) end(how call.End, err error) {
	if x.c.Outcome != "" {
		return
	}
	x.timing.fill(x.c)
	x.c.RequestBytes = max(x.c.RequestBytes, x.body.sent())
	x.finish(how, err)
}

// finish is the end of a call whose instants are known.
func (x *exchange) finish(how call.End, err error) {
	c := x.c
	x.close(how, err)
	if x.key != nil {
		x.up.keyring.give(x.key, c)
	}
	x.scrub()
	if x.placed {
		x.p.sessions.Ended(x.at, c.ResponseID, time.Duration(c.Done), c.Outcome == call.OK)
	}
	if x.unseen {
		return
	}
	x.settle()
	x.p.under.begin()
	x.p.recording.add(x.record)
}

// close lets the meter name the outcome. Should it fail, the call is recorded
// all the same.
func (x *exchange) close(how call.End, err error) {
	at := call.Now()
	defer func() {
		if x.blind && x.c.Outcome == "" {
			call.NewMeter(x.c, nil).End(call.EndBroken, errors.New("weir could not measure the call"), at)
		}
	}()
	defer x.spare()
	x.meter.End(how, err, at)
}

// recordPanic sees to it that a call is recorded and its permit released even
// if weir itself fails; the panic goes on.
func (x *exchange) recordPanic() {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		x.tell("a request failed inside weir", "panic", fmt.Sprint(v))
	}
	if !x.spanned { // before the call was described
		x.meter = call.NewMeter(x.c, x.format)
		x.begin()
	}
	x.end(call.EndBroken, errors.New("weir failed while carrying the call"))
	panic(v)
}
