package proxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"weir/store/call"
)

// maskedFrame is a client's frame, with a mask of zeros.
func maskedFrame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

const (
	wholeText    = 0x81
	firstOfText  = 0x01
	lastOfText   = 0x80
	pingFrame    = 0x89
	pongFrame    = 0x8a
	closeFrame   = 0x88
	normalClose  = "\x03\xe8"
	opcodeOfHead = 0x0f
)

// byHand is a client of a WebSocket that writes its frames itself.
type byHand struct {
	net.Conn
	in *bufio.Reader
}

func dialByHand(t *testing.T, url string) *byHand {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /s/codex/v1/responses HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(err, resp)
	}
	return &byHand{conn, in}
}

func (c *byHand) say(t *testing.T, frames ...[]byte) {
	t.Helper()
	if _, err := c.Write(slices.Concat(frames...)); err != nil {
		t.Fatal(err)
	}
}

// hear gives the next frame of the server.
func (c *byHand) hear(t *testing.T) (opcode byte, payload string) {
	t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		t.Fatal(err)
	}
	n := int(head[1])
	if n == 126 {
		var long [2]byte
		if _, err := io.ReadFull(c.in, long[:]); err != nil {
			t.Fatal(err)
		}
		n = int(binary.BigEndian.Uint16(long[:]))
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		t.Fatal(err)
	}
	return head[0] & opcodeOfHead, string(b)
}

func (c *byHand) wants(t *testing.T, first byte, part string) {
	t.Helper()
	if opcode, payload := c.hear(t); opcode != first&opcodeOfHead || !strings.Contains(payload, part) {
		t.Fatalf("heard %d %q, want %d %q", opcode, payload, first&opcodeOfHead, part)
	}
}

// busyLane is a lane of one place, which another's request has.
func busyLane(t *testing.T, change func(*Proxy)) (s *sidecar, asked func() []string, answer chan string, other *websocket.Conn) {
	t.Helper()
	s, asked, answer = laned(t, "concurrency=1", change)
	other = dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, other, create("first"))
	waitUntil(t, func() bool { return len(asked()) == 1 })
	return s, asked, answer, other
}

func waitsFor(s *sidecar, n int) func() bool {
	return func() bool { return s.Shaper.Lanes()[0].Waiting == n }
}

func TestAPingGoesThroughWhileARequestWaitsInItsLane(t *testing.T) {
	long := create(strings.Repeat("long ", 20_000))
	for _, row := range []struct {
		sentence string
		frames   [][]byte
		want     string
	}{
		{"after the request", [][]byte{maskedFrame(wholeText, create("second"))}, create("second")},
		{"between its frames and after them", [][]byte{maskedFrame(firstOfText, create("second")[:20]), maskedFrame(pingFrame, "early"), maskedFrame(lastOfText, create("second")[20:])}, create("second")},
		{"after one of several reads", [][]byte{maskedFrame(wholeText, long)}, long},
		{"after two requests", [][]byte{maskedFrame(wholeText, create("second")), maskedFrame(wholeText, create("third"))}, create("second")},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s, asked, answer, other := busyLane(t, nil)
			conn := dialByHand(t, s.url)
			conn.say(t, append(slices.Clone(row.frames), maskedFrame(pingFrame, "there?"))...)
			waitUntil(t, waitsFor(s, 1))
			if slices.ContainsFunc(row.frames, func(f []byte) bool { return f[0] == pingFrame }) {
				conn.wants(t, pongFrame, "early")
			}
			conn.wants(t, pongFrame, "there?")
			if n := len(asked()); n != 1 {
				t.Fatalf("the endpoint was asked %d times meanwhile", n)
			}
			answer <- completed("r1", 5, 1)
			hear(t, other, "r1")
			waitUntil(t, func() bool { return len(asked()) == 2 })
			answer <- completed("r2", 5, 1)
			conn.wants(t, wholeText, "r2")
			if got := asked()[1]; got != row.want {
				t.Errorf("the endpoint was asked %.200q", got)
			}
			if len(row.frames) > 1 && row.frames[1][0] == wholeText {
				waitUntil(t, func() bool { return len(asked()) == 3 })
				answer <- completed("r3", 5, 1)
				conn.wants(t, wholeText, "r3")
			}
		})
	}
}

