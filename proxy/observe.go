package proxy

import (
	"fmt"
	"sync"
	"time"

	"weir/store/call"
)

// A stream's events are far smaller than smallRead, and what matters is the
// memory of many open streams. A read that fills its buffer is followed by one
// of largeRead: somebody sends a file.
const (
	smallRead = 3 << 10
	largeRead = 32 << 10
	leastRoom = 1 << 10 // for the next read, behind those that wait for the meter
	mostReads = 16      // that wait for it
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallRead]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeRead]byte) }}
)

// unread are reads that were delivered and wait for the meter, one behind the
// other in one buffer, each with its instants. To look at several events in a
// row costs half of looking at each alone, between two waits; the figures are
// the same.
type unread struct {
	bytes, n int
	seen     int // reads that the meter has taken
	reads    [mostReads]struct {
		bytes               int
		received, delivered call.Instant // delivered is 0 of what reached nobody
	}
}

func (u *unread) add(bytes int, received, delivered call.Instant) {
	r := &u.reads[u.n]
	r.bytes, r.received, r.delivered = bytes, received, delivered
	u.bytes += bytes
	u.n++
}

func (u *unread) full() bool { return u.n == mostReads }

// observe lets the meter look at what waits for it in buf.
func (x *exchange) observe(buf []byte) {
	u := &x.unread
	if !x.blind {
		x.meterReads(buf)
	}
	for i, r := range u.reads[:u.n] {
		if i >= u.seen {
			x.c.ResponseBytes += int64(r.bytes)
		}
		if r.delivered != 0 {
			x.c.WriteBlocked += time.Duration(r.delivered - r.received)
		}
	}
	u.bytes, u.n, u.seen = 0, 0, 0
}

func (x *exchange) meterReads(buf []byte) {
	defer x.spare()
	u := &x.unread
	for _, r := range u.reads[:u.n] {
		u.seen++
		x.meter.Observe(buf[:r.bytes], r.received, r.delivered)
		buf = buf[r.bytes:]
	}
}

// spare takes a panic of the meter off the stream's way: whatever goes wrong in
// it goes wrong beside the stream, and the figures end there.
func (x *exchange) spare() {
	if v := recover(); v != nil {
		x.blind = true
		x.tell("weir cannot measure a stream, which goes on", "panic", fmt.Sprint(v), "api", x.c.API)
	}
}
