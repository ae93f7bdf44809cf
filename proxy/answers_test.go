package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

// exchangeRaw sends bytes to the sidecar and gives all that comes back before
// it closes the connection; the request should ask for that.
func (s *sidecar) exchangeRaw(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, request)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestAnswersWithoutABodyStayWithoutOne(t *testing.T) {
	for _, row := range []struct{ name, method, answer, want string }{
		{"HEAD keeps the length it is told", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nConnection: close\r\n\r\n"},
		{"204", "GET", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", "HTTP/1.1 204 No Content\r\nX-A: b\r\nConnection: close\r\n\r\n"},
		{"304 keeps its ETag", "GET", "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\nConnection: close\r\n\r\n"},
		{"empty 200", "POST", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
	} {
		up := raw(t, func(conn net.Conn, _ *http.Request) { io.WriteString(conn, row.answer) })
		s := start(t, up, nil)
		got := s.exchangeRaw(t, row.method+" /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
		if c := s.call(t, 1); c.Outcome != call.OK {
			t.Errorf("%s: recorded %v", row.name, c)
		}
	}
}

func TestHeadersOfOneConnectionStayOnIt(t *testing.T) {
	var got string
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for {
			line, err := in.ReadString('\n')
			if got += line; err != nil || line == "\r\n" {
				break
			}
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: timeout=5\r\nX-Mine: 1\r\nProxy-Authenticate: Basic\r\nRequest-Id: r1\r\nX-Codex-Turn-State: s\r\nServer: up\r\nContent-Length: 2\r\n\r\nhi")
	}()
	defer func() { l.Close(); <-done }()
	s := start(t, "http://"+l.Addr().String(), nil)
	answer := s.exchangeRaw(t, "GET /p?a=1&&b;c=%zz HTTP/1.1\r\nHost: weir.local\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\nX-Weir-Scenario: a\r\nX-Weir-Token: t\r\nAuthorization: Bearer k\r\nX-Api-Key: k2\r\n\r\n")
	// The query verbatim, the upstream's own name as Host, no User-Agent,
	// Accept-Encoding or X-Forwarded-For invented.
	want := "GET /p?a=1&&b;c=%zz HTTP/1.1\r\nHost: " + l.Addr().String() + "\r\nAuthorization: Bearer k\r\nTe: trailers\r\nX-Api-Key: k2\r\n\r\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the upstream got (-want +got):\n%s", diff)
	}
	want = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRequest-Id: r1\r\nServer: up\r\nX-Codex-Turn-State: s\r\nConnection: close\r\n\r\nhi"
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("the client got (-want +got):\n%s", diff)
	}
}

func TestTrailersPass(t *testing.T) {
	for _, announced := range []bool{true, false} {
		upstream, ca := secure(t, true, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if string(b) != "ab" || r.Trailer.Get("X-Sum") != "2" {
				t.Errorf("the upstream read %q with trailers %v", b, r.Trailer)
			}
			if announced {
				w.Header().Set("Trailer", "Grpc-Status")
			}
			io.WriteString(w, "body")
			w.(http.Flusher).Flush()
			name := "Grpc-Status"
			if !announced {
				name = http.TrailerPrefix + name
			}
			w.Header().Set(name, "0")
		})
		s := start(t, upstream, func(p *Proxy) { p.Upstreams[0].CAFile = ca })
		req, _ := http.NewRequest("POST", s.url+"/x", io.MultiReader(strings.NewReader("ab")))
		req.Trailer = http.Header{"X-Sum": {"2"}}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != "body" || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("announced %v: %q, trailers %v, %v", announced, b, resp.Trailer, err)
		}
	}
}

func TestEarlyHintsPass(t *testing.T) {
	up := raw(t, func(conn net.Conn, _ *http.Request) {
		io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\nhi")
	})
	s := start(t, up, nil)
	var hints []string
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h["Link"]))
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, "GET", s.url+"/x", nil)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if diff := cmp.Diff([]string{"103 [</a>]"}, hints); diff != "" || resp.Header.Get("X-A") != "1" || resp.Header.Get("Link") != "" {
		t.Errorf("hints %v, final headers %v", hints, resp.Header)
	}
}

// A download is read in larger pieces than events are, and comes out the same.
func TestLargeAnswersPass(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	s := start(t, up, nil)
	resp, err := s.client.Get(s.url + "/v1/files/f/content")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d of %d bytes, %v", len(got), len(body), err)
	}
	if c := s.call(t, 1); c.ResponseBytes != int64(len(body)) {
		t.Errorf("recorded %d bytes", c.ResponseBytes)
	}
}
