package proxy

import "io"

// ahead reads a connection in the background, so that whoever takes what it
// read can wait for other things beside. It has one buffer.
type ahead struct {
	read  chan chunk // what came, until again asks for more
	more  chan struct{}
	done  chan struct{}
	space *[largeRead]byte
}

// chunk is what one read gave, lent until again.
type chunk struct {
	bytes []byte
	err   error
}

func readAhead(from io.Reader) *ahead {
	a := &ahead{read: make(chan chunk, 1), more: make(chan struct{}, 1), done: make(chan struct{}), space: largeBuffers.Get().(*[largeRead]byte)}
	a.again()
	go func() {
		defer close(a.done)
		for range a.more {
			n, err := from.Read(a.space[:])
			a.read <- chunk{a.space[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return a
}

// again gives the buffer back for the next read.
func (a *ahead) again() { a.more <- struct{}{} }

// close waits for the reader, whose connection has been closed.
func (a *ahead) close() {
	close(a.more)
	<-a.done
	largeBuffers.Put(a.space)
}
