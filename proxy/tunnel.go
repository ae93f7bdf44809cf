package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"weir/store/call"
)

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

// tunnel joins the two ends of a connection that switched protocols, until
// either closes or the proxy does. What passes is counted and, of a WebSocket
// that responses come by, measured on its way.
func (x *exchange) tunnel(resp *http.Response) {
	upstream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		x.failTunnel(errors.New("the upstream switched protocols on a connection that cannot be tunnelled"))
		return
	}
	defer upstream.Close()
	conn, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.failTunnel(err)
		return
	}
	defer conn.Close()
	unhook := context.AfterFunc(x.p.stopping, func() {
		conn.Close()
		upstream.Close()
	})
	defer unhook()
	resp.Body = nil // what follows the head is the tunnel's
	if err := errors.Join(resp.Write(buffered), buffered.Flush()); err != nil {
		x.end(call.EndClientGone, err)
		return
	}
	copyOut, copyBack := count, count
	if x.measurable(resp) {
		s := newSocket(x, resp)
		copyOut, copyBack = s.copyAsks, s.copyAnswers
		defer s.end()
	}
	var sent, received atomic.Int64
	var ends sync.WaitGroup
	ends.Go(func() {
		sent.Store(copyOut(upstream, buffered)) // either end may close first, at any time
		upstream.Close()
	})
	ends.Go(func() {
		received.Store(copyBack(conn, upstream))
		conn.Close()
	})
	ends.Wait()
	x.c.RequestBytes, x.c.ResponseBytes = sent.Load(), received.Load()
	if cause := context.Cause(x.p.stopping); cause != nil {
		x.end(call.EndBroken, cause)
		return
	}
	x.end(call.EndClean, nil)
}

func count(to io.Writer, from io.Reader) int64 {
	n, _ := io.Copy(to, from)
	return n
}

func (x *exchange) failTunnel(err error) {
	x.writeError(http.StatusBadGateway, "upstream_error", "weir cannot tunnel this upgrade: "+err.Error())
	x.end(call.EndBroken, err)
}
