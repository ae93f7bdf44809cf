package call

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"weir/proxy/wire"
)

// Timeline is the arrival of every event of a stream, packed. An event is two
// unsigned varints: the microseconds since the event before it (the first:
// since the call arrived), and its data's length shifted left by four with the
// kinds of output it holds in the low bits (text 1, reasoning 2, refusal 4,
// tool 8; none: the event was no token). It is nil when there was no event,
// and holds the beginning of a stream for which 256 KiB are not enough: some
// 50,000 events.
type Timeline []byte

const (
	outputBits    = 4
	timelineLimit = 256 << 10
)

// add appends an event; µs is the time since the one before it.
func (t Timeline) add(us int64, output wire.Kind, size int) Timeline {
	if len(t)+2*binary.MaxVarintLen64 > timelineLimit {
		return t
	}
	t = binary.AppendUvarint(t, uint64(max(us, 0)))
	return binary.AppendUvarint(t, uint64(size)<<outputBits|uint64(output&wire.Output))
}

// Arrival is one event of a timeline.
type Arrival struct {
	After  time.Duration // since the call arrived, in whole microseconds
	Output wire.Kind     // zero when the event was no token
	Bytes  int           // of its data
}

// longestStream bounds what damaged bytes may claim, so that no sum overflows.
const longestStream = 100 * 365 * 24 * time.Hour

// Len is the number of events.
func (t Timeline) Len() int {
	n := 0
	for range t.Events() {
		n++
	}
	return n
}

// String describes the timeline instead of printing its bytes.
func (t Timeline) String() string {
	if len(t) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d events in %d bytes", t.Len(), len(t))
}

// Events lists the events in their order. A timeline that is cut or damaged
// ends early.
func (t Timeline) Events() iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		var at time.Duration
		for rest := t; len(rest) > 0; {
			us, n := binary.Uvarint(rest)
			if n <= 0 || us > 1<<50 {
				return
			}
			what, m := binary.Uvarint(rest[n:])
			if m <= 0 || what>>outputBits > 1<<40 {
				return
			}
			rest = rest[n+m:]
			if at > longestStream {
				return
			}
			at += time.Duration(us) * time.Microsecond
			if !yield(Arrival{at, wire.Kind(what) & wire.Output, int(what >> outputBits)}) {
				return
			}
		}
	}
}
