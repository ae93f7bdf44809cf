//go:build unix

package store

import (
	"syscall"
	"time"
)

// cpuTime is what the process used of its cores; ok is false where the system
// does not tell.
func cpuTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
