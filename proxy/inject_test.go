package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/store/call"
)

// bodies are the requests that an upstream got.
type bodies struct {
	mu  sync.Mutex
	all []string
}

func (b *bodies) take(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if r.ContentLength >= 0 && r.ContentLength != int64(len(body)) {
		t.Errorf("a length of %d is stated for %d bytes", r.ContentLength, len(body))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, string(body))
	return string(body)
}

// taken are the requests since it was asked last.
func (b *bodies) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.all
	b.all = nil
	return all
}

// injecting is a sidecar that asks for usage.
func injecting(t *testing.T, upstream string) *sidecar {
	return start(t, upstream, func(p *Proxy) { p.InjectUsage = true })
}

// say sends a body to an API and gives the answer.
func (s *sidecar) say(t *testing.T, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

const (
	chatPath  = "/v1/chat/completions"
	plainChat = `{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}`
	askedChat = `{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}],"stream_options":{"include_usage":true}}`
)

// simulated serves a simulated endpoint behind what looks at its requests.
func simulatedEndpoint(t *testing.T, c sim.Config, got *bodies) string {
	t.Helper()
	s, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := got.take(t, r)
		r.Body = io.NopCloser(strings.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		s.Close()
	})
	return server.URL
}

// The client sees what it sees without weir, byte for byte, and weir knows the
// usage where the endpoint tells it.
func TestInjectedUsageIsMeasuredAndNotSeen(t *testing.T) {
	for _, row := range []struct {
		name   string
		path   string
		body   string
		config sim.Config
		asked  bool
		source call.UsageSource
	}{
		{"chat", chatPath, plainChat, sim.Config{}, true, call.UsageInjected},
		{"chat, in small pieces", chatPath, plainChat, sim.Config{WriteSplit: 7}, true, call.UsageInjected},
		{"completions", "/v1/completions", `{"model":"m","stream":true,"prompt":"a"}`, sim.Config{WriteSplit: 50}, true, call.UsageInjected},
		{"another stream option", chatPath, `{"stream_options":{"a":1},` + plainChat[1:], sim.Config{}, true, call.UsageInjected},
		{"an endpoint that never tells", chatPath, plainChat, sim.Config{NoUsage: true}, true, call.UsageMissing},
		{"not wanted", chatPath, `{"stream_options":{"include_usage":false},` + plainChat[1:], sim.Config{}, false, call.UsageMissing},
		{"asked for by the client", chatPath, askedChat, sim.Config{}, false, call.UsageReported},
		{"not streamed", chatPath, `{"model":"m","messages":[{"role":"user","content":"a"}]}`, sim.Config{}, false, call.UsageReported},
		{"Responses", "/v1/responses", `{"model":"m","stream":true,"input":"a"}`, sim.Config{}, false, call.UsageReported},
		{"Anthropic", "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, sim.Config{}, false, call.UsageReported},
		{"an error inside the stream", chatPath, plainChat, sim.Config{Faults: []sim.Fault{{Kind: "error", Share: 1}}}, true, call.UsageMissing},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.config.Seed = 7 // two endpoints of one seed say the same
			var direct, through bodies
			plain := start(t, simulatedEndpoint(t, row.config, &direct), nil)
			s := injecting(t, simulatedEndpoint(t, row.config, &through))
			_, want := plain.say(t, row.path, row.body)
			_, got := s.say(t, row.path, row.body)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the client sees something else:\n%s", diff)
			}
			sent := through.taken()
			if asked := strings.Contains(strings.Join(sent, ""), `"include_usage":true`) && row.body != askedChat; len(sent) != 1 || asked != row.asked || !asked && sent[0] != row.body {
				t.Errorf("sent: %q", sent)
			}
			if bodies := direct.taken(); !slices.Equal(bodies, []string{row.body}) {
				t.Errorf("without being told, weir sent %q", bodies)
			}
			c := s.call(t, 1)
			if c.UsageSource != row.source || c.Usage.Output.Known != (row.source != call.UsageMissing) || c.RequestBytes != int64(len(row.body)) || c.Attempts != 1 {
				t.Errorf("usage is %s: %+v; %d bytes in %d attempts", c.UsageSource, c.Usage, c.RequestBytes, c.Attempts)
			}
		})
	}
}

// The upstream waits with each event until the client has the one before.
func TestTokensAreNotHeldUpByTheRemoval(t *testing.T) {
	more := make(chan bool)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":"stop"}],"usage":null}`+"\n\n", i)
			w.(http.Flusher).Flush()
			<-more // goes on when the client has this one
		}
		io.WriteString(w, `data: {"choices":[],"us`)
		w.(http.Flusher).Flush()
		io.WriteString(w, `age":{"prompt_tokens":1,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
	})
	s := injecting(t, up)
	resp, err := s.client.Post(s.url+chatPath, "application/json", strings.NewReader(plainChat))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 5 {
		want := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":"stop"}]}`+"\n\n", i)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		more <- true
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "data: [DONE]\n\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	if c := s.call(t, 1); c.Usage.Output != wire.N(5) || c.UsageSource != call.UsageInjected || c.TokenEvents != 5 {
		t.Errorf("call %+v", c)
	}
}

