// Command loadbench finds what weir's generator can do on this machine: it sends
// at rising rates to simulated endpoints in the same process, with as many
// streams in flight as a row wants, and holds what the generator measured
// against the endpoints' own record. It prints a table, in which each row is
// valid or says why it is not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr) //nolint:forbidigo // handed in from here
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

// load is one row of the table.
type load struct {
	rate    float64 // requests a second
	streams int     // in flight
}

// parseLoads reads "100/500,300/2000".
func parseLoads(text string) ([]load, error) {
	var list []load
	for one := range strings.SplitSeq(text, ",") {
		rate, streams, found := strings.Cut(strings.TrimSpace(one), "/")
		r, errRate := strconv.ParseFloat(rate, 64)
		n, errStreams := strconv.Atoi(streams)
		if !found || errRate != nil || errStreams != nil || !(r > 0 && r <= 1e5) || n < 1 || n > 1e6 {
			return nil, fmt.Errorf("%q: want RATE/STREAMS, as 300/2000", one)
		}
		list = append(list, load{r, n})
	}
	return list, nil
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	fl := flag.NewFlagSet("loadbench", flag.ContinueOnError)
	fl.SetOutput(errOut)
	loads := fl.String("loads", "50/300,100/700,200/1300,300/2000,400/2700,600/4000", "rows to measure, as RATE/STREAMS: requests a second, and streams in flight")
	var s setting
	fl.DurationVar(&s.hold, "hold", 10*time.Second, "time to measure each row, once its streams are in flight")
	fl.DurationVar(&s.gap, "gap", 500*time.Millisecond, "time between the events of a stream")
	fl.IntVar(&s.endpoints, "endpoints", 200, "simulated endpoints that share the requests: each sends the events of all its streams in one moment")
	fl.BoolVar(&s.proxied, "proxy", false, "send through weir's proxy in the same process")
	must := fl.Bool("must", false, "exit with 3 if a row is invalid")
	if err := fl.Parse(args); err != nil {
		return exitUsage
	}
	rows, err := parseLoads(*loads)
	if err == nil && (fl.NArg() > 0 || s.hold < time.Second || s.gap < time.Millisecond || s.endpoints < 1) {
		err = errors.New("takes flags only, a hold of at least 1s, a gap of at least 1ms and one endpoint; see -help")
	}
	if err != nil {
		fmt.Fprintf(errOut, "loadbench: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(out, "%d cores, %s; an event a stream every %s, for %s\n\n", runtime.GOMAXPROCS(0), runtime.Version(), s.gap, s.hold)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "planned/s\tsent/s\tstreams\trequests\tlag p50\tp99\tmax\tTTFT off p50\tp99\tCPU\tverdict")
	valid := true
	for _, l := range rows {
		fmt.Fprintf(errOut, "%g requests/s, %d streams in flight …\n", l.rate, l.streams)
		r, err := measure(ctx, l, s)
		if err != nil {
			t.Flush()
			fmt.Fprintf(errOut, "loadbench: %v\n", err)
			if ctx.Err() != nil {
				return exitInterrupted
			}
			return exitFailed
		}
		valid = valid && len(r.reasons) == 0
		r.write(t)
	}
	t.Flush()
	if *must && !valid {
		return exitThreshold
	}
	return exitOK
}
