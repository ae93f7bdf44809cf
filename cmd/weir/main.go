// Command weir is a local sidecar in front of an LLM API: it measures the
// traffic that passes it and replays load models through itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stdio is where a command reads and writes. Results go to out; progress,
// warnings and hints go to err.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// environment looks a variable up; set is false where there is none.
type environment func(name string) (value string, set bool)

func main() {
	collectSeldom()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, drain := context.WithCancelCause(context.Background())
	hard, end := context.WithCancel(context.Background())
	go func() {
		<-signals
		drain(errInterrupted)
		<-signals
		end()
		// What can be saved in this time is saved; a third signal does not wait.
		select {
		case <-signals:
		case <-time.After(2 * time.Second):
		}
		os.Exit(exitInterrupted) //nolint:forbidigo // still main, which alone ends the process
	}()
	code := run(ctx, hard, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}, os.LookupEnv) //nolint:forbidigo // handed in from here
	os.Exit(code)                                                                            //nolint:forbidigo // this is main
}

// run executes one command and gives the process's exit code. ctx ends when the
// command is to finish what it has begun, hard when it is to stop at once.
func run(ctx, hard context.Context, args []string, io stdio, env environment) int {
	root := newRoot(hard, io, env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(io.err, "weir: "+text)
	}
	var h *hinted
	if errors.As(err, &h) {
		fmt.Fprintln(io.err, "next: "+h.next)
	}
	return exitCode(err)
}
