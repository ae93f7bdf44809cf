package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"weir/proxy/wire"
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

// lacksWebSocket says that the upstream has no WebSocket where the client asks
// for one: it does not know the path, or the method, or has taken no notice of
// the upgrade. Other statuses speak of the key, the account, the request or the
// moment, and are the client's to hear.
func (x *exchange) lacksWebSocket(resp *http.Response) bool {
	if x.unseen || x.c.API != wire.Responses || !strings.EqualFold(upgradeOf(x.r.Header), "websocket") {
		return false
	}
	switch status := resp.StatusCode; status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	default:
		return status >= 200 && status < 300
	}
}

// answerUpgradeRequired tells the client in the one status that it takes as
// final that there is no WebSocket. Codex would else try 7 times before it goes
// on without one. The call keeps the status that the upstream gave.
func (x *exchange) answerUpgradeRequired(resp *http.Response) {
	if resp.StatusCode >= http.StatusBadRequest { // a 200 may be a stream without an end
		said, _ := io.ReadAll(io.LimitReader(resp.Body, largeRead))
		at := call.Now()
		x.kept.response(said)
		x.unread.add(len(said), at, 0) // it reaches nobody
		x.observe(said)
	}
	x.p.note("an upstream has no WebSocket: weir answers 426, and clients go on without one", "upstream", x.up.Name, "status", resp.StatusCode)
	x.w.Header().Set("Connection", "Upgrade")
	x.w.Header().Set("Upgrade", "HTTP/1.1") // what is to be had here, as RFC 9110 wants it said
	x.writeError(http.StatusUpgradeRequired, "invalid_request_error",
		fmt.Sprintf("weir: the upstream %s has no WebSocket here (it answered %d): send the request by POST", x.up.Name, resp.StatusCode))
	x.end(call.EndClean, nil)
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
		s := newSocket(x, resp, conn)
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
