package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"weir/generator/corpus"
	"weir/proxy/wire"
	"weir/store/call"
)

// endpoint is a scripted LLM endpoint that speaks every dialect.
type endpoint struct {
	*httptest.Server
	// script, when set, answers in place of talk.
	script func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request)
	tool   string // the tool that answers call; empty: they are text
	usage  bool

	mu       sync.Mutex
	requests []*wire.Request
	headers  []http.Header
	bodies   [][]byte
	came     []time.Time
}

func newEndpoint(t testing.TB) *endpoint {
	e := &endpoint{usage: true}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	route := wire.Find(r.Method, r.URL.Path)
	asked := &wire.Request{}
	f := wire.For(route.API)
	if f == nil {
		http.Error(w, "no such path", http.StatusNotFound)
		return
	}
	if err := f.ParseRequest(asked, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked.Stream = asked.Stream || route.Stream
	if route.Model != "" {
		asked.Model = route.Model
	}
	e.mu.Lock()
	e.came = append(e.came, time.Now())
	e.requests, e.headers, e.bodies = append(e.requests, asked), append(e.headers, r.Header.Clone()), append(e.bodies, bytes.Clone(body))
	e.mu.Unlock()
	if e.script != nil {
		e.script(e, w, r, asked)
		return
	}
	e.talk(w, f, asked, 0)
}

// talk answers with a few words after a wait.
func (e *endpoint) talk(w http.ResponseWriter, f wire.Format, asked *wire.Request, wait time.Duration) {
	u := wire.Usage{Input: wire.N(int64(tokensOf(asked))), Output: wire.N(6), CacheRead: wire.N(0)}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		a := &wire.Answer{ID: "r1", Model: asked.Model, Parts: []wire.Part{{Kind: wire.KindText, Text: "a few words for you"}}, Finish: wire.FinishWord(f.API(), "stop"), Usage: u}
		w.Write(f.AppendAnswer(nil, a))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	writer := wire.NewWriter(f, "r1", asked.Model, wire.Usage{Input: u.Input}, wire.WriterOptions{Usage: e.usage})
	flush := func(b []byte) {
		w.Write(b)
		w.(http.Flusher).Flush()
	}
	flush(writer.Open(nil))
	time.Sleep(wait)
	finish := "stop"
	flush(writer.Text(nil, "a few words "))
	if e.tool != "" {
		flush(writer.Tool(nil, "call_9", e.tool, `{"path":`))
		flush(writer.Tool(nil, "", "", `"x"}`))
		finish = "tool"
	} else {
		flush(writer.Text(nil, "for you"))
	}
	flush(writer.Close(nil, finish, u))
}

// countFirst counts the first turns of sessions.
func (e *endpoint) countFirst() int {
	n := 0
	for _, h := range e.headers {
		if h.Get("X-Weir-Turn") == "1" {
			n++
		}
	}
	return n
}

// tokensOf counts a request as the corpus counts a prompt.
func tokensOf(r *wire.Request) int {
	tok, _ := corpus.ForModel(r.Model)
	n := corpus.TokensPerPrompt
	if r.System != "" {
		n += corpus.TokensPerMessage + tok.Count(r.System)
	}
	for _, m := range r.Messages {
		for i, p := range m.Parts {
			if i == 0 || p.Kind == wire.KindToolResult {
				n += corpus.TokensPerMessage
			}
			n += tok.Count(p.Text)
			if p.Kind == wire.KindTool {
				n += corpus.TokensPerCall + tok.Count(p.Name) + tok.Count(p.Arguments)
			}
		}
	}
	for _, d := range r.Tools {
		var compact bytes.Buffer
		json.Compact(&compact, d.Parameters)
		n += corpus.TokensPerTool + tok.Count(d.Name) + tok.Count(d.Description) + tok.Count(compact.String())
	}
	return n
}

// recorder keeps the calls of a run.
type recorder struct {
	mu  sync.Mutex
	all []*call.Call
}

func (r *recorder) take(c *call.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

func (r *recorder) calls(t testing.TB) []*call.Call {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func (r *recorder) tracer() trace.Tracer {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(call.Ended(r.take))).Tracer("test")
}

// newRun makes a run of a plan against the endpoint, with a recorder of its calls.
func newRun(e *endpoint, p *Plan) (*Run, *recorder) {
	r := &recorder{}
	return &Run{Plan: p, Target: Target{BaseURL: e.URL}, Tracer: r.tracer()}, r
}

func do(t testing.TB, r *Run) *Result {
	t.Helper()
	result, err := r.Do(context.Background(), context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return result
}
