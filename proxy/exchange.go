package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir/generator/loadmodel"
	"weir/proxy/client"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// exchange is one call on its way through the proxy.
type exchange struct {
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
	plainBytes int64 // of the body, with its coding undone, as far as it is inspected
	shape      wire.Shape
	at         client.Place // where the call belongs
	permit     *shaper.Permit
	worse      *worse       // what befalls the call on purpose; nil: nothing
	headed     call.Instant // when the last attempt's answer began

	meter  *call.Meter
	timing timing
	unread unread
	injection
	kept *capture   // what is kept of the call's content; nil: nothing
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
	x.begin()
	if bodyErr != nil {
		x.failBody(bodyErr)
		return
	}
	if x.up == nil {
		x.writeError(http.StatusNotFound, "not_found_error", errNoUpstream.Error())
		x.end(call.EndUnreachable, errNoUpstream)
		return
	}
	if x.key != nil && x.fromAWebPage() {
		x.writeError(http.StatusForbidden, "permission_error", errWebPage.Error())
		x.end(call.EndRefused, errWebPage)
		return
	}
	if !x.unseen && !x.admit() {
		return
	}
	if x.worse != nil && x.worse.instead() {
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

var errNoUpstream = errors.New("weir was started without --upstream, so it carries requests as a forward proxy only")

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
		plain = call.Redact(plain)
	}
	c.Method, c.Path = x.r.Method, plain
}

// longestPlainPath is a length of paths that cannot hold a key beside the name
// of an operation. Longer ones may: some gateways want it there.
const longestPlainPath = 24

// readBody reads the request's body and what it says of itself.
func (x *exchange) readBody() error {
	c := x.c
	b, err := readBody(x.r, x.p.holds())
	x.body = b
	c.Body = call.Now()
	x.kept.request(b.held, x.r.Header.Get("Content-Encoding"))
	c.RequestBytes = int64(len(b.held))
	if x.format != nil && x.r.Method == http.MethodPost {
		if plain := b.inspect(x.r.Header.Get("Content-Encoding"), inspectedBody); len(plain) > 0 {
			x.plainBytes = int64(len(plain))
			x.look(plain)
		}
	}
	if x.route.Model != "" {
		c.Request.Model = x.route.Model
	}
	c.Request.Stream = c.Request.Stream || x.route.Stream
	return err
}

// look reads what the request says of itself. What cannot be read is the
// upstream's to judge, and a fault of weir's own here is no reason not to send
// the request on.
func (x *exchange) look(plain []byte) {
	defer func() {
		if v := recover(); v != nil {
			x.tell("weir cannot read a request, which goes on", "panic", fmt.Sprint(v), "api", x.c.API)
		}
	}()
	_ = x.format.ParseHead(&x.c.Request, plain)
	x.readShape(plain)
}

// readShape reads the request's shape. Of a body that breaks off there is none:
// it would be taken for a shorter conversation.
func (x *exchange) readShape(plain []byte) {
	shape, err := wire.ReadShape(x.c.API, plain)
	if err != nil {
		return
	}
	x.shape = shape
	if x.kept != nil && len(shape.Blocks) > 0 {
		x.kept.shape(&shape)
	}
}

// describe fills in who calls, for what, and where it goes.
func (x *exchange) describe() {
	c, r := x.c, x.r
	c.ClientName, c.ClientVersion = client.Identify(r.Header)
	x.chooseUpstream()
	x.chooseKey()
	if x.up != nil {
		c.Upstream = x.up.Name
		c.Host, c.Port = x.up.address()
	}
	c.Provider = provider(c.Host, c.API)
	if upgradeOf(r.Header) != "" {
		c.Purpose = call.PurposeConnection
		if c.Session == "" {
			c.Session, c.SessionFrom = client.Session(r.Header, &c.Request)
		} else {
			c.SessionFrom = fromWeir
		}
	} else {
		x.place(r.Header, false)
	}
	if c.Scenario == "" {
		x.nameScenario()
	}
}

const fromWeir = "weir" // a session that X-Weir-Session names

// place finds the session and the turn that the call belongs to, and what the
// client makes it for.
func (x *exchange) place(h http.Header, prewarm bool) {
	if x.unseen {
		return
	}
	c := x.c
	host, _, _ := net.SplitHostPort(x.r.RemoteAddr)
	x.at = x.p.sessions.Place(&client.Request{
		Client: c.ClientName, API: c.API, Operation: c.Operation, Header: h, Head: &c.Request, Shape: x.shape, Prewarm: prewarm,
		Caller: c.KeyFingerprint + " " + host, Arrived: time.Duration(c.Arrived), Session: c.Session, Turn: c.Turn,
	})
	x.placed = true
	x.shape = wire.Shape{} // a stream may be open for minutes, and a history is long
	c.Session, c.SessionFrom, c.Turn, c.Purpose, c.Agent = x.at.Session, x.at.From, x.at.Turn, x.at.Purpose, x.at.Agent
	c.Think, c.ThinkFor = x.at.Think, x.at.ThinkFor
}