const usageRefusal = `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`

// refusing is an upstream that refuses what it does not know.
func refusing(t *testing.T, status int, said string, got *bodies) string {
	return upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if body := got.take(t, r); strings.Contains(body, "stream_options") && !strings.Contains(body, `"knows"`) {
			w.WriteHeader(status)
			io.WriteString(w, said)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(answerOf(wire.Chat, wire.SSE))
	})
}

func TestEndpointThatRefusesTheQuestionGetsTheClientsOwnRequest(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		var got bodies
		s := injecting(t, refusing(t, status, usageRefusal, &got))
		for n, want := range [][]string{{askedChat, plainChat}, {plainChat}} {
			if resp, body := s.say(t, chatPath, plainChat); resp.StatusCode != http.StatusOK || body != string(answerOf(wire.Chat, wire.SSE)) {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
			if diff := cmp.Diff(want, got.taken()); diff != "" {
				t.Errorf("request %d:\n%s", n, diff)
			}
			c := s.call(t, n+1)
			if c.Attempts != len(want) || c.Status != http.StatusOK || c.Outcome != call.OK || c.UsageSource == call.UsageInjected {
				t.Errorf("request %d: %s after %d attempts, usage %s", n, c.Outcome, c.Attempts, c.UsageSource)
			}
		}
		s.say(t, chatPath, strings.Replace(plainChat, `"m"`, `"knows"`, 1))
		if sent := got.taken(); len(sent) != 1 || !strings.Contains(sent[0], "include_usage") {
			t.Errorf("another model at the upstream got %q", sent)
		}
	}
}

func TestOtherRefusalsPass(t *testing.T) {
	var got bodies
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		body := got.take(t, r)
		w.Header().Set("X-Said", "400")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "no %s %s", strings.Repeat("x", 2*longestRefusal), body[:strings.IndexByte(body, ',')])
	})
	s := injecting(t, up)
	if resp, body := s.say(t, chatPath, plainChat); resp.StatusCode != http.StatusBadRequest || resp.Header.Get("X-Said") != "400" || len(body) < 2*longestRefusal || !strings.HasSuffix(body, `"m"`) {
		t.Errorf("status %d, %d bytes", resp.StatusCode, len(body))
	}
	if sent := got.taken(); len(sent) != 1 {
		t.Errorf("it was sent %d times", len(sent))
	}
}

// Where the request is refused without the question too, that was not why.
func TestEndpointThatRefusesTheRequestAnywayIsAskedAgain(t *testing.T) {
	var got bodies
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "cannot read the prompt, which says stream_options: %s", got.take(t, r))
	})
	s := injecting(t, up)
	for range 2 {
		if resp, body := s.say(t, chatPath, plainChat); resp.StatusCode != http.StatusBadRequest || !strings.HasSuffix(body, plainChat) {
			t.Errorf("status %d: %s", resp.StatusCode, body)
		}
		if diff := cmp.Diff([]string{askedChat, plainChat}, got.taken()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCompressedAnswersPassAsTheyAre(t *testing.T) {
	sent := encode("gzip", answerOf(wire.Chat, wire.SSE))
	var got bodies
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		got.take(t, r)
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(sent)
			return
		}
		w.Write(answerOf(wire.Chat, wire.SSE))
	})
	s := injecting(t, up)
	for n, row := range []struct {
		accept string
		sent   string
	}{{"gzip, br", askedChat}, {"gzip, br", plainChat}, {"identity", askedChat}, {"gzip", plainChat}} {
		resp, body := s.say(t, chatPath, plainChat, "Accept-Encoding", row.accept)
		if compressed := row.accept != "identity"; (resp.Header.Get("Content-Encoding") == "gzip") != compressed || compressed != (body == string(sent)) {
			t.Errorf("request %d: Content-Encoding %q, %d bytes", n, resp.Header.Get("Content-Encoding"), len(body))
		}
		if diff := cmp.Diff([]string{row.sent}, got.taken()); diff != "" {
			t.Errorf("request %d, which accepts %s:\n%s", n, row.accept, diff)
		}
		if row.accept == "identity" && strings.Contains(body, `"usage"`) {
			t.Errorf("request %d: %s", n, body)
		}
	}
	if c := s.call(t, 4); c.Usage.Output.N != 40 {
		t.Errorf("call %+v", c)
	}
	if c := s.call(t, 1); c.UsageSource != call.UsageInjected && c.UsageSource != call.UsageSuspicious {
		t.Errorf("usage is %s", c.UsageSource)
	}
}

