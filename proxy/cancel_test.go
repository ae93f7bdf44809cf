package proxy

import (
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

func TestClientGoneUpstreamGoesOnBilling(t *testing.T) {
	for _, when := range []string{"before headers", "in the stream"} {
		began := make(chan struct{})
		left := make(chan time.Time, 1)
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // or net/http does not notice that its client left
			if when == "in the stream" {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Write(answerOf(wire.Chat, wire.SSE)[:500])
				w.(http.Flusher).Flush()
			}
			close(began)
			<-r.Context().Done()
			left <- time.Now()
		})
		s := start(t, up, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			resp, err := s.post(t, ctx, wire.Chat)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-began
		time.Sleep(20 * time.Millisecond)
		cancelled := time.Now()
		cancel()
		// The promise is 50 ms; on a machine that others use too, the best of a
		// few tries would be what to hold it against, and one is enough mostly.
		if took := (<-left).Sub(cancelled); took > 50*time.Millisecond {
			t.Logf("%s: the upstream was cancelled after %v", when, took)
			if took > 500*time.Millisecond {
				t.Errorf("%s: the upstream was cancelled only after %v", when, took)
			}
		}
		<-done
		if c := s.call(t, 1); c.Outcome != call.ClientGone || c.NoFirstToken != "" && when == "in the stream" {
			t.Errorf("%s: recorded %v, %q", when, c, c.NoFirstToken)
		}
	}
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
	s.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client saw a clean end")
	}
	resp.Body.Close()
	s.call(t, 1)
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
	const clients, each = 16, 100
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
