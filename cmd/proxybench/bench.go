package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"weir/store"
)

// bench is one run of the benchmark.
type bench struct {
	size
	names    []string // of the subjects, in the order of the table
	weir     string   // binary
	nginx    string   // binary; empty when there is none
	profile  string   // file for weir's CPU profile; empty: none
	progress io.Writer

	dir       string
	origin    subject
	collector subject
	client    *process
	running   []*process
	databases []string
}

// sample is what one subject showed in one round.
type sample struct {
	user, system float64 // µs of CPU an event
	ttft         []time.Duration
}

func (s sample) cpu() float64 { return s.user + s.system }

// measure runs everything and gives the figures.
func (b *bench) measure(ctx context.Context) (*result, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	names := b.names
	r := &result{size: b.size, samples: map[string][]sample{}, perStream: map[string]float64{}, machine: machine(), loadBefore: load()}
	if b.nginx == "" && slices.Contains(names, nginxSubject) {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == nginxSubject })
		r.notes = append(r.notes, "nginx is not on the PATH and was left out")
	}
	r.names = names
	if err := b.rounds(ctx, r); err != nil {
		return nil, err
	}
	if b.Open > 0 {
		for _, name := range names[1:] {
			if name == unrecorded || name == exporting { // what is kept of an ended call takes no open stream's memory
				continue
			}
			fmt.Fprintf(b.progress, "memory: %d open streams through %s\n", b.Open, name)
			var err error
			if r.perStream[name], err = b.memory(ctx, r, name); err != nil {
				return nil, fmt.Errorf("memory of %s: %w", name, err)
			}
		}
	}
	r.loadAfter = load()
	if slices.Contains(names, exporting) {
		var err error
		if r.exported, err = spansAt(b.collector.url); err != nil {
			return nil, err
		}
	}
	return r, b.countRecorded(ctx, r)
}

// prepare finds the binaries, and starts the two ends.
func (b *bench) prepare(ctx context.Context) (err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return errors.New("processes are measured through /proc, which only Linux has")
	}
	if b.dir, err = os.MkdirTemp("", "proxybench"); err != nil {
		return err
	}
	b.nginx, _ = exec.LookPath("nginx")
	if b.weir == "" && b.profile == "" {
		b.weir = filepath.Join(b.dir, "weir")
		fmt.Fprintln(b.progress, "building weir")
		if said, err := exec.CommandContext(ctx, "go", "build", "-o", b.weir, "weir/cmd/weir").CombinedOutput(); err != nil {
			return fmt.Errorf("build weir: %w: %s; run it inside weir's module, or give -weir BINARY", err, said)
		}
	}
	b.origin.name = direct
	if b.origin.process, err = startRole("origin"); err != nil {
		return err
	}
	b.running = append(b.running, b.origin.process)
	if b.origin.url, err = b.origin.address(); err != nil {
		return err
	}
	if b.collector.process, err = startRole("collector"); err != nil {
		return err
	}
	b.running = append(b.running, b.collector.process)
	if b.collector.url, err = b.collector.address(); err != nil {
		return err
	}
	if b.client, err = startRole("client"); err != nil {
		return err
	}
	b.running = append(b.running, b.client)
	// The client is what the benchmark waits for: an interruption ends it, and
	// the rest with it.
	context.AfterFunc(ctx, func() { _ = b.client.cmd.Process.Kill() })
	return nil
}

// rounds measures CPU and TTFT of every subject, round by round: whatever else
// the machine does meets all of them alike.
func (b *bench) rounds(ctx context.Context, r *result) error {
	var subjects []subject
	for _, name := range r.names {
		s, err := b.startSubject(name)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		if s.process != nil {
			b.running = append(b.running, s.process)
		}
		subjects = append(subjects, s)
		// Connections, pools and caches are there before anything is measured.
		if err := b.read(ctx, r, s, order{Streams: b.Streams, Repeat: 1, Events: min(b.Events, 10), Gap: b.Gap, Body: b.Body}, nil); err != nil {
			return err
		}
	}
	spread := time.Duration(b.Events) * b.Gap // streams lie evenly over one's length
	for n := range b.Rounds {
		for i := range subjects {
			if err := ctx.Err(); err != nil {
				return errors.New("interrupted")
			}
			s := subjects[(i+n)%len(subjects)]
			fmt.Fprintf(b.progress, "round %d of %d: %s\n", n+1, b.Rounds, s.name)
			got := sample{}
			if err := b.read(ctx, r, s, order{Streams: b.Streams, Repeat: b.Repeat, Events: b.Events, Gap: b.Gap, Body: b.Body, Spread: spread}, &got); err != nil {
				return err
			}
			r.samples[s.name] = append(r.samples[s.name], got)
		}
	}
	b.stopSubjects(len(subjects) - 1)
	return nil
}

