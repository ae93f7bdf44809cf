package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"weir/proxy/wire"
	"weir/store/call"
)

// injection is what one call has of it.
type injection struct {
	asked   bool     // the client did not ask for usage, and weir did
	unasked *unasked // nil: nothing must be taken out
}

// asking is what is known of endpoints that are asked for usage on behalf of
// clients that did not ask. The zero asking knows nothing.
type asking struct {
	mu    sync.Mutex
	found map[endpoint]answersUsage
}

// endpoint is one model at one upstream: a gateway has models of several
// makers behind it, and they differ in what they take.
type endpoint struct {
	host  string
	api   wire.API
	model string
}

// answersUsage is how an endpoint took it to be asked.
type answersUsage uint8

const (
	refusesUsage    answersUsage = 1 << iota // it does not take the field
	compressesUsage                          // weir cannot take out of an answer what is compressed in it
)

// Clients choose the names of models, so that what is remembered has limits.
const (
	endpointsKnown = 1000
	longestModel   = 256
)

func (a *asking) of(e endpoint) answersUsage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found[e]
}

// learn remembers what was found out of an endpoint, until weir ends.
func (a *asking) learn(e endpoint, how answersUsage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found == nil {
		a.found = map[endpoint]answersUsage{}
	}
	if _, known := a.found[e]; known || len(a.found) < endpointsKnown {
		a.found[e] |= how
	}
}

func (x *exchange) endpoint() endpoint {
	return endpoint{x.up.Name + " " + x.up.URL.Host, x.c.API, x.c.Request.Model}
}

// roundTrip sends the request on, with the question for usage in it where weir
// is told to ask. An endpoint that does not take the question gets the client's
// own request, and is not asked again.
func (x *exchange) roundTrip(out *http.Request) (*http.Response, error) {
	asked := x.askUsage()
	if asked == nil {
		return x.up.transport.RoundTrip(out)
	}
	own := x.body.replace(asked)
	x.body.attach(out, x.r)
	resp, err := x.up.transport.RoundTrip(out)
	if err != nil || !namesUsage(resp) {
		x.asked = err == nil
		return resp, err
	}
	resp.Body.Close()
	x.body.replace(own)
	out = out.Clone(out.Context())
	x.body.attach(out, x.r)
	refused := resp.StatusCode
	resp, err = x.up.transport.RoundTrip(out)
	if err == nil && resp.StatusCode != refused {
		x.p.asking.learn(x.endpoint(), refusesUsage)
		x.p.note("an endpoint does not take stream_options.include_usage: weir sent the request without, and does not ask there again",
			"upstream", x.up.Name, "model", call.Redact(x.c.Request.Model))
	}
	return resp, err
}

// askUsage is the request's body with the question for usage in it; nil where
// the request goes on as it is: nobody told weir to ask, the client has said
// what it wants, the API needs no asking, or the body cannot be changed.
func (x *exchange) askUsage() []byte {
	c, b := x.c, x.body
	if x.asked { // before, of an attempt that was refused
		return nil
	}
	if !x.p.InjectUsage || x.unseen || x.r.Method != http.MethodPost || !c.Operation.Generates() ||
		c.API != wire.Chat && c.API != wire.Completions || !c.Request.Stream || c.Request.IncludeUsage != nil {
		return nil
	}
	if b.rest != nil || len(b.held) > inspectedBody || len(c.Request.Model) > longestModel || isSealed(x.r.Header) {
		return nil
	}
	how := x.p.asking.of(x.endpoint())
	if how&refusesUsage != 0 || how&compressesUsage != 0 && acceptsCodings(x.r.Header) {
		return nil
	}
	return withUsage(b.held)
}

// isSealed says whether a body is encoded, or its bytes are signed.
func isSealed(h http.Header) bool {
	for _, name := range []string{"Content-Encoding", "Content-Md5", "Content-Digest", "Digest", "Repr-Digest", "Signature", "X-Amz-Content-Sha256"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

func acceptsCodings(h http.Header) bool {
	accepted := h.Get("Accept-Encoding")
	return accepted != "" && !strings.EqualFold(accepted, "identity")
}

// replace puts other bytes in the place of those that are held, and gives
// those.
func (b *body) replace(held []byte) (before []byte) {
	before, b.held = b.held, held
	if b.len >= 0 {
		b.len = int64(len(held))
	}
	return before
}

const longestRefusal = 64 << 10

// namesUsage says whether an answer refuses the question for usage. The answer
// can still be read from its beginning.
func namesUsage(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, longestRefusal)) // its error comes again with what follows
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
	plain, _ := decode(said, resp.Header.Get("Content-Encoding"), longestRefusal)
	return bytes.Contains(plain, []byte("stream_options")) || bytes.Contains(plain, []byte("include_usage"))
}

// unask has the client see of an answer what it would have seen without the
// question. An answer in a content coding passes as it is, with the chunk that
// the client did not ask for: it cannot be taken out of that without encoding
// the rest anew, and the client's Accept-Encoding is the client's. Where that
// was found, clients that accept codings are not asked for again.
func (x *exchange) unask(resp *http.Response) {
	x.to = x.w
	if !x.asked || resp.StatusCode/100 != 2 || wire.FramingOf(resp.Header.Get("Content-Type"), true) != wire.SSE {
		return
	}
	x.c.UsageSource = call.UsageInjected
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		x.p.asking.learn(x.endpoint(), compressesUsage)
		x.p.note("an endpoint compresses its streams, so the usage that weir asked for stays in them: weir does not ask there again for clients that accept compressed answers",
			"upstream", x.up.Name, "model", call.Redact(x.c.Request.Model))
		return
	}
	resp.Header.Del("Content-Length")
	x.unasked = &unasked{to: x.w}
	x.to = x.unasked
}

// releaseHeld gives the client what was held back when the stream ended.
func (x *exchange) releaseHeld(out *http.ResponseController, how call.End, err error) (call.End, error) {
	if x.unasked == nil || how == call.EndClientGone {
		return how, err
	}
	failed := x.unasked.Close()
	if failed == nil {
		failed = out.Flush()
	}
	if failed != nil && how == call.EndClean {
		return x.left(failed)
	}
	return how, err
}
