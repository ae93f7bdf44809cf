package main

import (
	"net/http"
	"net/url"
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
	"weir/store/call"
)

// chain is weir from end to end in this process: a simulated endpoint that
// takes down the truth, the proxy in front of it, and a store in a file.
type chain struct {
	*recording
	server *http.Server // of the endpoint

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
	ch := &chain{streams: map[string]*stream{}}
	c.Log, c.Compress = ch.log, true
	held := c
	held.Seed, held.HoldHead = c.Seed+1, true
	endpoint, late := newSim(t, c), newSim(t, held)
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	ch.server = &http.Server{Handler: ch.tap(endpoint, late)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		ch.server.Serve(l)
	}()

	at := func(path string) *url.URL { return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: path} }
	upstreams := []proxy.Upstream{{Name: "sim", URL: at("")}}
	for _, path := range []string{gzipped, asArray, heldHeads} {
		upstreams = append(upstreams, proxy.Upstream{Name: path[1:], URL: at(path), Models: []string{"*-" + path[1:]}})
	}
	t.Cleanup(func() {
		ch.server.Close()
		<-served
		endpoint.Close()
		late.Close()
	})
	front, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	ch.recording = record(t, front, upstreams)
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

// truth waits for the endpoint to have ended every request, and gives its log.
func (ch *chain) truth(t *testing.T) []*sim.Record {
	t.Helper()
	if err := ch.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return slices.Clone(ch.records)
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

// dialects are all that weir speaks.
var dialects = []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini}
