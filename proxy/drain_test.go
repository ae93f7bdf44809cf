package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

func TestWhoWaitsWhenTheProxyShutsDownIsRefusedAtOnceByWeir(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			goOn, begun := make(chan struct{}), make(chan struct{}, 1)
			up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				begun <- struct{}{}
				<-goOn
			})
			s := start(t, up, func(p *Proxy) {
				p.Shaper = &shaper.Shaper{}
				if _, _, err := p.Shaper.Change("concurrency=1"); err != nil {
					t.Fatal(err)
				}
			})
			said := make(chan *http.Response, 2)
			send := func() {
				resp, err := s.post(t, context.Background(), api)
				if err != nil {
					t.Error(err)
				}
				said <- resp
			}
			go send()
			<-begun
			go send()
			waitUntil(t, waitsFor(s, 1))
			shut := make(chan error, 1)
			go func() { shut <- s.Proxy.Shutdown(context.Background()) }()
			resp := <-said
			if resp == nil {
				t.FailNow()
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			e, ok := wire.For(api).ParseError(body)
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "" || !ok || !strings.Contains(e.Message, "weir: refused: it is stopping") {
				t.Errorf("answered %d %v %s", resp.StatusCode, resp.Header, body)
			}
			close(goOn) // the stream under way has gone on
			if resp := <-said; resp != nil {
				resp.Body.Close()
			}
			if err := <-shut; err != nil {
				t.Error(err)
			}
			if c := s.call(t, 2); c.Outcome != call.Refused || c.Admitted.Reached() || c.LaneLimit != "in flight" {
				t.Errorf("recorded %v, admitted %v, waited for %q", c, c.Admitted, c.LaneLimit)
			}
		})
	}
}

func TestWhoWaitsOverAWebSocketWhenTheProxyShutsDownIsRefusedByWeir(t *testing.T) {
	s, asked, answer, other := busyLane(t, nil)
	conn := dialSocket(t, s.url, websocket.CompressionContextTakeover)
	ask(t, conn, create("second"))
	waitUntil(t, waitsFor(s, 1))
	shut := make(chan error, 1)
	go func() { shut <- s.Proxy.Shutdown(context.Background()) }()
	said := hear(t, conn, "stopping")[0]
	if want := `{"type":"error","status":503,"error":{"message":"weir: refused: it is stopping, and the call was not sent; send it again when weir runs","type":"service_unavailable"`; !strings.HasPrefix(said, want) {
		t.Errorf("it was told %s, want %s", said, want)
	}
	wantGoingAway(t, conn)
	answer <- completed("r1", 5, 1) // the response under way has gone on
	hear(t, other, "r1")
	wantGoingAway(t, other)
	if err := <-shut; err != nil {
		t.Error(err)
	}
	turns := turnsOf(t, s, 4)
	if c := turns[1]; turns[0].Outcome != call.OK || c.Outcome != call.Refused || c.Status != 503 || c.Admitted.Reached() || len(asked()) != 1 {
		t.Errorf("recorded %v, asked %q", turns, asked())
	}
}

// wantGoingAway wants nothing but the close that says so.
func wantGoingAway(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	if _, message, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("heard %q, %v: want a close with 1001", message, err)
	}
}

func TestAnIdleWebSocketDoesNotHoldUpTheShutdown(t *testing.T) {
	for _, mode := range []string{"a client that answers the close", "one that does not"} {
		t.Run(mode, func(t *testing.T) {
			s, asked, answer := laned(t, "concurrency=1", nil)
			conn := dialSocket(t, s.url, websocket.CompressionDisabled)
			ask(t, conn, create("first"))
			waitUntil(t, func() bool { return len(asked()) == 1 })
			answer <- completed("r1", 5, 1)
			hear(t, conn, "r1")
			s.call(t, 1) // its response is over for weir, too
			shut := make(chan error, 1)
			go func() { shut <- s.Proxy.Shutdown(context.Background()) }()
			if mode == "a client that answers the close" {
				wantGoingAway(t, conn)
			}
			if err := <-shut; err != nil {
				t.Error(err)
			}
			for i := range 2 {
				if c := s.call(t, i+1); c.Outcome != call.OK {
					t.Errorf("recorded %v of %q", c, c.Purpose)
				}
			}
		})
	}
}

// A response of another lane of the socket is under way, in the midst of a
// message: weir's word waits for its end.
func TestAnErrorEventDoesNotStandInsideAMessage(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		_, _ = rw.Peek(1)
		message := completed("r1", 5, 1)
		conn.Write(append([]byte{firstOfText, 10}, message[:10]...))
		_, _ = io.Copy(io.Discard, io.LimitReader(rw, 1<<10)) // until the rest is to come
		rest := message[10:]
		conn.Write(append([]byte{lastOfText, 126, byte(len(rest) >> 8), byte(len(rest))}, rest...))
		_, _ = io.Copy(io.Discard, rw)
	})
	s := start(t, up, func(p *Proxy) {
		p.Shaper = &shaper.Shaper{}
		if _, _, err := p.Shaper.Change("concurrency=1"); err != nil {
			t.Fatal(err)
		}
	})
	conn := dialByHand(t, s.url)
	conn.say(t, maskedFrame(wholeText, create("first")), maskedFrame(wholeText, create("second")))
	conn.wants(t, firstOfText, `{"type"`)
	waitUntil(t, waitsFor(s, 1))
	shut := make(chan error, 1)
	go func() { shut <- s.Proxy.Shutdown(context.Background()) }()
	waitUntil(t, waitsFor(s, 0))
	conn.say(t, bytes.Repeat(maskedFrame(pongFrame, strings.Repeat("x", 120)), 8))
	conn.wants(t, lastOfText, `r1`)
	conn.wants(t, wholeText, `"status":503`)
	conn.wants(t, closeFrame, "\x03\xe9weir is stopping")
	if err := <-shut; err != nil {
		t.Error(err)
	}
}
