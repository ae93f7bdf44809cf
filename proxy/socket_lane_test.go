package proxy

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/shaper"
	"weir/store/call"
)

// laned is a proxy with a rule in front of an endpoint that answers over
// WebSockets when it is told to; what it was asked is in asked.
func laned(t *testing.T, rule string, change func(*Proxy)) (s *sidecar, asked func() []string, answer chan string) {
	t.Helper()
	var mu sync.Mutex
	var got []string
	answer = make(chan string)
	up := socketUpstream(t, websocket.CompressionDisabled, func(message string, say func(string)) bool {
		mu.Lock()
		got = append(got, message)
		mu.Unlock()
		say(<-answer)
		return true
	})
	s = start(t, up, func(p *Proxy) {
		p.Shaper = &shaper.Shaper{Random: func() float64 { return 0 }}
		if _, _, err := p.Shaper.Change(rule); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(p)
		}
	})
	return s, func() []string { mu.Lock(); defer mu.Unlock(); return got }, answer
}

const createResponse = `{"type":"response.create","model":"gpt-x","input":[{"role":"user","content":[{"type":"input_text","text":"NAME"}]}]}`

func create(name string) string { return strings.Replace(createResponse, "NAME", name, 1) }

func TestARequestOverAWebSocketWaitsInItsLaneUntilAnothersAnswerHasEnded(t *testing.T) {
	s, asked, answer := laned(t, "concurrency=1", nil)
	one, two := dialSocket(t, s.url, websocket.CompressionDisabled), dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, one, create("first"))
	waitUntil(t, func() bool { return len(asked()) == 1 })
	ask(t, two, create("second"))
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 1 })
	answer <- completed("r1", 5, 1)
	hear(t, one, "r1")
	waitUntil(t, func() bool { return len(asked()) == 2 })
	answer <- completed("r2", 5, 1)
	hear(t, two, "r2")
	one.CloseNow()
	two.CloseNow()
	turns := turnsOf(t, s, 4)
	if c := turns[0]; c.Outcome != call.OK || c.LaneLimit != "" || c.Lane != "all" {
		t.Errorf("the first: %v in lane %q, waited for %q", c.Outcome, c.Lane, c.LaneLimit)
	}
	c := turns[1]
	parts, ok := c.Account()
	if c.Outcome != call.OK || c.LaneLimit != "in flight" || c.QueuePosition != 1 || !ok || parts.Queue == 0 {
		t.Errorf("the second: %v, waited for %q at %d, account %+v", c.Outcome, c.LaneLimit, c.QueuePosition, parts)
	}
	if l := s.Shaper.Lanes()[0]; l.InFlight != 0 {
		t.Errorf("left behind: %+v", l)
	}
}

func TestWhoLeavesWhileARequestOverAWebSocketWaitsIsNoticedAndItIsNotSent(t *testing.T) {
	s, asked, answer := laned(t, "concurrency=1", nil)
	one, two := dialSocket(t, s.url, websocket.CompressionDisabled), dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, one, create("first"))
	waitUntil(t, func() bool { return len(asked()) == 1 })
	ask(t, two, create("second"))
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 1 })
	two.CloseNow()
	waitUntil(t, func() bool { return s.Shaper.Lanes()[0].Waiting == 0 })
	answer <- completed("r1", 5, 1)
	hear(t, one, "r1")
	one.CloseNow()
	turns := turnsOf(t, s, 4)
	if c := turns[1]; c.Outcome != call.ClientGone || c.Admitted.Reached() || c.LaneLimit != "in flight" || len(asked()) != 1 {
		t.Errorf("the second: %v, admitted %v, waited for %q; the endpoint was asked %q", c.Outcome, c.Admitted, c.LaneLimit, asked())
	}
}

func TestARefusalOverAWebSocketHoldsTheLane(t *testing.T) {
	s, asked, answer := laned(t, "concurrency=5", nil)
	conn := dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, conn, create("first"))
	waitUntil(t, func() bool { return len(asked()) == 1 })
	answer <- `{"type":"error","status":429,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}`
	hear(t, conn, "slow down")
	start := time.Now()
	waitUntil(t, func() bool { // the client heard it first
		lanes := s.Shaper.Lanes()
		return lanes[len(lanes)-1].HeldMS > 0
	})
	ask(t, conn, create("second"))
	waitUntil(t, func() bool { return len(asked()) == 2 })
	answer <- completed("r2", 5, 1)
	hear(t, conn, "r2")
	if waited := time.Since(start); waited < 900*time.Millisecond {
		t.Errorf("the next was sent %v after a refusal, want a second", waited)
	}
	conn.CloseNow()
	turns := turnsOf(t, s, 3)
	if c := turns[1]; c.HoldReason != "429" || c.LaneLimit != "hold" || c.Held == 0 {
		t.Errorf("the second: held %v for %q, waited for %q", c.Held, c.HoldReason, c.LaneLimit)
	}
}

// What is said of calls after their WebSocket was opened cannot be done to them,
// and is told: they stay what they are, in clean figures.
func TestWhatCannotBefallARequestOverAnOpenWebSocketIsSaid(t *testing.T) {
	impair := shaper.NewImpairer(nil, 1)
	s, _, answer := laned(t, "all concurrency=5", func(p *Proxy) { p.Impair = impair })
	one := dialSocket(t, s.url, websocket.CompressionDisabled)
	harms, err := shaper.ParseImpairments("cut@2")
	if err != nil {
		t.Fatal(err)
	}
	impair.Configure(harms)
	ask(t, one, create("first"))
	answer <- completed("r1", 5, 1)
	hear(t, one, "r1")
	one.CloseNow()
	for _, c := range turnsOf(t, s, 2) {
		if c.ResponseID != "r1" {
			continue
		}
		if want := "cut@2 (not applied: it came over a WebSocket that was open before)"; len(c.Impaired) != 1 || c.Impaired[0] != want || c.Worsened() || c.Outcome != call.OK {
			t.Errorf("%s, impaired %q", c.Outcome, c.Impaired)
		}
		return
	}
	t.Error("the call was not recorded")
}
