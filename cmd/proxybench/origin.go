package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// origin answers with a stream of chat completion chunks. The query says how
// many, and how far apart; they come on a schedule from the first on, so that
// a slow write delays no later event.
func origin(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	q := r.URL.Query()
	events, _ := strconv.Atoi(q.Get("events"))
	gap, _ := time.ParseDuration(q.Get("gap"))
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := http.NewResponseController(w)
	start := time.Now()
	for i := range events {
		if wait := time.Until(start.Add(time.Duration(i) * gap)); wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			}
		}
		chunk := contentChunk
		if i == events-1 {
			chunk += lastChunks
		}
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
	}
}

const (
	contentChunk = `data: {"id":"chatcmpl-9hbeQWeirBench","object":"chat.completion.chunk","created":1764580000,"model":"bench-1","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" stream"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	lastChunks   = `data: {"id":"chatcmpl-9hbeQWeirBench","object":"chat.completion.chunk","created":1764580000,"model":"bench-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"chatcmpl-9hbeQWeirBench","object":"chat.completion.chunk","created":1764580000,"model":"bench-1","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050}}` + "\n\n" +
		"data: [DONE]\n\n"
)

// reverseProxy is the standard library's proxy, tuned for streams: what weir
// is held against.
func reverseProxy(target string) (http.Handler, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		FlushInterval: -1,
		BufferPool:    &bufferPool{sync.Pool{New: func() any { return make([]byte, 32<<10) }}},
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else the server closes the request's body as the answer begins, which
		// the transport may still want to see the end of: it then breaks off one
		// stream of some hundred.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	}), nil
}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte  { return p.pool.Get().([]byte) }
func (p *bufferPool) Put(b []byte) { p.pool.Put(b) } //nolint:staticcheck // a slice header a stream is nothing
