package call

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Meter is the ruler: it reads the bytes of one response beside their way to
// the client and fills in the call. The proxy and the generator use the same
// one. It never fails and keeps no more than it must; what it cannot read it
// counts and passes over. A Meter is used by one goroutine.
//
// An event counts as received with the read that completed it. Of an answer
// that was not streamed, and of a single event, at most 8 MiB are inspected;
// of an error body, 64 KiB are kept.
type Meter struct {
	// OnEvent, when set, sees every event of a stream after it was measured.
	// The event is only lent.
	OnEvent func(*wire.Event)
	// OnAnswer, when set, sees the answer that was not streamed.
	OnAnswer func(*wire.Answer)
	// StallAfter is the gap between token events above which the stream has
	// stalled; 0 is a second.
	StallAfter time.Duration

	call      *Call
	format    wire.Format
	generates bool // the operation can have a first token

	// Of the response.
	begun       bool
	ended       bool
	contentType string
	length      int64 // Content-Length; -1 when unsaid
	decoder     *wire.Decoder
	blind       error // why the body cannot be read any further
	unreadable  bool  // its coding is one that weir does not know
	errorBody   *capture

	splitter *wire.Splitter
	framing  wire.Framing
	onFrame  func(wire.Frame) // m.frame, bound once
	closing  bool             // the body has ended; what comes now was incomplete

	events wire.EventReader
	stream stream
	whole  whole

	received, delivered Instant // of the read under way
}

// NewMeter measures a response of a call in the dialect f; f is nil where the
// path belongs to none, and then only bytes and instants are measured. The
// call's Operation and Request are read when the response begins.
func NewMeter(c *Call, f wire.Format) *Meter {
	m := &Meter{call: c, format: f, length: -1, events: wire.EventReader{Format: f}}
	m.onFrame = m.frame
	return m
}

// Begin takes the status line and headers, which came at the instant given.
func (m *Meter) Begin(status int, h http.Header, at Instant) {
	m.begun = true
	m.generates = m.format != nil && m.call.generates()
	m.call.Status, m.call.Headers = status, at
	m.contentType = h.Get("Content-Type")
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		m.length = n
	}
	switch {
	case status >= 400:
		m.errorBody = &capture{}
		m.call.RetryAfter = retryAfter(status, h, at.Time())
	case !m.generates:
		return
	case wire.FramingOf(m.contentType, m.call.Request.Stream) == wire.SSE:
		m.call.Streamed = true
	}
	decoder, err := wire.NewDecoder(strings.Join(h.Values("Content-Encoding"), ","))
	if err != nil {
		m.blind, m.unreadable = err, true
	}
	m.decoder = decoder
}

// Observe takes the bytes of one read. It is called after they were
// delivered, so that it delays nobody; delivered is zero in the generator.
func (m *Meter) Observe(p []byte, received, delivered Instant) {
	if len(p) == 0 || m.ended {
		return
	}
	m.call.ResponseBytes += int64(len(p))
	if !m.call.FirstByte.Reached() {
		m.call.FirstByte = Mark{received, delivered}
	}
	m.received, m.delivered = received, delivered
	if m.blind != nil || m.errorBody == nil && !m.generates {
		return
	}
	if m.decoder != nil {
		var err error
		if p, err = m.decoder.Decode(p); err != nil {
			m.blind = err
		}
	}
	if m.errorBody != nil {
		m.errorBody.add(p)
		return
	}
	if m.splitter == nil {
		if p = m.chooseFraming(p); len(p) == 0 {
			return
		}
	}
	m.splitter.Feed(p, m.onFrame)
}

// Message takes one event of a stream whose events come as messages of their
// own, as over a WebSocket. whole is false when data is only its beginning.
func (m *Meter) Message(data []byte, whole bool, received, delivered Instant) {
	if m.ended || m.errorBody == nil && !m.generates {
		return
	}
	m.call.ResponseBytes += int64(len(data))
	if !m.call.FirstByte.Reached() {
		m.call.FirstByte = Mark{received, delivered}
	}
	m.received, m.delivered = received, delivered
	m.framing, m.call.Streamed = wire.SSE, true
	m.frame(wire.Frame{Data: data, Oversize: !whole})
}

// Over says whether the stream's last event came, or an error in its place.
func (m *Meter) Over() bool { return m.stream.terminal || m.stream.failed }

// chooseFraming makes the splitter once the first byte that is not white space
// has come, and gives the bytes from there on.
func (m *Meter) chooseFraming(p []byte) []byte {
	for len(p) > 0 && (p[0] == ' ' || p[0] == '\t' || p[0] == '\r' || p[0] == '\n') {
		p = p[1:]
	}
	if len(p) == 0 {
		return nil
	}
	m.framing = wire.ChooseFraming(m.contentType, m.call.Request.Stream, p[0])
	m.call.Streamed = m.framing != wire.Whole
	m.splitter = wire.NewSplitter(m.framing, 0)
	return p
}

// frame takes one event of a stream, or the whole answer.
func (m *Meter) frame(f wire.Frame) {
	if m.framing == wire.Whole {
		m.answer(f)
		return
	}
	ev := &m.events.Event
	unread := f.Oversize || m.events.Read(f) != nil
	if unread {
		if m.closing {
			return // cut in its middle
		}
		*ev = wire.Event{Unknown: true}
	}
	m.measure(ev, len(f.Data))
	if ev.Err != nil {
		m.fail(ev.Err)
		if m.call.ErrorBody == "" {
			m.call.ErrorBody = storable(string(f.Data[:min(len(f.Data), captureLimit)]), bodyLimit)
		}
	}
	if m.OnEvent != nil && !unread {
		m.OnEvent(ev)
	}
}

// fail keeps what the provider says of a failure; the first word stands.
func (m *Meter) fail(e *wire.Error) {
	if m.stream.failed || m.whole.failed {
		return
	}
	if m.framing == wire.Whole {
		m.whole.failed = true
	} else {
		m.stream.failed = true
	}
	m.keepError(e)
}

func (m *Meter) keepError(e *wire.Error) {
	m.call.ErrorType = storable(e.Type, nameLimit)
	if m.call.ErrorType == "" {
		m.call.ErrorType = storable(e.Code, nameLimit)
	}
	m.call.ErrorMessage = storable(e.Message, messageLimit)
}

// What is kept of the provider's words.
const (
	nameLimit    = 256
	messageLimit = 4 << 10
)

// keepName keeps a name that a stream may repeat with every event, and
// allocates only when it changes: the last one counts, since routers name
// themselves first and the model later. An empty one says nothing.
func keepName(have *string, now []byte) {
	now = now[:min(len(now), nameLimit+1)]
	if len(now) == 0 || *have == string(now) {
		return
	}
	*have = fittingName(string(now))
}
