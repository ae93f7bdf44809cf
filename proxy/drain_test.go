package proxy

import (
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
	conn := dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, conn, create("second"))
	waitUntil(t, waitsFor(s, 1))
	shut := make(chan error, 1)
	go func() { shut <- s.Proxy.Shutdown(context.Background()) }()
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("it was answered")
	}
	answer <- completed("r1", 5, 1)
	hear(t, other, "r1")
	other.CloseNow()
	if err := <-shut; err != nil {
		t.Error(err)
	}
	turns := turnsOf(t, s, 4)
	if c := turns[1]; turns[0].Outcome != call.OK || c.Outcome != call.Refused || c.Admitted.Reached() || len(asked()) != 1 {
		t.Errorf("recorded %v, asked %q", turns, asked())
	}
}
