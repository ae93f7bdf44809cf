package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/proxy/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is an engine that takes no time worth waiting for.
var quick = EngineConfig{Slots: 64, Step: 200 * time.Microsecond, PerToken: 0, Chunk: 100_000, TokensPerStep: 2, KVTokens: 1 << 30, CacheTokens: 1 << 20}

type endpoint struct {
	*httptest.Server
	mu      sync.Mutex
	records []*Record
}

func serve(t *testing.T, c Config) *endpoint {
	t.Helper()
	e := &endpoint{}
	if c.Engine == (EngineConfig{}) {
		c.Engine = quick
	}
	c.Log = func(r *Record) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.records = append(e.records, r)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		e.Server.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return e
}

func (e *endpoint) record(t *testing.T) *Record {
	t.Helper()
	for range 200 {
		e.mu.Lock()
		n := len(e.records)
		e.mu.Unlock()
		if n > 0 {
			return e.records[n-1]
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no record came")
	return nil
}

func request(api wire.API, stream bool) *wire.Request {
	yes := true
	r := &wire.Request{
		Head:     wire.Head{Model: "m", Stream: stream, MaxTokens: wire.N(21)},
		System:   "Be brief.",
		Messages: []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: "什么是堰?"}}}},
	}
	if stream && (api == wire.Chat || api == wire.Completions) {
		r.IncludeUsage = &yes
	}
	return r
}

func post(t *testing.T, e *endpoint, api wire.API, r *wire.Request) (*http.Response, []byte, error) {
	t.Helper()
	f := wire.For(api)
	body, err := f.AppendRequest(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(e.URL+f.Path(r), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, b, err
}

// heard is what a client makes of a stream.
type heard struct {
	text, reasoning, tool, finish string
	usage                         wire.Usage
	tokens                        int
	terminal                      bool
	failure                       *wire.Error
}

func listen(t *testing.T, api wire.API, contentType string, body []byte) heard {
	t.Helper()
	var h heard
	var ev wire.Event
	split := wire.NewSplitter(wire.FramingOf(contentType, true), 0)
	take := func(f wire.Frame) {
		if err := wire.For(api).ParseEvent(&ev, f); err != nil {
			t.Errorf("%s: %q: %v", api, f.Data, err)
		}
		h.text += string(ev.Text)
		h.reasoning += string(ev.Reasoning)
		for _, d := range ev.Tools {
			h.tool += string(d.Name) + string(d.Arguments)
		}
		if len(ev.Finish) > 0 {
			h.finish = string(ev.Finish)
		}
		h.usage.Merge(ev.Usage)
		if ev.Output() != 0 {
			h.tokens++
		}
		h.terminal = h.terminal || ev.Terminal
		if ev.Err != nil {
			h.failure = ev.Err
		}
	}
	split.Feed(body, take)
	split.Close(take)
	return h
}

var apis = []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini}

func TestEveryDialectStreamsWhatTheRecordSays(t *testing.T) {
	for _, api := range apis {
		e := serve(t, Config{})
		resp, body, err := post(t, e, api, request(api, true))
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, status %d: %s", api, err, resp.StatusCode, body)
		}
		h := listen(t, api, resp.Header.Get("Content-Type"), body)
		rec := e.record(t)
		if !h.terminal || h.finish != wire.FinishWord(api, "length") || h.text == "" {
			t.Errorf("%s: heard %+v", api, h)
		}
		if h.usage.Output != wire.N(21) || h.usage.Input != rec.Usage.Input || h.usage.Input.N < 10 {
			t.Errorf("%s: usage %+v, the record says %+v", api, h.usage, rec.Usage)
		}
		if h.tokens != 11 { // 10 steps of 2 tokens and one of 1
			t.Errorf("%s: %d token events, want 11", api, h.tokens)
		}
		first, ok := rec.FirstToken()
		last, _ := rec.LastToken()
		if !ok || first.Before.Before(rec.Admitted) || last.After.After(rec.Done) || rec.Body.Before(rec.Accepted) {
			t.Errorf("%s: the record's instants are out of order: %+v", api, rec)
		}
	}
}

func TestEveryDialectAnswersWhole(t *testing.T) {
	for _, api := range apis {
		e := serve(t, Config{})
		resp, body, err := post(t, e, api, request(api, false))
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, status %d: %s", api, err, resp.StatusCode, body)
		}
		var a wire.Answer
		if err := wire.For(api).ParseAnswer(&a, body); err != nil || a.Malformed || len(a.Parts) != 1 || a.Parts[0].Text == "" {
			t.Errorf("%s: %v: %+v from %s", api, err, a, body)
		}
		if rec := e.record(t); a.Usage.Output != wire.N(21) || a.Usage.Input != rec.Usage.Input {
			t.Errorf("%s: usage %+v", api, a.Usage)
		}
	}
}

