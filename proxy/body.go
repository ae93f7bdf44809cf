package proxy

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"

	"weir/proxy/wire"
)

// body is a request's body: read whole, or, where it is too long to hold, its
// beginning and the rest of it as it comes.
type body struct {
	held []byte
	rest io.Reader // nil when held is all of it
	len  int64     // as the caller stated it; -1 when it did not
	read atomic.Int64
}

// readBody reads up to hold bytes. Reading it all before the request is sent
// on is what keeps net/http from closing a body that the transport still
// reads, which cuts streams under load.
func readBody(r *http.Request, hold int64) (*body, error) {
	b := &body{len: r.ContentLength}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		b.len = 0
		return b, nil
	}
	size := r.ContentLength
	if size < 0 || size > hold {
		size = 4 << 10
	}
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(r.Body, hold+1))
	b.held = buf.Bytes()
	if err == nil && n > hold {
		b.rest = r.Body
	}
	return b, err
}

// inspect gives the body's beginning with its coding undone, to the limit.
func (b *body) inspect(coding string, limit int) []byte {
	decoder, err := wire.NewDecoder(coding)
	if err != nil {
		return nil
	}
	if decoder == nil {
		return b.held[:min(len(b.held), limit)]
	}
	defer decoder.Close()
	var plain []byte
	for in := b.held; len(in) > 0 && len(plain) < limit; {
		n := min(len(in), 64<<10)
		out, err := decoder.Decode(in[:n])
		plain = append(plain, out...)
		in = in[n:]
		if err != nil {
			break
		}
	}
	return plain[:min(len(plain), limit)]
}

// attach makes the body that of a request to the upstream.
func (b *body) attach(out *http.Request) {
	out.ContentLength = b.len
	switch {
	case b.rest != nil:
		out.Body = io.NopCloser(io.TeeReader(io.MultiReader(bytes.NewReader(b.held), b.rest), (*counter)(&b.read)))
	case len(b.held) == 0:
		out.Body, out.ContentLength = http.NoBody, 0
	default:
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.held)), nil }
		out.Body, _ = out.GetBody()
		if b.len < 0 {
			out.ContentLength = -1 // it came in chunks, and goes on in chunks
		}
	}
}

// sent is how much of the body was read.
func (b *body) sent() int64 {
	if b == nil {
		return 0
	}
	return max(int64(len(b.held)), b.read.Load())
}

// counter counts what is written to it.
type counter atomic.Int64

func (c *counter) Write(p []byte) (int, error) {
	(*atomic.Int64)(c).Add(int64(len(p)))
	return len(p), nil
}
