package generator

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir/proxy/wire"
	"weir/store/call"
)

// client sends requests and measures their answers.
type client struct {
	base    *url.URL
	keys    Keys
	tracer  trace.Tracer
	run     string
	labels  map[string]string
	timeout time.Duration // 0: none
	trip    http.RoundTripper
	buffers sync.Pool // *[]byte, to read into
}

// newTransport makes the generator's own transport: no proxy from the
// environment, no compression that nobody asked for, HTTP/1.1, connections kept
// for as many calls as there are at once, and no time limit of its own.
func newTransport(t *Target) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: t.RootCAs},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     30 * time.Second,
		ReadBufferSize:      32 << 10,
	}
}

func newClient(r *Run, base *url.URL, timeout time.Duration, trip http.RoundTripper) *client {
	return &client{
		base: base, keys: r.Target.Keys, tracer: r.Tracer, run: r.ID, labels: r.Labels, timeout: timeout, trip: trip,
		buffers: sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }},
	}
}

// errTimeout is why a call's context ends when its time is up.
var errTimeout = errors.New("the call took longer than its timeout")

// begin makes the call of a planned request.
func (c *client) begin(s *Session, turn int, p *prepared, due call.Instant) *call.Call {
	m := &call.Call{
		Side: call.Client, Run: c.run, Scenario: s.Scenario, Labels: c.labels, WarmUp: s.WarmUp,
		API: s.API, Operation: operationOf(s.API), Provider: providerOf(s.API),
		Host: c.base.Hostname(), Port: port(c.base), Method: http.MethodPost,
		Request: p.head, RequestBytes: int64(len(p.body)),
		ExpectedInput: wire.N(int64(p.turn.Input)), ExpectedOutput: wire.Count{N: int64(p.turn.Output), Known: p.turn.Output > 0},
		Attempts: 1,
	}
	if s.ID != "" {
		m.Session, m.Turn = c.run+"-"+s.ID, s.Before+turn+1
	}
	m.Due, m.Text = due, p.text
	return m
}

func operationOf(api wire.API) wire.Operation {
	switch api {
	case wire.Completions:
		return wire.OpTextCompletion
	case wire.Gemini:
		return wire.OpGenerateContent
	}
	return wire.OpChat
}

func providerOf(api wire.API) string {
	switch api {
	case wire.Messages:
		return "anthropic"
	case wire.Gemini:
		return "gcp.gemini"
	}
	return "openai"
}

// send sends a request and reads its answer to the end, which a, if not nil,
// gathers. Everything is in the call; err is the failure of the transport or of
// the body, nil for whatever the endpoint answered in full.
func (c *client) send(ctx context.Context, m *call.Call, p *prepared, a *answer) (err error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, errTimeout)
		defer cancel()
	}
	u := join(c.base, p.path)
	m.Path = u.Path
	m.Arrived = call.Now()
	span := m.Begin(context.Background(), c.tracer)
	m.TraceID, m.SpanID = span.SpanContext().TraceID(), span.SpanContext().SpanID()

	meter := call.NewMeter(m, wire.For(m.API))
	if a != nil {
		meter.OnEvent, meter.OnAnswer = a.event, a.whole
	}
	var seen sight
	how, err := c.exchange(seen.watch(ctx), m, u, p, meter)
	seen.copyTo(m)
	meter.End(how, err, call.Now())

	m.End(span)
	return err
}

// exchange is one request and its answer.
func (c *client) exchange(ctx context.Context, m *call.Call, u *url.URL, p *prepared, meter *call.Meter) (call.End, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(p.body))
	if err != nil {
		return call.EndUnreachable, err
	}
	c.head(req.Header, m)
	resp, err := c.trip.RoundTrip(req)
	if err != nil {
		return endOf(ctx, call.EndUnreachable), err
	}
	defer resp.Body.Close()
	meter.Begin(resp.StatusCode, resp.Header, call.Now())
	m.Impaired = resp.Header["X-Weir-Impaired"] // a weir on the way makes the call worse, so that it is no measure
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	for {
		n, err := resp.Body.Read(*buf)
		received := call.Now()
		meter.Observe((*buf)[:n], received, 0)
		if errors.Is(err, io.EOF) {
			return call.EndClean, nil
		}
		if err != nil {
			return endOf(ctx, call.EndBroken), err
		}
	}
}

// endOf says whether a failure was the endpoint's, or came of the context.
func endOf(ctx context.Context, failed call.End) call.End {
	switch {
	case ctx.Err() == nil:
		return failed
	case errors.Is(context.Cause(ctx), errTimeout):
		return call.EndTimeout
	}
	return call.EndClientGone
}

// head writes a request's headers: what the API wants, and what tells the proxy
// where the call belongs. It takes the latter off again.
func (c *client) head(h http.Header, m *call.Call) {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "weir")
	if m.Request.Stream {
		h.Set("Accept", "text/event-stream")
	} else {
		h.Set("Accept", "application/json")
	}
	c.keys.authorize(h, m.API)
	tag := func(name, value string) {
		if value != "" {
			h.Set("X-Weir-"+name, value)
		}
	}
	tag("Scenario", m.Scenario)
	tag("Run", m.Run)
	tag("Session", m.Session)
	if m.Turn > 0 {
		tag("Turn", strconv.Itoa(m.Turn))
	}
	if m.WarmUp {
		tag("Warm-Up", "true")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		h.Add("X-Weir-Label", name+"="+m.Labels[name])
	}
	if m.TraceID != [16]byte{} {
		h.Set("Traceparent", "00-"+hex.EncodeToString(m.TraceID[:])+"-"+hex.EncodeToString(m.SpanID[:])+"-01")
	}
}

// sight is what the transport reports of one request, from goroutines of its
// own.
type sight struct {
	connected, sent    atomic.Int64
	reused             atomic.Bool
	dnsStart, dns      atomic.Int64
	tlsStart, tlsShook atomic.Int64
}

func (s *sight) watch(ctx context.Context) context.Context {
	now := func() int64 { return int64(call.Now()) }
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			s.connected.Store(now())
			s.reused.Store(i.Reused)
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				s.sent.Store(now())
			}
		},
		DNSStart:          func(httptrace.DNSStartInfo) { s.dnsStart.Store(now()) },
		DNSDone:           func(httptrace.DNSDoneInfo) { s.dns.Store(now() - s.dnsStart.Load()) },
		TLSHandshakeStart: func() { s.tlsStart.Store(now()) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { s.tlsShook.Store(now() - s.tlsStart.Load()) },
	})
}

// copyTo puts it into the call.
func (s *sight) copyTo(m *call.Call) {
	m.Connected, m.Sent = call.Instant(s.connected.Load()), call.Instant(s.sent.Load())
	m.ReusedConn = s.reused.Load()
	if !m.ReusedConn { // else they belong to a connection that this call did not get
		m.DNS, m.TLS = time.Duration(s.dns.Load()), time.Duration(s.tlsShook.Load())
	}
}
