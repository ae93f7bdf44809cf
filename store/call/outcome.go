package call

import (
	"context"
	"errors"
	"strconv"

	"weir/proxy/wire"
)

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
// the terminal event is ok. A second End does nothing.
func (m *Meter) End(how End, err error, at Instant) {
	if m.ended {
		return
	}
	m.ended = true
	c := m.c
	c.Done = at
	if m.split != nil && m.format != nil {
		m.split.Close(m.whole)
	}
	if m.decoder != nil {
		m.decoder.Close()
	}
	c.Outcome = m.outcome(how)
	m.explain(err)
	c.NoFirstToken = m.absence()
	c.UsageSource = m.usageSource()
	stall := m.StallAfter
	if stall <= 0 {
		stall = defaultStall
	}
	took, _ := between(c.Sent, c.LastToken.Received)
	c.Gaps = gapsOf(c.Timeline, took, stall)
}

// complete says that the answer came whole: a stream's terminal event, with
// the reason why the model stopped. Gateways invent the terminal event, but
// not the reason.
func (m *Meter) complete() bool { return m.terminal && m.c.Finish != "" }

// outcome names how the call ended. What the caller did comes before what the
// endpoint said, unless the answer was complete by then.
func (m *Meter) outcome(how End) Outcome {
	c := m.c
	switch {
	case how == EndRefused:
		return Refused
	case how == EndUnreachable:
		return Unreachable
	case how == EndTimeout && !m.complete():
		return Timeout
	case how == EndClientGone && !m.complete() && m.failure == nil:
		return ClientGone
	case c.Status >= 400:
		return ofStatus(c.Status)
	case m.failure != nil:
		return StreamError
	case how == EndBroken:
		return Truncated
	case !c.Operation.Generates() || m.format == nil || m.undecoded:
		return OK
	case c.Streamed && !m.complete():
		return Truncated
	case !c.Streamed && (m.unread || m.answer == nil || m.answer.Malformed):
		if c.ResponseBytes > wholeLimit {
			return OK // too long to be inspected, which is no fault of its own
		}
		return Malformed
	}
	return OK
}

func ofStatus(status int) Outcome {
	switch {
	case status == 429:
		return RateLimited
	case status == 401 || status == 403:
		return Auth
	case status == 503 || status == 529:
		return Overloaded
	case status >= 500:
		return ServerError
	}
	return ClientError
}

// explain keeps what a failure said of itself.
func (m *Meter) explain(err error) {
	c := m.c
	if c.Outcome == OK {
		return
	}
	if len(m.errorBody) > 0 {
		c.ErrorBody = Redact(string(m.errorBody))
		f := m.format
		if f == nil {
			f = wire.For(wire.Chat)
		}
		if e, ok := f.ParseError(m.errorBody); ok && m.failure == nil {
			m.failure = &e
		}
	}
	switch {
	case m.failure != nil:
		c.ErrorType, c.ErrorMessage = m.failure.Type, Redact(m.failure.Message)
		if c.ErrorType == "" {
			c.ErrorType = m.failure.Code
		}
	case err != nil:
		c.ErrorMessage = Redact(err.Error())
	case c.Outcome == Truncated:
		c.ErrorMessage = "the stream ended without its " + m.missing()
	case c.Outcome == Malformed:
		c.ErrorMessage = "status " + strconv.Itoa(c.Status) + ", but not what the API promises"
	}
	if c.ErrorType == "" {
		c.ErrorType = errorClass(c, err)
	}
}

// missing names what a truncated stream lacks.
func (m *Meter) missing() string {
	if m.terminal {
		return "finish reason"
	}
	return "terminal event"
}

// errorClass is weir's own word for a failure that has none: by the
// conventions, the status code, or what went wrong.
func errorClass(c *Call, err error) string {
	switch {
	case c.Status >= 400:
		return strconv.Itoa(c.Status)
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return string(c.Outcome)
}

// absence says why there is no first token.
func (m *Meter) absence() Absence {
	c := m.c
	if c.FirstToken.Reached() {
		return ""
	}
	switch c.Outcome {
	case Refused:
		return AbsentRefused
	case StreamError:
		return AbsentStreamError
	case Truncated:
		return AbsentTruncated
	case ClientGone:
		return AbsentClientGone
	case Timeout:
		return AbsentTimeout
	case OK, Malformed:
		switch {
		case !c.Operation.Generates():
			return AbsentOperation
		case !c.Streamed:
			return AbsentNotStreamed
		}
		return AbsentEmpty
	}
	return AbsentHTTPError
}

// usageSource judges the usage. It is suspicious where it contradicts the
// stream or itself: no output tokens although events held some; a part larger
// than its whole; a prompt of none; or both totals round to a hundred without
// any detail, which is how gateways fill in what the model never said.
func (m *Meter) usageSource() UsageSource {
	c, u := m.c, m.c.Usage
	switch {
	case !c.Operation.Generates():
		return ""
	case !u.Known():
		if c.Status == 0 || c.Status >= 400 {
			return ""
		}
		return UsageMissing
	case u.Output.Known && u.Output.N == 0 && c.TokenEvents > 0,
		u.Input.Known && u.Input.N <= 0,
		u.Reasoning.N > u.Output.N && u.Output.Known,
		u.CacheRead.N+u.CacheWrite.N > u.Input.N && u.Input.Known,
		invented(u):
		return UsageSuspicious
	}
	return UsageReported
}

func invented(u wire.Usage) bool {
	detail := u.CacheRead.Known || u.CacheWrite.Known || u.Reasoning.Known || u.Fresh.Known
	return !detail && u.Input.N > 0 && u.Output.N > 0 && u.Input.N%100 == 0 && u.Output.N%100 == 0
}
