package call

import (
	"net/http"

	"weir/proxy/wire"
)

// Meter is the ruler: it reads the bytes of one response beside their way to
// the client and fills in the call. The proxy and the generator use the same
// one. It never fails and keeps no more than it must; what it cannot read it
// counts and passes over. A Meter is used by one goroutine.
type Meter struct {
	// OnEvent, when set, sees every event of a stream after it was measured.
	// The event is only lent.
	OnEvent func(*wire.Event)
	// OnAnswer, when set, sees the answer that was not streamed.
	OnAnswer func(*wire.Answer)
}

// NewMeter measures a response of a call in the dialect f; f is nil where the
// path belongs to none, and then only bytes and instants are measured.
func NewMeter(c *Call, f wire.Format) *Meter { panic("call: being written") }

// Begin takes the status line and headers, which came at the instant given.
func (m *Meter) Begin(status int, h http.Header, at Instant) { panic("call: being written") }

// Observe takes the bytes of one read. It is called after they were
// delivered, so that it delays nobody; delivered is zero in the generator.
func (m *Meter) Observe(p []byte, received, delivered Instant) { panic("call: being written") }

// End is how a response, or the wait for one, came to its end.
type End uint8

// The ends.
const (
	EndClean       End = iota // end of body
	EndBroken                 // the upstream broke the body, or its connection
	EndUnreachable            // no connection, or none that answered
	EndClientGone             // the caller left
	EndTimeout                // a deadline passed
	EndRefused                // the shaper refused
)

// End closes the call: it names the outcome, the reason for a missing first
// token, and computes what needs the whole stream. err is what was met, if
// anything; its text is kept with secrets redacted. A client that leaves after
// the terminal event is ok.
func (m *Meter) End(how End, err error, at Instant) { panic("call: being written") }
