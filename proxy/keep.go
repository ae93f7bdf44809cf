package proxy

import (
	"bytes"
	"net/http"
	"sync/atomic"

	"weir/proxy/wire"
	"weir/store/call"
)

// Keep says what is kept of the calls' contents, and takes it. Its fields are
// not changed after the first request.
type Keep struct {
	// Bodies says that requests and responses are kept, and not only the
	// shapes of requests.
	Bodies bool
	// Limit is how many bytes of each body are kept; 0 is 1 MiB.
	Limit int
	// Room is how many bytes the calls under way may hold together; 0 is 64
	// MiB. Where it is used up, bodies are cut.
	Room int64
	// To takes a call's content once the call has ended and has its ids. It is
	// called beside the streams, for one call after the other, and must not
	// wait.
	To func(c *call.Call, content Content)

	held atomic.Int64
}

const (
	defaultKeepLimit = 1 << 20
	defaultKeepRoom  = 64 << 20
)

// Content is what a call said.
type Content struct {
	Shape             *wire.Shape // of the request; nil where it was not read
	Request, Response Body        // zero unless bodies are kept
	Keys              *call.Keys  // that went with the call, and are in its bodies
}

// Held is how many bytes the content holds in memory, about.
func (c *Content) Held() int64 {
	n := len(c.Request.Bytes) + len(c.Response.Bytes)
	if c.Shape != nil {
		for _, b := range c.Shape.Blocks {
			n += blockBytes + len(b.Name)
		}
	}
	return int64(n)
}

const blockBytes = 64 // of a block but for its name

// Body is the beginning of a body as it went over the wire.
type Body struct {
	Bytes  []byte // not to be changed
	Coding string // Content-Encoding
	Size   int64  // bytes of the whole body
}

// Plain undoes the coding, up to limit bytes, and says whether that is less
// than the whole body. A body in an unknown coding has nothing plain.
func (b Body) Plain(limit int) (plain []byte, truncated bool) {
	plain, whole := decode(b.Bytes, b.Coding, limit)
	return plain, !whole || int64(len(b.Bytes)) < b.Size
}

// capture gathers one call's content while it passes. What it does on the
// stream's way is to copy bytes. A nil capture gathers nothing.
type capture struct {
	keep    *Keep
	content Content
	room    int64 // of Keep.Room
	cut     bool  // the response has come to its limit
}

// begin is nil where nothing is to be kept.
func (k *Keep) begin() *capture {
	if k == nil {
		return nil
	}
	return &capture{keep: k}
}

// limit is how many bytes of each body are kept.
func (k *Keep) limit() int {
	if k.Limit <= 0 {
		return defaultKeepLimit
	}
	return k.Limit
}

// take reserves room.
func (c *capture) take(n int) bool {
	most := c.keep.Room
	if most <= 0 {
		most = defaultKeepRoom
	}
	if c.keep.held.Add(int64(n)) > most {
		c.keep.held.Add(-int64(n))
		return false
	}
	c.room += int64(n)
	return true
}

// request takes what is held of a request's body. It is not copied, unless
// that would keep more in memory than is wanted.
func (c *capture) request(held []byte, coding string) {
	if c == nil || !c.keep.Bodies {
		return
	}
	c.content.Request.Coding = coding
	n := min(len(held), c.keep.limit())
	if !c.take(n) {
		return
	}
	if n < len(held) {
		held = bytes.Clone(held[:n])
	}
	c.content.Request.Bytes = held
}

// shape takes the request's shape.
func (c *capture) shape(s *wire.Shape) {
	if c != nil {
		c.content.Shape = s
	}
}

// head takes the response's head.
func (c *capture) head(h http.Header) {
	if c != nil {
		c.content.Response.Coding = h.Get("Content-Encoding")
	}
}

// response copies the next bytes of the response's body, up to the limit.
func (c *capture) response(p []byte) {
	if c == nil || c.cut || !c.keep.Bodies {
		return
	}
	b := &c.content.Response
	n := min(len(p), c.keep.limit()-len(b.Bytes))
	if n < len(p) {
		c.cut = true
	}
	if !c.take(n) {
		c.cut = true
		return
	}
	b.Bytes = append(b.Bytes, p[:n]...)
}

// keys takes what must not be kept.
func (c *capture) keys(k *call.Keys) {
	if c != nil {
		c.content.Keys = k
	}
}

// end hands the content on. The call has ended and has its ids.
func (c *capture) end(of *call.Call) {
	if c == nil {
		return
	}
	if of.SpanID != [8]byte{} && (c.keep.Bodies || c.content.Shape != nil) {
		if c.keep.Bodies {
			c.content.Request.Size, c.content.Response.Size = of.RequestBytes, of.ResponseBytes
		}
		c.keep.To(of, c.content)
	}
	c.keep.held.Add(-c.room)
	c.content, c.room = Content{}, 0
}
