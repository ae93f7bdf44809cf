package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync"

	"weir/store/call"
)

// send sends the request on and gives the response's head.
func (x *exchange) send() (*http.Response, error) {
	path, note := x.path, ""
	if !x.verbatim {
		path, note = x.up.target(x.path, x.route)
	}
	if note != "" {
		x.p.note(note+": weir sends it as it must be", "came", call.Redact(x.r.URL.Path), "sent", path)
	}
	trace := x.timing.trace()
	early := &informational{w: x.w}
	trace.Got1xxResponse = early.pass
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
	x.propagate(out.Header)
	if x.key != nil {
		out.URL.RawQuery = x.key.put(out.Header, out.URL.RawQuery, x.c.API, x.c.Provider)
	}
	if upgrade := upgradeOf(x.r.Header); upgrade != "" {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", upgrade)
	}
	x.body.attach(out, x.r)
	if x.body.rest != nil {
		// The caller may be answered before the end of a body that is too long
		// to hold.
		_ = http.NewResponseController(x.w).EnableFullDuplex()
	}
	resp, err := x.roundTrip(out)
	early.stop()
	x.headed = call.Now()
	return resp, err
}

// begun takes down the head of the response that answers.
func (x *exchange) begun(resp *http.Response) {
	x.timing.fill(x.c)
	if x.timing.wrote() {
		x.body.release()
	}
	x.meter.Begin(resp.StatusCode, resp.Header, x.headed)
	x.kept.head(resp.Header)
}

// informational passes 1xx responses on. It is called on the transport's
// goroutine, which may lag behind a request that failed; then it is too late.
type informational struct {
	mu   sync.Mutex
	over bool
	w    http.ResponseWriter
}

func (i *informational) pass(code int, h textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	// 100 was sent by net/http when the body was read.
	if i.over || code == http.StatusContinue || code == http.StatusSwitchingProtocols {
		return nil
	}
	for name, values := range h {
		i.w.Header()[name] = values
	}
	i.w.WriteHeader(code)
	for name := range h {
		i.w.Header().Del(name)
	}
	return nil
}

func (i *informational) stop() {
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
}

// answer passes the response on: its head at once, then each read as it comes.
func (x *exchange) answer(resp *http.Response) {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(resp)
		return
	}
	if x.lacksWebSocket(resp) {
		x.answerUpgradeRequired(resp)
		return
	}
	x.unask(resp)
	h := x.w.Header()
	for name, values := range resp.Header {
		h[name] = values
	}
	dropHopByHop(h)
	announced := len(resp.Trailer)
	for name := range resp.Trailer {
		h.Add("Trailer", name)
	}
	if _, dated := resp.Header["Date"]; !dated {
		h["Date"] = nil // or net/http would write its own
	}
	if _, typed := resp.Header["Content-Type"]; !typed {
		h["Content-Type"] = nil
	}
	if x.worse != nil && !x.worse.head(resp, h) {
		x.worse = nil
	}
	x.w.WriteHeader(resp.StatusCode)
	out := http.NewResponseController(x.w)
	if resp.ContentLength != 0 {
		_ = out.Flush() // a client that has left is noticed by the first write
	}
	var how call.End
	var err error
	if x.worse != nil {
		how, err = x.worse.copy(resp.Body, out)
	} else {
		how, err = x.copy(resp.Body, out)
	}
	how, err = x.releaseHeld(out, how, err)
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced {
			name = http.TrailerPrefix + name // some came that nobody announced
		}
		h[name] = values
	}
	x.end(how, err)
	if how != call.EndClean {
		// What broke for weir breaks for the caller: never a clean end that
		// nobody sent.
		panic(http.ErrAbortHandler)
	}
}

// copy passes the body on, until its end.
func (x *exchange) copy(from io.Reader, out *http.ResponseController) (call.End, error) {
	small := smallBuffers.Get().(*[smallRead]byte)
	defer smallBuffers.Put(small)
	for {
		room := small[x.unread.bytes:]
		n, how, err := x.pass(from, out, room)
		if err != nil || n == len(room) || len(room)-n < leastRoom || x.unread.full() {
			x.observe(small[:])
		}
		for filled := n == len(room); err == nil && filled; {
			large := largeBuffers.Get().(*[largeRead]byte)
			n, how, err = x.pass(from, out, large[:])
			x.observe(large[:])
			filled = n == largeRead
			largeBuffers.Put(large)
		}
		if errors.Is(err, io.EOF) {
			return call.EndClean, nil
		}
		if err != nil {
			return how, err
		}
	}
}

// pass takes one read on its way: stamp, write and flush, stamp. A clean end is
// io.EOF; with any other error how says who failed.
func (x *exchange) pass(from io.Reader, out *http.ResponseController, buf []byte) (n int, how call.End, err error) {
	n, readErr := from.Read(buf)
	if n > 0 {
		received := call.Now()
		_, err = x.to.Write(buf[:n])
		if err == nil {
			err = out.Flush()
		}
		delivered := call.Now()
		x.unread.add(n, received, delivered)
		x.kept.response(buf[:n])
		if err != nil {
			how, err = x.left(err)
			return n, how, err
		}
	}
	switch {
	case readErr == nil:
		return n, call.EndClean, nil
	case errors.Is(readErr, io.EOF):
		return n, call.EndClean, io.EOF
	case x.r.Context().Err() != nil:
		how, err = x.left(readErr)
		return n, how, err
	case isTimeout(readErr):
		return n, call.EndTimeout, readErr
	}
	return n, call.EndBroken, readErr
}

// left is how a call ends whose caller is gone: by itself, or because the proxy
// was closed.
func (x *exchange) left(err error) (call.End, error) {
	if stopped := context.Cause(x.p.stopping); stopped != nil {
		return call.EndBroken, stopped
	}
	if cause := context.Cause(x.r.Context()); cause != nil {
		err = cause
	}
	return call.EndClientGone, err
}
