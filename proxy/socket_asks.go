package proxy

import (
	"context"
	"errors"
	"io"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// asks passes on what the client of a WebSocket says. The frame that completes a
// request waits until the shaper lets the call go, for without it it is none;
// the frames of messages behind it keep their order, and each request among them
// waits in its turn. Control frames go at once: they say that the client is
// there, or that it leaves.
type asks struct {
	s     *socket
	to    io.Writer
	total int64 // bytes that were passed on

	frame  []byte // what came of the frame under way and was not passed on
	held   []heldFrame
	size   int  // bytes of held
	midway bool // part of held's first frame, else of the one under way, was passed on

	decided chan decision // about held's first; nil: nobody waits
	cancel  context.CancelFunc
}

// heldFrame is a frame that waits, or the rest of one.
type heldFrame struct {
	bytes []byte
	turn  *exchange // the request that it completes; nil: none
	waits bool      // for the shaper
}

// decision is the shaper's.
type decision struct {
	permit *shaper.Permit
	err    error
}

var errLeftInLane = errors.New("the client left while its request waited in a lane")

// copyAsks passes on what the client says, until its end. What it asks for is
// known before the upstream can answer.
func (s *socket) copyAsks(to io.Writer, from io.Reader) int64 {
	s.in = readAhead(from)
	a := &asks{s: s, to: to}
	how, err := a.pass()
	a.giveUp()
	s.leave(how, err)
	return a.total
}

// pass gives how the connection ended.
func (a *asks) pass() (call.End, error) {
	in, most := a.s.in, int(a.s.x.p.holds())
	drained := a.s.x.p.draining.Done()
	for {
		read := in.read
		if len(a.held) > 0 && a.size+len(a.frame) > most {
			read = nil // the client may go on when there is room
		}
		select {
		case c := <-read:
			if err := a.take(c.bytes, call.Now(), most); err != nil {
				return call.EndBroken, err
			}
			if c.err != nil {
				return call.EndClientGone, c.err
			}
			in.again()
		case d := <-a.decided:
			a.settle(d)
			if err := a.goOn(d.err == nil); err != nil {
				return call.EndBroken, err
			}
		case <-drained:
			drained = nil
			a.s.writing.Lock()
			a.s.speak()
			a.s.writing.Unlock()
		}
	}
}

// goOn passes on what is held after the shaper has decided about its first. It
// lets no request go once the proxy shuts down: such a request is refused, and
// the upstream does not get it.
func (a *asks) goOn(let bool) error {
	if let {
		a.held[0].waits = false
		return a.send()
	}
	first := a.held[0]
	a.s.refuse(first.turn)
	if a.midway {
		return errDraining // the upstream waits for the rest of it
	}
	a.held[0] = heldFrame{}
	a.held = a.held[1:]
	a.size -= len(first.bytes)
	return a.send()
}

// take takes a read from the client.
func (a *asks) take(p []byte, at call.Instant, most int) error {
	for len(p) > 0 {
		f := a.s.asked(p, at)
		a.frame = append(a.frame, p[:f.n]...)
		p = p[f.n:]
		var err error
		switch {
		case f.leaves:
			a.giveUp()
			a.held, a.size = nil, 0
			if a.midway {
				return errLeftInLane // its close cannot stand inside a frame
			}
			if err = a.flush(); err == nil && a.s.goes() {
				return io.EOF
			}
		case f.unread:
			err = a.release()
		case f.control && !a.midway:
			err = a.flush()
		case f.whole:
			a.held = append(a.held, heldFrame{a.frame, f.turn, f.waits})
			a.size += len(a.frame)
			a.frame = nil
			err = a.send()
		case len(a.held) == 0 && (a.midway || len(a.frame) > most):
			a.midway = true // a frame that is too long to be held
			err = a.flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send passes on what is held, up to a request that has to wait.
func (a *asks) send() error {
	for len(a.held) > 0 && a.decided == nil {
		first := a.held[0]
		if first.waits {
			a.admit(first.turn)
			return nil
		}
		a.held[0] = heldFrame{}
		a.held = a.held[1:]
		a.size -= len(first.bytes)
		a.midway = false
		if err := a.write(first.bytes); err != nil {
			return err
		}
		if first.turn != nil {
			a.s.sent(first.turn, call.Now())
		}
	}
	return nil
}

// release passes all on as it comes: weir cannot tell requests apart any more.
func (a *asks) release() error {
	a.giveUp()
	for i := range a.held {
		a.held[i].waits = false
	}
	if err := a.send(); err != nil {
		return err
	}
	return a.flush()
}

// flush passes on what came of the frame under way.
func (a *asks) flush() error {
	err := a.write(a.frame)
	if a.frame = a.frame[:0]; cap(a.frame) > largeRead {
		a.frame = nil
	}
	return err
}

func (a *asks) write(p []byte) error {
	if _, err := a.to.Write(p); err != nil {
		return err
	}
	a.total += int64(len(p))
	return nil
}

// admit asks the shaper for leave for the request that held's first frame
// completes. A caller cannot be refused here, for it has no answer of its own to
// a request that was not heard: it waits as long as it takes.
func (a *asks) admit(turn *exchange) {
	s := a.s
	s.mu.Lock()
	ask := turn.ask(true)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.x.p.draining)
	decided := make(chan decision, 1)
	a.decided, a.cancel = decided, cancel
	go func() {
		permit, err := s.x.p.shape.Admit(ctx, ask)
		decided <- decision{permit, err}
	}()
}

// giveUp ends the wait of the request that waits, if one does.
func (a *asks) giveUp() {
	if a.decided != nil {
		a.cancel()
		a.settle(<-a.decided)
	}
}

// settle takes down what was decided of held's first request.
func (a *asks) settle(d decision) {
	a.cancel()
	a.decided = nil
	s, t := a.s, a.held[0].turn
	s.mu.Lock()
	defer s.mu.Unlock()
	switch over := t.c.Outcome != ""; { // as when the connection cannot be read any more
	case d.err == nil && over:
		d.permit.Release(shaper.Settlement{})
	case d.err == nil:
		t.permit = d.permit
		t.c.Admitted = call.Now()
		t.c.Connected = t.c.Admitted
		t.shaped(d.permit.Account())
	case !over:
		if departure := (*shaper.Departure)(nil); errors.As(d.err, &departure) {
			t.shaped(departure.Account)
		}
	}
}

// askedFrame is what a read from the client holds of one frame.
type askedFrame struct {
	n       int  // bytes
	whole   bool // they are its last
	control bool
	leaves  bool      // it is a close
	turn    *exchange // the request that it completes; nil: none
	waits   bool      // which has to be admitted
	unread  bool      // weir cannot tell
}

// asked looks at a read from the client, as far as the end of a frame.
func (s *socket) asked(p []byte, at call.Instant) (f askedFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = askedFrame{n: len(p), unread: true}
	if s.blind || s.left {
		return f
	}
	defer s.spare()
	if !s.begun.Reached() {
		s.begun = at
	}
	seen := askedFrame{}
	rest, whole, err := s.asks.Frame(p, func(m wire.WebSocketMessage) {
		switch m.Opcode {
		case wire.TextMessage:
			if seen.turn = s.ask(m.Data, at); seen.turn != nil {
				seen.waits = !seen.turn.c.Admitted.Reached()
			}
		case wire.CloseMessage:
			s.left, seen.leaves = true, true
			s.depart(call.EndClientGone, errors.New("the client closed the WebSocket"))
		}
		s.begun = 0
	})
	if s.check(err); err != nil {
		return f
	}
	seen.n, seen.whole, seen.control = len(p)-len(rest), whole, whole && s.asks.Control()
	if !s.asks.Partial() {
		s.begun = 0
	}
	return seen
}
