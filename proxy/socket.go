package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"weir/proxy/client"
	"weir/proxy/wire"
	"weir/store/call"
)

// socket measures the responses that are asked for over one WebSocket, each as
// a call of its own. It sees what passes and, but for the lanes that a call has to
// pass (see asks), stands in the way of none of it.
type socket struct {
	x      *exchange // of the connection
	client net.Conn
	in     *ahead // what the client says

	writing sync.Mutex // to the client; taken before mu

	mu       sync.Mutex
	asks     *wire.WebSocket
	answers  *wire.WebSocket // what the upstream says
	begun    call.Instant    // of the client's message under way; zero between two
	waiting  []*exchange     // responses that were asked for and have not ended, in order
	received call.Instant    // of the read under way from the upstream
	passed   call.Instant
	ended    string // id of the response that ended last
	blind    bool
	left     bool   // the client has said that it closes
	away     bool   // weir has
	unsaid   []byte // frames of weir's own that wait for the end of the upstream's message

	how  call.End // of what is unanswered, once an end has left
	err  error
	gone bool
}

// measurable says whether what passes a connection that switched protocols can
// be measured.
func (x *exchange) measurable(resp *http.Response) bool {
	return x.c.API == wire.Responses && strings.EqualFold(resp.Header.Get("Upgrade"), "websocket")
}

func newSocket(x *exchange, resp *http.Response, client net.Conn) *socket {
	extensions := strings.Join(resp.Header.Values("Sec-Websocket-Extensions"), ",")
	return &socket{
		x:       x,
		client:  client,
		asks:    wire.NewWebSocket(extensions, true, inspectedBody),
		answers: wire.NewWebSocket(extensions, false, inspectedBody),
	}
}

// copyAnswers passes on what the upstream says, until its end.
func (s *socket) copyAnswers(to io.Writer, from io.Reader) (total int64) {
	buf := largeBuffers.Get().(*[largeRead]byte)
	defer largeBuffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			writeErr := s.answer(to, buf[:n])
			total += int64(n)
			if writeErr != nil {
				s.leave(call.EndClientGone, writeErr)
				return total
			}
		}
		if err != nil {
			s.leave(call.EndBroken, err)
			return total
		}
	}
}

// answer passes on a read from the upstream. What comes after weir's own close
// has nobody to hear it.
func (s *socket) answer(to io.Writer, p []byte) error {
	received := call.Now()
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.goes() {
		return nil
	}
	_, err := to.Write(p)
	s.answered(p, received, call.Now())
	if s.x.p.draining.Err() != nil {
		s.speak()
	}
	return err
}

// ask begins the call of a message that asks for a response; it gives nil for
// another one.
func (s *socket) ask(message []byte, at call.Instant) *exchange {
	c := s.x.c
	t := &call.Call{
		Side: c.Side, Door: c.Door, Run: c.Run, Scenario: c.Scenario, ScenarioFrom: c.ScenarioFrom,
		WarmUp: c.WarmUp, Labels: c.Labels,
		API: wire.Responses, Operation: wire.OpChat, Provider: c.Provider, Upstream: c.Upstream, Host: c.Host, Port: c.Port,
		Method: c.Method, Path: c.Path, RequestBytes: int64(len(message)),
		ClientName: c.ClientName, ClientVersion: c.ClientVersion, KeyFingerprint: c.KeyFingerprint,
		ReusedConn: true, Attempts: 1,
	}
	generate, ok := wire.ReadResponseCreate(message, &t.Request)
	if !ok {
		return nil
	}
	if c.SessionFrom == fromWeir {
		t.Session = c.Session
	}
	t.Arrived, t.Body = s.begun, at
	turn := &exchange{
		p: s.x.p, r: s.x.r, c: t, parent: s.x, up: s.x.up, format: s.x.format, secret: s.x.secret,
		plainBytes: int64(len(message)), lane: wire.ResponseLane(message),
	}
	turn.kept = turn.p.Keep.begin()
	turn.kept.request(bytes.Clone(message), "") // which is lent
	if request, _, ok := wire.ResponseCreate(message); ok {
		turn.readShape(request)
	}
	h, prewarm := client.FrameHeader(s.x.r.Header, message)
	turn.place(h, prewarm || !generate)
	if t.Purpose == client.Prewarm { // it asks for no answer
		t.Admitted, t.Connected = at, at
	}
	if c.ScenarioFrom == "default" {
		turn.nameScenario()
	}
	for _, h := range turn.escapes() {
		t.Impaired = append(t.Impaired, call.NotApplied(h.String(), "it came over a WebSocket that was open before"))
	}
	turn.meter = call.NewMeter(t, turn.format)
	told := false
	turn.meter.OnEvent = func(ev *wire.Event) {
		refused := ev.Err != nil && ev.Err.Status >= http.StatusBadRequest
		switch {
		case refused:
			t.Status = ev.Err.Status // what it would have been without a WebSocket
			turn.heard(t.Status, nil)
		case !told:
			turn.heard(http.StatusOK, nil)
		}
		told = true
	}
	turn.begin()
	s.waiting = append(s.waiting, turn)
	return turn
}

