package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

func TestNothingButTimeIsChangedByWhatOnlyTakesTime(t *testing.T) {
	for _, d := range dialects {
		clean, _ := impairedSim(t, sim.Config{}, "cut:0%")
		want := askSim(t, clean, d.api, d.whole, d.array)
		for _, impair := range []string{"first_token+50ms", "stall@1+50ms", "coalesce=3", "coalesce+20ms", "pace=500", "bandwidth=50000", "first_token+20ms, coalesce=2, pace=500, bandwidth=50000"} {
			s, _ := impairedSim(t, sim.Config{}, impair)
			got := askSim(t, s, d.api, d.whole, d.array)
			if got.err != nil || got.text == "" || got.text != want.text || len(got.body) != len(want.body) {
				t.Errorf("%s, %s: %d bytes and %v, want %d: %q instead of %q", d.name, impair, len(got.body), got.err, len(want.body), got.text, want.text)
			}
			c := s.call(t, 1)
			if c.Outcome != call.OK || len(c.Impaired) == 0 {
				t.Errorf("%s, %s: recorded %v, impaired %q", d.name, impair, c, c.Impaired)
			}
		}
	}
}

func TestDelayIsFeltAndIsNotTheUpstreams(t *testing.T) {
	for _, d := range dialects {
		s, _ := impairedSim(t, sim.Config{}, "scenario=agent: first_token+150ms")
		askSim(t, s, d.api, d.whole, d.array)
		c := s.call(t, 1)
		if diff := cmp.Diff([]string{"first_token+150ms"}, c.Impaired); diff != "" {
			t.Errorf("%s: %s", d.name, diff)
		}
		if c.Injected < 150*time.Millisecond {
			t.Errorf("%s: %s were injected, want 150ms or more", d.name, c.Injected)
		}
		if d.whole {
			continue
		}
		if held := time.Duration(c.FirstToken.Delivered - c.FirstToken.Received); held < c.Injected {
			t.Errorf("%s: the first token left %s after it came, with %s injected", d.name, held, c.Injected)
		}
	}
}

func TestCutBreaksTheConnectionInsideAnEvent(t *testing.T) {
	for _, d := range dialects {
		for _, h2 := range []bool{false, true} {
			s, _ := impairedSim(t, sim.Config{}, "cut@3")
			if h2 {
				h2c(s)
			}
			got := askSim(t, s, d.api, d.whole, d.array)
			if got.err == nil {
				t.Errorf("%s, h2 %v: the answer ended in order after a cut: %q", d.name, h2, got.body)
			}
			if !d.whole && (got.outs != 2 || strings.HasSuffix(got.body, "\n\n") || strings.HasSuffix(got.body, "}")) {
				t.Errorf("%s, h2 %v: %d events with output came, and last %q; want 2 and a beginning", d.name, h2, got.outs, got.body[max(0, len(got.body)-40):])
			}
			if d.whole && (got.text != "" || got.body == "") {
				t.Errorf("%s: the answer came whole, or none of it: %q", d.name, got.body)
			}
			if c := s.call(t, 1); c.Outcome != call.Truncated || c.Status != 200 || c.Impaired[0] != "cut@3" || !strings.Contains(c.ErrorMessage, "on purpose") {
				t.Errorf("%s: recorded %v, impaired %q", d.name, c, c.Impaired)
			}
			s.client.CloseIdleConnections()
		}
	}
}

func TestCutInRuneLeavesHalfACharacter(t *testing.T) {
	// The words hold characters of several bytes from the third event on.
	stream := answerOf(wire.Messages, wire.SSE)
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream)
	}), func(p *Proxy) { p.Impair = impairer(t, "cut_rune@3") })
	resp, err := s.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil || utf8.Valid(b) || !bytes.HasPrefix(stream, b) || !bytes.Contains(b, []byte("第1块")) || bytes.Contains(b, []byte("第2")) {
		t.Errorf("%v; the last came as %q", err, b[max(0, len(b)-60):])
	}
	if c := s.call(t, 1); c.Outcome != call.Truncated || c.Impaired[0] != "cut_rune@3" {
		t.Errorf("recorded %v, impaired %q", c, c.Impaired)
	}
}

func TestCutInRuneOfPlainTextNeverComesAndIsSaid(t *testing.T) {
	stream := strings.ReplaceAll(string(answerOf(wire.Chat, wire.SSE)), "第", "x")
	stream = strings.NewReplacer("块", "x", "🌊", "x").Replace(stream)
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, stream)
	}), func(p *Proxy) { p.Impair = impairer(t, "cut_rune, cut@500") })
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != stream {
		t.Errorf("%d of %d bytes, %v", len(b), len(stream), err)
	}
	want := []string{"cut_rune@2 (not applied: no occasion in this answer)", "cut@500 (not applied: no occasion in this answer)"}
	if diff := cmp.Diff(want, s.call(t, 1).Impaired); diff != "" {
		t.Error(diff)
	}
}

