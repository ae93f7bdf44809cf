//go:build unix

package generator

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxFiles is how many files the process may open; 0 when it cannot be told.
func maxFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<31-1 {
		return 0
	}
	return int(l.Cur)
}

// ephemeralPorts is how many local ports there are for connections to one
// address; 0 when it cannot be told.
func ephemeralPorts() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	f := strings.Fields(string(b))
	if err != nil || len(f) != 2 {
		return 0
	}
	from, errFrom := strconv.Atoi(f[0])
	to, errTo := strconv.Atoi(f[1])
	if errFrom != nil || errTo != nil {
		return 0
	}
	return to - from + 1
}

// cpuClock measures the process's use of its cores.
type cpuClock struct {
	used time.Duration
	at   time.Time
}

func startCPU() cpuClock { return cpuClock{cpuUsed(), time.Now()} }

// share is the part of the cores that was used since the start, 0 to 1.
func (c cpuClock) share() float64 {
	wall := time.Since(c.at)
	if wall <= 0 {
		return 0
	}
	return float64(cpuUsed()-c.used) / float64(wall) / float64(runtime.GOMAXPROCS(0))
}

func cpuUsed() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
