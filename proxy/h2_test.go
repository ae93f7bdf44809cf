package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"encoding/pem"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"weir/proxy/wire"
	"weir/store/call"
)

// h2Conn is one connection of an upstream that speaks HTTP/2 by hand.
type h2Conn struct {
	*http2.Framer
	net.Conn
	n int // which connection of the upstream, from 1
}

// head answers a stream with a head, whose body follows.
func (c *h2Conn) head(stream uint32) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = e.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/event-stream"})
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: b.Bytes(), EndHeaders: true})
}

// handH2 serves each request of each connection by hand: request is called when
// the whole of one has come, and says whether the connection is read any
// further.
func handH2(t *testing.T, request func(c *h2Conn, stream uint32, body []byte) (goOn bool)) (upstream, ca string) {
	t.Helper()
	some := httptest.NewTLSServer(nil) // for its certificate
	some.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: some.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: some.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(conn, preface); err != nil {
					return
				}
				c := &h2Conn{Framer: http2.NewFramer(conn, conn), Conn: conn, n: n}
				_ = c.WriteSettings()
				bodies := map[uint32][]byte{}
				for {
					frame, err := c.ReadFrame()
					if err != nil {
						return
					}
					switch f := frame.(type) {
					case *http2.SettingsFrame:
						if !f.IsAck() {
							_ = c.WriteSettingsAck()
						}
					case *http2.PingFrame:
						if !f.IsAck() {
							_ = c.WritePing(true, f.Data)
						}
					case *http2.DataFrame:
						bodies[f.StreamID] = append(bodies[f.StreamID], f.Data()...)
						if f.StreamEnded() && !request(c, f.StreamID, bodies[f.StreamID]) {
							return
						}
					}
				}
			})
		}
	})
	return "https://" + l.Addr().String(), ca
}

// startH2 puts a sidecar in front of an upstream with a certificate of its own.
func startH2(t *testing.T, upstream, ca string) *sidecar {
	return start(t, upstream, func(p *Proxy) { p.Upstreams[0].CAFile = ca })
}

func TestGoAwayLostARequestWhoseBodyCouldBeSentAgain(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	var bodies atomic.Value
	upstream, ca := handH2(t, func(c *h2Conn, id uint32, body []byte) bool {
		if c.n == 1 {
			_ = c.WriteGoAway(0, http2.ErrCodeNo, nil) // no stream was or will be processed
			return false
		}
		bodies.Store(body)
		c.head(id)
		_ = c.WriteData(id, true, stream)
		return true
	})
	s := startH2(t, upstream, ca)
	resp, err := s.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	_, want := requestOf(wire.Messages, true)
	if err != nil || !bytes.Equal(got, stream) || !bytes.Equal(bodies.Load().([]byte), want) {
		t.Errorf("%v; came %q, of the request %q", err, got, bodies.Load())
	}
	if c := s.call(t, 1); c.Outcome != call.OK || c.Attempts != 2 || !c.FirstToken.Reached() {
		t.Errorf("recorded %v after %d attempts", c, c.Attempts)
	}
}

// What the upstream may have begun to process is not sent twice: it would be
// paid twice.
func TestRequestThatMayHaveBeenProcessedIsNotSentAgain(t *testing.T) {
	var requests atomic.Int64
	upstream, ca := handH2(t, func(c *h2Conn, id uint32, _ []byte) bool {
		requests.Add(1)
		_ = c.WriteGoAway(id, http2.ErrCodeInternal, nil)
		return false
	})
	s := startH2(t, upstream, ca)
	resp, err := s.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway || requests.Load() != 1 {
		t.Errorf("status %d after %d requests", resp.StatusCode, requests.Load())
	}
	if c := s.call(t, 1); c.Outcome != call.Truncated || c.Attempts != 1 {
		t.Errorf("recorded %v after %d attempts", c, c.Attempts)
	}
}