func TestResetIsAResetOfTheConnection(t *testing.T) {
	for _, impair := range []string{"reset", "reset@2"} {
		for _, h2 := range []bool{false, true} {
			for _, d := range dialects {
				s, asked := impairedSim(t, sim.Config{}, impair)
				if h2 {
					h2c(s)
				}
				got := askSim(t, s, d.api, d.whole, d.array)
				var stream http2.StreamError
				switch {
				case h2 && !(errors.As(got.err, &stream) || got.err != nil && strings.Contains(got.err.Error(), "stream error")):
					t.Errorf("%s, %s over HTTP/2: %v, want a stream error", d.name, impair, got.err)
				case !h2 && !errors.Is(got.err, syscall.ECONNRESET):
					t.Errorf("%s, %s: %v, want a reset", d.name, impair, got.err)
				}
				c := s.call(t, 1)
				if c.Outcome != call.Truncated || c.Impaired[0] != impair {
					t.Errorf("%s, %s: recorded %v, impaired %q", d.name, impair, c, c.Impaired)
				}
				if n := asked.Load(); impair == "reset" && (n != 0 || c.Status != 0) || impair != "reset" && n != 1 {
					t.Errorf("%s, %s: the endpoint was asked %d times, status %d", d.name, impair, n, c.Status)
				}
				s.client.CloseIdleConnections()
			}
		}
	}
}

func TestResetReachesTheClientThroughATunnelThatWeirOpened(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		url, _ := countedSim(t, sim.Config{})
		f := startForwarding(t, url, func(p *Proxy) { p.Impair = impairer(t, "reset@2") })
		path, body := requestOf(wire.Messages, true)
		resp, err := f.through(t, h2).Post("https://api.provider.test"+path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if h2 && !(err != nil && strings.Contains(err.Error(), "stream error")) || !h2 && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("h2 %v: %v, want a reset", h2, err)
		}
		if c := f.call(t, 1); c.Outcome != call.Truncated || c.Impaired[0] != "reset@2" || c.Door != doorConnect {
			t.Errorf("h2 %v: recorded %v, impaired %q", h2, c, c.Impaired)
		}
	}
}

func TestErrorEventComesInThePlaceOfAnEvent(t *testing.T) {
	for _, d := range dialects {
		s, _ := impairedSim(t, sim.Config{}, "error@2")
		got := askSim(t, s, d.api, d.whole, d.array)
		c := s.call(t, 1)
		if d.whole {
			if got.err != nil || got.text == "" || c.Outcome != call.OK || c.Impaired[0] != "error@2 (not applied: the answer is no stream)" {
				t.Errorf("%s: %q, %v; recorded %v, impaired %q", d.name, got.body, got.err, c, c.Impaired)
			}
			continue
		}
		if got.err != nil || got.bad == nil || !strings.Contains(got.bad.Message, "on purpose") || got.outs > 1 {
			t.Errorf("%s: %d events with output, error %+v, %v", d.name, got.outs, got.bad, got.err)
		}
		if c.Outcome != call.StreamError || c.Status != 200 || c.Impaired[0] != "error@2" {
			t.Errorf("%s: recorded %v, impaired %q", d.name, c, c.Impaired)
		}
	}
}

func TestErrorEventInThePlaceOfTheFirst(t *testing.T) {
	for _, d := range dialects[:6] {
		s, _ := impairedSim(t, sim.Config{}, "error@1")
		got := askSim(t, s, d.api, d.whole, d.array)
		if c := s.call(t, 1); got.err != nil || got.bad == nil || got.outs != 0 || c.FirstToken.Reached() || c.NoFirstToken != call.AbsentStreamError {
			t.Errorf("%s: %q, %v; recorded %v", d.name, got.body, got.err, c)
		}
	}
}

