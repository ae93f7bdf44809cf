package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"weir/proxy/wire"
	"weir/store/call"
)

// writeError writes an error of weir's own in the caller's dialect.
func (x *exchange) writeError(status int, kind, message string) {
	f := x.format
	if f == nil {
		f = wire.For(wire.Chat)
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	x.w.Write(f.AppendError(nil, &wire.Error{Status: status, Type: kind, Message: message}))
}

// refuse tells the caller why weir does not send its request.
func (x *exchange) refuse(status int, kind, message string, why error) {
	x.writeError(status, kind, message)
	x.c.Status = status
	x.end(call.EndRefused, why)
}

// failBody ends a call whose request did not come whole.
func (x *exchange) failBody(err error) {
	if x.r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		x.end(x.left(err))
		return
	}
	x.writeError(http.StatusBadRequest, "invalid_request_error", "weir could not read the request: "+err.Error())
	x.end(call.EndClientGone, err)
}

// failSend ends a call that no response came to.
func (x *exchange) failSend(err error) {
	if x.r.Context().Err() != nil {
		x.end(x.left(err))
		return
	}
	if kind, next := call.ExhaustedBy(err); kind != "" {
		x.refuse(http.StatusServiceUnavailable, kind, fmt.Sprintf("weir has nothing left to reach the upstream %s (%s) with: %s. %s",
			x.up.Name, x.up.URL.Host, call.Redact(cause(err).Error()), next), cause(err))
		return
	}
	how, status := call.EndUnreachable, http.StatusBadGateway
	what, next := "could not reach", "Is it running, and is --upstream right?"
	if x.verbatim {
		next = "Is the address right?"
	}
	switch {
	case errors.Is(err, errLoop):
		status, what, next = http.StatusLoopDetected, "would ask itself for", "Point --upstream at the endpoint."
	case !x.timing.connected():
	case isTimeout(err):
		how, status, what = call.EndTimeout, http.StatusGatewayTimeout, "waited too long for"
	default:
		how, what, next = call.EndBroken, "got no answer from", "It took the request and broke off; its own log says why."
	}
	x.writeError(status, "upstream_error", fmt.Sprintf("weir %s the upstream %s (%s): %s. %s",
		what, x.up.Name, x.up.URL.Host, call.Redact(cause(err).Error()), next))
	x.end(how, cause(err))
}

// cause is an error without the URL around it, which may hold a key.
func cause(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
