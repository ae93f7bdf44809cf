// Package proxy is the sidecar: it takes a request, names what it belongs to,
// waits for the shaper's leave, sends it on, and passes the answer back as it
// comes, while a meter reads the same bytes beside their way. The observer
// never changes, delays or fails a stream.
package proxy

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"weir/generator/loadmodel"
	"weir/proxy/client"
	"weir/shaper"
	"weir/store/call"
)

// Proxy is the sidecar. Its fields are set before the first request and not
// changed after. Only Upstreams or Forward is required.
type Proxy struct {
	Upstreams []Upstream
	// Forward opens the doors of a forward proxy; nil keeps them shut.
	Forward *Forward

	// Match gives a request's scenario by the rules of a load model; nil when
	// there are none.
	Match func(loadmodel.Facts) (scenario string, ok bool)
	// Scenario is that of requests which nothing names, until Tag gives another
	// one; "untagged" when empty.
	Scenario string
	// Shaper decides when a call may go; nil admits all.
	Shaper *shaper.Shaper
	// Impair makes calls worse on purpose; nil makes none so.
	Impair *shaper.Impairer
	// Tracer makes a span a call; nil makes none.
	Tracer trace.Tracer
	// Fingerprint tells keys apart without showing them; nil keeps nothing.
	Fingerprint func(key string) string
	// InjectUsage has weir ask for usage on behalf of clients that do not ask: a
	// streamed request for OpenAI's chat completions or completions gets
	// stream_options.include_usage unless it says something of it, and what
	// only that brings into the answer is taken out again. Else weir changes no
	// request. Sizes and kept contents are of what the client sent and of what
	// the upstream answered.
	InjectUsage bool
	// Propagate says which trace an upstream is told of; strip when empty.
	Propagate Propagation
	// BaggageLabels are the members of a request's baggage that become labels.
	BaggageLabels []string
	// Keep says what of the calls' contents is kept; nil keeps nothing.
	Keep *Keep
	// ClientToken, when set, must come in X-Weir-Token with each request.
	ClientToken string
	// HoldBody is how much of a request's body is held to be sent again if its
	// connection fails before it is used; 0 is 64 MiB. A longer body passes
	// through without being held.
	HoldBody int64
	// MaxHeaderBytes bounds a request's headers; 0 is 1 MiB. More is answered
	// with 431.
	MaxHeaderBytes int
	// Log takes what is worth telling the operator; nil is silent.
	Log *slog.Logger

	once      sync.Once
	openErr   error
	upstreams []*Upstream
	server    *http.Server
	forward   *forwardDoor
	noted     sync.Map // notes that were told once
	tag       atomic.Pointer[string]
	shape     *shaper.Shaper
	tracer    trace.Tracer
	sessions  client.Tracker
	listening atomic.Pointer[net.TCPAddr]
	under     inflight // requests, and calls that are being recorded
	recording recording
	asking    asking
	stopping  context.Context
	stop      context.CancelCauseFunc
	draining  context.Context // ends before stopping: who waits in a lane is refused
	drain     context.CancelFunc
}

// errStopped is why a call ended whose proxy was closed.
var errStopped = errors.New("weir was stopped")

// errDraining refuses a call that waited when the proxy was told to stop.
var errDraining = errors.New("refused: " + call.Stopping + "; send it again when weir runs")

const (
	defaultHold   = 64 << 20
	inspectedBody = 8 << 20 // of a request's body, decoded
)

// holds is how much of a request is held.
func (p *Proxy) holds() int64 {
	if p.HoldBody <= 0 {
		return defaultHold
	}
	return p.HoldBody
}

