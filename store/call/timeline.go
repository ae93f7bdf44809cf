package call

import "weir/proxy/wire"

// Timeline is the arrival of every event of a stream, packed: bytes that
// AppendEvent grows and Events reads.
type Timeline []byte

// Arrival is one event of a timeline.
type Arrival struct {
	Received Instant
	Output   wire.Kind // zero when the event was no token
	Bytes    int       // of its data
}
