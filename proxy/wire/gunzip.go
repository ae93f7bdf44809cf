package wire

import (
	"bufio"
	"compress/flate"
	"errors"
	"io"
)

// gunzip reads gzip without waiting for what stands behind the data: the
// standard reader gives the last block only when it has seen the trailer and
// whether another member follows, which on a live stream may never come. The
// checksum is the client's to check, who gets the same bytes.
type gunzip struct {
	in      *bufio.Reader
	data    io.ReadCloser // of the member under way; nil between members
	trailer bool          // a member's trailer comes next
}

func newGunzip(r io.Reader) *gunzip { return &gunzip{in: bufio.NewReader(r)} }

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		if g.data == nil {
			if err := g.header(); err != nil {
				return 0, err
			}
			g.data = flate.NewReader(g.in)
		}
		n, err := g.data.Read(p)
		if errors.Is(err, io.EOF) {
			g.data, g.trailer, err = nil, true, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// The bits of a gzip header's flags (RFC 1952).
const (
	gzipHasCRC = 1 << (iota + 1)
	gzipHasExtra
	gzipHasName
	gzipHasComment
)

const gzipTrailer = 8 // checksum and length

// header reads to the data of the next member, over the trailer of the one
// before.
func (g *gunzip) header() error {
	if g.trailer {
		if _, err := g.in.Discard(gzipTrailer); err != nil {
			return err
		}
		g.trailer = false
	}
	var head [10]byte
	if _, err := io.ReadFull(g.in, head[:]); err != nil {
		return err
	}
	if head[0] != 0x1f || head[1] != 0x8b || head[2] != 8 {
		return errors.New("not gzip")
	}
	flags := head[3]
	if flags&gzipHasExtra != 0 {
		var size [2]byte
		if _, err := io.ReadFull(g.in, size[:]); err != nil {
			return err
		}
		if _, err := g.in.Discard(int(size[0]) | int(size[1])<<8); err != nil {
			return err
		}
	}
	for _, text := range []byte{gzipHasName, gzipHasComment} {
		if flags&text != 0 {
			for more := true; more; {
				_, err := g.in.ReadSlice(0)
				if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more {
					return err
				}
			}
		}
	}
	if flags&gzipHasCRC != 0 {
		if _, err := g.in.Discard(2); err != nil {
			return err
		}
	}
	return nil
}