func TestGeminiWithoutSSEIsAnArray(t *testing.T) {
	e := serve(t, Config{})
	r := request(wire.Gemini, true)
	body, _ := wire.For(wire.Gemini).AppendRequest(nil, r)
	resp, err := http.Post(e.URL+"/v1beta/models/m:streamGenerateContent", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var chunks []any
	if err := json.Unmarshal(b, &chunks); err != nil || len(chunks) < 11 {
		t.Fatalf("%d chunks, %v: %s", len(chunks), err, b)
	}
	if h := listen(t, wire.Gemini, resp.Header.Get("Content-Type"), b); !h.terminal || h.usage.Output != wire.N(21) {
		t.Errorf("heard %+v", h)
	}
}

func TestReasoningAndToolsTakeTheirShare(t *testing.T) {
	for _, api := range []wire.API{wire.Chat, wire.Responses, wire.Messages, wire.Gemini} {
		e := serve(t, Config{Reasoning: 0.25, ToolShare: 1})
		r := request(api, true)
		r.MaxTokens = wire.N(80)
		r.Tools = []wire.Tool{{Name: "grep", Description: "finds", Parameters: json.RawMessage(`{"type":"object"}`)}}
		resp, body, err := post(t, e, api, r)
		if err != nil {
			t.Fatal(err)
		}
		h := listen(t, api, resp.Header.Get("Content-Type"), body)
		arguments, ok := strings.CutPrefix(h.tool, "grep")
		if h.reasoning == "" || !ok || !json.Valid([]byte(arguments)) || h.finish != wire.FinishWord(api, "tool") {
			t.Errorf("%s: heard %+v", api, h)
		}
		if api != wire.Messages && h.usage.Reasoning != wire.N(20) || h.usage.Output != wire.N(80) {
			t.Errorf("%s: usage %+v", api, h.usage)
		}
	}
}

func TestFaultsDoWhatTheySay(t *testing.T) {
	for _, row := range []struct {
		fault  string
		status int
		check  func(t *testing.T, resp *http.Response, h heard, err error)
	}{
		{"429:100%:7s", 429, func(t *testing.T, resp *http.Response, _ heard, _ error) {
			if resp.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
			}
		}},
		{"500:100%", 500, nil},
		{"529:100%", 529, nil},
		{"error:100%", 200, func(t *testing.T, _ *http.Response, h heard, _ error) {
			if h.failure == nil || h.terminal || h.text == "" {
				t.Errorf("heard %+v, want text and then an error", h)
			}
		}},
		{"cut:100%", 200, func(t *testing.T, _ *http.Response, h heard, err error) {
			if err == nil || h.terminal || h.text == "" {
				t.Errorf("heard %+v, error %v: want a broken body", h, err)
			}
		}},
		{"end:100%", 200, func(t *testing.T, _ *http.Response, h heard, err error) {
			if err != nil || h.terminal || h.text == "" {
				t.Errorf("heard %+v, error %v: want a clean end without the last events", h, err)
			}
		}},
	} {
		for _, api := range apis {
			t.Run(fmt.Sprint(row.fault, " ", api), func(t *testing.T) {
				faults, err := ParseFaults(row.fault)
				if err != nil {
					t.Fatal(err)
				}
				e := serve(t, Config{Faults: faults})
				resp, body, err := post(t, e, api, request(api, true))
				if resp.StatusCode != row.status {
					t.Fatalf("status %d", resp.StatusCode)
				}
				if row.status >= 400 {
					if told, ok := wire.For(api).ParseError(body); !ok || told.Message == "" {
						t.Errorf("the error is not of the dialect: %s", body)
					}
				}
				if row.check != nil {
					row.check(t, resp, listen(t, api, resp.Header.Get("Content-Type"), body), err)
				}
				if rec := e.record(t); rec.Fault != faults[0].Kind {
					t.Errorf("recorded fault %q", rec.Fault)
				}
			})
		}
	}
}

func TestFaultTextErrors(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"lag:1%", "unknown kind"}, {"429", "want KIND:SHARE"}, {"429:x%", "share"}, {"429:101%", "0% to 100%"},
		{"stall:1%:soon", "time"}, {"500:1%:3s", "takes no time"}, {"429:NaN", "0% to 100%"}, {"429:60%,500:50%", "sum to 110%"},
	} {
		if _, err := ParseFaults(row.text); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want …%s…", row.text, err, row.want)
		}
	}
}

func TestUsageIsToldOnlyWhereItWouldBe(t *testing.T) {
	e := serve(t, Config{})
	r := request(wire.Chat, true)
	r.IncludeUsage = nil
	resp, body, _ := post(t, e, wire.Chat, r)
	if h := listen(t, wire.Chat, resp.Header.Get("Content-Type"), body); h.usage.Known() {
		t.Errorf("chat told usage that nobody asked for: %+v", h.usage)
	}
	e = serve(t, Config{NoUsage: true})
	resp, body, _ = post(t, e, wire.Messages, request(wire.Messages, true))
	if h := listen(t, wire.Messages, resp.Header.Get("Content-Type"), body); h.usage.Known() {
		t.Errorf("usage was told although it is off: %+v", h.usage)
	}
}

