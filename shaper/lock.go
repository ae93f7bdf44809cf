package shaper

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lock is a mutex for those who need it for a moment and for one who needs it
// for long, a piece at a time. A mutex alone would not do: who lets it go and
// takes it again is faster than those who sleep for it, for a millisecond.
type lock struct {
	sync.Mutex
	wanted atomic.Int32 // so many sleep for it
}

func (l *lock) Lock() {
	if l.TryLock() {
		return
	}
	l.wanted.Add(1)
	l.Mutex.Lock()
	l.wanted.Add(-1)
}

// mostYields bounds how long those are let before who never cease to come.
const mostYields = 1000

// pause lets those have the lock who wait for it, and takes it again.
func (l *lock) pause() {
	l.Unlock()
	for n := 0; n < mostYields && l.wanted.Load() > 0; n++ {
		runtime.Gosched()
	}
	l.Mutex.Lock()
}
