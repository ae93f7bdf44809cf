package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// The exit codes of a command that could not be started, as in a shell.
const (
	exitNotRunnable = 126
	exitNotFound    = 127
)

// findCommand says why a command cannot be started, before anything else is
// done for it.
func findCommand(name string) error {
	_, err := exec.LookPath(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return coded{exitNotFound, fmt.Errorf("exec: %s: no such command; is it installed, and on the PATH?", name)}
	case errors.Is(err, exec.ErrDot):
		return coded{exitNotRunnable, fmt.Errorf("exec: %s: it is in this folder, not on the PATH; say ./%s", name, name)}
	}
	return coded{exitNotRunnable, fmt.Errorf("exec: %s: cannot be run: %w", name, plainError(err))}
}

// plainError is an error of the system without what stands around it.
func plainError(err error) error {
	var outer *exec.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// takeSignals hands the process's signals to the command that runs: none of
// them ends weir any more, which still has to tell what the command cost.
func takeSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	taken := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	for _, s := range append(toldSignals, syscall.SIGHUP) {
		if !signal.Ignored(s) { // as nohup wants it
			taken = append(taken, s)
		}
	}
	signal.Reset(taken...)
	signal.Notify(signals, taken...)
	return signals
}

// runChild runs a command to its end with weir's own terminal, passes on the
// signals that it would not get by itself, and gives its exit code: 128 and the
// number of the signal that ended it. An error says that it did not start.
func runChild(cmd *exec.Cmd, signals <-chan os.Signal) (code int, err error) {
	if err := cmd.Start(); err != nil {
		return 0, coded{exitNotRunnable, fmt.Errorf("exec: %s: cannot be run: %w", cmd.Args[0], plainError(err))}
	}
	shared := fromTerminal()
	ended := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case s := <-signals:
				if shared && slices.Contains(terminalSignals, s) {
					continue
				}
				_ = cmd.Process.Signal(s) // one that has ended needs none
			case <-ended:
				return
			}
		}
	})
	err = cmd.Wait()
	close(ended)
	passing.Wait()
	state := cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	if code = state.ExitCode(); code < 0 {
		return 0, err
	}
	return code, nil
}
