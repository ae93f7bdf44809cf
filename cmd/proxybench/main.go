// Command proxybench measures what weir costs: the whole proxy, recording on,
// in one run beside a tuned httputil.ReverseProxy and beside nginx, each a
// process of its own on loopback. It prints a table and holds weir to three
// limits: CPU per event, added time to the first token, memory per open stream.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) //nolint:forbidigo // handed in from here
	stop()
	os.Exit(code) //nolint:forbidigo // this is main
}

// The exit codes are weir's own.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitThreshold   = 3
	exitInterrupted = 130
)

// size is how much is measured.
type size struct {
	Streams int           // at a time, while CPU and TTFT are measured
	Events  int           // a stream
	Gap     time.Duration // between the events of a stream
	Repeat  int           // streams that each worker reads in a round, one after another
	Rounds  int           // each has every subject once, in changing order
	Open    int           // streams open at a time while memory is measured
	Hold    time.Duration // for which each of those stays open
	Body    int           // bytes of a request's prompt
}

// run is the benchmark, or one of the processes that it consists of.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	if name := os.Getenv(roleVariable); name != "" {
		if err := play(name, args, in, out); err != nil {
			fmt.Fprintf(errOut, "proxybench %s: %v\n", name, err)
			return exitFailed
		}
		return exitOK
	}
	fl := flag.NewFlagSet("proxybench", flag.ContinueOnError)
	fl.SetOutput(errOut)
	var s size
	fl.IntVar(&s.Streams, "streams", 200, "streams at a time")
	fl.IntVar(&s.Events, "events", 50, "events a stream")
	fl.DurationVar(&s.Gap, "gap", 20*time.Millisecond, "time between the events of a stream")
	fl.IntVar(&s.Repeat, "repeat", 6, "streams that follow each other in a round, for each of those at a time")
	fl.IntVar(&s.Rounds, "rounds", 5, "rounds; each measures every subject once, in changing order")
	fl.IntVar(&s.Open, "open", 2000, "streams open at a time while memory is measured; 0 leaves it out")
	fl.DurationVar(&s.Hold, "hold", 10*time.Second, "time for which each of those stays open")
	fl.IntVar(&s.Body, "body", 4096, "bytes of a request's prompt")
	weir := fl.String("weir", "", "weir binary (default: built from this module)")
	only := fl.String("only", "", "subjects to measure, as weir,nginx; direct and ReverseProxy, which the others are held against, always are (default: all)")
	keep := fl.String("profile", "", "write weir's CPU profile of the rounds to this file; its parts are then put together by proxybench itself")
	if err := fl.Parse(args); err != nil {
		return exitUsage
	}
	if fl.NArg() > 0 || s.Streams < 1 || s.Events < 1 || s.Repeat < 1 || s.Rounds < 1 || s.Gap < 0 || s.Open < 0 || s.Hold < time.Second || s.Body < 0 {
		fmt.Fprintln(errOut, "proxybench: takes flags only, counts of at least 1 and a hold of at least 1s; see -help")
		return exitUsage
	}
	var want []string
	if *only != "" {
		want = strings.Split(*only, ",")
	}
	names, err := subjects(want)
	if err != nil {
		fmt.Fprintf(errOut, "proxybench: -only: %v\n", err)
		return exitUsage
	}
	b := &bench{size: s, names: names, weir: *weir, profile: *keep, progress: errOut}
	defer b.stop()
	result, err := b.measure(ctx)
	if err != nil {
		fmt.Fprintf(errOut, "proxybench: %v\n", err)
		if ctx.Err() != nil {
			return exitInterrupted
		}
		return exitFailed
	}
	result.write(out)
	if !result.holds() {
		return exitThreshold
	}
	return exitOK
}