// open prepares the upstreams and the server.
func (p *Proxy) open() error {
	p.once.Do(func() {
		if len(p.Upstreams) == 0 && p.Forward == nil {
			p.openErr = errors.New("proxy: no upstream: where should requests go?")
			return
		}
		for i := range p.Upstreams {
			u := &p.Upstreams[i]
			if err := u.open(p.dial); err != nil {
				p.openErr = err
				return
			}
			p.upstreams = append(p.upstreams, u)
		}
		if p.Log == nil {
			p.Log = slog.New(slog.DiscardHandler)
		}
		p.shape, p.tracer = p.Shaper, p.Tracer
		if p.shape == nil {
			p.shape = &shaper.Shaper{}
		}
		if p.tracer == nil {
			p.tracer = noop.NewTracerProvider().Tracer("")
		}
		p.stopping, p.stop = context.WithCancelCause(context.Background())
		p.draining, p.drain = context.WithCancel(p.stopping)
		p.server = p.newServer(http.HandlerFunc(p.doors))
		p.forward, p.openErr = p.openForward()
	})
	return p.openErr
}

// logWriter takes what net/http would print.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Debug("http server", "said", string(b))
	return len(b), nil
}

// doors tells requests for the sidecar itself from those for a forward proxy.
// goproxy's own way to hand on the former would leave a kilobyte on the stack,
// which makes an open stream's stack twice as large.
func (p *Proxy) doors(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect && !r.URL.IsAbs() {
		p.serve(w, r)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *Proxy) newServer(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:        h,
		BaseContext:    func(net.Listener) context.Context { return p.stopping },
		Protocols:      &protocols,
		MaxHeaderBytes: p.MaxHeaderBytes,
		ErrorLog:       log.New(logWriter{p.Log}, "", 0),
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 10_000},
	}
}

// Handler is the proxy's handler, for a server of the caller's own.
func (p *Proxy) Handler() (http.Handler, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	return p.server.Handler, nil
}

// Serve takes requests from l until Shutdown or Close, and then gives nil.
func (p *Proxy) Serve(l net.Listener) error {
	if err := p.open(); err != nil {
		l.Close()
		return err
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		p.listening.Store(at)
	}
	if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown takes no more requests, refuses those that wait in a lane, and waits for the streams and tunnels under
// way to end and to be recorded, or for ctx, whose error it then gives; Close
// ends the rest.
func (p *Proxy) Shutdown(ctx context.Context) error {
	if err := p.open(); err != nil {
		return nil //nolint:nilerr // what was never opened is shut
	}
	p.drain()
	if err := p.server.Shutdown(ctx); err != nil {
		return err
	}
	if p.forward.tunnels != nil {
		if err := p.forward.tunnels.Shutdown(ctx); err != nil {
			return err
		}
		p.forward.conns.Close()
	}
	if err := p.under.wait(ctx); err != nil {
		return err
	}
	p.stop(errStopped) // ends the tunnels that nobody looks into
	p.closeIdle()
	return nil
}

// Close ends every stream and tunnel at once, and waits until each of their
// calls has its span.
func (p *Proxy) Close() error {
	if err := p.open(); err != nil {
		return nil //nolint:nilerr // what was never opened is closed
	}
	p.drain()
	p.stop(errStopped)
	err := p.server.Close()
	if p.forward.tunnels != nil {
		err = errors.Join(err, p.forward.tunnels.Close(), p.forward.conns.Close())
	}
	_ = p.under.wait(context.Background())
	p.closeIdle()
	return err
}

func (p *Proxy) closeIdle() {
	for _, u := range p.upstreams {
		u.transport.CloseIdleConnections()
	}
	if t := p.forward.direct.transport; t != nil {
		t.CloseIdleConnections()
	}
}

// admitted says whether a request may use the proxy at all.
func (p *Proxy) admitted(r *http.Request) bool {
	return p.ClientToken == "" ||
		subtle.ConstantTimeCompare([]byte(r.Header.Get(headerToken)), []byte(p.ClientToken)) == 1
}

// note tells the operator something once.
func (p *Proxy) note(text string, args ...any) {
	if _, told := p.noted.LoadOrStore(text, true); !told {
		p.Log.Warn(text, args...)
	}
}
