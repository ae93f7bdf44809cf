package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sidecar is a proxy in front of an upstream, and the calls it recorded.
type sidecar struct {
	*Proxy
	url    string
	client *http.Client

	mu    sync.Mutex
	calls []*call.Call
}

func (s *sidecar) take(c *call.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// start puts a sidecar in front of an upstream. change may set more of it.
func start(t *testing.T, upstream string, change func(*Proxy)) *sidecar {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{Proxy: &Proxy{Upstreams: []Upstream{{Name: "up", URL: u}}}}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.ParentBased(sdktrace.AlwaysSample()))), sdktrace.WithSpanProcessor(call.Ended(s.take)))
	s.Tracer = provider.Tracer("weir")
	if change != nil {
		change(s.Proxy)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	s.url = "http://" + l.Addr().String()
	s.client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// call waits for the only call, or the n-th to arrive. Of several it is asked
// for the last one first: recording lags behind the answers.
func (s *sidecar) call(t *testing.T, n int) *call.Call {
	t.Helper()
	for range 1000 {
		s.mu.Lock()
		if len(s.calls) >= n {
			defer s.mu.Unlock()
			slices.SortFunc(s.calls, func(a, b *call.Call) int { return cmp.Compare(a.Arrived, b.Arrived) })
			return s.calls[n-1]
		}
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("call %d was not recorded", n)
	return nil
}

// post sends one request of a dialect and gives the response.
func (s *sidecar) post(t *testing.T, ctx context.Context, api wire.API) (*http.Response, error) {
	t.Helper()
	path, body := requestOf(api, true)
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return s.client.Do(req)
}

// upstreamOf serves a handler as an upstream.
func upstreamOf(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// raw is an upstream that answers each connection's first request by hand.
func raw(t *testing.T, answer func(net.Conn, *http.Request)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				answer(conn, r)
			})
		}
	})
	return "http://" + l.Addr().String()
}

// answerOf is one whole stream of a dialect.
func answerOf(api wire.API, framing wire.Framing) []byte {
	w := wire.NewWriter(wire.For(api), "id-1", "model-x", wire.Usage{Input: wire.N(9)}, wire.WriterOptions{Framing: framing, Usage: true})
	b := w.Open(nil)
	for i := range 20 {
		b = w.Text(b, fmt.Sprintf("第%d块 🌊 \"text\"\n", i))
	}
	return w.Close(b, "stop", wire.Usage{Input: wire.N(9), Output: wire.N(40)})
}

func requestOf(api wire.API, stream bool) (path string, body []byte) {
	r := &wire.Request{Head: wire.Head{Model: "model-x", Stream: stream, MaxTokens: wire.N(40)},
		Messages: []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: "你好"}}}}}
	f := wire.For(api)
	body, err := f.AppendRequest(nil, r)
	if err != nil {
		panic(err)
	}
	return f.Path(r), body
}

func encode(coding string, plain []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	default:
		return plain
	}
	w.Write(plain)
	w.Close()
	return b.Bytes()
}

var apis = []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini}

func TestBytesInAreBytesOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, api := range apis {
		for _, stream := range []bool{true, false} {
			for _, coding := range []string{"", "gzip", "br", "zstd", "deflate"} {
				for _, transfer := range []string{"chunked", "length", "close"} {
					for _, split := range []int{1, 7, 0} {
						if split == 1 && transfer != "chunked" {
							continue // each write of a byte is slow, and says no more
						}
						name := fmt.Sprintf("%s stream=%v coding=%q %s split=%d", api, stream, coding, transfer, split)
						body := answerOf(api, wire.SSE)
						kind := "text/event-stream; charset=utf-8"
						if !stream {
							body = wire.For(api).AppendAnswer(nil, &wire.Answer{ID: "id-1", Model: "model-x", Finish: wire.FinishWord(api, "stop"),
								Parts: []wire.Part{{Kind: wire.KindText, Text: "堰"}}, Usage: wire.Usage{Input: wire.N(9), Output: wire.N(40)}})
							kind = "application/json"
						}
						checkBytes(t, name, rng, api, stream, kind, coding, transfer, split, body)
					}
				}
			}
		}
	}
}

