package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

// forwarding is a sidecar that is a forward proxy too, and a client that uses
// it as one: whatever host it asks for.
type forwarding struct {
	*sidecar
	client *http.Client
	signed atomic.Int64 // certificates that were asked for
}

// Certificate signs a certificate that is its own authority.
func (f *forwarding) Certificate(host string) (*tls.Certificate, error) {
	f.signed.Add(1)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses, template.DNSNames = []net.IP{ip}, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// startForwarding puts a forward proxy in front of everything; the upstream
// stands in for the host api.provider.test.
func startForwarding(t *testing.T, upstream string, change func(*Proxy)) *forwarding {
	t.Helper()
	f := &forwarding{}
	f.sidecar = start(t, upstream, func(p *Proxy) {
		p.Upstreams[0].Hosts = []string{"api.provider.test"}
		p.Forward = &Forward{Authority: func() (Certifier, error) { return f, nil }}
		if change != nil {
			change(p)
		}
	})
	f.client = f.through(t, true)
	return f
}

// through makes a client that has the sidecar as its proxy.
func (f *forwarding) through(t *testing.T, h2 bool) *http.Client {
	t.Helper()
	via, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyURL(via), ForceAttemptHTTP2: h2, DisableCompression: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // what is shown is looked at in the tests
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func streaming(w http.ResponseWriter, stream []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	for part := range bytes.SplitAfterSeq(stream, []byte("\n\n")) {
		w.Write(part)
		w.(http.Flusher).Flush()
	}
}

func TestAgentWithoutABaseURLIsMeasuredByProxyAndCAAlone(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	for _, h2 := range []bool{true, false} {
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/messages" || r.URL.RawQuery != "beta=true" || r.Header.Get("X-Api-Key") != "k" {
				t.Errorf("the upstream was asked %s with %v", r.URL, r.Header)
			}
			streaming(w, stream)
		})
		f := startForwarding(t, up, nil)
		client := f.through(t, h2)
		path, body := requestOf(wire.Messages, true)
		for range 2 {
			req, _ := http.NewRequest("POST", "https://api.provider.test"+path+"?beta=true", bytes.NewReader(body))
			req.Header.Set("X-Api-Key", "k")
			req.Header.Set(headerScenario, "Forward")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(got, stream) || h2 != (resp.ProtoMajor == 2) {
				t.Errorf("h2 %v: over %s came %q, %v", h2, resp.Proto, got, err)
			}
			if shown := resp.TLS.PeerCertificates[0]; shown.VerifyHostname("api.provider.test") != nil {
				t.Errorf("weir showed a certificate for %v", shown.DNSNames)
			}
		}
		f.call(t, 2)
		for n := range 2 {
			c := f.call(t, n+1)
			if c.Door != "connect" || c.Scenario != "forward" || c.Outcome != call.OK || !c.FirstToken.Reached() || c.Upstream != "up" || c.API != wire.Messages {
				t.Errorf("h2 %v: recorded %v by door %q", h2, c, c.Door)
			}
		}
	}
}

func TestAbsoluteRequestIsMeasured(t *testing.T) {
	stream := answerOf(wire.Chat, wire.SSE)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Connection") != "" || r.Header.Get("Proxy-Authorization") != "" {
			t.Errorf("headers for the proxy reached the upstream: %v", r.Header)
		}
		streaming(w, stream)
	})
	f := startForwarding(t, up, nil)
	path, body := requestOf(wire.Chat, true)
	req, _ := http.NewRequest("POST", "http://api.provider.test"+path, bytes.NewReader(body))
	req.Header.Set("Proxy-Connection", "keep-alive")
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !bytes.Equal(got, stream) {
		t.Errorf("came %q", got)
	}
	if c := f.call(t, 1); c.Door != "forward" || c.Outcome != call.OK || !c.FirstToken.Reached() {
		t.Errorf("recorded %v by door %q", c, c.Door)
	}
}

// The path of a forward proxy's request is the host's own.
func TestPathOfAForwardedRequestIsNotMended(t *testing.T) {
	var seen atomic.Value
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { seen.Store(r.RequestURI) })
	host := strings.TrimPrefix(up, "http://")
	f := startForwarding(t, "http://127.0.0.1:1/api", func(p *Proxy) { p.Forward.Hosts = []string{"127.0.0.*"} })
	for _, path := range []string{"/s/files/v1/v1/messages?a=%2F", "//v1/models", "/messages"} {
		resp, err := f.client.Post("http://"+host+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if seen.Load() != path {
			t.Errorf("%s arrived as %s", path, seen.Load())
		}
	}
}

func TestHostsThatAreNotMeasuredPassUnseen(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret "+r.Host) }))
	defer secure.Close()
	plain := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", r.URL.Path)
	})
	f := startForwarding(t, "http://127.0.0.1:1", nil)
	resp, err := f.client.Get(secure.URL + "/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := "secret " + strings.TrimPrefix(secure.URL, "https://"); string(body) != want {
		t.Errorf("through the tunnel came %q, want %q", body, want)
	}
	if !resp.TLS.PeerCertificates[0].Equal(secure.Certificate()) || f.signed.Load() != 0 {
		t.Error("weir looked into a tunnel to a host that is not measured")
	}
	resp, err = f.client.Post(plain+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "data: /v1/messages\n\n" {
		t.Errorf("came %q", body)
	}
	if err := f.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) != 0 {
		t.Errorf("recorded %v", f.calls)
	}
}

