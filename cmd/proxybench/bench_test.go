package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// The test's own binary plays the parts too.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// A run of a few streams holds no limit, and must come to its table: every
// subject measured, every stream through weir whole and recorded.
func TestSmallRunComesToItsTable(t *testing.T) {
	var out, progress bytes.Buffer
	code := run(context.Background(), strings.Fields("-streams 4 -events 5 -gap 5ms -repeat 2 -rounds 1 -open 8 -hold 1s"), nil, &out, &progress)
	if code != exitOK && code != exitThreshold {
		t.Fatalf("exit code %d\n%s\n%s", code, out.String(), progress.String())
	}
	// Each worker's first stream warms up: 4, then 8 measured; 8 open, and 1
	// before them; and 12 through the weir that sends on.
	for _, want := range []string{"direct", "ReverseProxy", "weir", "CPU per event", "TTFT p50", "an open stream at 8", "✓ 12 of 12 streams exported", "✓ 54 of 54 streams recorded"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range []string{"-streams 0", "-rounds x", "more", "-gap -1s", "-only envoy"} {
		var out, said bytes.Buffer
		if code := run(context.Background(), strings.Fields(args), nil, &out, &said); code != exitUsage || said.Len() == 0 {
			t.Errorf("%s: exit code %d, %q", args, code, said.String())
		}
	}
}

func round(cpu float64, ttft ...time.Duration) sample {
	return sample{user: cpu / 2, system: cpu / 2, ttft: ttft}
}

func TestLimitsAreHeldAgainstReverseProxyOfTheSameRound(t *testing.T) {
	const ms = time.Millisecond
	r := &result{
		size: size{Open: 2000}, names: []string{direct, reverse, weirSubject}, sent: 5, recorded: 5,
		samples: map[string][]sample{
			direct:  {round(0, ms), round(0, ms), round(0, ms)},
			reverse: {round(10, 2*ms), round(20, 4*ms), round(40, 8*ms)},
			// The machine was busy in the third round: both cost more in it.
			weirSubject: {round(12, 2*ms+100_000), round(24, 4*ms+100_000), round(50, 8*ms+100_000)},
		},
		perStream: map[string]float64{weirSubject: 60 << 10},
	}
	if ratio := r.ratio(weirSubject); ratio != 1.2 {
		t.Errorf("ratio %v, want the median 1.2", ratio)
	}
	if added := r.overReverse(weirSubject); added != 100*time.Microsecond {
		t.Errorf("added %v, want 100µs", added)
	}
	if !r.holds() {
		t.Errorf("holds no longer: %+v", r.verdicts())
	}
	for name, spoil := range map[string]func(*result){
		"a stream was cut":          func(r *result) { r.bad = []string{"weir: 1 of 5"} },
		"a stream was not recorded": func(r *result) { r.recorded = 4 },
		"memory":                    func(r *result) { r.perStream = map[string]float64{weirSubject: 65 << 10} },
		"CPU": func(r *result) {
			r.samples[weirSubject] = []sample{round(13, 2*ms), round(26, 4*ms), round(52, 8*ms)}
		},
		"TTFT": func(r *result) {
			r.samples[weirSubject] = []sample{round(10, 3*ms), round(20, 5*ms), round(40, 9*ms)}
		},
	} {
		spoilt := *r
		spoilt.samples = map[string][]sample{direct: r.samples[direct], reverse: r.samples[reverse], weirSubject: r.samples[weirSubject]}
		if spoil(&spoilt); spoilt.holds() {
			t.Errorf("%s: holds all the same", name)
		}
	}
}

func TestQuantileIsByNearestRank(t *testing.T) {
	all := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(all, q); got != want {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 || median(nil) != 0 || median([]float64{1, 2}) != 1.5 {
		t.Error("nothing has a quantile")
	}
}
