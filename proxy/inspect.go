package proxy

import (
	"errors"
	"fmt"
	"net/http"

	"weir/proxy/wire"
	"weir/store/call"
)

// inspect reads what the request says of itself, as far as its body is held.
func (x *exchange) inspect() {
	b := x.body.inspect(x.r.Header.Get("Content-Encoding"), inspectedBody, x.p.holds())
	x.partly = !b.whole
	if len(b.bytes) == 0 {
		return
	}
	x.plainBytes, x.media = b.size-b.mediaBytes, b.media
	x.look(b)
}

// look reads what the request says of itself. What cannot be read is the
// upstream's to judge, and a fault of weir's own here is no reason not to send
// the request on.
func (x *exchange) look(b readable) {
	defer func() {
		if v := recover(); v != nil {
			x.tell("weir cannot read a request, which goes on", "panic", fmt.Sprint(v), "api", x.c.API)
		}
	}()
	_ = x.format.ParseHead(&x.c.Request, b.bytes)
	if !b.head {
		x.readShape(b.bytes)
	}
}

// readShape reads the request's shape. Of a body that breaks off there is none:
// it would be taken for a shorter conversation.
func (x *exchange) readShape(plain []byte) {
	shape, err := wire.ReadShape(x.c.API, plain)
	x.plainBytes, x.media = x.plainBytes-int64(shape.MediaBytes), x.media+shape.Media
	if err != nil {
		return
	}
	x.shape = shape
	if x.kept != nil && len(shape.Blocks) > 0 {
		x.kept.shape(&shape)
	}
}

// mediaTokens is what a picture is taken to cost before anybody has counted: one
// of a megapixel costs 765 tokens at OpenAI, 1,290 at Gemini, 1,400 at Anthropic.
// So is a sound or a file, whose length is not looked at.
const mediaTokens = 1000

// estimate is the prompt's size in tokens before anybody has counted them: 4
// bytes each, and mediaTokens for each picture, sound or file whatever its bytes.
func (x *exchange) estimate() int64 { return max(x.plainBytes, 0)/4 + mediaTokens*int64(x.media) }

var errNoUpstream = errors.New("weir was started without --upstream, so it carries requests as a forward proxy only")

// failRoute ends a call that has nowhere to go.
func (x *exchange) failRoute() {
	status, kind, how, err := http.StatusNotFound, "not_found_error", call.EndUnreachable, errNoUpstream
	if len(x.p.upstreams) > 0 {
		status, kind, how, err = http.StatusRequestEntityTooLarge, "request_too_large", call.EndRefused, errModelUnseen
	}
	x.writeError(status, kind, err.Error())
	x.end(how, err)
}