func checkBytes(t *testing.T, name string, rng *rand.Rand, api wire.API, stream bool, kind, coding, transfer string, split int, plain []byte) {
	t.Helper()
	sent := encode(coding, plain)
	var gotBody []byte
	up := raw(t, func(conn net.Conn, r *http.Request) {
		head := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nRequest-Id: abc\r\n"
		if coding != "" {
			head += "Content-Encoding: " + coding + "\r\n"
		}
		switch transfer {
		case "chunked":
			head += "Transfer-Encoding: chunked\r\n\r\n"
		case "length":
			head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(sent))
		default:
			head += "Connection: close\r\n\r\n"
		}
		io.WriteString(conn, head)
		for rest := sent; len(rest) > 0; {
			n := split
			if n == 0 {
				n = 1 + rng.IntN(200)
			}
			n = min(n, len(rest))
			if transfer == "chunked" {
				fmt.Fprintf(conn, "%x\r\n%s\r\n", n, rest[:n])
			} else {
				conn.Write(rest[:n])
			}
			rest = rest[n:]
		}
		if transfer == "chunked" {
			io.WriteString(conn, "0\r\n\r\n")
		}
	})
	s := start(t, up, nil)
	path, body := requestOf(api, stream)
	resp, err := s.client.Post(s.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer resp.Body.Close()
	gotBody, err = io.ReadAll(resp.Body)
	if err != nil || sha256.Sum256(gotBody) != sha256.Sum256(sent) {
		t.Fatalf("%s: %d bytes in, %d bytes out, %v", name, len(sent), len(gotBody), err)
	}
	if resp.Header.Get("Content-Encoding") != coding || resp.Header.Get("Request-Id") != "abc" || resp.Header.Get("Content-Type") != kind {
		t.Fatalf("%s: headers changed: %v", name, resp.Header)
	}
	c := s.call(t, 1)
	if c.Outcome != call.OK || c.Usage.Output != wire.N(40) || c.ResponseBytes != int64(len(sent)) || c.Streamed != stream {
		t.Fatalf("%s: recorded %v, usage %+v, %d bytes, streamed %v", name, c, c.Usage, c.ResponseBytes, c.Streamed)
	}
	if stream != c.FirstToken.Reached() {
		t.Fatalf("%s: first token %v", name, c.FirstToken)
	}
}

func TestRequestBytesReachTheUpstreamAsTheyWere(t *testing.T) {
	for _, coding := range []string{"", "gzip", "zstd", "br", "deflate"} {
		var got, kind string
		var length int64
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got, kind, length = string(b), r.Header.Get("Content-Encoding"), r.ContentLength
		})
		s := start(t, up, nil)
		path, plain := requestOf(wire.Responses, true)
		body := encode(coding, plain)
		req, _ := http.NewRequest("POST", s.url+path, bytes.NewReader(body))
		if coding != "" {
			req.Header.Set("Content-Encoding", coding)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got != string(body) || kind != coding || length != int64(len(body)) {
			t.Errorf("%q: the upstream got %d bytes of %d, coding %q, length %d", coding, len(got), len(body), kind, length)
		}
		if c := s.call(t, 1); c.Request.Model != "model-x" || !c.Request.Stream || c.RequestBytes != int64(len(body)) {
			t.Errorf("%q: the request was read as %+v, %d bytes", coding, c.Request, c.RequestBytes)
		}
	}
}

func TestTagsAreReadAndTakenOff(t *testing.T) {
	var got *http.Request
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { got = r })
	for _, row := range []struct {
		name, path   string
		headers      map[string]string
		scenario     string
		from, arrive string
	}{
		{"header in another script → its letters", "/v1/messages", map[string]string{headerScenario: "短对话 Ü1"}, "短对话-ü1", "header", "/v1/messages"},
		{"path prefix in another script", "/s/%E7%9F%AD/v1/messages", nil, "短", "path", "/v1/messages"},
		{"too long → cut between letters", "/v1/messages", map[string]string{headerScenario: "a" + strings.Repeat("短", 30)}, "a" + strings.Repeat("短", 21), "header", "/v1/messages"},
		{"header → its scenario", "/v1/messages", map[string]string{headerScenario: "Refactor"}, "refactor", "header", "/v1/messages"},
		{"path prefix → its scenario", "/s/rag/v1/messages?beta=true&x=%20", nil, "rag", "path", "/v1/messages?beta=true&x=%20"},
		{"both → the header's", "/s/rag/v1/messages", map[string]string{headerScenario: "chat"}, "chat", "header", "/v1/messages"},
		{"characters that no id has → dashes", "/s/my%20task/v1/messages", nil, "my-task", "path", "/v1/messages"},
		{"neither → untagged", "/v1/messages", nil, "untagged", "default", "/v1/messages"},
	} {
		s := start(t, up, nil)
		req, _ := http.NewRequest("POST", s.url+row.path, strings.NewReader(`{"model":"m"}`))
		for k, v := range row.headers {
			req.Header.Set(k, v)
		}
		req.Header.Set(headerRun, "r1")
		req.Header.Set(headerSession, "s1")
		req.Header.Set(headerTurn, "3")
		req.Header.Add(headerLabel, "team=search")
		req.Header.Add(headerLabel, "baseline")
		req.Header.Set("X-Weir-Unknown", "x")
		req.Header.Set("Traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
		req.Header.Set("Tracestate", "a=b")
		req.Header.Set("Baggage", "a=b")
		req.Header.Set("Authorization", "Bearer sk-secret")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c := s.call(t, 1)
		if c.Scenario != row.scenario || c.ScenarioFrom != row.from {
			t.Errorf("%s: scenario %q from %q", row.name, c.Scenario, c.ScenarioFrom)
		}
		if c.Run != "r1" || c.Session != "s1" || c.Turn != 3 || c.Labels["team"] != "search" || len(c.Labels) != 2 {
			t.Errorf("%s: tags read as %+v", row.name, c)
		}
		if c.TraceID[0] != 1 || c.ParentSpan != [8]byte{1, 2, 3, 4, 5, 6, 7, 8} {
			t.Errorf("%s: the span is not in the caller's trace", row.name)
		}
		if got.RequestURI != row.arrive || got.Header.Get("Authorization") != "Bearer sk-secret" {
			t.Errorf("%s: upstream got %s, %v", row.name, got.RequestURI, got.Header)
		}
		for name := range got.Header {
			if strings.HasPrefix(name, "X-Weir") || name == "Traceparent" || name == "Tracestate" || name == "Baggage" || name == "X-Forwarded-For" {
				t.Errorf("%s: %s reached the upstream", row.name, name)
			}
		}
	}
}

