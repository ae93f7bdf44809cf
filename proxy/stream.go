package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"weir/store/call"
)

// send sends the request on and gives the response's head.
func (x *exchange) send() (*http.Response, error) {
	path, note := x.up.target(x.path, x.route)
	if note != "" {
		x.p.note(note+": weir sends it as it must be", "came", call.Redact(x.r.URL.Path), "sent", path)
	}
	trace := x.timing.trace()
	trace.Got1xxResponse = x.informational
	ctx := httptrace.WithClientTrace(x.r.Context(), trace)
	out := (&http.Request{
		Method: x.r.Method,
		URL:    &url.URL{Scheme: x.up.URL.Scheme, Host: x.up.URL.Host, RawQuery: x.r.URL.RawQuery, ForceQuery: x.r.URL.ForceQuery},
		Header: outgoing(x.r.Header),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	out.URL.RawPath = path
	if plain, err := url.PathUnescape(path); err == nil {
		out.URL.Path = plain
	} else {
		out.URL.Path = path
	}
	if upgrade := upgradeOf(x.r.Header); upgrade != "" {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", upgrade)
	}
	x.body.attach(out)
	if x.body.rest != nil {
		// The caller may be answered before the end of a body that is too long
		// to hold.
		_ = http.NewResponseController(x.w).EnableFullDuplex()
	}
	resp, err := x.up.transport.RoundTrip(out)
	if err == nil {
		at := call.Now()
		x.timing.fill(x.c)
		x.meter.Begin(resp.StatusCode, resp.Header, at)
	}
	return resp, err
}

// informational passes a 1xx response on, but 100, which net/http has sent.
func (x *exchange) informational(code int, h textproto.MIMEHeader) error {
	if code == http.StatusContinue || code == http.StatusSwitchingProtocols {
		return nil
	}
	for name, values := range h {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(code)
	for name := range h {
		x.w.Header().Del(name)
	}
	return nil
}

// upgradeOf is the protocol that a request wants to switch to.
func upgradeOf(h http.Header) string {
	for _, line := range h["Connection"] {
		for _, token := range strings.Split(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// answer passes the response on: its head at once, then each read as it comes.
func (x *exchange) answer(resp *http.Response) {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(resp)
		return
	}
	h := x.w.Header()
	for name, values := range resp.Header {
		h[name] = values
	}
	dropHopByHop(h)
	for name := range resp.Trailer {
		h.Add("Trailer", name)
	}
	if _, dated := resp.Header["Date"]; !dated {
		h["Date"] = nil // or net/http would write its own
	}
	if _, typed := resp.Header["Content-Type"]; !typed {
		h["Content-Type"] = nil
	}
	x.w.WriteHeader(resp.StatusCode)
	out := http.NewResponseController(x.w)
	if resp.ContentLength != 0 {
		_ = out.Flush() // a client that has left is noticed by the first write
	}
	how, err := x.copy(resp.Body, out)
	for name, values := range resp.Trailer {
		h[name] = values
	}
	x.end(how, err)
	if how != call.EndClean {
		// What broke for weir breaks for the caller: never a clean end that
		// nobody sent.
		panic(http.ErrAbortHandler)
	}
}

// readSize is how much is read from the upstream at once. Events are far
// smaller; what matters is the memory of many open streams.
const readSize = 8 << 10

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// copy passes the body on, read by read: stamp, write and flush, stamp, and
// only then is it looked at.
func (x *exchange) copy(from io.Reader, out *http.ResponseController) (call.End, error) {
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	for {
		n, readErr := from.Read(buf[:])
		if n > 0 {
			received := call.Now()
			_, writeErr := x.w.Write(buf[:n])
			if writeErr == nil {
				writeErr = out.Flush()
			}
			delivered := call.Now()
			x.c.WriteBlocked += time.Duration(delivered - received)
			x.meter.Observe(buf[:n], received, delivered)
			if writeErr != nil {
				return call.EndClientGone, writeErr
			}
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return call.EndClean, nil
		case readErr != nil && x.r.Context().Err() != nil:
			return call.EndClientGone, context.Cause(x.r.Context())
		case isTimeout(readErr):
			return call.EndTimeout, readErr
		case readErr != nil:
			return call.EndBroken, readErr
		}
	}
}

// tunnel joins the two ends of a connection that switched protocols, until
// either closes.
func (x *exchange) tunnel(resp *http.Response) {
	upstream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		x.writeError(http.StatusBadGateway, "upstream_error", "weir cannot tunnel this upgrade")
		x.end(call.EndBroken, errors.New("the upstream switched protocols on a connection that cannot be tunnelled"))
		return
	}
	conn, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.writeError(http.StatusBadGateway, "upstream_error", "weir cannot tunnel this upgrade: "+err.Error())
		x.end(call.EndBroken, err)
		return
	}
	defer conn.Close()
	resp.Body = nil // what follows the head is the tunnel's
	if err := errors.Join(resp.Write(buffered), buffered.Flush()); err != nil {
		upstream.Close()
		x.end(call.EndClientGone, err)
		return
	}
	var ends sync.WaitGroup
	ends.Go(func() {
		_, _ = io.Copy(upstream, buffered) // either end may close first, at any time
		upstream.Close()
	})
	ends.Go(func() {
		_, _ = io.Copy(conn, upstream)
		conn.Close()
	})
	ends.Wait()
	x.end(call.EndClean, nil)
}