func TestRefusalsAreTheCallersDialectAndAskNobody(t *testing.T) {
	for _, row := range []struct {
		impair  string
		status  int
		outcome call.Outcome
		retry   string
	}{
		{"429+1500ms", 429, call.RateLimited, "2"}, {"429", 429, call.RateLimited, "1"}, {"500", 500, call.ServerError, ""}, {"529", 529, call.Overloaded, ""},
	} {
		for _, d := range dialects {
			s, asked := impairedSim(t, sim.Config{}, row.impair+", first_token+1h")
			got := askSim(t, s, d.api, d.whole, d.array)
			if got.err != nil || got.head.StatusCode != row.status || got.bad == nil || !strings.Contains(got.bad.Message, "on purpose") || got.head.Header.Get("Retry-After") != row.retry {
				t.Errorf("%s, %s: %+v", d.name, row.impair, got)
				continue
			}
			c := s.call(t, 1)
			if c.Outcome != row.outcome || c.Status != row.status || c.NoFirstToken != call.AbsentHTTPError || asked.Load() != 0 || len(c.Impaired) != 1 || (c.RetryAfter > 0) != (row.retry != "") {
				t.Errorf("%s, %s: recorded %v, impaired %q; the endpoint was asked %d times", d.name, row.impair, c, c.Impaired, asked.Load())
			}
			if what, _ := c.Explain(); !strings.HasPrefix(what, "weir made the call worse on purpose: "+c.Impaired[0]) {
				t.Errorf("%s, %s is explained as %q", d.name, row.impair, what)
			}
		}
	}
}

func TestRefusedKeyOfWeirsOwnDoesNotRest(t *testing.T) {
	url, _ := countedSim(t, sim.Config{})
	s := start(t, url, func(p *Proxy) {
		p.Upstreams[0].Keys = []Secret{NewSecret("sk-own-0123456789")}
		p.Impair = impairer(t, "429+1h")
	})
	askSim(t, s, wire.Chat, false, false)
	s.call(t, 1)
	ring := s.upstreams[0].keyring
	ring.mu.Lock()
	defer ring.mu.Unlock()
	if key := ring.keys[0]; key.active != 0 || key.held.Reached() {
		t.Errorf("the key is held until %s by %d calls", key.held, key.active)
	}
}

func TestUsageIsTakenFromTheClientAndRecorded(t *testing.T) {
	for _, d := range dialects {
		s, _ := impairedSim(t, sim.Config{}, "no_usage")
		got := askSim(t, s, d.api, d.whole, d.array)
		if got.err != nil || got.text == "" || got.use.Known() {
			t.Errorf("%s: %v, usage %+v in %s", d.name, got.err, got.use, got.body)
		}
		c := s.call(t, 1)
		if !c.Usage.Output.Known || c.UsageSource != call.UsageReported || c.Outcome != call.OK || c.Impaired[0] != "no_usage" {
			t.Errorf("%s: recorded %v, usage %+v, impaired %q", d.name, c, c.Usage, c.Impaired)
		}
	}
}

func TestUsageThatWeirAskedForStaysUnseenInAnImpairedAnswer(t *testing.T) {
	for _, impair := range []string{"first_token+1ms", "bandwidth=20000", "cut@3", "coalesce=3"} {
		url, _ := countedSim(t, sim.Config{})
		s := start(t, url, func(p *Proxy) {
			p.Impair, p.InjectUsage = impairer(t, impair), true
		})
		resp, err := s.client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"max_tokens":32,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		cut := impair == "cut@3"
		if (err != nil) != cut || bytes.Contains(b, []byte(`"usage"`)) || bytes.Contains(b, []byte("[DONE]")) == cut {
			t.Errorf("%s: %v: %s", impair, err, b)
		}
		if c := s.call(t, 1); c.Usage.Output.Known == cut || c.Impaired[0] != impair {
			t.Errorf("%s: recorded %v, usage %+v, impaired %q", impair, c, c.Usage, c.Impaired)
		}
	}
}

func TestPingsAreTheDialectsAndNotTheUpstreams(t *testing.T) {
	for _, d := range dialects {
		s, _ := impairedSim(t, sim.Config{}, "pings=200, first_token+200ms")
		got := askSim(t, s, d.api, d.whole, d.array)
		c := s.call(t, 1)
		ping := ": ping\n\n"
		if d.api == wire.Messages {
			ping = "event: ping\n"
		}
		n := strings.Count(got.body, ping)
		if d.whole || d.array {
			if n != 0 || c.Impaired[0] != "pings=200 (not applied: the answer is no event stream)" {
				t.Errorf("%s: %d pings, impaired %q", d.name, n, c.Impaired)
			}
			continue
		}
		if n < 1 || got.err != nil || c.Outcome != call.OK || c.Impaired[0] != "pings=200" {
			t.Errorf("%s: %d pings, %v; recorded %v, impaired %q", d.name, n, got.err, c, c.Impaired)
		}
		if c.ResponseBytes >= int64(len(got.body)) || d.api == wire.Messages && c.Events > 30 {
			t.Errorf("%s: %d bytes and %d events were recorded, with weir's own pings among them", d.name, c.ResponseBytes, c.Events)
		}
	}
}

