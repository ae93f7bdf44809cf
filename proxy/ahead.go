package proxy

import "io"

// ahead reads a connection before it is asked to, so that a caller who leaves
// is noticed while what he said has to wait. It has one buffer, and more only
// then.
type ahead struct {
	free  chan *[largeRead]byte // for the reader
	read  chan chunk
	early []chunk // read while something waited
	lent  int     // buffers that the reader has, or will get
	done  chan struct{}
}

// chunk is what one read gave.
type chunk struct {
	buf *[largeRead]byte
	n   int
	err error
}

// mostAhead is how many reads a caller may be ahead by. It is not noticed that
// he leaves who goes on beyond that.
const mostAhead = 32

func readAhead(from io.Reader) *ahead {
	a := &ahead{free: make(chan *[largeRead]byte, mostAhead), read: make(chan chunk, mostAhead), done: make(chan struct{})}
	a.lend(largeBuffers.Get().(*[largeRead]byte))
	go func() {
		defer close(a.done)
		for buf := range a.free {
			n, err := from.Read(buf[:])
			a.read <- chunk{buf, n, err} // which has room for all that is lent
			if err != nil {
				return
			}
		}
	}()
	return a
}

func (a *ahead) lend(buf *[largeRead]byte) {
	a.lent++
	a.free <- buf
}

// next is the next read. What it gives is lent until it is given back.
func (a *ahead) next() chunk {
	if len(a.early) > 0 {
		c := a.early[0]
		a.early = a.early[1:]
		return c
	}
	c := <-a.read
	a.lent--
	return c
}

// back returns a read's buffer.
func (a *ahead) back(c chunk) {
	if a.lent == 0 && len(a.early) == 0 && c.err == nil {
		a.lend(c.buf)
		return
	}
	largeBuffers.Put(c.buf)
}

// while reads on until something is over. It calls left when the caller has.
func (a *ahead) while(over <-chan struct{}, left func()) {
	gone := len(a.early) > 0 && a.early[len(a.early)-1].err != nil
	if gone {
		left()
	}
	for {
		if a.lent == 0 && !gone && len(a.early) < mostAhead-1 {
			a.lend(largeBuffers.Get().(*[largeRead]byte))
		}
		select {
		case <-over:
			return
		case c := <-a.read:
			a.lent--
			a.early = append(a.early, c)
			if c.err != nil {
				gone = true
				left()
			}
		}
	}
}

// close waits for the reader, whose connection has been closed.
func (a *ahead) close() {
	close(a.free)
	<-a.done
}