// settle is how long work may lag behind the stream that caused it: weir
// records within 250 ms, and that is weir's CPU too.
const settle = 500 * time.Millisecond

// read lets the client read streams through a subject, and measures if there
// is a sample to fill.
func (b *bench) read(ctx context.Context, r *result, s subject, o order, into *sample) error {
	o.URL = s.url
	if s.via {
		o.Origin = b.origin.url
	}
	var user, system time.Duration
	var err error
	if s.process != nil && into != nil {
		if user, system, err = cpu(s.cmd.Process.Pid); err != nil {
			return err
		}
	}
	var got outcome
	if err := b.client.ask(o, &got); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("load client: %w", err)
	}
	if len(got.Bad) > 0 {
		said := fmt.Sprintf("%s: %d of %d streams were not whole: %s", s.name, len(got.Bad), o.Streams*o.Repeat, got.Bad[0])
		if isWeir(s.name) {
			r.bad = append(r.bad, said)
		} else {
			r.notes = append(r.notes, said)
		}
	}
	if isWeir(s.name) {
		r.sent += o.Streams * o.Repeat
	}
	if s.name == exporting {
		r.toExport += o.Streams * o.Repeat
	}
	if into == nil {
		return nil
	}
	into.ttft = got.TTFT
	if s.process == nil || got.Events == 0 {
		return nil
	}
	time.Sleep(settle)
	userEnd, systemEnd, err := cpu(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	into.user = float64((userEnd - user).Microseconds()) / float64(got.Events)
	into.system = float64((systemEnd - system).Microseconds()) / float64(got.Events)
	return nil
}

// memory is how many bytes more a fresh process holds for each of the streams
// that are open, at the most while all of them are.
func (b *bench) memory(ctx context.Context, r *result, name string) (float64, error) {
	s, err := b.startSubject(name)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	if err := b.read(ctx, r, s, order{Streams: 1, Repeat: 1, Events: 2, Body: b.Body}, nil); err != nil {
		return 0, err
	}
	idle, err := rss(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	const events = 20
	spread, gap := b.Hold*3/10, b.Hold/events
	read := make(chan error, 1)
	go func() {
		read <- b.read(ctx, r, s, order{Streams: b.Open, Repeat: 1, Events: events, Gap: gap, Body: b.Body, Spread: spread}, nil)
	}()
	allOpen, firstEnds := time.After(spread+gap), time.After((events-2)*gap)
	var sampling <-chan time.Time
	sample := time.NewTicker(gap / 2)
	defer sample.Stop()
	most := int64(0)
	for {
		select {
		case <-allOpen:
			sampling = sample.C
		case <-firstEnds:
			sampling = nil
		case <-sampling:
			now, err := rss(s.cmd.Process.Pid)
			if err != nil {
				return 0, err
			}
			most = max(most, now)
		case err := <-read:
			return float64(most-idle) / float64(b.Open), err
		case <-ctx.Done():
			return 0, errors.New("interrupted")
		}
	}
}

// countRecorded looks into weir's databases: what costs nothing because it was
// not done is no saving.
func (b *bench) countRecorded(ctx context.Context, r *result) error {
	all, err := store.ParseSelection([]string{"all"})
	if err != nil {
		return err
	}
	r.recorded = 0
	for _, path := range b.databases {
		db, err := store.Open(ctx, path, store.Options{})
		if err != nil {
			return err
		}
		for _, err := range db.Calls(ctx, all, store.Order{}) {
			if err != nil {
				db.Close()
				return err
			}
			r.recorded++
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	return nil
}

// stopSubjects ends the last n parts that were started.
func (b *bench) stopSubjects(n int) {
	for range n {
		last := len(b.running) - 1
		b.running[last].stop()
		b.running = b.running[:last]
	}
}

// stop ends all parts and removes what they wrote.
func (b *bench) stop() {
	b.stopSubjects(len(b.running))
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}