func TestEventsAreAskedForUncompressed(t *testing.T) {
	for impair, want := range map[string]string{"cut@3": "", "bandwidth=1000000": "gzip"} {
		s, _ := impairedSim(t, sim.Config{Compress: true}, impair)
		got := askSim(t, s, wire.Chat, true, false)
		if coding := got.head.Header.Get("Content-Encoding"); coding != want {
			t.Errorf("%s: the answer came in %q, want %q", impair, coding, want)
		}
		if c := s.call(t, 1); c.Impaired[0] != impair {
			t.Errorf("%s: the span says %q", impair, c.Impaired)
		}
	}
}

func TestCompressedAllTheSameIsNotCutAndIsSaid(t *testing.T) {
	body := encode("gzip", answerOf(wire.Chat, wire.SSE))
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(body)
	}), func(p *Proxy) { p.Impair = impairer(t, "cut@3, bandwidth=1000000") })
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(b, body) {
		t.Errorf("%d of %d bytes, %v", len(b), len(body), err)
	}
	c := s.call(t, 1)
	if diff := cmp.Diff([]string{"cut@3 (not applied: the answer is compressed: gzip)", "bandwidth=1000000"}, c.Impaired); diff != "" || c.Outcome != call.OK || !c.FirstToken.Reached() {
		t.Errorf("recorded %v: %s", c, diff)
	}
}

func TestFailureOfTheEndpointsOwnStaysItsOwn(t *testing.T) {
	s, _ := impairedSim(t, sim.Config{Key: "sk-other"}, "cut@3")
	got := askSim(t, s, wire.Messages, false, false)
	c := s.call(t, 1)
	if got.err != nil || got.head.StatusCode != 401 || c.Outcome != call.Auth || c.Impaired[0] != "cut@3 (not applied: status 401)" {
		t.Errorf("%+v; recorded %v, impaired %q", got.head, c, c.Impaired)
	}
	if what, _ := c.Explain(); strings.Contains(what, "on purpose") {
		t.Errorf("explained as %q", what)
	}
}

func TestOtherScenariosAndOperationsAreSpared(t *testing.T) {
	s, _ := impairedSim(t, sim.Config{}, "scenario=other: 500, cut")
	if got := askSim(t, s, wire.Chat, false, false); got.err != nil || got.text == "" || got.head.Header.Get(headerImpaired) != "" {
		t.Errorf("%+v", got)
	}
	if c := s.call(t, 1); len(c.Impaired) != 0 || c.Outcome != call.OK {
		t.Errorf("recorded %v, impaired %q", c, c.Impaired)
	}
	s, asked := impairedSim(t, sim.Config{}, "500")
	resp, err := s.client.Get(s.url + "/v1/models")
	if err != nil || resp.StatusCode != 200 || asked.Load() != 1 {
		t.Errorf("%v, %v", resp, err)
	}
	resp.Body.Close()
	req, err := http.NewRequest("POST", s.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Weir-Warm-Up", "true")
	if resp, err = s.client.Do(req); err != nil || resp.StatusCode != 200 {
		t.Errorf("a warm-up: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestSharesAndSeedsReachTheCalls(t *testing.T) {
	url, _ := countedSim(t, sim.Config{})
	list, _ := shaper.ParseImpairments("529:30%")
	outcomes := func(seed uint64) (all string) {
		s := start(t, url, func(p *Proxy) { p.Impair = shaper.NewImpairer(list, seed) })
		for range 40 {
			all += fmt.Sprint(askSim(t, s, wire.Completions, true, false).head.StatusCode, " ")
		}
		return all
	}
	first := outcomes(1)
	if first != outcomes(1) || first == outcomes(2) || !strings.Contains(first, "529") || !strings.Contains(first, "200") {
		t.Errorf("seed 1 gave %s", first)
	}
}

func TestWebSocketsAreRefusedWhereTheirCallsWouldBeImpaired(t *testing.T) {
	for _, row := range []struct {
		path, impair string
		want         int
	}{
		{"/s/agent", "scenario=agent model=gpt-*: cut", 426},
		{"/s/agent", "scenario=other: cut", 101},
		{"", "scenario=short_chat: cut", 426}, // a class, which each request over it has
		{"", "upstream=other: cut", 101},
	} {
		impair, want := row.impair, row.want
		s, asked := impairedSim(t, sim.Config{}, impair)
		req, _ := http.NewRequest("GET", s.url+row.path+"/v1/responses", nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(k, v)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || (asked.Load() == 0) != (want == 426) {
			t.Errorf("%s: %s, the endpoint was asked %d times", impair, resp.Status, asked.Load())
		}
		c := s.call(t, 1)
		if (len(c.Impaired) == 1 && c.Impaired[0] == "no_websocket") != (want == 426) {
			t.Errorf("%s: recorded %v, impaired %q", impair, c, c.Impaired)
		}
	}
}
