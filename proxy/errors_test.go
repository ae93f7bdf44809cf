package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestRefusalsAndErrorsAreInTheCallersDialect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there
	for _, api := range apis {
		s := start(t, "http://"+l.Addr().String(), nil)
		resp, err := s.post(t, context.Background(), api)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		e, ok := wire.For(api).ParseError(body)
		if resp.StatusCode != 502 || !ok || !strings.Contains(e.Message, "up ("+l.Addr().String()+")") || !strings.Contains(e.Message, "connection refused") {
			t.Errorf("%s: status %d, %s", api, resp.StatusCode, body)
		}
		c := s.call(t, 1)
		if c.Outcome != call.Unreachable || c.Connected.Reached() || c.Sent.Reached() || c.Status != 0 {
			t.Errorf("%s: recorded %v, connected %v", api, c, c.Connected)
		}
	}
}

func TestErrorsOfTheUpstreamPassAsTheyAre(t *testing.T) {
	until := time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", until)
		w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		w.WriteHeader(429)
		io.WriteString(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down, sk-ant-api03-abcdefgh"}}`)
	})
	s := start(t, up, nil)
	resp, err := s.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != until || !strings.Contains(string(body), "sk-ant-api03-abcdefgh") {
		t.Errorf("passed on as %d %v %s", resp.StatusCode, resp.Header, body)
	}
	c := s.call(t, 1)
	if c.Outcome != call.RateLimited || c.ErrorType != "rate_limit_error" || c.RetryAfter < time.Hour || strings.Contains(c.ErrorBody+c.ErrorMessage, "abcdefgh") {
		t.Errorf("recorded %v, %q %q after %v", c, c.ErrorType, c.ErrorBody, c.RetryAfter)
	}
}

func TestKeysNeverShow(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) })
	s := start(t, up, func(p *Proxy) { p.Fingerprint = func(key string) string { return fmt.Sprintf("%08x", len(key)) } })
	for _, send := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer sk-TOPSECRET123456") },
		func(r *http.Request) { r.Header.Set("X-Api-Key", "sk-TOPSECRET123456") },
		func(r *http.Request) { r.Header.Set("X-Goog-Api-Key", "sk-TOPSECRET123456") },
		func(r *http.Request) { r.URL.RawQuery = "key=sk-TOPSECRET123456" },
	} {
		req, _ := http.NewRequest("POST", s.url+"/v1beta/models/g:generateContent", strings.NewReader(`{}`))
		send(req)
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for n := range 4 {
		c := s.call(t, n+1)
		if text := fmt.Sprintf("%+v %v", *c, c.Attributes()); strings.Contains(text, "TOPSECRET") {
			t.Errorf("call %d shows its key: %s", n+1, text)
		}
		if c.KeyFingerprint != "00000012" {
			t.Errorf("call %d: fingerprint %q", n+1, c.KeyFingerprint)
		}
	}
}
