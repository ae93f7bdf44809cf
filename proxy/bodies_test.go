package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestHeadersHeldBackUntilTheFirstBodyByte(t *testing.T) {
	release := make(chan struct{})
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-release
	})
	s := start(t, up, nil)
	resp, err := s.post(t, context.Background(), wire.Chat) // hangs if headers wait for a byte
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	resp.Body.Close()
}

func TestOnlyEventStreamsFlushed(t *testing.T) {
	for _, kind := range []string{"application/x-ndjson", "application/vnd.amazon.eventstream", "text/event-stream; charset=utf-8", "application/json"} {
		next := make(chan struct{})
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			for range 3 {
				fmt.Fprint(w, "{}\n")
				w.(http.Flusher).Flush()
				<-next
			}
		})
		s := start(t, up, nil)
		resp, err := s.post(t, context.Background(), wire.Chat)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for range 3 { // each line must come before the next is written
			if _, err := lines.ReadString('\n'); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			next <- struct{}{}
		}
		resp.Body.Close()
	}
}

func TestLargeBodiesPass(t *testing.T) {
	for _, hold := range []int64{0, 1 << 20} {
		var got atomic.Int64
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				t.Error(err)
			}
			got.Store(n)
		})
		s := start(t, up, func(p *Proxy) { p.HoldBody = hold })
		body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 32<<20) + `"}]}`
		for _, chunked := range []bool{false, true} {
			var from io.Reader = strings.NewReader(body)
			if chunked {
				from = io.MultiReader(from)
			}
			resp, err := s.client.Post(s.url+"/v1/chat/completions", "application/json", from)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got.Load() != int64(len(body)) || resp.StatusCode != 200 {
				t.Errorf("hold %d, chunked %v: %d of %d bytes arrived, status %d", hold, chunked, got.Load(), len(body), resp.StatusCode)
			}
		}
	}
}

func TestExpectContinueStalls(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	s := start(t, up, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v; want 100 Continue", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil { // the blank line after it
		t.Fatal(err)
	}
	io.WriteString(conn, "hello")
	resp := readFinal(t, r)
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("got %q", body)
	}
}

// An upstream that refuses a request by its headers is asked before it gets the
// body. Where weir need not read the body itself, its caller keeps it too.
func TestExpectIsForwarded(t *testing.T) {
	asked := make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			head := ""
			for !strings.HasSuffix(head, "\r\n\r\n") {
				line, err := r.ReadString('\n')
				if err != nil {
					break
				}
				head += line
			}
			io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			body, _ := io.ReadAll(r) // until weir has closed the connection
			conn.Close()
			asked <- head + string(body)
		}
	}()
	s := start(t, "http://"+l.Addr().String(), nil)
	for _, row := range []struct {
		path string
		read bool // by weir
	}{{"/v1/chat/completions", true}, {"/v1/files", false}} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n", row.path)
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.read {
			if resp.StatusCode != http.StatusContinue {
				t.Fatalf("%s: status %d, want 100", row.path, resp.StatusCode)
			}
			io.WriteString(conn, `{"model": "m"}`)
			resp = readFinal(t, r)
		}
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want the upstream's 401", row.path, resp.StatusCode)
		}
		conn.Close()
		if head := <-asked; !strings.Contains(head, "\r\nExpect: 100-continue\r\n") || !strings.HasSuffix(head, "\r\n\r\n") {
			t.Errorf("%s: the upstream got %q", row.path, head)
		}
	}
}

func readFinal(t *testing.T, r *bufio.Reader) *http.Response {
	t.Helper()
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode >= 200 {
			return resp
		}
	}
}

func TestUnknownPathsPassUntouched(t *testing.T) {
	var got *http.Request
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { got = r; w.WriteHeader(204) })
	s := start(t, up, nil)
	for _, row := range []struct {
		method, target string
		operation      wire.Operation
	}{
		{"HEAD", "/", wire.OpOther}, {"GET", "/v1/models?limit=1000", wire.OpModels}, {"DELETE", "/v1/files/a%2Fb?x=1&&y", wire.OpOther},
		{"POST", "/v1/messages/count_tokens?beta=true", wire.OpCountTokens}, {"GET", "/v1/responses/resp_1", wire.OpOther}, {"HEAD", "/api/hello", wire.OpOther},
	} {
		n := len(s.calls)
		req, _ := http.NewRequest(row.method, s.url+row.target, nil)
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got.Method != row.method || got.RequestURI != row.target || resp.StatusCode != 204 {
			t.Errorf("%s %s arrived as %s %s, status %d", row.method, row.target, got.Method, got.RequestURI, resp.StatusCode)
		}
		if c := s.call(t, n+1); c.Operation != row.operation || c.Outcome != call.OK || c.NoFirstToken != call.AbsentOperation {
			t.Errorf("%s %s: recorded %v as %s, %q", row.method, row.target, c, c.Operation, c.NoFirstToken)
		}
	}
}
