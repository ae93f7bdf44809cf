package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/generator"
	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy"
	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// chain is weir from end to end in this process: a simulated endpoint that
// takes down the truth, the proxy in front of it, and a store in a file.
type chain struct {
	base  string // of the proxy
	stack *stack
	path  string // of the database
	close func()

	mu      sync.Mutex
	records []*sim.Record
	streams map[string]*stream // by the record's id
}

// stream is what the endpoint put on the wire for one request.
type stream struct {
	coding string
	body   []byte
	begun  []time.Time // when each write of it began
}

// onWire is when the bytes of an event went out: later than the record has it
// where the endpoint first had to set up its compression, which is its own
// time and not the way's.
func (s *stream) onWire(w sim.Written) call.Instant {
	at := w.Before
	for _, begun := range s.begun {
		if !begun.Before(w.Before) && !begun.After(w.After) {
			at = begun
		}
	}
	return call.At(at)
}

// Models whose names end so are served by endpoints of other habits: each is
// an upstream of its own, told apart by its base path.
const (
	gzipped   = "/gzip"  // compresses
	asArray   = "/array" // Gemini without alt=sse
	heldHeads = "/held"  // sends its headers with the first event
)

// startChain starts a chain around endpoints that c describes.
func startChain(t *testing.T, c sim.Config) *chain {
	t.Helper()
	ch := &chain{path: filepath.Join(t.TempDir(), "truth.db"), streams: map[string]*stream{}}
	c.Log, c.Compress = ch.log, true
	held := c
	held.Seed, held.HoldHead = c.Seed+1, true
	endpoint, late := newSim(t, c), newSim(t, held)
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: ch.tap(endpoint, late)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()

	a := &app{stdio: stdio{strings.NewReader(""), io.Discard, io.Discard}, env: func(string) (string, bool) { return "", false }, hard: context.Background()}
	if ch.stack, err = a.openStack(t.Context(), ch.path); err != nil {
		t.Fatal(err)
	}
	at := func(path string) *url.URL { return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: path} }
	upstreams := []proxy.Upstream{{Name: "sim", URL: at("")}}
	for _, path := range []string{gzipped, asArray, heldHeads} {
		upstreams = append(upstreams, proxy.Upstream{Name: path[1:], URL: at(path), Models: []string{"*-" + path[1:]}})
	}
	base, stop, err := serveInside(ch.stack.proxy(upstreams))
	if err != nil {
		t.Fatal(err)
	}
	ch.base = base
	ch.close = sync.OnceFunc(func() {
		stop()
		server.Close()
		<-served
		endpoint.Close()
		late.Close()
		if err := ch.stack.close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	t.Cleanup(ch.close)
	return ch
}

func newSim(t *testing.T, c sim.Config) *sim.Sim {
	t.Helper()
	s, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (ch *chain) log(r *sim.Record) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.records = append(ch.records, r)
}

// tap stands between the network and the endpoints, and keeps what they write.
func (ch *chain) tap(endpoint, late http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := endpoint
		r.Header.Del("Accept-Encoding")
		switch {
		case strings.HasPrefix(r.URL.Path, gzipped):
			r.Header.Set("Accept-Encoding", "gzip")
		case strings.HasPrefix(r.URL.Path, asArray):
			r.URL.RawQuery = ""
		case strings.HasPrefix(r.URL.Path, heldHeads):
			to = late
		}
		kept := &keeper{ResponseWriter: w}
		defer func() {
			ch.mu.Lock()
			defer ch.mu.Unlock()
			ch.streams[w.Header().Get("X-Request-Id")] = &kept.stream
			kept.coding = w.Header().Get("Content-Encoding")
		}()
		to.ServeHTTP(kept, r)
	})
}

type keeper struct {
	http.ResponseWriter
	stream
}

func (k *keeper) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keeper) Write(b []byte) (int, error) {
	k.begun = append(k.begun, time.Now())
	k.body = append(k.body, b...)
	return k.ResponseWriter.Write(b)
}

// play sends a load model through the chain.
func (ch *chain) play(t *testing.T, document string, seed uint64) *generator.Result {
	t.Helper()
	m, err := loadmodel.Decode("truth.json", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	run := &generator.Run{Plan: &generator.Plan{Model: m, Seed: seed}, Tracer: ch.stack.tracer, Target: generator.Target{BaseURL: ch.base}}
	result, err := run.Do(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// views are the two spans of one call.
type views struct{ client, proxy *call.Call }

// stored ends the chain, opens its file anew and reads every call back, by the
// trace that its two views share. It insists that there are exactly two.
func (ch *chain) stored(t *testing.T) []views {
	t.Helper()
	byTrace := map[[16]byte]*views{}
	for _, c := range ch.spans(t) {
		v := byTrace[c.TraceID]
		if v == nil {
			v = &views{}
			byTrace[c.TraceID] = v
		}
		switch {
		case c.Side == call.Client && v.client == nil:
			v.client = c
		case c.Side == call.Proxy && v.proxy == nil:
			v.proxy = c
		default:
			t.Errorf("trace %x has more than one span of side %q", c.TraceID, c.Side)
		}
	}
	var all []views
	for trace, v := range byTrace {
		switch {
		case v.client == nil || v.proxy == nil:
			t.Errorf("trace %x has client span: %t, proxy span: %t; want both", trace, v.client != nil, v.proxy != nil)
		case v.proxy.ParentSpan != v.client.SpanID:
			t.Errorf("trace %x: the proxy's span is the child of %x, want of the client's %x", trace, v.proxy.ParentSpan, v.client.SpanID)
		default:
			all = append(all, *v)
		}
	}
	slices.SortFunc(all, func(a, b views) int { return int(a.proxy.Arrived - b.proxy.Arrived) })
	return all
}

// spans ends the chain and reads every span out of its file.
func (ch *chain) spans(t *testing.T) []*call.Call {
	t.Helper()
	ch.close()
	db, err := store.Open(t.Context(), ch.path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	everything, err := store.ParseSelection([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	var all []*call.Call
	var broken error
	for c, err := range db.Calls(t.Context(), everything, store.Order{}) {
		if err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		all = append(all, c)
	}
	if broken != nil {
		t.Fatal(broken)
	}
	return all
}

// dialects are all that weir speaks.
var dialects = []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini}
