package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/call"
)

func TestForwardRequestsAreRefusedWithTheNextStep(t *testing.T) {
	s := start(t, "http://127.0.0.1:1", nil)
	for _, request := range []string{"CONNECT api.openai.com:443 HTTP/1.1\r\nHost: api.openai.com:443\r\n\r\n", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 501 || !strings.Contains(string(body), "base URL") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		conn.Close()
	}
}

func TestUpgradeIsTunnelled(t *testing.T) {
	up := raw(t, func(conn net.Conn, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("upgrade headers: %v", r.Header)
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello ")
		b := make([]byte, 5)
		io.ReadFull(conn, b)
		conn.Write(bytes.ToUpper(b))
	})
	s := start(t, up, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/responses HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" {
		t.Fatal(resp, err)
	}
	io.WriteString(conn, "world")
	all, _ := io.ReadAll(r)
	if string(all) != "hello WORLD" {
		t.Errorf("through the tunnel came %q", all)
	}
	if c := s.call(t, 1); c.Status != 101 || c.Outcome != call.OK {
		t.Errorf("recorded %v", c)
	}
}

func TestClientTokenIsWanted(t *testing.T) {
	var reached atomic.Int64
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get(headerToken) != "" {
			t.Error("the token reached the upstream")
		}
	})
	s := start(t, up, func(p *Proxy) { p.ClientToken = "t0ken" })
	for token, want := range map[string]int{"": 403, "wrong": 403, "t0ken": 200} {
		req, _ := http.NewRequest("GET", s.url+"/v1/models", nil)
		req.Header.Set(headerToken, token)
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("token %q: status %d, want %d", token, resp.StatusCode, want)
		}
	}
	if reached.Load() != 1 {
		t.Errorf("%d requests reached the upstream", reached.Load())
	}
}

func TestRulesNameWhatNothingElseNames(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {})
	var facts loadmodel.Facts
	s := start(t, up, func(p *Proxy) {
		p.Match = func(f loadmodel.Facts) (string, bool) { facts = f; return "ruled", f.Model == "model-x" }
	})
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := s.call(t, 1); c.Scenario != "ruled" || c.ScenarioFrom != "rule" || facts.API != "chat" || facts.Turns != 1 || !facts.Stream || facts.InputTokens == 0 {
		t.Errorf("recorded %v from %q, facts %+v", c, c.ScenarioFrom, facts)
	}
}

func TestConfigurationThatCannotWork(t *testing.T) {
	u, _ := url.Parse("https://127.0.0.1:1")
	for _, row := range []struct {
		name string
		p    *Proxy
		want string
	}{
		{"no upstream", &Proxy{}, "no upstream"},
		{"CA file that is not there", &Proxy{Upstreams: []Upstream{{URL: u, CAFile: "/nonexistent/ca.pem"}}}, "no such file"},
		{"CA file without certificates", &Proxy{Upstreams: []Upstream{{URL: u, CAFile: "proxy.go"}}}, "holds no PEM certificate"},
	} {
		if _, err := row.p.Handler(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want …%s…", row.name, err, row.want)
		}
	}
	if (&Proxy{}).Shutdown(context.Background()) != nil || errors.Is((&Proxy{}).Close(), http.ErrServerClosed) {
		t.Error("a proxy that never ran cannot be shut")
	}
}