func TestACloseGoesThroughWhileARequestWaitsAndEndsItsWait(t *testing.T) {
	s, asked, answer, other := busyLane(t, nil)
	conn := dialByHand(t, s.url)
	conn.say(t, maskedFrame(wholeText, create("second")), maskedFrame(wholeText, create("third")))
	waitUntil(t, waitsFor(s, 1))
	conn.say(t, maskedFrame(closeFrame, normalClose))
	conn.wants(t, closeFrame, normalClose)
	waitUntil(t, waitsFor(s, 0))
	answer <- completed("r1", 5, 1)
	hear(t, other, "r1")
	conn.Close()
	other.CloseNow()
	turns := turnsOf(t, s, 5)
	for _, c := range turns[1:] {
		if c.Outcome != call.ClientGone || c.Admitted.Reached() || c.Sent.Reached() {
			t.Errorf("recorded %v, admitted %v, sent %v", c, c.Admitted, c.Sent)
		}
	}
	if len(turns) != 3 || turns[1].LaneLimit != "in flight" || len(asked()) != 1 {
		t.Errorf("recorded %v; the endpoint was asked %q", turns, asked())
	}
	if l := s.Shaper.Lanes()[0]; l.InFlight != 0 {
		t.Errorf("left behind: %+v", l)
	}
}

func TestEachRequestOfOneReadWaitsForAPlaceOfItsOwn(t *testing.T) {
	for _, mode := range []string{"one write", "cut anywhere"} {
		t.Run(mode, func(t *testing.T) {
			s, asked, answer := laned(t, "concurrency=1", nil)
			conn := dialByHand(t, s.url)
			both := slices.Concat(maskedFrame(wholeText, create("first")), maskedFrame(wholeText, create("second")), maskedFrame(wholeText, create("third")))
			if mode == "one write" {
				conn.say(t, both)
			} else {
				for i := range both {
					conn.say(t, both[i:i+1])
				}
			}
			for n, name := range []string{"first", "second", "third"} {
				if n < 2 {
					waitUntil(t, waitsFor(s, 1)) // the next waits for this one's place
				}
				waitUntil(t, func() bool { return len(asked()) == n+1 })
				if got := asked()[n]; got != create(name) || s.Shaper.Lanes()[0].InFlight != 1 {
					t.Fatalf("request %d is %.80q, with %+v", n, got, s.Shaper.Lanes()[0])
				}
				answer <- completed(fmt.Sprint("r", n), 5, 1)
				conn.wants(t, wholeText, fmt.Sprint("r", n))
			}
			conn.Close()
			turns := turnsOf(t, s, 4)
			for i, c := range turns {
				if c.Outcome != call.OK || c.ResponseID != fmt.Sprint("r", i) || (c.LaneLimit == "in flight") != (i > 0) || c.Sent < c.Admitted || c.Headers < c.Sent {
					t.Errorf("turn %d: %v, response %s, waited for %q: %+v", i, c, c.ResponseID, c.LaneLimit, c.Instants)
				}
			}
		})
	}
}

func TestAFrameTooLongToHoldIsShapedByItsEnd(t *testing.T) {
	long := create(strings.Repeat("long ", 50_000))
	s, asked, answer, other := busyLane(t, func(p *Proxy) { p.HoldBody = 1 << 10 })
	conn := dialByHand(t, s.url)
	conn.say(t, maskedFrame(wholeText, long), maskedFrame(pingFrame, "there?"))
	waitUntil(t, waitsFor(s, 1))
	answer <- completed("r1", 5, 1)
	hear(t, other, "r1")
	waitUntil(t, func() bool { return len(asked()) == 2 })
	answer <- completed("r2", 5, 1)
	var heard []byte // the ping had to wait behind it, and either may be answered first
	for range 2 {
		opcode, _ := conn.hear(t)
		heard = append(heard, opcode)
	}
	if slices.Sort(heard); asked()[1] != long || !slices.Equal(heard, []byte{wholeText & opcodeOfHead, pongFrame & opcodeOfHead}) {
		t.Errorf("the endpoint was asked %d bytes of %d, and the client heard %v", len(asked()[1]), len(long), heard)
	}
}
