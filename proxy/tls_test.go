package proxy

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weir/proxy/wire"
	"weir/store/call"
)

// secure serves a handler over TLS, and gives the file of the certificate to
// trust.
func secure(t *testing.T, h2 bool, h http.HandlerFunc) (upstream, ca string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = h2
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, ca
}

func TestUpstreamOverTLS(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	for _, h2 := range []bool{false, true} {
		var proto atomic.Int64
		upstream, ca := secure(t, h2, func(w http.ResponseWriter, r *http.Request) {
			proto.Store(int64(r.ProtoMajor))
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write(stream[:len(stream)/2])
			w.(http.Flusher).Flush()
			w.Write(stream[len(stream)/2:])
		})
		s := start(t, upstream, func(p *Proxy) { p.Upstreams[0].CAFile = ca })
		for range 2 {
			resp, err := s.post(t, context.Background(), wire.Messages)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != string(stream) {
				t.Errorf("h2 %v: %d of %d bytes, %v", h2, len(got), len(stream), err)
			}
		}
		second, first := s.call(t, 2), s.call(t, 1)
		if h2 != (proto.Load() == 2) {
			t.Errorf("h2 %v: the upstream saw HTTP/%d", h2, proto.Load())
		}
		if first.Outcome != call.OK || first.TLS <= 0 || first.ReusedConn || !second.ReusedConn || second.TLS != 0 {
			t.Errorf("h2 %v: first %v with %v of TLS, second reused %v with %v", h2, first, first.TLS, second.ReusedConn, second.TLS)
		}
		for _, c := range []*call.Call{first, second} {
			if c.Connected < c.Admitted || c.Sent < c.Connected || c.Headers < c.Sent || c.FirstToken.Received < c.Headers || c.Done < c.LastToken.Received {
				t.Errorf("h2 %v: instants out of order: %+v", h2, c.Instants)
			}
		}
	}
}

func TestUnknownCertificateIsSaid(t *testing.T) {
	upstream, _ := secure(t, false, func(http.ResponseWriter, *http.Request) {})
	s := start(t, upstream, nil)
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "certificate") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if c := s.call(t, 1); c.Outcome != call.Unreachable {
		t.Errorf("recorded %v", c)
	}
}

// A sidecar that read HTTPS_PROXY could loop to itself.
func TestUpstreamProxyOnlyWhenConfigured(t *testing.T) {
	var through atomic.Int64
	forward := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		through.Add(1)
		if r.URL.Host != "upstream.invalid" {
			t.Errorf("the proxy was asked for %s", r.URL)
		}
	})
	t.Setenv("HTTP_PROXY", forward)
	t.Setenv("HTTPS_PROXY", forward)
	direct := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, direct, nil)
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if through.Load() != 0 {
		t.Error("the environment's proxy was used")
	}
	u, _ := url.Parse(forward)
	s = start(t, "http://upstream.invalid", func(p *Proxy) { p.Upstreams[0].Proxy = u })
	if resp, err = s.post(t, context.Background(), wire.Chat); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if through.Load() != 1 {
		t.Error("the configured proxy was not used")
	}
}

func TestH2CClientsAreServed(t *testing.T) {
	stream := answerOf(wire.Chat, wire.SSE)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream)
	})
	s := start(t, up, nil)
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	s.client.Transport = &http.Transport{Protocols: &p}
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(got) != string(stream) || resp.ProtoMajor != 2 {
		t.Errorf("HTTP/%d, %d of %d bytes, %v", resp.ProtoMajor, len(got), len(stream), err)
	}
	if c := s.call(t, 1); c.Outcome != call.OK || !c.FirstToken.Reached() {
		t.Errorf("recorded %v", c)
	}
}