func TestStreamThatHTTP2ResetsIsBrokenForTheClientToo(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	half := stream[:len(stream)/2]
	for name, end := range map[string]func(*h2Conn, uint32) bool{
		"reset":  func(c *h2Conn, id uint32) bool { return c.WriteRSTStream(id, http2.ErrCodeInternal) == nil },
		"goaway": func(c *h2Conn, id uint32) bool { _ = c.WriteGoAway(id, http2.ErrCodeNo, nil); return false },
		"closed": func(*h2Conn, uint32) bool { return false },
	} {
		upstream, ca := handH2(t, func(c *h2Conn, id uint32, _ []byte) bool {
			c.head(id)
			_ = c.WriteData(id, false, half)
			return end(c, id)
		})
		s := startH2(t, upstream, ca)
		resp, err := s.post(t, context.Background(), wire.Messages)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil || !bytes.Equal(got, half) {
			t.Errorf("%s: the client saw %d of %d bytes end with %v", name, len(got), len(half), err)
		}
		if c := s.call(t, 1); c.Outcome != call.Truncated || !c.FirstToken.Reached() {
			t.Errorf("%s: recorded %v", name, c)
		}
	}
}

// An upstream that takes a request is running: what it did is said, and not
// where it may be.
func TestHTTP2ResetBeforeTheAnswerIsNotTakenForAnUnreachableUpstream(t *testing.T) {
	upstream, ca := handH2(t, func(c *h2Conn, id uint32, _ []byte) bool {
		return c.WriteRSTStream(id, http2.ErrCodeInternal) == nil
	})
	s := startH2(t, upstream, ca)
	resp, err := s.post(t, context.Background(), wire.Messages)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 502 || !bytes.Contains(got, []byte("got no answer from")) || !bytes.Contains(got, []byte("It took the request and broke off")) || bytes.Contains(got, []byte("Is it running")) {
		t.Errorf("status %d, %s", resp.StatusCode, got)
	}
	if c := s.call(t, 1); c.Outcome != call.Truncated {
		t.Errorf("recorded %v", c)
	}
}

func TestDeadH2ConnectionIsNotReused(t *testing.T) {
	stream := answerOf(wire.Chat, wire.SSE)
	frozen := make(chan struct{})
	upstream, ca := handH2(t, func(c *h2Conn, id uint32, _ []byte) bool {
		c.head(id)
		_ = c.WriteData(id, true, stream)
		if c.n > 1 {
			return true
		}
		// From here on nothing is answered, no ping either, until the other end
		// gives the connection up.
		for {
			if _, err := c.ReadFrame(); err != nil {
				close(frozen)
				return false
			}
		}
	})
	s := startH2(t, upstream, ca)
	if _, err := s.Handler(); err != nil {
		t.Fatal(err)
	}
	// As it is set, in less time.
	s.upstreams[0].transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: 20 * time.Millisecond}
	for n := range 2 {
		resp, err := s.post(t, context.Background(), wire.Chat)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, stream) {
			t.Errorf("request %d: %q, %v", n+1, got, err)
		}
		if n == 0 {
			<-frozen
		}
	}
}

func TestHTTP2ClientThatCancelsCancelsUpstream(t *testing.T) {
	cancelled := make(chan struct{})
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(cancelled)
	})
	s := start(t, up, nil)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	path, body := requestOf(wire.Chat, true)
	req, _ := http.NewRequestWithContext(ctx, "POST", s.url+path, bytes.NewReader(body))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel() // one stream of the connection, which stays
	<-cancelled
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("the client saw %v", err)
	}
	resp.Body.Close()
	if c := s.call(t, 1); c.Outcome != call.ClientGone {
		t.Errorf("recorded %v", c)
	}
}

func TestIdleLimitsKillThinkingStreams(t *testing.T) {
	u, _ := url.Parse("https://127.0.0.1:1")
	p := &Proxy{Upstreams: []Upstream{{URL: u}}, Forward: &Forward{}}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]*http.Server{"reverse": p.server, "tunnels": p.forward.tunnels} {
		if server.ReadTimeout != 0 || server.WriteTimeout != 0 || server.IdleTimeout != 0 {
			t.Errorf("the %s server limits how long a stream may be silent: %v %v %v", name, server.ReadTimeout, server.WriteTimeout, server.IdleTimeout)
		}
	}
	for _, u := range []*Upstream{p.upstreams[0], &p.forward.direct} {
		transport := u.transport
		if transport.ResponseHeaderTimeout != 0 {
			t.Errorf("an upstream may think for %v at most", transport.ResponseHeaderTimeout)
		}
		if transport.HTTP2.SendPingTimeout != 30*time.Second {
			t.Errorf("a dead connection is looked for after %v", transport.HTTP2.SendPingTimeout)
		}
	}
}
