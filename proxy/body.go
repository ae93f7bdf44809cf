package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"weir/proxy/wire"
)

// body is a request's body: read whole, or, where it is too long to hold, its
// beginning and the rest of it as it comes.
type body struct {
	held   []byte
	rest   io.Reader     // nil when held is all of it
	len    int64         // as the caller stated it; -1 when it did not
	size   int64         // of what was held
	reader *bytes.Reader // of the attempt under way
	read   atomic.Int64  // of a body with a rest
}

// atOnce is how much memory a stated length alone is given.
const atOnce = 1 << 20

// readBody reads up to hold bytes. Reading it all before the request is sent
// on is what keeps net/http from closing a body that the transport still
// reads, which cuts streams under load.
func readBody(r *http.Request, hold int64) (*body, error) {
	b := &body{len: r.ContentLength}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		b.len = 0
		return b, nil
	}
	defer func() { b.size = int64(len(b.held)) }()
	if size := r.ContentLength; size > 0 && size <= min(hold, atOnce) {
		b.held = make([]byte, size)
		n, err := io.ReadFull(r.Body, b.held)
		b.held = b.held[:n]
		return b, err
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(r.Body, hold+1))
	b.held = buf.Bytes()
	if err == nil && n > hold {
		b.rest = r.Body
	}
	return b, err
}

// step is how much of an encoded body is decoded before looking at how much
// came of it: a few bytes can stand for very many.
const step = 1 << 10

// readable is a body with its coding undone, as far as it can be looked at.
type readable struct {
	bytes []byte // nil: nothing can be read
	head  bool   // only the short fields of the top level are in bytes
	whole bool   // nothing is missing that could say more
	size  int64

	media      int // pictures, sounds and files, where bytes is but the head
	mediaBytes int64
}

// inspect undoes the body's coding. What is held is looked at where it lies; a
// copy is made of coded bodies alone, up to limit. Of a longer one the head is
// found piece by piece, until most has been seen of what the bytes stand for.
func (b *body) inspect(coding string, limit int, most int64) readable {
	in, whole := b.held, b.rest == nil
	decoder, err := wire.NewDecoder(coding)
	switch {
	case err != nil:
		return readable{whole: whole && len(in) == 0}
	case decoder == nil:
		return readable{bytes: in, whole: whole, size: int64(len(in))}
	}
	if copied, all := decode(in, coding, limit); all || len(copied) < limit {
		decoder.Close()
		return readable{bytes: copied, whole: whole && all, size: int64(len(copied))}
	}
	defer decoder.Close()
	var skim wire.Skim
	for len(in) > 0 && skim.Size < most {
		n := min(len(in), step)
		out, err := decoder.Decode(in[:n])
		skim.Feed(out[:min(int64(len(out)), most-skim.Size)])
		if err != nil {
			break
		}
		in = in[n:]
	}
	return readable{bytes: skim.Head(), head: true, whole: skim.Whole(), size: skim.Size, media: skim.Media, mediaBytes: skim.MediaBytes}
}

// decode undoes a coding, to the limit. whole says that this is all that the
// bytes stand for; an unknown coding gives nothing.
func decode(in []byte, coding string, limit int) (plain []byte, whole bool) {
	decoder, err := wire.NewDecoder(coding)
	if err != nil {
		return nil, len(in) == 0
	}
	if decoder == nil {
		return in[:min(len(in), limit)], len(in) <= limit
	}
	defer decoder.Close()
	for len(in) > 0 {
		n := min(len(in), step)
		out, err := decoder.Decode(in[:n])
		room := limit - len(plain)
		plain = append(plain, out[:min(len(out), room)]...)
		if err != nil || len(out) > room {
			return plain, false
		}
		in = in[n:]
	}
	return plain, true
}

// keptBack is a body that its caller keeps back until the upstream asks for it.
func keptBack(r *http.Request) *body {
	return &body{rest: r.Body, len: r.ContentLength}
}

// waits says whether the caller keeps its body back until it is asked for.
func waits(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue") && r.ContentLength != 0
}

// attach makes the body that of a request to the upstream. Its trailers come
// behind the chunks that it came in.
func (b *body) attach(out, from *http.Request) {
	out.ContentLength = b.len
	switch {
	case b.rest != nil:
		out.Body = io.NopCloser(io.TeeReader(io.MultiReader(bytes.NewReader(b.held), b.rest), (*counter)(&b.read)))
	case len(b.held) == 0:
		out.Body, out.ContentLength = http.NoBody, 0
	default:
		out.GetBody = func() (io.ReadCloser, error) {
			b.reader = bytes.NewReader(b.held)
			return io.NopCloser(b.reader), nil // a type that net/http sends in one write with the head
		}
		out.Body, _ = out.GetBody()
		if b.len < 0 {
			out.ContentLength = -1 // it came in chunks, and goes on in chunks
			out.Trailer = from.Trailer
		}
	}
}

// release forgets what is held once all of it was sent and answered: a stream
// may be open for minutes, and agents send their whole history each time.
func (b *body) release() {
	if b.rest == nil && b.reader != nil {
		b.reader.Reset(nil)
		b.held = nil
	}
}

// sent is how much of the body was read.
func (b *body) sent() int64 {
	if b == nil {
		return 0
	}
	return max(b.size, b.read.Load())
}

// counter counts what is written to it.
type counter atomic.Int64

func (c *counter) Write(p []byte) (int, error) {
	(*atomic.Int64)(c).Add(int64(len(p)))
	return len(p), nil
}
