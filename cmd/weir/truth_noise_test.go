package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/store/call"
)

// noise is the control of the timed tests: what the machine itself adds to a
// message between two goroutines over a loopback connection, in the same
// process and over the same time as what is measured. Nothing of weir is in
// its way.
type noise struct {
	stop    chan struct{}
	wg      sync.WaitGroup
	samples []time.Duration
}

func listenToNoise(t *testing.T) *noise {
	t.Helper()
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	from, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	n := &noise{stop: make(chan struct{})}
	sent := make(chan time.Time, 1)
	n.wg.Go(func() {
		defer to.Close()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-n.stop:
				return
			case <-tick.C:
			}
			sent <- time.Now()
			if _, err := to.Write([]byte("x")); err != nil {
				return
			}
		}
	})
	n.wg.Go(func() {
		defer from.Close()
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(from, b); err != nil {
				return
			}
			n.samples = append(n.samples, time.Since(<-sent))
		}
	})
	return n
}

// end stops listening and gives what was heard.
func (n *noise) end() spread {
	close(n.stop)
	n.wg.Wait()
	return spreadOf(n.samples)
}

// spread is the distribution of the sizes of some differences.
type spread struct {
	n                  int
	p50, p95, p99, max time.Duration
}

func spreadOf(list []time.Duration) spread {
	sizes := make([]time.Duration, len(list))
	for i, d := range list {
		sizes[i] = d.Abs()
	}
	slices.Sort(sizes)
	return spread{
		len(sizes), call.Percentile(sizes, 50), call.Percentile(sizes, 95), call.Percentile(sizes, 99), call.Percentile(sizes, 100),
	}
}

const (
	// demanded is the bound on every difference from the truth.
	demanded = 2 * time.Millisecond
	// quiet is the noise up to which the machine can be held to it.
	quiet = time.Millisecond
)

// widened is the bound where the control heard so much noise: the demanded one
// on a quiet machine; on one that itself delays messages by more than quiet, as
// much more as that is.
func widened(heard time.Duration) time.Duration {
	bound := demanded * raceFactor
	if heard > quiet {
		bound = time.Duration(float64(bound) * float64(heard) / float64(quiet))
	}
	return bound
}

// differences are the distances from the truth, by name, in the order in which
// they were first measured. It is not for several goroutines at once.
type differences struct {
	names []string
	by    map[string][]time.Duration
}

func (d *differences) add(name string, difference time.Duration) {
	if d.by == nil {
		d.by = map[string][]time.Duration{}
	}
	if d.by[name] == nil {
		d.names = append(d.names, name)
	}
	d.by[name] = append(d.by[name], difference)
}

// table prints the sizes of all differences beside the control's.
func (d *differences) table(control spread) string {
	var b strings.Builder
	row := func(name string, s spread) {
		fmt.Fprintf(&b, "%-46s %6d %9.3f %9.3f %9.3f %9.3f\n", name, s.n, ms(s.p50), ms(s.p95), ms(s.p99), ms(s.max))
	}
	fmt.Fprintf(&b, "%-46s %6s %9s %9s %9s %9s\n", "difference, ms (load "+load()+")", "n", "p50", "p95", "p99", "max")
	for _, name := range d.names {
		row(name, spreadOf(d.by[name]))
	}
	row("control: the machine's own loopback", control)
	return b.String()
}

// hold checks every difference: its p99 against the demanded bound, which is
// widened, and says so, only where the control was noisy; its median against
// the demanded bound whatever the control heard.
func (d *differences) hold(t *testing.T, control spread) {
	t.Helper()
	t.Logf("\n%s", d.table(control))
	if control.n < 20 {
		t.Errorf("the control took %d samples: it says nothing", control.n)
	}
	bound := widened(control.p99)
	if control.p99 > quiet {
		t.Logf("THE MACHINE IS BUSY: its own loopback takes p99 %v; the bound of %v is widened to %v for this run", control.p99, demanded*raceFactor, bound)
	}
	if raceFactor > 1 {
		t.Logf("under the race detector the bound is %d times %v", raceFactor, demanded)
	}
	for _, name := range d.names {
		s := spreadOf(d.by[name])
		if s.p99 >= bound {
			t.Errorf("%s: p99 %v of %d, want below %v (the control's p99 is %v)", name, s.p99, s.n, bound, control.p99)
		}
		if s.p50 >= demanded*raceFactor {
			t.Errorf("%s: median %v of %d, want below %v", name, s.p50, s.n, demanded*raceFactor)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// load is the machine's load average, where it says so.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
