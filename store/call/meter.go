package call

import (
	"net/http"
	"time"

	"weir/proxy/wire"
)

const (
	wholeLimit = 8 << 20  // of a body that is inspected as one document
	errorLimit = 64 << 10 // of an error's body that is kept
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
	// StallAfter is the gap above which a stream has stalled; 0 is a second.
	StallAfter time.Duration

	c       *Call
	format  wire.Format
	decoder *wire.Decoder
	split   *wire.Splitter
	framing wire.Framing
	ev      wire.Event

	now       Mark    // of the bytes being observed
	timed     Instant // up to which the timeline goes, in whole microseconds
	terminal  bool    // the dialect's last event came
	failure   *wire.Error
	answer    *wire.Answer // the whole answer, when it was not a stream
	unread    bool         // a whole answer could not be read
	undecoded bool         // the body's coding could not be undone
	errorBody []byte
	ended     bool
}

// NewMeter measures a response of a call in the dialect f; f is nil where the
// path belongs to none, and then only bytes and instants are measured.
func NewMeter(c *Call, f wire.Format) *Meter {
	return &Meter{c: c, format: f}
}

// Begin takes the status line and headers, which came at the instant given.
func (m *Meter) Begin(status int, h http.Header, at Instant) {
	c := m.c
	c.Status, c.Headers = status, at
	c.RetryAfter = retryAfter(h, at.Time())
	if m.format == nil && status < 400 {
		return
	}
	decoder, err := wire.NewDecoder(h.Get("Content-Encoding"))
	m.decoder, m.undecoded = decoder, err != nil
	if status >= 400 {
		return
	}
	m.framing = wire.FramingOf(h.Get("Content-Type"), c.Request.Stream)
	m.split = wire.NewSplitter(m.framing, wholeLimit)
	c.Streamed = m.framing == wire.SSE
}

// Observe takes the bytes of one read. It is called after they were
// delivered, so that it delays nobody; delivered is zero in the generator.
func (m *Meter) Observe(p []byte, received, delivered Instant) {
	if len(p) == 0 {
		return
	}
	c := m.c
	m.now = Mark{received, delivered}
	if c.ResponseBytes == 0 {
		c.FirstByte = m.now
	}
	c.ResponseBytes += int64(len(p))
	if m.undecoded {
		return
	}
	if m.decoder != nil {
		var err error
		if p, err = m.decoder.Decode(p); err != nil {
			m.undecoded = true
		}
	}
	switch {
	case c.Status >= 400:
		room := errorLimit - len(m.errorBody)
		m.errorBody = append(m.errorBody, p[:min(len(p), room)]...)
	case m.split != nil:
		m.split.Feed(p, m.frame)
	}
}

// frame measures one event of a stream.
func (m *Meter) frame(f wire.Frame) {
	c := m.c
	c.Streamed = true
	c.Events++
	if !c.FirstEvent.Reached() {
		c.FirstEvent = m.now
	}
	err := m.format.ParseEvent(&m.ev, f)
	ev := &m.ev
	if err != nil {
		c.UnknownEvents++
		m.mark(0, len(f.Data))
		return
	}
	output := ev.Output()
	m.mark(output, len(f.Data))
	if output != 0 {
		m.token(output)
	}
	if ev.Unknown {
		c.UnknownEvents++
	}
	m.facts(ev)
	if m.OnEvent != nil {
		m.OnEvent(ev)
	}
}

// mark adds an event to the timeline.
func (m *Meter) mark(output wire.Kind, size int) {
	if m.timed == 0 {
		m.timed = m.c.Arrived
	}
	us := max(int64(m.now.Received-m.timed), 0) / 1000
	m.timed += Instant(us * 1000)
	m.c.Timeline = m.c.Timeline.add(us, output, size)
}

// token stamps an event with generated output.
func (m *Meter) token(output wire.Kind) {
	c := m.c
	c.TokenEvents++
	stamp := func(first *Mark, kinds wire.Kind) {
		if output&kinds != 0 && !first.Reached() {
			*first = m.now
		}
	}
	stamp(&c.FirstToken, wire.Output)
	stamp(&c.FirstText, wire.KindText|wire.KindRefusal)
	stamp(&c.FirstReasoning, wire.KindReasoning)
	stamp(&c.FirstTool, wire.KindTool)
	c.LastToken = m.now
}

// facts takes what an event says beside its output.
func (m *Meter) facts(ev *wire.Event) {
	c := m.c
	keep(&c.ResponseID, ev.ID)
	keep(&c.ServedModel, ev.Model)
	keep(&c.ServiceTier, ev.ServiceTier)
	keep(&c.SystemFingerprint, ev.SystemFingerprint)
	if len(ev.Finish) > 0 {
		c.Finish = string(ev.Finish)
	}
	if ev.Usage.Known() {
		c.Usage.Merge(ev.Usage)
	}
	if ev.Terminal {
		m.terminal = true
	}
	if ev.Err != nil && m.failure == nil {
		m.failure = ev.Err
	}
}

// keep takes the first non-empty value.
func keep(s *string, value []byte) {
	if *s == "" && len(value) > 0 {
		*s = string(value)
	}
}

// whole reads a body that came as one document.
func (m *Meter) whole(f wire.Frame) {
	c := m.c
	c.Streamed = false
	if e, ok := m.format.ParseError(f.Data); ok {
		m.failure = &e
		return
	}
	if !c.Operation.Generates() || f.Oversize {
		return
	}
	var a wire.Answer
	if err := m.format.ParseAnswer(&a, f.Data); err != nil {
		m.unread = true
		return
	}
	m.answer = &a
	c.ResponseID, c.ServedModel, c.Finish = a.ID, a.Model, a.Finish
	c.ServiceTier, c.SystemFingerprint = a.ServiceTier, a.SystemFingerprint
	c.Usage.Merge(a.Usage)
	if m.OnAnswer != nil {
		m.OnAnswer(&a)
	}
}
