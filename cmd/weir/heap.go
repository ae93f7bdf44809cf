package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is how far the heap may grow before it is collected, however little
// of it is in use. With some hundred streams that is 10 MB; at Go's own pace,
// which waits for as much again, all of it would be looked through more than
// once a second.
const smallHeap = 24 << 20

// collectSeldom lets small heaps grow to smallHeap. With more than half of that
// in use Go's own pace counts, and so does what the user says of it.
func collectSeldom() {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	pace(ownPace)
}

// ownPace is the percentage by which Go's own pace lets a heap grow.
const ownPace = 100

// pace sets the pace after each collection. now is the one that is set.
func pace(now int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return // this runtime does not say
	}
	next := growth(live[0].Value.Uint64())
	// To set it stops all goroutines for a moment.
	if off := next - now; off < -now/10 || off > now/10 {
		debug.SetGCPercent(next)
		now = next
	}
	runtime.AddCleanup(new([64]byte), pace, now) // too large to share its place with what lives on
}

// growth is by how many percent a heap may grow of which so many bytes are in
// use.
func growth(live uint64) int {
	return max(ownPace, int(smallHeap*100/max(live, 1<<20))-100)
}
