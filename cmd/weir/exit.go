package main

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes, the same for every command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2 // usage or a bad file: nothing was sent
	exitThreshold   = 3 // a threshold, a regression, or an invalid run
	exitInterrupted = 130
)

// errInterrupted is why a context ended after a signal.
var errInterrupted = coded{exitInterrupted, errors.New("interrupted")}

// coded is an error with the exit code that it leads to.
type coded struct {
	code int
	err  error
}

func (c coded) Error() string { return c.err.Error() }
func (c coded) Unwrap() error { return c.err }

// usage marks an error as one of the command line or of a file given on it.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return coded{exitUsage, err}
}

// usagef is usage of a new error.
func usagef(format string, a ...any) error { return usage(fmt.Errorf(format, a...)) }

// hinted is an error with the command that is useful next.
type hinted struct {
	err  error
	next string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// exitCode is the code that an error asks for.
func exitCode(err error) int {
	var c coded
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