func TestBodiesThatMustNotBeChangedAreNot(t *testing.T) {
	for _, row := range []struct {
		name string
		body string
		head []string
	}{
		{"zstd", string(encode("zstd", []byte(plainChat))), []string{"Content-Encoding", "zstd"}},
		{"gzip", string(encode("gzip", []byte(plainChat))), []string{"Content-Encoding", "gzip"}},
		{"a digest", plainChat, []string{"Content-Digest", "sha-256=:x:"}},
		{"signed", plainChat, []string{"Authorization", "AWS4-HMAC-SHA256 Credential=x"}},
		{"no JSON", plainChat + "}", nil},
		{"a long name", strings.Replace(plainChat, `"m"`, `"`+strings.Repeat("m", longestModel+1)+`"`, 1), nil},
		{"much", plainChat[:len(plainChat)-1] + strings.Repeat(" ", inspectedBody) + "}", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got bodies
			s := injecting(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				got.take(t, r)
				w.Header().Set("Content-Type", "text/event-stream")
				w.Write(answerOf(wire.Chat, wire.SSE))
			}))
			_, body := s.say(t, chatPath, row.body, row.head...)
			if sent := got.taken(); len(sent) != 1 || sent[0] != row.body {
				t.Error("the upstream got something else")
			}
			if body != string(answerOf(wire.Chat, wire.SSE)) {
				t.Error("the answer was changed")
			}
		})
	}
}

func TestChunkedRequestStaysChunked(t *testing.T) {
	var got bodies
	s := injecting(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != -1 {
			t.Errorf("a length of %d is stated", r.ContentLength)
		}
		got.take(t, r)
	}))
	resp, err := s.client.Post(s.url+chatPath, "application/json", io.MultiReader(strings.NewReader(plainChat)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sent := got.taken(); len(sent) != 1 || sent[0] != askedChat {
		t.Errorf("the upstream got %q", sent)
	}
}

// A stated length holds for what the upstream sent.
func TestLengthAndTrailersOfAShortenedAnswer(t *testing.T) {
	stream := answerOf(wire.Chat, wire.SSE)
	s := injecting(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", fmt.Sprint(len(stream)))
		w.Write(stream)
	}))
	resp, body := s.say(t, chatPath, plainChat)
	if resp.ContentLength != -1 || len(body) >= len(stream) || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Contains(body, "usage") {
		t.Errorf("a length of %d, and %q", resp.ContentLength, body)
	}
	if c := s.call(t, 1); c.ResponseBytes != int64(len(stream)) {
		t.Errorf("%d bytes came from the upstream, and %d are recorded", len(stream), c.ResponseBytes)
	}
}

func TestBrokenStreamGivesWhatCameAndBreaks(t *testing.T) {
	const came = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\nid: 1\ndata: {\"choices\":[],\"usa"
	s := injecting(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, came)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	resp, err := s.client.Post(s.url+chatPath, "application/json", strings.NewReader(plainChat))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil || !bytes.Equal(body, []byte(came)) {
		t.Errorf("%v after %q", err, body)
	}
	if c := s.call(t, 1); c.Outcome != call.Truncated {
		t.Errorf("outcome %s", c.Outcome)
	}
}

// The frames of HTTP/2 must not end with a read of which nothing passes.
func TestUsageIsTakenOutOverHTTP2(t *testing.T) {
	s := injecting(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range bytes.SplitAfter(answerOf(wire.Chat, wire.SSE), []byte("\n\n")) {
			w.Write(event)
			w.(http.Flusher).Flush()
		}
	}))
	var h2 http.Protocols
	h2.SetUnencryptedHTTP2(true)
	s.client.Transport = &http.Transport{Protocols: &h2, DisableCompression: true}
	resp, body := s.say(t, chatPath, plainChat)
	if resp.ProtoMajor != 2 || strings.Contains(body, "usage") || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Count(body, "\n\n") < 20 {
		t.Errorf("%s: %q", resp.Proto, body)
	}
}

// What a forward proxy does not measure is none of weir's to change.
func TestHostsThatAreNotMeasuredAreNotAsked(t *testing.T) {
	var got bodies
	answer := func(w http.ResponseWriter, r *http.Request) {
		got.take(t, r)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(answerOf(wire.Chat, wire.SSE))
	}
	elsewhere := upstreamOf(t, answer)
	f := startForwarding(t, upstreamOf(t, answer), func(p *Proxy) { p.InjectUsage = true })
	for _, row := range []struct{ base, sent string }{{elsewhere, plainChat}, {"http://api.provider.test", askedChat}} {
		resp, err := f.client.Post(row.base+chatPath, "application/json", strings.NewReader(plainChat))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if sent := got.taken(); len(sent) != 1 || sent[0] != row.sent || strings.Contains(string(body), "usage") != (row.sent == plainChat) {
			t.Errorf("%s got %q, and answered %q", row.base, sent, body)
		}
	}
}

func TestWhatIsRememberedOfEndpointsHasLimits(t *testing.T) {
	var a asking
	for i := range endpointsKnown + 10 {
		a.learn(endpoint{model: fmt.Sprint(i)}, refusesUsage)
	}
	a.learn(endpoint{model: "0"}, compressesUsage)
	if first, last := a.of(endpoint{model: "0"}), a.of(endpoint{model: fmt.Sprint(endpointsKnown)}); len(a.found) != endpointsKnown || first != refusesUsage|compressesUsage || last != 0 {
		t.Errorf("%d are remembered, of the first %d and of the last %d", len(a.found), first, last)
	}
}
