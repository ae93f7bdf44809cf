//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// ownedByUser says whether a file belongs to the user who runs weir.
func ownedByUser(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// alive says whether a process exists, the user's own or another's.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// toldSignals are those that mean what a program makes of them, terminalSignals
// those that a terminal sends.
var (
	toldSignals     = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
	terminalSignals = []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGWINCH}
)

// fromTerminal says whether signals of the keyboard reach weir's child too: a
// terminal sends them to all processes that it runs in its foreground.
func fromTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}
