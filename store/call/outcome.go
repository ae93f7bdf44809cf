package call

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"syscall"

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
	EndRefused                // weir refused: its shaper, or since this machine had nothing left to connect with
)

// End closes the call: it names the outcome, the reason for a missing first
// token, and computes what needs the whole stream. err is what was met, if
// anything; its text is kept with secrets redacted. A client that leaves after
// the terminal event is ok.
//
// A call that got no response ends without Begin. A second End does nothing.
func (m *Meter) End(how End, err error, at Instant) {
	if m.ended {
		return
	}
	c := m.call
	if how == EndUnreachable && exhausted(err) != "" {
		how = EndRefused // it says nothing of the endpoint
	}
	m.close(how)
	m.ended = true
	c.Done = at
	c.Outcome = m.outcome(how)
	c.NoFirstToken = m.absence()
	m.dropPartialUsage()
	if m.generates && c.Status < 400 {
		c.UsageSource = m.usageSource()
	}
	m.closeGaps()
	if c.Outcome == OK {
		return
	}
	if c.ErrorType == "" {
		c.ErrorType = failureClass(c, err)
	}
	if c.ErrorMessage == "" {
		c.ErrorMessage = m.explain(err)
	}
}

// What explain says of failures that Explain then tells apart, also of calls
// that come from the store.
const (
	noFinish  = "the stream ended without its finish reason"
	emptyBody = ", but an empty body"
	webPage   = ", but an HTML page"
)

// explain says what went wrong where the provider did not.
func (m *Meter) explain(err error) string {
	c := m.call
	switch {
	case err != nil:
		return storable(err.Error(), messageLimit)
	case c.Outcome == Truncated && m.stream.terminal:
		return noFinish
	case c.Outcome == Truncated && c.Streamed:
		return "the stream ended without its terminal event"
	case c.Outcome == Malformed && m.blind != nil:
		return storable(m.blind.Error(), messageLimit)
	case c.Outcome == Malformed && c.ResponseBytes == 0:
		return "status " + strconv.Itoa(c.Status) + emptyBody
	case c.Outcome == Malformed && m.whole.page:
		return "status " + strconv.Itoa(c.Status) + webPage
	case c.Outcome == Malformed:
		return "status " + strconv.Itoa(c.Status) + ", but not what the API promises"
	}
	return ""
}

// close takes the last of the body. An event that lacks its blank line when
// the body ends in order is read: servers leave it out after their last one,
// and clients that read by lines do not miss it. One cut in its middle is no
// JSON and gives nothing.
func (m *Meter) close(how End) {
	if m.decoder != nil {
		m.decoder.Close()
	}
	m.closeErrorBody()
	if m.splitter == nil || m.blind != nil {
		return
	}
	m.closing = true
	switch m.framing {
	case wire.Whole:
		if how == EndClean || m.lengthReached() {
			m.splitter.Close(m.onFrame)
		}
	case wire.SSE:
		if how == EndClean && m.splitter.Partial() {
			m.splitter.Feed([]byte("\n\n"), m.onFrame)
		}
	}
}

// lengthReached says whether all of the body came that was announced.
func (m *Meter) lengthReached() bool { return m.length > 0 && m.call.ResponseBytes >= m.length }

// outcome names how the call ended. The order is the rule: the shaper's word,
// then the lack of a response, the status, an error inside a 200, a break, and
// last what the body holds.
func (m *Meter) outcome(how End) Outcome {
	if how == EndRefused {
		return Refused
	}
	if !m.begun {
		switch how {
		case EndUnreachable:
			return Unreachable
		case EndClientGone:
			return ClientGone
		case EndTimeout:
			return Timeout
		}
		return Truncated
	}
	if o := outcomeOf(m.call.Status); o != "" {
		return o
	}
	if m.stream.failed || m.whole.failed {
		return StreamError
	}
	complete := m.stream.terminal || m.lengthReached()
	switch {
	case how == EndClientGone && !complete:
		return ClientGone
	case how == EndTimeout && !complete:
		return Timeout
	case how == EndBroken, how == EndUnreachable:
		return Truncated
	case !m.generates:
		return OK
	}
	return m.judge()
}

// outcomeOf names a status that is a failure by itself; "" for others.
func outcomeOf(status int) Outcome {
	switch {
	case status == 429:
		return RateLimited
	case status == 401, status == 403:
		return Auth
	case status == 503, status == 529:
		return Overloaded
	case status >= 500:
		return ServerError
	case status >= 400:
		return ClientError
	}
	return ""
}

// judge says what a body that came whole is worth. A stream is ok when its
// terminal event came and a finish reason stood in it somewhere: gateways
// invent a [DONE] after a broken stream. A stream of which nothing could be
// read is malformed, not cut short.
func (m *Meter) judge() Outcome {
	c := m.call
	switch {
	case m.unreadable, m.whole.oversize:
		return OK // nothing speaks against it
	case m.blind != nil:
		return Malformed
	case !c.Streamed:
		if !m.whole.seen || m.whole.malformed {
			return Malformed
		}
		return OK
	case m.stream.terminal && c.Finish != "":
		return OK
	case c.Events > 0 && c.Events == c.UnknownEvents:
		return Malformed
	}
	return Truncated
}

// absence is why there is no first token, "" if there is one.
func (m *Meter) absence() Absence {
	c := m.call
	switch {
	case c.FirstToken.Reached():
		return ""
	case m.begun && !m.generates, !c.generates():
		return AbsentOperation
	}
	switch c.Outcome {
	case Refused:
		return AbsentRefused
	case Unreachable:
		return AbsentUnreachable
	case Timeout:
		return AbsentTimeout
	case ClientGone:
		return AbsentClientGone
	case StreamError:
		return AbsentStreamError
	case Truncated:
		return AbsentTruncated
	case OK, Malformed:
		switch {
		case m.blind != nil:
			return AbsentUnreadable
		case !c.Streamed:
			return AbsentNotStreamed
		}
		return AbsentEmpty
	}
	return AbsentHTTPError
}

// failureClass is weir's own word for a failure of which the provider said
// nothing; by the conventions, the status where there is one that says it.
func failureClass(c *Call, err error) string {
	switch {
	case c.Outcome == Refused && exhausted(err) != "":
		return exhausted(err)
	case c.Outcome == Unreachable:
		return unreachableClass(err)
	case c.Outcome != Refused && c.Status >= 400:
		return strconv.Itoa(c.Status)
	}
	return string(c.Outcome)
}

func unreachableClass(err error) string {
	var (
		dns      *net.DNSError
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		record   tls.RecordHeaderError
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &dns):
		return "dns_error"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &record), errors.As(err, &alert):
		return "tls_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection_reset"
	}
	return string(Unreachable)
}
