package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/proxy"
	"weir/store/call"
)

// TestSentIsWhenTheLastByteWentOut has an upstream that accepts at once and
// lets a body lie that is larger than all buffers between: the request is sent
// when the upstream has taken it, not when the connection was there, and the
// time in between is the account's part send.
func TestSentIsWhenTheLastByteWentOut(t *testing.T) {
	const lies, size = 300 * time.Millisecond, 24 << 20
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	var log clock
	answered := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			answered <- err
			return
		}
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(64 << 10)
		time.Sleep(lies)
		log.now("reads")
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		log.now("read")
		if err == nil {
			_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"+
				"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}
		answered <- err
	}()
	front, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, front, []proxy.Upstream{{Name: "slow", URL: &url.URL{Scheme: "http", Host: l.Addr().String()}}})
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}]}`
	resp, err := http.Post(rec.base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	l.Close()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	spans := rec.spans(t)
	if len(spans) != 1 || spans[0].Outcome != call.OK {
		t.Fatalf("calls %v, want one that is ok", spans)
	}
	c := spans[0]
	ordered(t, c, "connected", c.Connected, "the upstream reads", log.get("reads"))
	ordered(t, c, "the upstream reads", log.get("reads"), "sent", c.Sent)
	ordered(t, c, "sent", c.Sent, "the first byte of the answer", c.FirstByte.Received)
	ttft, _ := c.TTFTUpstream()
	if parts, _ := c.Account(); parts.Send < lies || ttft >= lies {
		t.Errorf("%v: the part send is %v and the TTFT %v; the body lay for %v, and the answer came at once", c, parts.Send, ttft, lies)
	}
}
