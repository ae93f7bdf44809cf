package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/call"
)

func TestPanicIsRecorded(t *testing.T) {
	s := start(t, "http://127.0.0.1:1", func(p *Proxy) {
		p.Match = func(loadmodel.Facts) (string, bool) { panic("a rule that fails") }
	})
	if resp, err := s.post(t, context.Background(), wire.Chat); err == nil {
		resp.Body.Close()
		t.Error("the client saw an answer")
	}
	if c := s.call(t, 1); c.Outcome == call.OK || c.Request.Model != "model-x" || !c.Done.Reached() {
		t.Errorf("recorded %v", c)
	}
}

// brokenFormat fails on every event.
type brokenFormat struct{ wire.Format }

func (brokenFormat) ParseEvent(*wire.Event, wire.Frame) error { panic("a parser that fails") }

func TestFailingMeterFailsNoStream(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Upstreams: []Upstream{{URL: u}}}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := &call.Call{Operation: wire.OpChat, Request: wire.Head{Stream: true}}
	x := &exchange{p: p, c: c, meter: call.NewMeter(c, brokenFormat{wire.For(wire.Chat)})}
	x.meter.Begin(200, http.Header{"Content-Type": {"text/event-stream"}}, call.Now())
	for range 2 {
		x.unread.add(10, call.Now(), call.Now())
	}
	x.observe([]byte("data: {}\n\ndata: {}\n\n"))
	x.unread.add(10, call.Now(), call.Now())
	x.observe([]byte("data: {}\n\n"))
	x.close(call.EndClean, nil)
	if c.ResponseBytes != 30 || c.Outcome == "" || !c.Done.Reached() {
		t.Errorf("recorded %v, %d bytes", c, c.ResponseBytes)
	}
}

// A few bytes can stand for very many: they are passed on, and not decoded
// further than is looked at.
func TestZipBombIsNotDecoded(t *testing.T) {
	var bomb bytes.Buffer
	w, err := zstd.NewWriter(&bomb, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, `{"model":"m","messages":"`)
	zeros := bytes.Repeat([]byte{'0'}, 1<<20)
	for range 256 {
		w.Write(zeros)
	}
	w.Close()
	b := &body{held: bomb.Bytes()}
	if got := b.inspect("zstd", inspectedBody, 64<<20); got.size != 64<<20 || got.whole || cap(got.bytes) > 1<<20 {
		t.Errorf("%d bytes decoded to %d, capacity %d, whole %v", bomb.Len(), got.size, cap(got.bytes), got.whole)
	}
	if got := (&body{held: []byte("x")}).inspect("compress", 10, 10); got.bytes != nil || got.whole {
		t.Errorf("an unknown coding gives %q", got.bytes)
	}
}

func TestSentBodyIsForgotten(t *testing.T) {
	r, _ := http.NewRequest("POST", "http://h", strings.NewReader("hello"))
	b, err := readBody(r, 100)
	if err != nil {
		t.Fatal(err)
	}
	out := &http.Request{}
	b.attach(out, r)
	again, _ := out.GetBody()
	for _, reader := range []io.Reader{out.Body, again} { // an attempt that failed, and one that did not
		if got, _ := io.ReadAll(reader); string(got) != "hello" || out.ContentLength != 5 {
			t.Errorf("sent %q, length %d", got, out.ContentLength)
		}
	}
	if b.release(); b.held != nil || b.sent() != 5 {
		t.Errorf("%d bytes are held, %d were sent", len(b.held), b.sent())
	}
}

// failing is a body that breaks off.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("boom") }

func TestBodyThatBreaksOffIsNotSent(t *testing.T) {
	up := upstreamOf(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	s := start(t, up, nil)
	req, _ := http.NewRequest("POST", s.url+"/v1/messages", io.MultiReader(strings.NewReader(`{"mod`), failing{}))
	if resp, err := s.client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("it was answered")
	}
	if c := s.call(t, 1); c.Outcome != call.ClientGone || c.API != wire.Messages {
		t.Errorf("recorded %v", c)
	}
}

func TestInflightWaitsForAll(t *testing.T) {
	var f inflight
	if err := f.wait(context.Background()); err != nil {
		t.Error("waits for nothing:", err)
	}
	f.begin()
	f.begin()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if f.wait(gone) == nil {
		t.Error("does not wait")
	}
	waited := make(chan string, 3)
	for range 2 {
		go func() { waited <- fmt.Sprint(f.wait(context.Background())) }()
	}
	f.end()
	waited <- "one is left"
	if got := <-waited; got != "one is left" {
		t.Error("waits for one of two only")
	}
	f.end()
	for range 2 {
		if got := <-waited; got != "<nil>" {
			t.Error(got)
		}
	}
}
