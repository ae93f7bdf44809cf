package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/shaper"
)

// impairedSim is a sidecar that impairs the calls to a simulated endpoint, and
// how many requests came through to it.
func impairedSim(t *testing.T, c sim.Config, impair string) (*sidecar, *atomic.Int64) {
	t.Helper()
	url, asked := countedSim(t, c)
	return start(t, url, func(p *Proxy) { p.Impair = impairer(t, impair) }), asked
}

// countedSim serves a simulated endpoint and counts what it is asked.
func countedSim(t *testing.T, c sim.Config) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	c.Engine = sim.EngineConfig{Slots: 64, Step: 200 * time.Microsecond, Chunk: 100_000, TokensPerStep: 4, KVTokens: 1 << 30}
	endpoint, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		endpoint.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); endpoint.Close() })
	return server.URL, asked
}

// dialects are all in which an answer comes, with the query that asks for it.
var dialects = []struct {
	name  string
	api   wire.API
	whole bool // not streamed
	array bool
}{
	{"chat", wire.Chat, false, false}, {"completions", wire.Completions, false, false}, {"responses", wire.Responses, false, false},
	{"messages", wire.Messages, false, false}, {"gemini", wire.Gemini, false, false}, {"gemini's array", wire.Gemini, false, true},
	{"chat, whole", wire.Chat, true, false}, {"completions, whole", wire.Completions, true, false}, {"responses, whole", wire.Responses, true, false},
	{"messages, whole", wire.Messages, true, false}, {"gemini, whole", wire.Gemini, true, false},
}

// answered is what a client got.
type answered struct {
	head *http.Response
	body string
	err  error
	text string // of the answer, as far as it came
	outs int    // events with output
	last wire.Event
	use  wire.Usage
	bad  *wire.Error
}

// askSim sends one request and reads its answer as a client of the dialect does.
func askSim(t *testing.T, s *sidecar, api wire.API, whole, array bool) answered {
	t.Helper()
	yes := true
	r := &wire.Request{Head: wire.Head{Model: "m", Stream: !whole, MaxTokens: wire.N(32)},
		Messages: []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: "什么是堰?"}}}}}
	if !whole && (api == wire.Chat || api == wire.Completions) {
		r.IncludeUsage = &yes
	}
	f := wire.For(api)
	body, err := f.AppendRequest(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	path := f.Path(r)
	if array {
		path = strings.TrimSuffix(path, "?alt=sse")
	}
	req, err := http.NewRequest("POST", s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Weir-Scenario", "agent")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.client.Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer resp.Body.Close()
	got := answered{head: resp}
	b, err := io.ReadAll(resp.Body)
	got.body, got.err = string(b), err
	framing := wire.Whole
	if !whole {
		framing = wire.SSE
	}
	if array {
		framing = wire.JSONArray
	}
	if e, ok := f.ParseError(b); ok {
		got.bad = &e
		return got
	}
	split := wire.NewSplitter(framing, 0)
	take := func(fr wire.Frame) {
		if framing == wire.Whole {
			var a wire.Answer
			if f.ParseAnswer(&a, fr.Data) == nil {
				got.use = a.Usage
				for _, p := range a.Parts {
					got.text += p.Text
				}
			}
			return
		}
		var ev wire.Event
		if err := f.ParseEvent(&ev, fr); err != nil {
			t.Errorf("%s: %q: %v", api, fr.Data, err)
			return
		}
		got.text += string(ev.Text)
		if ev.Output() != 0 {
			got.outs++
		}
		got.use.Merge(ev.Usage)
		if ev.Err != nil {
			got.bad = ev.Err
		}
		got.last = ev
	}
	split.Feed(b, take)
	if err == nil {
		split.Close(take)
	}
	return got
}

func h2c(s *sidecar) {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	s.client.Transport = &http.Transport{Protocols: &p}
}

func impairer(t *testing.T, text string) *shaper.Impairer {
	t.Helper()
	list, err := shaper.ParseImpairments(text)
	if err != nil {
		t.Fatal(err)
	}
	return shaper.NewImpairer(list, 1)
}

func TestTheClientIsToldOnlyWhatCanStillBefallItsCall(t *testing.T) {
	const all = "error@2, pace=100, coalesce=3, pings=5, cut@1000, bandwidth=1000000, no_usage"
	for _, row := range []struct {
		sentence string
		config   sim.Config
		stream   bool
		want     []string
	}{
		{"a stream → all, though it may be too short for some", sim.Config{}, true, strings.Split(all, ", ")},
		{"a document → what no events are needed for", sim.Config{}, false, []string{"cut@1000", "bandwidth=1000000", "no_usage"}},
		{"an error → nothing", sim.Config{Key: "sk-other"}, true, nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s, _ := impairedSim(t, row.config, all)
			got := askSim(t, s, wire.Chat, !row.stream, false)
			if diff := cmp.Diff(row.want, got.head.Header[headerImpaired]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
