package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestBrokenUpstreamShownAsACleanEnd(t *testing.T) {
	event := answerOf(wire.Chat, wire.SSE)[:400]
	for _, row := range []struct {
		name, head string
		outcome    call.Outcome
	}{
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n190\r\n", call.Truncated},
		{"content length", "Content-Length: 9999\r\n\r\n", call.Truncated},
	} {
		for _, h2 := range []bool{false, true} {
			up := raw(t, func(conn net.Conn, r *http.Request) {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s%s", row.head, event)
			})
			s := start(t, up, nil)
			if h2 {
				var p http.Protocols
				p.SetUnencryptedHTTP2(true)
				s.client.Transport = &http.Transport{Protocols: &p}
			}
			resp, err := s.post(t, context.Background(), wire.Chat)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || strings.Contains(string(got), "[DONE]") {
				t.Errorf("%s, h2 %v: read %d bytes and error %v: a break must stay a break", row.name, h2, len(got), err)
			}
			if c := s.call(t, 1); c.Outcome != row.outcome || !c.FirstToken.Reached() || !c.Done.Reached() {
				t.Errorf("%s, h2 %v: recorded %v", row.name, h2, c)
			}
			s.client.CloseIdleConnections()
		}
	}
}

// The promise is 50 ms from the client's cancel to the upstream's. Others use
// the machine too, so the best of some tries is held to it.
func TestClientGoneUpstreamGoesOnBilling(t *testing.T) {
	const promise, tries = 50 * time.Millisecond, 10
	for _, h2 := range []bool{false, true} {
		for _, when := range []string{"before headers", "in the stream"} {
			best := time.Hour
			for n := 0; n < tries && best > promise; n++ {
				best = min(best, cancelOnce(t, when == "in the stream", h2))
			}
			if best > promise {
				t.Errorf("%s, h2 %v: of %d tries, the upstream was cancelled at the soonest after %v", when, h2, tries, best)
			}
		}
	}
}

// cancelOnce is how long after its client a call was cancelled upstream.
func cancelOnce(t *testing.T, inStream, h2 bool) time.Duration {
	t.Helper()
	began := make(chan struct{})
	left := make(chan time.Time, 1)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or net/http does not notice that its client left
		if inStream {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write(answerOf(wire.Chat, wire.SSE)[:500])
			w.(http.Flusher).Flush()
		}
		close(began)
		<-r.Context().Done()
		left <- time.Now()
	})
	s := start(t, up, nil)
	if h2 {
		var p http.Protocols
		p.SetUnencryptedHTTP2(true)
		s.client.Transport = &http.Transport{Protocols: &p}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	read := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := s.post(t, ctx, wire.Chat)
		if err == nil {
			io.ReadFull(resp.Body, make([]byte, 500))
			close(read)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	<-began
	if inStream {
		<-read
	}
	cancelled := time.Now()
	cancel()
	took := (<-left).Sub(cancelled)
	<-done
	c := s.call(t, 1)
	if c.Outcome != call.ClientGone || inStream == (c.NoFirstToken != "") {
		t.Errorf("in the stream %v: recorded %v, %q", inStream, c, c.NoFirstToken)
	}
	s.client.CloseIdleConnections()
	return took
}

// Codex drops the connection right after response.completed, every time.
func TestClientThatLeavesAfterTheTerminalEventIsOK(t *testing.T) {
	stream := answerOf(wire.Responses, wire.SSE)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // keeps the body open
	})
	s := start(t, up, nil)
	resp, err := s.post(t, context.Background(), wire.Responses)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, len(stream))); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := s.call(t, 1); c.Outcome != call.OK {
		t.Errorf("recorded %v", c)
	}
}

func TestShutdownDrainsStreams(t *testing.T) {
	next := make(chan struct{})
	stream := answerOf(wire.Chat, wire.SSE)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream[:300])
		w.(http.Flusher).Flush()
		<-next
		w.Write(stream[300:])
	})
	s := start(t, up, nil)
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Proxy.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		close(next)
		t.Fatalf("shutdown did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(next)
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.Equal(got, stream) {
		t.Errorf("the stream under way gave %d of %d bytes, %v", len(got), len(stream), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c := s.call(t, 1); c.Outcome != call.OK {
		t.Errorf("recorded %v", c)
	}
}

func TestCloseEndsStreamsAndRecordsThem(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write([]byte("data: {}\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := start(t, up, nil)
	resp, err := s.post(t, context.Background(), wire.Chat)
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(resp.Body, make([]byte, 10))
	s.Close()
	if len(s.calls) != 1 { // what is not recorded by now never is: the store closes next
		t.Fatalf("%d calls were recorded when Close returned, want 1", len(s.calls))
	}
	if c := s.calls[0]; c.Outcome != call.Truncated || c.ErrorMessage != errStopped.Error() {
		t.Errorf("recorded %v: %q", c, c.ErrorMessage)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client saw a clean end")
	}
	resp.Body.Close()
}

// A tunnel is no connection of the server's any more, and still under way.
func TestTunnelIsDrainedAndClosed(t *testing.T) {
	up := raw(t, func(conn net.Conn, r *http.Request) {
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		io.Copy(conn, conn)
	})
	s := start(t, up, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/responses HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	io.WriteString(conn, "hello")
	if _, err := io.ReadFull(r, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Proxy.Shutdown(soon); err == nil {
		t.Error("Shutdown did not wait for the tunnel")
	}
	s.Close()
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel outlived Close")
	}
	if len(s.calls) != 1 || s.calls[0].Status != 101 || s.calls[0].RequestBytes != 5 || s.calls[0].ResponseBytes != 5 {
		t.Errorf("recorded %v", s.calls)
	}
}

// golang/go#40747: a stock reverse proxy cuts streams whose upstream answers
// while the request's body is still being read.
func TestFastAnswersAreNotCut(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(stream) // before the request was read
	})
	s := start(t, up, nil)
	const clients, each = 20, 150
	var wg sync.WaitGroup
	var cut atomic.Int64
	body := []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("words ", 5000) + `"}]}`)
	for range clients {
		wg.Go(func() {
			for range each {
				resp, err := s.client.Post(s.url+"/v1/messages", "application/json", bytes.NewReader(body))
				if err != nil {
					cut.Add(1)
					continue
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !bytes.Equal(got, stream) {
					cut.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if cut.Load() > 0 {
		t.Errorf("%d of %d streams were cut", cut.Load(), clients*each)
	}
	for n := range clients * each {
		if c := s.call(t, n+1); c.Outcome != call.OK {
			t.Fatalf("recorded %v: %s", c, c.ErrorMessage)
		}
	}
}
