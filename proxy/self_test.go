package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"weir/store/call"
)

// A proxy whose upstream is itself says so at the first request, by whichever
// way it would come back.
func TestProxyThatLeadsToItselfDoesNotLoop(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := &url.URL{Scheme: "http", Host: l.Addr().String()}
	far := &url.URL{Scheme: "http", Host: "far.test"}
	for name, up := range map[string]Upstream{
		"upstream":             {URL: own},
		"by another name":      {URL: &url.URL{Scheme: "http", Host: strings.Replace(own.Host, "127.0.0.1", "localhost", 1)}},
		"proxy to an upstream": {URL: far, Proxy: own},
	} {
		p := &Proxy{Upstreams: []Upstream{up}, Forward: &Forward{Proxy: own}}
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		p.listening.Store(l.Addr().(*net.TCPAddr))
		server := &http.Server{Handler: p.server.Handler}
		// The listener is the loop's: one that sees a request come back fails.
		var requests atomic.Int64
		h := server.Handler
		server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > 1 {
				t.Errorf("%s: a request came back", name)
			}
			h.ServeHTTP(w, r)
		})
		next, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go server.Serve(next)
		go func() { // what dials weir's own address is taken, and dropped
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		resp, err := http.Get("http://" + next.Addr().String() + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusLoopDetected || !strings.Contains(string(body), "Point --upstream at the endpoint") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		p.Close()
	}
	l.Close()
}

func TestServingProxyKnowsItsOwnAddress(t *testing.T) {
	s := start(t, "http://127.0.0.1:1", nil)
	s.Handler()
	own, _ := url.Parse(s.url)
	resp, err := s.client.Get(s.url + "/v1/models") // by now it listens
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if conn, err := s.dial(t.Context(), "tcp", own.Host); err == nil {
		conn.Close()
		t.Error("it connects to itself")
	}
}

func TestWebPageDoesNotSpendKeysThatWeirHolds(t *testing.T) {
	var reached atomic.Int64
	up := upstreamOf(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, row := range []struct {
		sentence string
		headers  map[string]string
		held     bool
		token    string
		want     int
	}{
		{"a program", nil, true, "", 200},
		{"a page of this machine's", map[string]string{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, true, "", 200},
		{"a name that leads here", map[string]string{"Host": "evil.example"}, true, "", 403},
		{"a page of another site's", map[string]string{"Origin": "https://evil.example"}, true, "", 403},
		{"one that hides whose it is", map[string]string{"Origin": "null"}, true, "", 403},
		{"one that the browser tells of", map[string]string{"Sec-Fetch-Site": "cross-site"}, true, "", 403},
		{"a page that has the key itself", map[string]string{"Origin": "https://app.example"}, false, "", 200},
		{"one that knows the token", map[string]string{"Origin": "https://app.example", headerToken: "t"}, true, "t", 200},
	} {
		s := start(t, up, func(p *Proxy) {
			p.ClientToken = row.token
			if row.held {
				p.Upstreams[0].Keys = secrets("held-key-1")
			}
		})
		before := reached.Load()
		req, _ := http.NewRequest("POST", s.url+"/v1/chat/completions", strings.NewReader("{}"))
		for name, value := range row.headers {
			req.Header.Set(name, value)
		}
		req.Host = req.Header.Get("Host")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != row.want || (reached.Load() > before) != (row.want == 200) {
			t.Errorf("%s: %d, and the endpoint was reached: %v", row.sentence, resp.StatusCode, reached.Load() > before)
		}
		if c := s.call(t, 1); row.want == 403 && c.Outcome != call.Refused {
			t.Errorf("%s: recorded %v", row.sentence, c)
		}
	}
}

func TestHeldKeysTakeTurnsWhenCallsFollowEachOther(t *testing.T) {
	k := newKeyring(secrets("a", "b", "c"))
	var order []string
	for range 6 {
		key := k.take()
		order = append(order, key.secret.reveal())
		k.give(key, &call.Call{Outcome: call.OK})
	}
	if got := strings.Join(order, ""); got != "abcabc" {
		t.Errorf("keys came in the order %s", got)
	}
}

func TestTunnelWithEarlyBytesMayBeHalfClosed(t *testing.T) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	go func() {
		conn, err := far.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // to the client's half close
		fmt.Fprintf(conn, "heard %s", all)
	}()
	f := startForwarding(t, "http://127.0.0.1:1", nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nearly ", far.Addr())
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	io.WriteString(conn, "late")
	conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(in); err != nil || string(got) != "heard early late" {
		t.Errorf("through the tunnel came %q, %v", got, err)
	}
}

func TestTunnelsWantAHostAndAPort(t *testing.T) {
	f := startForwarding(t, "http://127.0.0.1:1", nil)
	for _, target := range []string{":443", "u:p@127.0.0.1:443", "127.0.0.1:443/x", "127.0.0.1:99999", "127.0.0.1:x"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 400 {
			t.Errorf("%s: %v %v", target, resp, err)
		}
		conn.Close()
	}
	for _, target := range []string{"ftp://x/", "http:///x"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 400 {
			t.Errorf("%s: %v %v", target, resp, err)
		}
		conn.Close()
	}
}