func TestPathsAreJoinedOnce(t *testing.T) {
	for _, row := range []struct{ base, path, want string }{
		{"", "/v1/messages", "/v1/messages"},
		{"/api", "/v1/messages", "/api/v1/messages"},
		{"/api/", "/v1/messages", "/api/v1/messages"},
		{"/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1", "/chat/completions", "/v1/chat/completions"},
		{"", "/chat/completions", "/v1/chat/completions"},
		{"", "/v1/v1/messages", "/v1/messages"},
		{"", "/messages", "/v1/messages"},
		{"", "/responses", "/v1/responses"},
		{"/api/paas/v4", "/v1/chat/completions", "/api/paas/v4/chat/completions"},
		{"", "//v1/messages", "/v1/messages"},
		{"", "/v1beta/models/g:streamGenerateContent", "/v1beta/models/g:streamGenerateContent"},
		{"/api", "/unknown/v1/v1", "/api/unknown/v1/v1"},
		{"", "/openai/deployments/d/chat/completions", "/openai/deployments/d/chat/completions"},
		{"", "/a%2Fb/c%20d", "/a%2Fb/c%20d"},
		{"/v1", "/v1/files/f1", "/v1/files/f1"},
		{"/v1", "/v1/responses/r1", "/v1/responses/r1"},
		{"/v1", "/files/f1", "/v1/files/f1"},
		{"/v4", "/v1/files", "/v4/v1/files"},
		{"", "/v1/v1/files", "/v1/v1/files"},
		{"/gw/v1", "/v1beta/models/g:generateContent", "/gw/v1beta/models/g:generateContent"},
		{"/v1beta", "/v1beta/models/g:generateContent", "/v1beta/models/g:generateContent"},
		{"/v1", "/v1beta/models/g:generateContent", "/v1beta/models/g:generateContent"},
		{"/api/", "/", "/api/"},
	} {
		u := &Upstream{URL: &url.URL{Scheme: "http", Host: "h", Path: row.base}}
		plain, _ := url.PathUnescape(row.path)
		if got, _ := u.target(row.path, wire.Find("POST", plain)); got != row.want {
			t.Errorf("%q + %q = %q, want %q", row.base, row.path, got, row.want)
		}
	}
}

func TestUpstreamIsChosenByPrefixThenModel(t *testing.T) {
	all := []*Upstream{
		{Name: "first"}, {Name: "claude", Models: []string{"claude-*"}}, {Name: "local", Prefix: "/local"}, {Name: "gpt", Models: []string{"gpt-*", "o?"}},
	}
	for _, row := range []struct{ path, model, want, rest string }{
		{"/v1/messages", "claude-5", "claude", "/v1/messages"},
		{"/local/v1/messages", "claude-5", "local", "/v1/messages"},
		{"/localx/v1/messages", "x", "first", "/localx/v1/messages"},
		{"/v1/chat/completions", "o3", "gpt", "/v1/chat/completions"},
		{"/v1/chat/completions", "llama", "first", "/v1/chat/completions"},
	} {
		if u, rest := choose(all, row.path, row.model); u.Name != row.want || rest != row.rest {
			t.Errorf("%s for %s goes to %s%s, want %s%s", row.path, row.model, u.Name, rest, row.want, row.rest)
		}
	}
}

// Some gateways want the key in the path: it goes there, and nowhere else.
func TestKeyInThePathIsNotRecorded(t *testing.T) {
	var arrived string
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { arrived = r.URL.Path }), nil)
	const path = "/gate/sk-abcdefgh12345678/v1/chat/completions"
	resp, err := s.client.Post(s.url+path, "application/json", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := s.call(t, 1); strings.Contains(c.Path, "abcdefgh") || !strings.HasSuffix(c.Path, "/v1/chat/completions") || arrived != path {
		t.Errorf("recorded %q, sent on to %q", c.Path, arrived)
	}
}
