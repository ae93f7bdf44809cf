package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// anthropic-python writes the model behind the messages, and pictures may stand
// between.
func TestModelBehindALargeBodyDecides(t *testing.T) {
	var general, particular atomic.Int64
	answer := func(n *atomic.Int64) string {
		return upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			n.Add(1)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
		})
	}
	withDefault := func(p *Proxy) {
		to, err := url.Parse(answer(&particular))
		if err != nil {
			t.Fatal(err)
		}
		p.Upstreams = append(p.Upstreams, Upstream{Name: "particular", URL: to, Models: []string{"m"}})
	}
	alone := func(p *Proxy) {
		p.Upstreams[0].Models = []string{"other"}
		withDefault(p)
	}
	body := `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("QUJD", 9<<18) + `"}}]}],"model":"m","stream":true}`
	for _, row := range []struct {
		sentence  string
		change    func(*Proxy)
		hold      int64
		coding    string
		model     string
		status    int
		toDefault bool
		session   bool
	}{
		{"as it is", withDefault, 0, "", "m", 200, false, true},
		{"coded", withDefault, 0, "zstd", "m", 200, false, false},
		{"too long to be held, where one upstream is for all models", withDefault, 1 << 20, "", "", 200, true, false},
		{"too long to be held, where none is", alone, 1 << 20, "", "", 413, false, false},
	} {
		general.Store(0)
		particular.Store(0)
		s := start(t, answer(&general), func(p *Proxy) { row.change(p); p.HoldBody = row.hold })
		sent := []byte(body)
		if row.coding != "" {
			var b bytes.Buffer
			w, _ := zstd.NewWriter(&b)
			w.Write(sent)
			w.Close()
			sent = b.Bytes()
		}
		req, _ := http.NewRequest("POST", s.url+"/v1/chat/completions", bytes.NewReader(sent))
		if row.coding != "" {
			req.Header.Set("Content-Encoding", row.coding)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", row.sentence, err)
		}
		resp.Body.Close()
		c := s.call(t, 1)
		toDefault, toParticular := general.Load() == 1, particular.Load() == 1
		if resp.StatusCode != row.status || toDefault != row.toDefault || toParticular != (row.status == 200 && !row.toDefault) {
			t.Errorf("%s: status %d, to the default %v, to the model's own %v", row.sentence, resp.StatusCode, toDefault, toParticular)
		}
		if c.Request.Model != row.model || c.Request.Stream != (row.model != "") || (c.Session != "") != row.session {
			t.Errorf("%s: recorded model %q, stream %v, session %q", row.sentence, c.Request.Model, c.Request.Stream, c.Session)
		}
		if row.status == 413 && (c.Outcome != call.Refused || c.Upstream != "") {
			t.Errorf("%s: recorded %v to %q", row.sentence, c, c.Upstream)
		}
	}
}

// The bytes of a picture are no text: rules, the automatic class and the tokens
// that are reserved go by what a picture costs.
func TestPicturesAreNoText(t *testing.T) {
	data := strings.Repeat("QUJD", 1<<17)
	for _, row := range []struct {
		sentence, path, content string
		least, most             int
	}{
		{"chat", "/v1/chat/completions", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`, 1000, 1200},
		{"chat, a sound", "/v1/chat/completions", `{"type":"input_audio","input_audio":{"data":"` + data + `","format":"wav"}}`, 1000, 1200},
		{"chat, by its address", "/v1/chat/completions", `{"type":"image_url","image_url":{"url":"https://h/a.png"}}`, 1000, 1200},
		{"anthropic", "/v1/messages", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`, 1000, 1200},
		{"anthropic, in a tool's result", "/v1/messages", `{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}`, 1000, 1200},
		{"anthropic, a document of text", "/v1/messages", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + strings.Repeat("some words ", 4000) + `"}}`, 11_000, 12_000},
		{"text alone", "/v1/chat/completions", `{"type":"text","text":"` + strings.Repeat("some words ", 4000) + `"}`, 11_000, 12_000},
	} {
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		tokens := 0
		s := start(t, up, func(p *Proxy) {
			p.Shaper = &shaper.Shaper{}
			if err := p.Shaper.Configure([]shaper.Rule{{Limit: shaper.Limit{InputTokens: 1e9}}}); err != nil {
				t.Fatal(err)
			}
			p.Match = func(f loadmodel.Facts) (string, bool) { tokens = f.InputTokens; return "", false }
		})
		resp, err := s.client.Post(s.url+row.path, "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"look"},`+row.content+`]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c := s.call(t, 1)
		if c.ReservedInput != wire.N(int64(tokens)) {
			t.Errorf("%s: %v are reserved of %d", row.sentence, c.ReservedInput, tokens)
		}
		if tokens < row.least || tokens > row.most || (c.Scenario == classLong) != (row.least > longContext) {
			t.Errorf("%s: %d tokens, %s; want %d to %d", row.sentence, tokens, c.Scenario, row.least, row.most)
		}
	}
	shape, err := wire.ReadShape(wire.Gemini, []byte(`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"`+data+`"}}]}]}`))
	if err != nil || shape.Media != 1 || shape.MediaBytes != len(data) {
		t.Errorf("gemini: %d pictures of %d bytes, %v", shape.Media, shape.MediaBytes, err)
	}
}