func TestProxyVariableThatLoopsBackIsServed(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	f := startForwarding(t, up, nil)
	local := strings.Replace(f.url, "127.0.0.1", "localhost", 1)
	for _, base := range []string{f.url, local} {
		resp, err := f.client.Get(base + "/s/loop/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "/v1/models" {
			t.Errorf("%s: %s", base, body)
		}
	}
	// Some clients open a tunnel even for plain HTTP.
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// All at once, which leaves the request behind the CONNECT in the server's buffer.
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nGET /s/loop/v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", strings.TrimPrefix(f.url, "http://"))
	all, _ := io.ReadAll(conn)
	if !strings.Contains(string(all), "200 Connection established") || !strings.HasSuffix(string(all), "/v1/models") {
		t.Errorf("through the tunnel to weir itself came %q", all)
	}
	f.call(t, 3)
	for n := range 3 {
		if c := f.call(t, n+1); c.Scenario != "loop" || c.Door != "reverse" {
			t.Errorf("recorded %v by door %q", c, c.Door)
		}
	}
}

func TestForwardProxyWantsTheTokenAsItsPassword(t *testing.T) {
	up := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	f := startForwarding(t, up, func(p *Proxy) { p.ClientToken = "t0ken" })
	for password, works := range map[string]bool{"": false, "wrong": false, "t0ken": true} {
		via, _ := url.Parse(f.url)
		via.User = url.UserPassword("weir", password)
		for _, scheme := range []string{"http", "https"} {
			client := f.through(t, false)
			client.Transport.(*http.Transport).Proxy = http.ProxyURL(via)
			resp, err := client.Get(scheme + "://api.provider.test/v1/models")
			ok := err == nil && resp.StatusCode == 200
			if err == nil {
				resp.Body.Close()
			}
			if ok != works {
				t.Errorf("%s with password %q: %v %v", scheme, password, resp, err)
			}
		}
	}
}

func TestUserOfTheProxyNamesWhatCallsBelongTo(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the proxy's user reached the upstream")
		}
	})
	f := startForwarding(t, up, nil)
	n := 0
	for user, want := range map[string]string{"s/重构 1/r/7f3a": "重构-1 by proxy in 7f3a", "r/7f3a": "untagged by default in 7f3a", "weir": "untagged by default in "} {
		via, _ := url.Parse(f.url)
		via.User = url.UserPassword(user, "x")
		for _, scheme := range []string{"http", "https"} {
			client := f.through(t, false)
			client.Transport.(*http.Transport).Proxy = http.ProxyURL(via)
			resp, err := client.Get(scheme + "://api.provider.test/v1/models")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			n++
			if c := f.call(t, n); c.Scenario+" by "+c.ScenarioFrom+" in "+c.Run != want {
				t.Errorf("%s with user %q: %q by %q in %q, want %s", scheme, user, c.Scenario, c.ScenarioFrom, c.Run, want)
			}
		}
	}
}

func TestDialErrorOfATunnelIsToldWithStatus502(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	f := startForwarding(t, "http://127.0.0.1:1", nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", nobody)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%v %v", resp, err)
	}
}

func TestWayToHostsThatAreNotMeasuredLeadsThroughTheUpstreamProxy(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "there") }))
	defer secure.Close()
	far := startForwarding(t, "http://127.0.0.1:1", func(p *Proxy) { p.ClientToken = "far" })
	via, _ := url.Parse(far.url)
	via.User = url.UserPassword("weir", "far")
	near := startForwarding(t, "http://127.0.0.1:1", func(p *Proxy) { p.Forward.Proxy = via })
	resp, err := near.client.Get(secure.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "there" {
		t.Errorf("came %q", body)
	}
	via.User = url.UserPassword("weir", "wrong")
	resp, err = near.through(t, false).Get(secure.URL)
	if err == nil {
		resp.Body.Close()
		t.Errorf("a proxy that refused let %s through", resp.Status)
	}
}

func TestUpgradeThroughATunnelThatWeirOpened(t *testing.T) {
	up := raw(t, func(conn net.Conn, r *http.Request) {
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello ")
		b := make([]byte, 5)
		io.ReadFull(conn, b)
		conn.Write(bytes.ToUpper(b))
	})
	f := startForwarding(t, up, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "CONNECT api.provider.test:443 HTTP/1.1\r\nHost: api.provider.test:443\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	io.WriteString(secure, "GET /socket HTTP/1.1\r\nHost: api.provider.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(secure)
	if resp, err = http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	io.WriteString(secure, "world")
	all, _ := io.ReadAll(r)
	if string(all) != "hello WORLD" {
		t.Errorf("through the tunnel came %q", all)
	}
	if c := f.call(t, 1); c.Door != "connect" || c.Status != 101 || c.Outcome != call.OK {
		t.Errorf("recorded %v by door %q", c, c.Door)
	}
}

func TestProxyWithoutUpstreamTellsReverseRequestsSo(t *testing.T) {
	f := startForwarding(t, "http://127.0.0.1:1", func(p *Proxy) { p.Upstreams = nil })
	resp, err := f.sidecar.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 404 || !strings.Contains(string(body), "--upstream") || !strings.Contains(string(body), `"type":"error"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if c := f.call(t, 1); c.Outcome != call.Unreachable {
		t.Errorf("recorded %v", c)
	}
}

func TestPatternOfMeasuredHostsIsChecked(t *testing.T) {
	p := &Proxy{Forward: &Forward{Hosts: []string{"[a"}}}
	if _, err := p.Handler(); err == nil || !strings.Contains(err.Error(), "pattern of host names") {
		t.Errorf("%v", err)
	}
	if (&Proxy{Forward: &Forward{}}).Close() != nil {
		t.Error("a forward proxy that never ran cannot be closed")
	}
}
