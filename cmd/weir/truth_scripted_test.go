package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/proxy"
	"weir/store/call"
)

// clock is a log of what somebody did or saw, by name. The first sight of a
// name stands.
type clock struct {
	mu sync.Mutex
	at map[string]call.Instant
}

// now takes down that something is about to be done, or has just been seen.
func (c *clock) now(name string) {
	at := call.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[string]call.Instant{}
	}
	if _, seen := c.at[name]; !seen {
		c.at[name] = at
	}
}

// get gives what was taken down; the log must be at its end.
func (c *clock) get(name string) call.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[name]
}

// step is a thing that the scripted upstream writes, after a pause.
type step struct {
	after time.Duration
	name  string
	text  string
}

// script is what it says. Every pause is another, so that no instant can be
// taken for its neighbour.
var script = []step{
	{60 * time.Millisecond, "headers", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
	{25 * time.Millisecond, "keep-alive", chunk(": keep-alive\n\n")},
	{35 * time.Millisecond, "role", event(`{"id":"%ID%","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)},
	{50 * time.Millisecond, "first token", event(`{"id":"%ID%","choices":[{"index":0,"delta":{"content":"alpha"}}]}`)},
	{30 * time.Millisecond, "middle", event(`{"id":"%ID%","choices":[{"index":0,"delta":{"content":"beta"}}]}`)},
	{45 * time.Millisecond, "last token", event(`{"id":"%ID%","choices":[{"index":0,"delta":{"content":"omega"}}]}`)},
	{20 * time.Millisecond, "finish", event(`{"id":"%ID%","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)},
	{15 * time.Millisecond, "terminal", event(`[DONE]`)},
	{40 * time.Millisecond, "end", "0\r\n\r\n"},
}

// seenBy is what of each step the client recognises it by.
var seenBy = map[string]string{
	"headers": "\r\n\r\n", "keep-alive": "keep-alive", "role": `"role"`, "first token": "alpha", "middle": "beta",
	"last token": "omega", "finish": `"finish_reason"`, "terminal": "[DONE]", "end": "0\r\n\r\n",
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// event is written with a placeholder as long as the ids that stand for it.
func event(data string) string { return chunk("data: " + data + "\n\n") }

// scriptedUpstream answers every request by the script, on raw connections. It
// knows a request by its X-Script header and keeps a log of each.
type scriptedUpstream struct {
	net.Listener
	script []step

	mu   sync.Mutex
	logs map[string]*clock
	wg   sync.WaitGroup
}

func newScripted(t *testing.T, steps []step) *scriptedUpstream {
	t.Helper()
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedUpstream{Listener: l, script: steps, logs: map[string]*clock{}}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			log := &clock{}
			log.now("accepted")
			s.wg.Go(func() { s.answer(t, c, log) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.wg.Wait()
	})
	return s
}

func (s *scriptedUpstream) answer(t *testing.T, c net.Conn, log *clock) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	log.now("read")
	if err != nil {
		t.Errorf("the scripted upstream could not read a request: %v", err)
		return
	}
	id := r.Header.Get("X-Script")
	s.mu.Lock()
	s.logs[id] = log
	s.mu.Unlock()
	for _, step := range s.script {
		time.Sleep(step.after)
		text := strings.ReplaceAll(step.text, "%ID%", id)
		log.now(step.name)
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("the scripted upstream could not write %q: %v", step.name, err)
			return
		}
	}
}

func (s *scriptedUpstream) log(id string) *clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[id]
}

func (s *scriptedUpstream) upstream() []proxy.Upstream {
	return []proxy.Upstream{{Name: "script", URL: &url.URL{Scheme: "http", Host: s.Addr().String()}}}
}

const scriptedBody = `{"model":"scripted","stream":true,"messages":[{"role":"user","content":"say the Greek letters"}]}`

// ask sends a request in three parts with pauses, the body in chunks if told
// so, and gives its own log of the answer.
func ask(t *testing.T, c net.Conn, id string, chunked bool) *clock {
	t.Helper()
	log := &clock{}
	length, first, second := "Content-Length: "+strconv.Itoa(len(scriptedBody)), scriptedBody[:40], scriptedBody[40:]
	if chunked {
		length, first, second = "Transfer-Encoding: chunked", chunk(first), chunk(second)+"0\r\n\r\n"
	}
	for _, part := range []struct {
		after      time.Duration
		name, text string
	}{
		{0, "head", "POST /v1/chat/completions HTTP/1.1\r\nHost: weir\r\nX-Script: " + id + "\r\nConnection: close\r\n" + length + "\r\n\r\n"},
		{50 * time.Millisecond, "body begins", first},
		{35 * time.Millisecond, "body ends", second},
	} {
		time.Sleep(part.after)
		log.now(part.name)
		if _, err := io.WriteString(c, part.text); err != nil {
			t.Errorf("the scripted client could not write %q: %v", part.name, err)
		}
	}
	return log
}

// listen reads the answer to its end, and takes down when it saw what.
func (c *clock) listen(t *testing.T, conn net.Conn) {
	t.Helper()
	var all []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		for name, mark := range seenBy {
			if bytes.Contains(all, []byte(mark)) {
				c.now(name)
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("the scripted client could not read: %v", err)
			return
		}
	}
}

// scriptedID names the n-th call; all are of one length.
func scriptedID(n int) string { return fmt.Sprintf("s%03d", n) }

// TestAccountAgainstAScriptedClient sends requests byte by byte to an upstream
// that answers byte by byte, both with a log of their own, and holds every
// instant and every part of the account against the two logs.
func TestAccountAgainstAScriptedClient(t *testing.T) { hold(t, 3, playScript) }

func playScript(t *testing.T) (d differences, heard spread) {
	const calls, apart = 700, 6 * time.Millisecond // a p99 is reliable from 662 on
	up := newScripted(t, script)
	front, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, front, up.upstream())
	control := listenToNoise(t)
	logs := map[string]*clock{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for n := range calls {
		wg.Go(func() {
			conn, err := net.Dial("tcp", front.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			log := ask(t, conn, scriptedID(n), n%2 == 1)
			log.listen(t, conn)
			mu.Lock()
			defer mu.Unlock()
			logs[scriptedID(n)] = log
		})
		time.Sleep(apart)
	}
	wg.Wait()
	heard = control.end()

	spans := rec.spans(t)
	if len(spans) != calls {
		t.Errorf("%d calls in the store, want %d", len(spans), calls)
	}
	for _, c := range spans {
		theirs, ours := up.log(c.ResponseID), logs[c.ResponseID]
		if theirs == nil || ours == nil || c.Outcome != call.OK || c.TokenEvents != 3 || c.Events != 6 {
			t.Errorf("%v: %d token events of %d, id %q; want 3 of 6, and an id that both ends know", c, c.TokenEvents, c.Events, c.ResponseID)
			continue
		}
		holdScript(t, &d, c, ours, theirs)
	}
	return d, heard
}

// holdScript measures one call against the logs of its two ends.
func holdScript(t *testing.T, d *differences, c *call.Call, client, upstream *clock) {
	t.Helper()
	for _, i := range []struct {
		name  string
		truth call.Instant
		seen  call.Instant
	}{
		{"arrived − client wrote the head", client.get("head"), c.Arrived},
		{"body − client wrote the last of it", client.get("body ends"), c.Body},
		{"admitted − client wrote the last of it", client.get("body ends"), c.Admitted},
		{"connected − upstream accepted", upstream.get("accepted"), c.Connected},
		{"sent − upstream had read it all", upstream.get("read"), c.Sent},
		{"headers − upstream wrote them", upstream.get("headers"), c.Headers},
		{"first_byte − upstream wrote it", upstream.get("keep-alive"), c.FirstByte.Received},
		{"first_event − upstream wrote it", upstream.get("role"), c.FirstEvent.Received},
		{"first_token − upstream wrote it", upstream.get("first token"), c.FirstToken.Received},
		{"first_text − upstream wrote it", upstream.get("first token"), c.FirstText.Received},
		{"last_token − upstream wrote it", upstream.get("last token"), c.LastToken.Received},
		{"done − upstream wrote the end", upstream.get("end"), c.Done},
		{"first_byte delivered − client read it", client.get("keep-alive"), c.FirstByte.Delivered},
		{"first_event delivered − client read it", client.get("role"), c.FirstEvent.Delivered},
		{"first_token delivered − client read it", client.get("first token"), c.FirstToken.Delivered},
		{"last_token delivered − client read it", client.get("last token"), c.LastToken.Delivered},
		{"done − client saw the end", client.get("end"), c.Done},
	} {
		if !i.truth.Reached() || !i.seen.Reached() {
			t.Errorf("%v: %s: truth %v, seen %v; want both", c, i.name, i.truth, i.seen)
		}
		d.add(i.name, gap(i.truth, i.seen))
	}
	ordered(t, c, "client wrote the head", client.get("head"), "arrived", c.Arrived)
	ordered(t, c, "client wrote the last of the body", client.get("body ends"), "body", c.Body)
	ordered(t, c, "first token written", upstream.get("first token"), "received", c.FirstToken.Received)
	ordered(t, c, "last token written", upstream.get("last token"), "received", c.LastToken.Received)
	ordered(t, c, "end written", upstream.get("end"), "done", c.Done)

	parts, ok := c.Account()
	took, _ := c.Duration()
	if sum := parts.Read + parts.Queue + parts.Connect + parts.Send + parts.Wait + parts.Generate + parts.Tail; !ok || sum != took {
		t.Errorf("%v: the parts add up to %v, the call took %v", c, sum, took)
	}
	for _, p := range []struct {
		name     string
		part     time.Duration
		from, to call.Instant
	}{
		{"part read", parts.Read, client.get("head"), client.get("body ends")},
		{"part queue (nothing queues)", parts.Queue, 0, 0},
		{"part connect", parts.Connect, client.get("body ends"), upstream.get("accepted")},
		{"part send", parts.Send, upstream.get("accepted"), upstream.get("read")},
		{"part wait", parts.Wait, upstream.get("read"), upstream.get("first token")},
		{"part generate", parts.Generate, upstream.get("first token"), upstream.get("last token")},
		{"part tail", parts.Tail, upstream.get("last token"), upstream.get("end")},
	} {
		d.add(p.name+" − the logs'", p.part-gap(p.from, p.to))
	}
	ttft, _ := c.TTFTUpstream()
	d.add("ttft upstream − the logs'", ttft-gap(upstream.get("read"), upstream.get("first token")))
	felt, _ := c.TTFTFelt()
	d.add("ttft felt − the logs'", felt-gap(client.get("head"), client.get("first token")))
}

// TestASlowClientIsNoSlowModel has a client that leaves its first token lying
// for a quarter of a second: it was received when the upstream wrote it, was
// delivered when the client took it, and the time between was spent in writes.
//
// The client's end is a pipe without buffers, so that no kernel takes the bytes
// on the client's behalf.
func TestASlowClientIsNoSlowModel(t *testing.T) { hold(t, 3, playLate) }

func playLate(t *testing.T) (d differences, heard spread) {
	const calls, late = 700, 250 * time.Millisecond
	up := newScripted(t, script)
	front := newPipes()
	rec := record(t, front, up.upstream())
	control := listenToNoise(t)
	logs := map[string]*clock{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for n := range calls {
		wg.Go(func() {
			conn := front.dial()
			defer conn.Close()
			log := ask(t, conn, scriptedID(n), false)
			lazy := &lazyConn{Conn: conn, until: seenBy["role"], wait: 50*time.Millisecond + late}
			log.listen(t, lazy)
			mu.Lock()
			defer mu.Unlock()
			logs[scriptedID(n)] = log
		})
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
	heard = control.end()

	spans := rec.spans(t)
	if len(spans) != calls {
		t.Errorf("%d calls in the store, want %d", len(spans), calls)
	}
	for _, c := range spans {
		theirs, ours := up.log(c.ResponseID), logs[c.ResponseID]
		if theirs == nil || ours == nil || c.Outcome != call.OK {
			t.Errorf("%v: id %q; want ok, and an id that both ends know", c, c.ResponseID)
			continue
		}
		received, delivered := c.FirstToken.Received, c.FirstToken.Delivered
		d.add("first_token received − upstream wrote it", gap(theirs.get("first token"), received))
		d.add("first_token delivered − client read it", gap(ours.get("first token"), delivered))
		ttft, _ := c.TTFTUpstream()
		d.add("ttft upstream − the logs'", ttft-gap(theirs.get("read"), theirs.get("first token")))
		felt, _ := c.TTFTFelt()
		d.add("ttft felt − the logs'", felt-gap(ours.get("head"), ours.get("first token")))
		held := gap(theirs.get("first token"), ours.get("first token"))
		d.add("time in writes − how long the token lay", c.WriteBlocked-held)
		if waited := gap(received, delivered); waited < late/2 || c.WriteBlocked < waited || ttft > felt-late/2 {
			t.Errorf("%v: received to delivered %v, blocked in writes %v, felt %v; the client left it lying for %v", c, waited, c.WriteBlocked, felt, held)
		}
	}
	return d, heard
}

// lazyConn reads on only after a wait, once it has seen something.
type lazyConn struct {
	net.Conn
	until string
	wait  time.Duration
	seen  []byte
}

func (l *lazyConn) Read(b []byte) (int, error) {
	if l.until != "" && bytes.Contains(l.seen, []byte(l.until)) {
		l.until = ""
		time.Sleep(l.wait)
	}
	n, err := l.Conn.Read(b)
	l.seen = append(l.seen, b[:n]...)
	return n, err
}

// pipes is a listener whose connections have no buffer: a write returns when
// the other end has read it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