// sent takes down when a request was written.
func (s *socket) sent(t *exchange, at call.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.c.Outcome == "" && !t.c.Sent.Reached() { // else its answer has come meanwhile
		t.c.Sent = at
	}
}

// answered looks at a read from the upstream.
func (s *socket) answered(p []byte, received, delivered call.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blind {
		return
	}
	defer s.spare()
	s.received, s.passed = received, delivered
	s.check(s.answers.Feed(p, s.message))
}

// message takes an event of a response that was asked for.
func (s *socket) message(m wire.WebSocketMessage) {
	if m.Opcode == wire.CloseMessage {
		s.depart(call.EndBroken, fmt.Errorf("the upstream closed the WebSocket: %d %s", m.Code, m.Data))
	}
	if m.Opcode != wire.TextMessage {
		return
	}
	n := s.addressee(m.Data)
	if n < 0 {
		return
	}
	t := s.waiting[n]
	if !t.c.Headers.Reached() {
		t.meter.Begin(http.StatusSwitchingProtocols, http.Header{"Content-Type": {"text/event-stream"}}, s.received)
		if !t.c.Sent.Reached() || t.c.Sent > s.received {
			t.c.Sent = s.received
		}
	}
	t.meter.Message(m.Data, !m.Oversize, s.received, s.passed)
	t.kept.response(m.Data)
	t.kept.response(newline)
	if t.meter.Over() {
		s.waiting = slices.Delete(s.waiting, n, n+1)
		s.ended = t.c.ResponseID
		t.finish(call.EndClean, nil)
	}
}

// newline stands between the messages that are kept.
var newline = []byte("\n")

// addressee finds which of the waiting responses an event belongs to; -1 for
// none. They come one after the other, unless the client runs several lanes.
// What still waits for the shaper was not heard by the upstream.
func (s *socket) addressee(event []byte) int {
	first := slices.IndexFunc(s.waiting, func(t *exchange) bool { return t.c.Admitted.Reached() })
	if first < 0 {
		return -1
	}
	several := slices.ContainsFunc(s.waiting, func(t *exchange) bool { return t.lane != "" })
	if !several && s.waiting[first].c.Headers.Reached() {
		return first
	}
	var ev wire.Event
	if s.x.format.ParseEvent(&ev, wire.Frame{Data: event}) != nil {
		return first
	}
	if ev.EndsResponse() && len(ev.ID) > 0 && string(ev.ID) == s.ended {
		return -1 // a last word on a response that an error has ended
	}
	return slices.IndexFunc(s.waiting, func(t *exchange) bool { return t.c.Admitted.Reached() && t.lane == string(ev.StreamID) })
}

// leave takes down which end left first, and how: what is unanswered ends so.
func (s *socket) leave(how call.End, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = errors.New("the WebSocket was closed before the response ended")
	}
	s.depart(how, err)
}

func (s *socket) depart(how call.End, err error) {
	if !s.gone {
		s.how, s.err, s.gone = how, err, true
	}
}

// end ends the calls that the connection's end leaves unanswered.
func (s *socket) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stopped := context.Cause(s.x.p.stopping); stopped != nil {
		s.how, s.err = call.EndBroken, stopped
	}
	for _, t := range s.waiting {
		if s.x.p.draining.Err() != nil && !t.c.Admitted.Reached() {
			t.finish(call.EndRefused, errDraining)
			continue
		}
		t.finish(s.how, s.err)
	}
	if s.in != nil {
		s.in.close()
	}
	s.waiting, s.blind = nil, true
	s.asks.Close()
	s.answers.Close()
}

// check gives up on a connection that cannot be read. It goes on.
func (s *socket) check(err error) {
	if err == nil {
		return
	}
	s.blind = true
	s.x.p.note("weir cannot measure a WebSocket, which goes on", "error", err.Error())
	for _, t := range s.waiting {
		t.finish(call.EndBroken, fmt.Errorf("weir could not read on: %w", err))
	}
	s.waiting = nil
}

// spare takes a panic of the measuring off the connection's way.
func (s *socket) spare() {
	if v := recover(); v != nil {
		s.check(fmt.Errorf("panic: %v", v))
	}
}
