package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// phone is a WebSocket to an endpoint, and the records of what is asked over it.
type phone struct {
	*websocket.Conn
	t       *testing.T
	records chan *Record
	answer  *http.Response // to the upgrade
	url     string
}

// call opens a WebSocket at an endpoint of its own. The zero options offer no
// compression.
func call(t *testing.T, c Config, o websocket.DialOptions) *phone {
	t.Helper()
	p := &phone{t: t, records: make(chan *Record, 64)}
	if c.Engine == (EngineConfig{}) {
		c.Engine = quick
	}
	c.Log = func(r *Record) { p.records <- r }
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		if p.Conn != nil {
			p.CloseNow()
		}
		server.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	p.url = server.URL + "/v1/responses"
	p.Conn, p.answer, err = websocket.Dial(t.Context(), p.url, &o)
	if err != nil {
		t.Fatal(err)
	}
	p.SetReadLimit(-1)
	return p
}

func (p *phone) say(format string, args ...any) {
	p.t.Helper()
	if err := p.Write(p.t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// hear reads events until one ends a response, or the connection ends.
func (p *phone) hear() (h heard, types []string, err error) {
	p.t.Helper()
	var ev wire.Event
	for {
		kind, msg, err := p.Read(p.t.Context())
		if err != nil {
			return h, types, err
		}
		if err := wire.For(wire.Responses).ParseEvent(&ev, wire.Frame{Data: msg}); err != nil || kind != websocket.MessageText {
			p.t.Fatalf("%v %q: %v", kind, msg, err)
		}
		types = append(types, string(ev.Type))
		h.text += string(ev.Text)
		h.reasoning += string(ev.Reasoning)
		for _, d := range ev.Tools {
			h.tool += string(d.Name) + string(d.Arguments)
		}
		if ev.Output() != 0 {
			h.tokens++
		}
		h.usage.Merge(ev.Usage)
		if ev.EndsResponse() {
			h.finish, h.terminal, h.failure = string(ev.Finish), ev.Terminal, ev.Err
			return h, types, nil
		}
	}
}

// heard hears a response that must end.
func (p *phone) heard() heard {
	p.t.Helper()
	h, types, err := p.hear()
	if err != nil {
		p.t.Fatalf("after %v: %v", types, err)
	}
	return h
}

func (p *phone) record() *Record {
	p.t.Helper()
	select {
	case r := <-p.records:
		return r
	case <-p.t.Context().Done():
		p.t.Fatal("no record came")
		return nil
	}
}

const turn = `{"type":"response.create","model":"m","instructions":"Be brief.","max_output_tokens":21,"input":"什么是堰?"}`

// The same request over HTTP and over a WebSocket gets the same answer, and the
// record has the same instants.
func TestSocketAnswersAsHTTPDoes(t *testing.T) {
	for _, c := range []Config{{}, {Reasoning: 0.5, WriteSplit: 3}, {NoUsage: true}} {
		c.Seed = 7
		e := serve(t, c)
		resp, err := http.Post(e.URL+"/v1/responses", "application/json", strings.NewReader(strings.Replace(turn, `"type":"response.create"`, `"stream":true`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		want := listen(t, wire.Responses, resp.Header.Get("Content-Type"), body)

		p := call(t, c, websocket.DialOptions{HTTPHeader: http.Header{CorrelationHeader: {"here"}}})
		before := time.Now()
		p.say(turn)
		got := p.heard()
		if got.tokens = want.tokens; got != want { // tokens counts other things there
			t.Errorf("over a WebSocket %+v, over HTTP %+v", got, want)
		}
		r := p.record()
		if r.API != wire.Responses || r.Operation != wire.OpChat || !r.Stream || r.Status != 200 || r.Correlation != "here" || r.Usage != e.record(t).Usage {
			t.Errorf("record %+v, want as over HTTP %+v", r, e.record(t))
		}
		first, _ := r.FirstToken()
		last, _ := r.LastToken()
		at := []time.Time{before, r.Accepted, r.Body, r.Headers, first.Before, first.After, last.After, r.Done}
		for i := range at[1:] {
			if at[i+1].Before(at[i]) || at[i+1].IsZero() {
				t.Errorf("instant %d is %v after the one before it", i+1, at[i+1].Sub(at[i]))
			}
		}
	}
}

func TestSocketAgreesOnCompressionWhenItIsOffered(t *testing.T) {
	for mode, want := range map[websocket.CompressionMode]string{
		websocket.CompressionDisabled:          "",
		websocket.CompressionContextTakeover:   "permessage-deflate",
		websocket.CompressionNoContextTakeover: "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
	} {
		p := call(t, Config{}, websocket.DialOptions{CompressionMode: mode})
		if got := p.answer.Header.Get("Sec-WebSocket-Extensions"); got != want {
			t.Errorf("mode %v: agreed on %q, want %q", mode, got, want)
		}
		for range 2 {
			p.say(turn)
			if h := p.heard(); h.finish != "max_output_tokens" || h.text == "" {
				t.Errorf("mode %v: %+v", mode, h)
			}
		}
	}
}

// A prewarm, a turn that calls a tool, and the turn with its result: each has
// all before it in its prompt, as one HTTP request with everything has, and the
// prefix cache knows it.
func TestSocketGoesOnFromTheResponseBefore(t *testing.T) {
	p := call(t, Config{ToolShare: 1}, websocket.DialOptions{})
	const fixed = `"model":"m","max_output_tokens":40,"tools":[{"type":"function","name":"shell"}]`
	instructions := strings.Repeat("Answer with care. ", 200)

	p.say(`{"type":"response.create","generate":false,%s,"instructions":%q,"input":[]}`, fixed, instructions)
	h, types, err := p.hear()
	if want := []string{"response.created", "response.in_progress", "response.completed"}; err != nil || !cmp.Equal(types, want) {
		t.Errorf("a prewarm gives %v, %v; want %v", types, err, want)
	}
	warm := p.record()
	if h.usage.Output != wire.N(0) || h.usage.Input.N < 500 || h.tokens != 0 || warm.Usage != h.usage || len(warm.Events) != 2 || !warm.Admitted.IsZero() {
		t.Errorf("a prewarm says %+v, and its record %+v", h, warm)
	}

	p.say(`{"type":"response.create",%s,"instructions":%q,"previous_response_id":%q,"input":[{"type":"message","role":"user","content":"list the files"}]}`, fixed, instructions, warm.ID)
	h = p.heard()
	one := p.record()
	if !strings.HasPrefix(h.tool, "shell") || one.Usage.Input.N <= warm.Usage.Input.N {
		t.Errorf("the first turn says %+v, its record %+v", h, one)
	}
	arguments, _ := json.Marshal(strings.TrimPrefix(h.tool, "shell"))
	said, _ := json.Marshal(h.text)

	result := `{"type":"function_call_output","call_id":"call_` + one.ID + `","output":"a.go b.go"}`
	p.say(`{"type":"response.create",%s,"instructions":%q,"previous_response_id":%q,"input":[%s]}`, fixed, instructions, one.ID, result)
	p.heard()
	two := p.record()

	resp, err := http.Post(p.url, "application/json", strings.NewReader(fmt.Sprintf(`{%s,"instructions":%q,"input":[
		{"type":"message","role":"user","content":"list the files"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]},
		{"type":"function_call","call_id":"call_%s","name":"shell","arguments":%s},%s]}`, fixed, instructions, said, one.ID, arguments, result)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	whole := p.record()
	if two.Usage.Input != whole.Usage.Input || two.Usage.CacheRead.N < 500 {
		t.Errorf("the second turn's usage is %+v; one request with everything has %+v", two.Usage, whole.Usage)
	}
}

// Who goes on from another response than the latest is refused, and keeps the
// latest; who goes on from it and fails loses it.
func TestSocketKeepsTheLatestResponseAlone(t *testing.T) {
	p := call(t, Config{Models: []string{"m"}}, websocket.DialOptions{})
	next := func(model, previous string) (heard, string) {
		p.say(`{"type":"response.create","model":%q,"max_output_tokens":4,"previous_response_id":%q,"input":"a"}`, model, previous)
		h := p.heard()
		return h, p.record().ID
	}
	_, first := next("m", "")
	_, second := next("m", first)
	h, _ := next("m", first)
	want := &wire.Error{Status: 400, Type: "invalid_request_error", Code: "previous_response_not_found", Message: "Previous response with id '" + first + "' not found."}
	if diff := cmp.Diff(want, h.failure); diff != "" {
		t.Errorf("going on from the first after the second:\n%s", diff)
	}
	if h, _ := next("other", ""); h.failure == nil || h.failure.Code != "model_not_found" || h.failure.Status != 404 {
		t.Errorf("a model that does not exist: %+v", h.failure)
	}
	if h, second = next("m", second); h.failure != nil {
		t.Errorf("going on from the second after refusals that had nothing to do with it: %+v", h.failure)
	}
	next("other", second)
	if h, _ := next("m", second); h.failure == nil || h.failure.Code != "previous_response_not_found" {
		t.Errorf("going on from what a failed turn went on from: %+v", h.failure)
	}
}

// Refusals are error events with a status; the connection stays.
func TestSocketRefuses(t *testing.T) {
	small := quick
	small.KVTokens = 100
	for _, row := range []struct {
		name   string
		c      Config
		msg    string
		raw    string // the event, where all of it counts
		status int
	}{
		{"429", Config{Faults: []Fault{{Kind: "429", Share: 1, Wait: 2 * time.Second}}}, turn,
			`{"type":"error","status":429,"headers":{"retry-after":"2"},"error":{"message":"simulated: rate limit reached","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`, 429},
		{"a limit that the prompt exceeds", Config{Limits: Limits{Tokens: 1}}, turn, "", 429},
		{"500", Config{Faults: []Fault{{Kind: "500", Share: 1}}}, turn,
			`{"type":"error","status":500,"error":{"message":"simulated: internal error","type":"api_error","param":null,"code":null}}`, 500},
		{"529, and compression is asked of HTTP alone", Config{Compress: true, Faults: []Fault{{Kind: "529", Share: 1}}}, turn, "", 529},
		{"a prewarm too", Config{Faults: []Fault{{Kind: "500", Share: 1}}}, `{"type":"response.create","generate":false,"model":"m"}`, "", 500},
		{"a prompt that is too long", Config{Engine: small}, `{"type":"response.create","model":"m","input":"` + strings.Repeat("words ", 200) + `"}`, "", 400},
		{"input of another kind", Config{}, `{"type":"response.create","model":"m","input":7}`, "", 400},
		{"JSON that breaks off", Config{}, `{"type":"response.create","model":`, "", 400},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := call(t, row.c, websocket.DialOptions{HTTPHeader: http.Header{"Accept-Encoding": {"gzip"}}})
			for range 2 {
				p.say("%s", row.msg)
				_, msg, err := p.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if row.raw != "" && string(msg) != row.raw {
					t.Errorf("got  %s\nwant %s", msg, row.raw)
				}
				var ev wire.Event
				if err := wire.For(wire.Responses).ParseEvent(&ev, wire.Frame{Data: msg}); err != nil || ev.Err == nil || ev.Err.Status != row.status {
					t.Errorf("%s: %v, want an error of status %d", msg, err, row.status)
				}
				if r := p.record(); r.Status != row.status || r.Usage.Known() {
					t.Errorf("record %+v, want status %d", r, row.status)
				}
			}
		})
	}
}

func TestSocketRefusesOtherMessagesWithoutARecord(t *testing.T) {
	p := call(t, Config{}, websocket.DialOptions{})
	for _, msg := range []string{`{"type":"session.update"}`, `hello`, `{}`} {
		p.say("%s", msg)
		if h := p.heard(); h.failure == nil || h.failure.Status != 400 || h.failure.Code != "invalid_event" {
			t.Errorf("%s: %+v", msg, h.failure)
		}
	}
	p.say(`{"type":"response.processed","response_id":"r"}`)
	p.say(turn)
	if h := p.heard(); h.failure != nil || !h.terminal {
		t.Errorf("the answer after a message that wants none: %+v", h)
	}
	if p.record(); len(p.records) != 0 {
		t.Errorf("%d more records, want one of the only response", len(p.records))
	}
}

func TestSocketWantsTheKey(t *testing.T) {
	records := make(chan *Record, 2)
	s, err := New(Config{Key: "secret", Engine: quick, Log: func(r *Record) { records <- r }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	_, resp, err := websocket.Dial(t.Context(), server.URL+"/v1/responses", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("without the key: %v, %v", resp, err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "invalid_api_key") {
		t.Errorf("without the key: %s", body)
	}
	if r := <-records; r.Status != http.StatusUnauthorized {
		t.Errorf("record %+v", r)
	}
	c, _, err := websocket.Dial(t.Context(), server.URL+"/s/chat/v1/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(turn)); err != nil {
		t.Fatal(err)
	}
	if r := <-records; r.Status != http.StatusOK {
		t.Errorf("record %+v", r)
	}
}

// Messages wait for the answer to those before them.
func TestSocketAnswersInOrder(t *testing.T) {
	p := call(t, Config{}, websocket.DialOptions{})
	for n := 1; n <= 8; n++ {
		p.say(`{"type":"response.create","model":"m","max_output_tokens":%d,"input":"a"}`, n)
	}
	for n := 1; n <= 8; n++ {
		if h := p.heard(); h.usage.Output != wire.N(int64(n)) {
			t.Errorf("answer %d has %v tokens", n, h.usage.Output)
		}
	}
}

// While nothing is generated, pings go out, and the client's pongs are taken.
func TestSocketPings(t *testing.T) {
	pinged := make(chan struct{}, 1000)
	p := call(t, Config{Pings: time.Millisecond, Faults: []Fault{{Kind: "slow", Share: 1, Wait: 50 * time.Millisecond}}},
		websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
			pinged <- struct{}{}
			return true
		}})
	p.say(turn)
	if h := p.heard(); !h.terminal {
		t.Errorf("%+v", h)
	}
	if len(pinged) == 0 {
		t.Error("no ping came")
	}
}