func TestEqualSeedsGiveEqualAnswers(t *testing.T) {
	say := func(seed uint64) string {
		e := serve(t, Config{Seed: seed})
		resp, body, _ := post(t, e, wire.Chat, request(wire.Chat, true))
		return listen(t, wire.Chat, resp.Header.Get("Content-Type"), body).text
	}
	if a, b := say(1), say(1); a != b {
		t.Errorf("seed 1 said %q, then %q", a, b)
	}
	if say(1) == say(2) {
		t.Error("seeds 1 and 2 said the same")
	}
}

func TestOperationsBesideGeneration(t *testing.T) {
	e := serve(t, Config{Models: []string{"m"}, Key: "k"})
	for _, row := range []struct {
		name, method, path, key, body string
		status                        int
		want                          string
	}{
		{"models", "GET", "/v1/models", "k", "", 200, `"id":"m"`},
		{"count_tokens", "POST", "/v1/messages/count_tokens", "k", `{"model":"m","messages":[{"role":"user","content":"hello there"}]}`, 200, `"input_tokens":9`},
		{"models of Anthropic", "GET", "/v1/models?anthropic", "k", "", 200, `"display_name":"m"`},
		{"models of Gemini", "GET", "/v1beta/models", "k", "", 200, `"name":"models/m"`},
		{"one model", "GET", "/v1/models/m", "k", "", 200, `{"created":1767225600,"id":"m"`},
		{"one model that does not exist", "GET", "/v1/models/x", "k", "", 404, "model_not_found"},
		{"count_tokens of Responses", "POST", "/v1/responses/input_tokens", "k", `{"model":"m","input":"hello there"}`, 200, `"input_tokens":9`},
		{"count_tokens of Gemini", "POST", "/v1beta/models/m:countTokens", "k", `{"contents":[{"role":"user","parts":[{"text":"hello there"}]}]}`, 200, `{"totalTokens":9}`},
		{"embeddings", "POST", "/v1/embeddings", "k", `{"model":"m","input":"hello"}`, 200, `"usage":{"prompt_tokens":1,"total_tokens":1}`},
		{"embeddings of two texts", "POST", "/v1/embeddings", "k", `{"model":"m","input":["hello","hello there"]}`, 200, `"prompt_tokens":3`},
		{"embeddings of Gemini", "POST", "/v1beta/models/m:embedContent", "k", `{"content":{"parts":[{"text":"hello"}]}}`, 200, `{"embedding":{"values":[`},
		{"embeddings of nothing", "POST", "/v1/embeddings", "k", `{"model":"m"}`, 400, "want a text"},
		{"somebody there", "HEAD", "/", "k", "", 200, ""},
		{"no key", "GET", "/v1/models", "", "", 401, "invalid_api_key"},
		{"unknown model", "POST", "/v1/chat/completions", "k", `{"model":"x","messages":[]}`, 404, "model_not_found"},
		{"unknown path", "GET", "/v2/things", "k", "", 404, "is not an API"},
		{"no JSON", "POST", "/v1/chat/completions", "k", `{"model"`, 400, "not JSON"},
	} {
		req, _ := http.NewRequest(row.method, e.URL+row.path, strings.NewReader(row.body))
		req.Header.Set("Authorization", "Bearer "+row.key)
		if strings.HasSuffix(row.path, "?anthropic") {
			req.Header.Set("Anthropic-Version", "2023-06-01")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != row.status || !strings.Contains(string(b), row.want) {
			t.Errorf("%s: status %d, %s; want %d and %s", row.name, resp.StatusCode, b, row.status, row.want)
		}
	}
}

func TestLeavingClientIsNoticedAndItsPlaceFreed(t *testing.T) {
	slow := quick
	slow.Slots, slow.Step = 1, 20*time.Millisecond
	e := serve(t, Config{Engine: slow})
	r := request(wire.Chat, true)
	r.MaxTokens = wire.N(100_000)
	body, _ := wire.For(wire.Chat).AppendRequest(nil, r)
	resp, err := http.Post(e.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 400)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if rec := e.record(t); rec.Cancelled.IsZero() {
		t.Error("the record does not say that the client left")
	}
	if _, _, err := post(t, e, wire.Chat, request(wire.Chat, true)); err != nil {
		t.Errorf("the only slot was not freed: %v", err)
	}
}

func TestCompressedAndSplitStreamsSayTheSame(t *testing.T) {
	plain := serve(t, Config{Seed: 3})
	split := serve(t, Config{Seed: 3, Compress: true, WriteSplit: 5, HoldHead: true})
	say := func(e *endpoint) string {
		resp, body, err := post(t, e, wire.Messages, request(wire.Messages, true)) // the client decodes gzip itself
		if err != nil {
			t.Fatal(err)
		}
		return listen(t, wire.Messages, resp.Header.Get("Content-Type"), body).text
	}
	if a, b := say(plain), say(split); a != b || a == "" {
		t.Errorf("said %q and %q", a, b)
	}
}
