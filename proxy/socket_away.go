package proxy

import (
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

// When the proxy shuts down, a WebSocket goes on for as long as a response is
// under way. A request that was not sent yet gets an error event, and once
// nothing is under way the client is told that weir goes away.

// goingAway is what a client has to answer weir's close.
const goingAway = time.Second

const (
	lastFrame   = 0x80
	goesAway    = 1001 // RFC 6455, 7.4.1
	goesAwayWhy = "weir is stopping"
)

// refuse ends a request that was not sent because the proxy shuts down, in the
// words in which the API refuses one over a WebSocket: an error's body with its
// status.
func (s *socket) refuse(t *exchange) {
	const status = http.StatusServiceUnavailable
	body := s.x.format.AppendError(nil, &wire.Error{Status: status, Type: "service_unavailable", Message: "weir: " + errDraining.Error()})
	event := strconv.AppendInt([]byte(`{"type":"error","status":`), status, 10)
	event = append(append(event, ','), body[1:]...)
	s.mu.Lock()
	if t.c.Outcome == "" {
		t.c.Status = status
		t.finish(call.EndRefused, errDraining)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *exchange) bool { return w == t })
	s.unsaid = appendFrame(s.unsaid, wire.TextMessage, event)
	s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.speak()
}

// speak says what weir itself has to say to the client, where the upstream's
// message under way, if there is one, lets it. Its caller holds writing.
func (s *socket) speak() {
	s.mu.Lock()
	if s.blind || s.away || s.answers.Partial() {
		s.mu.Unlock()
		return
	}
	said := s.unsaid
	s.unsaid = nil
	if len(s.waiting) == 0 {
		s.away = true
		said = appendFrame(said, wire.CloseMessage, append(binary.BigEndian.AppendUint16(nil, goesAway), goesAwayWhy...))
	}
	away := s.away
	s.mu.Unlock()
	if _, err := s.client.Write(said); err != nil || away {
		_ = s.client.SetReadDeadline(time.Now().Add(goingAway)) // its reader then ends the connection
	}
}

// goes says whether weir has told the client that it goes away.
func (s *socket) goes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// appendFrame appends a server's frame, which holds a whole message.
func appendFrame(dst []byte, opcode wire.Opcode, payload []byte) []byte {
	dst = append(dst, lastFrame|byte(opcode))
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, byte(n))
	default:
		dst = binary.BigEndian.AppendUint16(append(dst, 126), uint16(n)) //nolint:gosec // weir's own words are short
	}
	return append(dst, payload...)
}
