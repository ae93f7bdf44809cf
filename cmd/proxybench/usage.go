package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc, which Linux fixes for programs.
const clockTick = 10 * time.Millisecond

// cpu is the time that a process and its children have spent, user and system.
func cpu(pid int) (user, system time.Duration, err error) {
	pids, err := family(pid)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range pids {
		fields, err := stat(p)
		if err != nil {
			return 0, 0, err
		}
		u, _ := strconv.Atoi(fields[11])
		s, _ := strconv.Atoi(fields[12])
		user += time.Duration(u) * clockTick
		system += time.Duration(s) * clockTick
	}
	return user, system, nil
}

// rss is the memory that a process and its children hold, in bytes.
func rss(pid int) (int64, error) {
	pids, err := family(pid)
	if err != nil {
		return 0, err
	}
	var pages int64
	for _, p := range pids {
		fields, err := stat(p)
		if err != nil {
			return 0, err
		}
		n, _ := strconv.ParseInt(fields[21], 10, 64)
		pages += n
	}
	return pages * int64(os.Getpagesize()), nil
}

// family is a process and its children: nginx has workers.
func family(pid int) ([]int, error) {
	pids := []int{pid}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for _, word := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(word)
			if err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, nil
}

// stat reads the fields of /proc/PID/stat from the third, the state, on.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The name may hold anything, so what counts is its last parenthesis.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 22 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields; want 22 and more", pid, len(fields))
	}
	return fields, nil
}

// machine is what the figures were taken on.
func machine() string {
	return fmt.Sprintf("%d cores, %s, %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// load is the load average of the last minute, which says whether something
// else ran too; empty when unknown.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	last, _, _ := strings.Cut(string(b), " ")
	return last
}
