package proxy

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"weir/store/call"
)

// timing takes down what the transport does. Its hooks run on the transport's
// goroutines, some of them after the response has begun.
type timing struct {
	mu       sync.Mutex
	conn     call.Instant // of the last attempt
	sent     call.Instant
	reused   bool
	attempts int
	dnsStart call.Instant
	tlsStart call.Instant
	dns, tls time.Duration
}

func (t *timing) trace() *httptrace.ClientTrace {
	locked := func(f func(now call.Instant)) {
		now := call.Now()
		t.mu.Lock()
		defer t.mu.Unlock()
		f(now)
	}
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			locked(func(now call.Instant) {
				t.conn, t.reused, t.sent = now, info.Reused, 0
				t.attempts++
			})
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			locked(func(now call.Instant) {
				if info.Err == nil {
					t.sent = now
				}
			})
		},
		DNSStart: func(httptrace.DNSStartInfo) { locked(func(now call.Instant) { t.dnsStart = now }) },
		DNSDone: func(httptrace.DNSDoneInfo) {
			locked(func(now call.Instant) { t.dns = time.Duration(now - t.dnsStart) })
		},
		TLSHandshakeStart: func() { locked(func(now call.Instant) { t.tlsStart = now }) },
		TLSHandshakeDone: func(tls.ConnectionState, error) {
			locked(func(now call.Instant) { t.tls = time.Duration(now - t.tlsStart) })
		},
	}
}

// connected says whether any attempt had a connection.
func (t *timing) connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempts > 0
}

// wrote says whether the transport has done with the request's body.
func (t *timing) wrote() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent.Reached()
}

// fill puts what is known into the call. An upstream that answers before it
// has read the request may be done before HTTP/2 tells that the request was
// written: it counts as sent when the answer began, at the latest.
func (t *timing) fill(c *call.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Connected, c.Sent, c.ReusedConn, c.Attempts = t.conn, t.sent, t.reused, t.attempts
	if c.Headers.Reached() && (!c.Sent.Reached() || c.Sent > c.Headers) {
		c.Sent = c.Headers
	}
	c.DNS, c.TLS = t.dns, t.tls
}