// chooseUpstream finds where the call goes.
func (x *exchange) chooseUpstream() {
	if x.origin != nil {
		var elsewhere bool
		x.up, elsewhere = x.p.forward.route(x.origin)
		x.verbatim = !elsewhere
		return
	}
	c := x.c
	if x.up, x.path = choose(x.p.upstreams, x.path, c.Request.Model); x.up == nil {
		return
	}
	// The prefix of an upstream may stand before the tags.
	scenario, run, rest := pathTags(x.path)
	x.path = rest
	if c.Scenario == "" && scenario != "" {
		c.Scenario, c.ScenarioFrom = scenario, "path"
	}
	if c.Run == "" {
		c.Run = run
	}
}

// chooseKey takes one of weir's own keys, if it holds any.
func (x *exchange) chooseKey() {
	x.secret = NewSecret(keyOf(x.r))
	if x.up != nil {
		if x.key = x.up.keyring.take(); x.key != nil {
			x.secret = x.key.secret
		}
	}
	x.tellKey()
}

// tellKey tells the key that is sent from others.
func (x *exchange) tellKey() {
	if x.p.Fingerprint != nil && x.secret != (Secret{}) {
		x.c.KeyFingerprint = x.p.Fingerprint(x.secret.reveal())
	}
}

// nameScenario names a call by the rules, or by default.
func (x *exchange) nameScenario() {
	c := x.c
	if x.p.Match != nil {
		scenario, ok := x.p.Match(loadmodel.Facts{
			Model: c.Request.Model, API: string(c.API), Client: c.ClientName, Path: c.Path, Session: c.Session, Purpose: c.Purpose,
			InputTokens: int(x.estimate()), Turns: c.Request.TurnCount, Tools: c.Request.ToolCount, Stream: c.Request.Stream,
		})
		if ok {
			c.Scenario, c.ScenarioFrom = scenario, "rule"
			return
		}
	}
	c.Scenario, c.ScenarioFrom = x.p.Tagged(), "default"
	if c.Scenario == untagged && c.Operation.Generates() && c.Request.MessageCount > 0 {
		c.Scenario, c.ScenarioFrom = classify(c, x.estimate()), automatic
	}
}

// estimate is the prompt's size in tokens before anybody has counted them: 4
// bytes each.
func (x *exchange) estimate() int64 { return x.plainBytes / 4 }

// provider is the conventions' name for who serves the upstream, by its host;
// an unknown host is named by the dialect it speaks.
func provider(host string, api wire.API) string {
	for _, known := range []struct{ part, name string }{
		{"openai.azure.com", "azure.ai.openai"}, {"openai.com", "openai"}, {"anthropic.com", "anthropic"},
		{"aiplatform.googleapis.com", "gcp.vertex_ai"}, {"googleapis.com", "gcp.gemini"}, {"deepseek.com", "deepseek"},
		{"mistral.ai", "mistral_ai"}, {"groq.com", "groq"}, {"x.ai", "x_ai"}, {"perplexity.ai", "perplexity"},
	} {
		if host == known.part || strings.HasSuffix(host, "."+known.part) {
			return known.name
		}
	}
	switch api {
	case wire.Messages:
		return "anthropic"
	case wire.Gemini:
		return "gcp.gemini"
	}
	return "openai"
}

// writeError writes an error of weir's own in the caller's dialect.
func (x *exchange) writeError(status int, kind, message string) {
	f := x.format
	if f == nil {
		f = wire.For(wire.Chat)
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	x.w.Write(f.AppendError(nil, &wire.Error{Status: status, Type: kind, Message: message}))
}

// failBody ends a call whose request did not come whole.
func (x *exchange) failBody(err error) {
	if x.r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		x.end(x.left(err))
		return
	}
	x.writeError(http.StatusBadRequest, "invalid_request_error", "weir could not read the request: "+err.Error())
	x.end(call.EndClientGone, err)
}

// failSend ends a call that no response came to.
func (x *exchange) failSend(err error) {
	if x.r.Context().Err() != nil {
		x.end(x.left(err))
		return
	}
	how, status := call.EndUnreachable, http.StatusBadGateway
	what, next := "could not reach", "Is it running, and is --upstream right?"
	if x.verbatim {
		next = "Is the address right?"
	}
	switch {
	case errors.Is(err, errLoop):
		status, what, next = http.StatusLoopDetected, "would ask itself for", "Point --upstream at the endpoint."
	case !x.timing.connected():
	case isTimeout(err):
		how, status, what = call.EndTimeout, http.StatusGatewayTimeout, "waited too long for"
	default:
		how, what, next = call.EndBroken, "got no answer from", "It took the request and broke off; its own log says why."
	}
	x.writeError(status, "upstream_error", fmt.Sprintf("weir %s the upstream %s (%s): %s. %s",
		what, x.up.Name, x.up.URL.Host, call.Redact(cause(err).Error()), next))
	x.end(how, cause(err))
}

// cause is an error without the URL around it, which may hold a key.
func cause(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
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
