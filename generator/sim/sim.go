package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/proxy/wire"
)

// Sim is a simulated endpoint: an http.Handler.
type Sim struct {
	c       Config
	engine  *engine
	words   *bank
	started time.Time
	stop    context.CancelFunc
	serial  atomic.Uint64
	active  atomic.Int64
	hidden  atomic.Int64 // Config.HiddenLimit
	limits  *buckets
	sockets sync.WaitGroup
	prompts promptFaults
	threads threads
}

// New starts the engine of an endpoint; Close ends it.
func New(c Config) (*Sim, error) {
	e, err := c.Engine.check()
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	c.Engine = e
	ctx, stop := context.WithCancel(context.Background())
	s := &Sim{c: c, engine: newEngine(e), words: newBank(c.Seed, e.TokensPerStep), limits: newBuckets(c.Limits), started: time.Now(), stop: stop}
	s.SetHiddenLimit(c.HiddenLimit)
	go s.engine.run(ctx)
	return s, nil
}

// Close ends the engine. Requests under way are broken off, and so are
// WebSockets: shut the server down first.
func (s *Sim) Close() {
	s.stop()
	<-s.engine.stopped
	s.sockets.Wait()
}

// exchange is one request at the endpoint.
type exchange struct {
	s      *Sim
	w      http.ResponseWriter
	out    *http.ResponseController
	r      *http.Request
	route  wire.Route
	format wire.Format
	req    wire.Request
	rec    *Record
	rng    *rand.Rand
	fault  *Fault
	silent bool    // nothing shall be generated
	script *script // nil when the prompt has none
	thread *thread // nil when the conversation is not held

	input    int    // tokens of the prompt; 0 until it is counted
	prompt   prompt // as the cache knows it
	charged  int64  // input tokens that were taken from the limits
	reserved bool   // and all output tokens
}

// ServeHTTP answers one request.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.opensSocket(r) {
		s.serveSocket(w, r)
		return
	}
	x := s.begin(w, r)
	defer x.end()
	w.Header().Set("X-Request-Id", x.rec.ID)
	body, err := io.ReadAll(r.Body)
	x.rec.Body = time.Now()
	if err != nil {
		x.rec.Cancelled = time.Now()
		return
	}
	x.handle(body)
}

// begin starts an exchange; end it.
func (s *Sim) begin(w http.ResponseWriter, r *http.Request) *exchange {
	n := s.serial.Add(1)
	x := &exchange{
		s: s, w: w, r: r, out: http.NewResponseController(w),
		route: wire.Find(r.Method, r.URL.Path), rng: rand.New(rand.NewPCG(s.c.Seed, n)),
		rec: &Record{ID: fmt.Sprintf("sim-%x-%d", s.c.Seed, n), Correlation: r.Header.Get(CorrelationHeader), Accepted: time.Now()},
	}
	x.format = wire.For(x.route.API)
	x.rec.API, x.rec.Operation = x.route.API, x.route.Operation
	s.active.Add(1)
	return x
}

func (x *exchange) end() {
	x.s.active.Add(-1)
	x.rec.Done = time.Now()
	if x.s.c.Log != nil {
		x.s.c.Log(x.rec)
	}
}

func (x *exchange) handle(body []byte) {
	switch {
	case x.s.c.Key != "" && !hasKey(x.r, x.s.c.Key):
		x.fail(http.StatusUnauthorized, "authentication_error", "invalid_api_key", "the API key is missing or wrong")
		return
	case x.route.Operation == wire.OpModels:
		x.models()
		return
	case x.route.Operation == wire.OpEmbeddings:
		x.embeddings(body)
		return
	case x.r.Method == http.MethodHead: // Claude Code looks so whether anybody is there
		x.head(http.StatusOK)
		return
	case x.format == nil || x.route.Operation == wire.OpOther:
		x.fail(http.StatusNotFound, "not_found_error", "", fmt.Sprintf("%s %s is not an API that this endpoint has", x.r.Method, x.r.URL.Path))
		return
	}
	if x.route.Operation.Generates() {
		x.state()
	}
	if err := x.format.ParseRequest(&x.req, body); err != nil {
		x.fail(http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	if x.route.Model != "" {
		x.req.Model = x.route.Model
	}
	x.req.Stream = x.req.Stream || x.route.Stream
	x.rec.Stream = x.req.Stream
	switch {
	case !x.s.c.hasModel(x.req.Model):
		x.noModel(x.req.Model)
		return
	case x.route.Operation == wire.OpCountTokens:
		x.countTokens()
		return
	}
	if !x.joinThread(body) || !x.admitted() {
		return
	}
	x.fault = pick(x.s.c.Faults, x.rng)
	if x.s.c.Script {
		var err error
		if x.script, err = readScript(&x.req); err != nil {
			x.fail(http.StatusBadRequest, "invalid_request_error", "", err.Error())
			return
		}
		if x.script != nil && x.s.prompts.due(x.script) {
			x.fault = x.script.fault
		}
	}
	if x.fault != nil {
		x.rec.Fault = x.fault.Kind
	}
	switch {
	case x.refused():
	case x.silent:
		x.prepare()
	default:
		x.generate()
	}
}

// refused answers with the faults that are a status.
func (x *exchange) refused() bool {
	switch x.rec.Fault {
	case "429":
		x.w.Header().Set("Retry-After", strconv.Itoa(int((x.fault.Wait+time.Second-1)/time.Second)))
		x.fail(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "simulated: rate limit reached")
	case "500":
		x.fail(http.StatusInternalServerError, "api_error", "", "simulated: internal error")
	case "529":
		x.fail(529, "overloaded_error", "", "simulated: overloaded")
	default:
		return false
	}
	return true
}

func hasKey(r *http.Request, key string) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, given := range []string{bearer, r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")} {
		if given == key {
			return true
		}
	}
	return false
}

// head writes the status line and headers and takes down when.
func (x *exchange) head(status int) {
	x.w.WriteHeader(status)
	_ = x.out.Flush() // a client that has left is noticed by its context
	x.rec.Status, x.rec.Headers = status, time.Now()
}

// fail answers with an error in the dialect asked in.
func (x *exchange) fail(status int, kind, code, message string) {
	f := x.format
	if f == nil {
		f = wire.For(wire.Chat)
	}
	body := f.AppendError(nil, &wire.Error{Status: status, Type: kind, Code: code, Message: message})
	x.whole(status, body)
}

// whole writes a body that is one JSON document.
func (x *exchange) whole(status int, body []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	if x.compresses() {
		x.w.Header().Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		_, _ = gz.Write(body) // a buffer takes everything
		_ = gz.Close()
		body = b.Bytes()
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.rec.Status = status
	x.w.WriteHeader(status)
	_, err := x.w.Write(body)
	if err == nil {
		err = x.out.Flush()
	}
	x.rec.Headers = time.Now()
	if err != nil {
		x.rec.Cancelled = x.rec.Headers
	}
}

// compresses says whether the answer goes out in gzip.
func (x *exchange) compresses() bool {
	return x.s.c.Compress && strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip")
}

// breakOff breaks the connection.
func (x *exchange) breakOff() {
	x.rec.Broken = true
	panic(http.ErrAbortHandler)
}
