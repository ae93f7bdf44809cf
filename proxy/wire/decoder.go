package wire

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Decoder undoes a Content-Encoding on a copy of a body, as far as the bytes
// that have come allow: what the sender flushed is visible at once.
//
// The decompressors pull from a reader, and a proxy pushes what came. A
// coroutine turns one into the other without a goroutine of its own: the
// reader yields whenever it wants more than there is.
type Decoder struct {
	next func() (struct{}, bool)
	stop func()

	in      []byte // fed, not yet read
	out     []byte // decoded by the present call
	decoded int    // bytes that all codings gave in the present call
	err     error
	closed  bool
}

// What a decoder takes at most. Both are far above what a server that means
// well sends.
const (
	maxCodings = 3        // one over the other
	maxDecoded = 16 << 20 // bytes of one Decode, of all codings together
)

// NewDecoder makes a decoder for a Content-Encoding header: gzip, deflate, br,
// zstd, or several of them, as they were applied: "gzip, br" is a gzip in
// brotli. It is nil for identity and empty. An unknown coding, or more than
// three, is an error.
func NewDecoder(contentEncoding string) (*Decoder, error) {
	var codings []string
	for _, c := range strings.Split(contentEncoding, ",") {
		switch c = strings.ToLower(strings.TrimSpace(c)); c {
		case "", "identity":
		case "gzip", "x-gzip", "deflate", "br", "zstd":
			codings = append(codings, c)
		default:
			return nil, fmt.Errorf("content encoding %q: want gzip, deflate, br or zstd", c)
		}
	}
	switch {
	case len(codings) == 0:
		return nil, nil
	case len(codings) > maxCodings:
		return nil, fmt.Errorf("content encoding %.100q: %d codings over each other: want at most %d", contentEncoding, len(codings), maxCodings)
	}
	d := &Decoder{}
	d.next, d.stop = iter.Pull(func(yield func(struct{}) bool) { d.run(codings, yield) })
	return d, nil
}

var errStopped = errors.New("decoder closed")

// source is what the first decompressor reads: it gives the coroutine up when
// nothing is left.
type source struct {
	d     *Decoder
	yield func(struct{}) bool
}

func (s source) Read(p []byte) (int, error) {
	for len(s.d.in) == 0 {
		if !s.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, s.d.in)
	s.d.in = s.d.in[n:]
	return n, nil
}

// metered counts what a coding gives, and ends at a bomb: one that another
// coding reads may have no output at all.
type metered struct {
	d *Decoder
	r io.Reader
}

func (m metered) Read(p []byte) (int, error) {
	if m.d.decoded > maxDecoded {
		return 0, fmt.Errorf("a few bytes stand for more than %d MiB", maxDecoded>>20)
	}
	n, err := m.r.Read(p)
	m.d.decoded += n
	return n, err
}

// run decodes until the end, an error, or Close.
func (d *Decoder) run(codings []string, yield func(struct{}) bool) {
	var r io.Reader = source{d, yield}
	var closers []func()
	for i := len(codings) - 1; i >= 0; i-- {
		next, end, err := decompress(codings[i], r)
		if err != nil {
			d.err = err
			break
		}
		r = metered{d, next}
		if end != nil {
			closers = append(closers, end)
		}
	}
	buf := make([]byte, 8<<10)
	for d.err == nil {
		n, err := r.Read(buf)
		d.out = append(d.out, buf[:n]...)
		if err != nil {
			d.err = err
		}
	}
	for _, end := range closers {
		end()
	}
}

func decompress(coding string, r io.Reader) (io.Reader, func(), error) {
	switch coding {
	case "br":
		return brotli.NewReader(r), nil, nil
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case "deflate":
		z, err := newDeflate(r)
		return z, nil, err
	}
	return newGunzip(r), nil, nil
}

// newDeflate reads zlib, which is what the coding means, and the raw deflate
// that some servers send in its name. As of gzip, the checksum is left to the
// client: the standard reader would hold the last block back for it.
func newDeflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		if head[1]&zlibHasDictionary != 0 {
			return nil, errors.New("deflate with a dictionary that only the sender has")
		}
		_, _ = b.Discard(2)
	}
	return flate.NewReader(b), nil
}

const zlibHasDictionary = 1 << 5

// Decode takes the next encoded bytes and gives what they decode to; the slice
// holds until the next call. Where they are broken, or stand for more than 16
// MiB, it gives what came before that, with an error, and nothing more after.
// What follows the end of the encoded data is passed over.
func (d *Decoder) Decode(p []byte) ([]byte, error) {
	if d.closed || d.err != nil {
		return nil, d.ended()
	}
	d.in, d.out, d.decoded = p, d.out[:0], 0
	d.next()
	return d.out, d.ended()
}

// ended is the error to tell: the end of the data is none.
func (d *Decoder) ended() error {
	if d.err == nil || errors.Is(d.err, io.EOF) || errors.Is(d.err, errStopped) {
		return nil
	}
	return fmt.Errorf("decode body: %w", d.err)
}

// Close frees the decoder; it may be called at any point and more than once.
func (d *Decoder) Close() {
	if !d.closed {
		d.closed = true
		d.stop()
	}
}
