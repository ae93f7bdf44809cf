package generator

import (
	"strings"
	"testing"
	"time"

	"weir/store/call"
)

func TestVerdict(t *testing.T) {
	const ms = time.Millisecond
	quantiles := func(p50, p99 time.Duration) Quantiles { return Quantiles{N: 1000, P50: p50, P99: p99} }
	for _, row := range []struct {
		name      string
		result    Result
		exhausted map[string]int
		want      string // in the only reason; empty: valid
	}{
		{"lag of 9 ms beside a TTFT of 1 s → valid", Result{Lag: quantiles(ms, 9*ms), TTFT: quantiles(1000*ms, 0)}, nil, ""},
		{"lag of 11 ms beside a TTFT of 5 s → invalid: no run may have it", Result{Lag: quantiles(ms, 11*ms), TTFT: quantiles(5000*ms, 0)}, nil, "lag p99 11ms is above 10ms"},
		{"lag of 7 ms beside a TTFT of 600 ms → invalid: above 1 %", Result{Lag: quantiles(ms, 7*ms), TTFT: quantiles(600*ms, 0)}, nil, "lag p99 7ms is above 6ms (1 % of the median TTFT of 600ms"},
		{"lag of 5 ms beside a TTFT of 600 ms → valid", Result{Lag: quantiles(ms, 5*ms), TTFT: quantiles(600*ms, 0)}, nil, ""},
		{"lag of 4.9 ms beside a TTFT of 50 ms → valid: below what a timer can keep", Result{Lag: quantiles(ms, 4900*time.Microsecond), TTFT: quantiles(50*ms, 0)}, nil, ""},
		{"lag of 6 ms beside a TTFT of 50 ms → invalid", Result{Lag: quantiles(ms, 6*ms), TTFT: quantiles(50*ms, 0)}, nil, "above 5ms"},
		{"lag of 8 ms and no TTFT at all → valid", Result{Lag: quantiles(ms, 8*ms)}, nil, ""},
		{"CPU of 89 % → valid", Result{CPU: 0.89}, nil, ""},
		{"CPU of 95 % → invalid", Result{CPU: 0.95}, nil, "used 95 % of its CPU cores"},
		{"one call waited for a place → said of one", Result{CapWaits: 1}, nil, "limit of 64 calls in flight was reached: 1 request waited for a place"},
		{"calls waited for a place → invalid", Result{CapWaits: 3}, nil, "limit of 64 calls in flight was reached: 3 requests"},
		{"ports ran out → invalid", Result{}, map[string]int{"local ports": 7}, "local ports ran out: 7 calls"},
	} {
		got := reasons(&row.result, row.result.Lag.P99, 64, row.exhausted)
		switch {
		case row.want == "" && len(got) > 0:
			t.Errorf("%s: %q", row.name, got)
		case row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)):
			t.Errorf("%s: %q does not say %q", row.name, got, row.want)
		}
	}
}

func TestTheLagThatIsJudged(t *testing.T) {
	const late = 50 * time.Millisecond
	for _, row := range []struct {
		name    string
		n, late int
		judged  bool // the late ones decide
	}{
		{"2 late of 30 → chance", 30, 2, false},
		{"3 late of 30 → more than 1 % for certain", 30, 3, true},
		{"7 late of 250 → chance", 250, 7, false},
		{"8 late of 250 → more than 1 % for certain", 250, 8, true},
		{"1 late of 1 → chance", 1, 1, false},
		{"2 late of 2 → more than 1 % for certain", 2, 2, true},
		{"9 late of 1000 → the percentile itself is not late", 1000, 9, false},
		{"11 late of 1000 → the percentile itself is late", 1000, 11, true},
		{"all late of 250 → late", 250, 250, true},
	} {
		var s sketch
		for i := range row.n {
			if i < row.late {
				s.add(late)
			} else {
				s.add(time.Millisecond)
			}
		}
		if got := judgedLag(&s) > 40*time.Millisecond; got != row.judged {
			t.Errorf("%s: judged %s", row.name, judgedLag(&s))
		}
	}
	if got := judgedLag(&sketch{}); got != 0 {
		t.Errorf("of no requests %s is judged", got)
	}
}

func TestLimits(t *testing.T) {
	for _, row := range []struct {
		name               string
		rate               float64
		need, files, ports int
		want               []string
	}{
		{"enough of both → nothing", 20, 1200, 1 << 20, 28_000, nil},
		{"unknown limits → nothing", 20, 1200, 0, 0, nil},
		{"few files → said with the time they last", 20, 1200, 1024, 28_000, []string{"ulimit -n", "320", "answers take over 16 s"}},
		{"few ports → said", 1000, 60_000, 1 << 20, 28_232, []string{"local ports", "28232", "28 s"}},
		{"a cap below the limits → nothing", 1000, 100, 1024, 28_232, nil},
	} {
		got := limitWarnings(row.rate, row.need, row.files, row.ports)
		if len(row.want) == 0 && len(got) > 0 || len(row.want) > 0 && len(got) != 1 {
			t.Errorf("%s: %q", row.name, got)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(got[0], want) {
				t.Errorf("%s: %q does not say %q", row.name, got[0], want)
			}
		}
	}
}

func TestSketchKeepsQuantilesWithinOnePercent(t *testing.T) {
	var s sketch
	if s.quantiles() != (Quantiles{}) {
		t.Errorf("an empty sketch has %+v", s.quantiles())
	}
	for i := 1; i <= 10_000; i++ {
		s.add(time.Duration(i) * 100 * time.Microsecond)
	}
	for _, row := range []struct {
		p    float64
		want time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.95, 950 * time.Millisecond}, {0.99, 990 * time.Millisecond}, {1, time.Second}} {
		got := s.quantile(row.p)
		if off := float64(got-row.want) / float64(row.want); off > 0.01 || off < -0.01 {
			t.Errorf("p%g is %s, want %s within 1 %%", 100*row.p, got, row.want)
		}
	}
	if q := s.quantiles(); q.N != 10_000 || q.Max != time.Second {
		t.Errorf("%+v", q)
	}
	var one sketch
	one.add(3 * time.Millisecond)
	if q := one.quantile(0.5); q > 3*time.Millisecond || q < 2950*time.Microsecond {
		t.Errorf("the median of 3ms alone is %s", q)
	}
}

// A run that is broken off and then awaits what is under way had its rate up to
// the end of its sends, not over the time that was planned or spent waiting.
func TestRatesOfABrokenOffRunAreThoseUntilItWas(t *testing.T) {
	tally := newTally(nil, 0, time.Hour)
	start := call.Now() - call.Instant(10*time.Second)
	tally.begin(start)
	for range 20 {
		tally.planned(&Session{Turns: make([]Turn, 1)}, start+call.Instant(time.Second))
	}
	tally.stop()
	r := &Result{Took: 100 * time.Second}
	tally.result(r)
	if r.PlannedRate < 1.9 || r.PlannedRate > 2 {
		t.Errorf("20 requests due in 10 s were planned at %.2f/s", r.PlannedRate)
	}
}

// What warms a system up is in no figure: neither in the rates, whose time begins
// behind it, nor in the lag.
func TestRatesAndLagLeaveTheWarmUpOut(t *testing.T) {
	for name, warming := range map[string]time.Duration{"a model": 10 * time.Second, "a dataset": 0} {
		tally := newTally([]string{"a"}, warming, 20*time.Second)
		start := call.Now() - call.Instant(30*time.Second)
		tally.begin(start)
		for i := range 220 {
			s := &Session{Scenario: "a", WarmUp: i < 200, Turns: make([]Turn, 1)}
			due := start + call.Instant(time.Duration(i)*50*time.Millisecond)
			if !s.WarmUp {
				due = start + call.Instant(10*time.Second+time.Duration(i-200)*500*time.Millisecond)
			}
			tally.planned(s, due)
			tally.sending(s)
			late := time.Second
			if !s.WarmUp {
				late = time.Millisecond
			}
			tally.ended(s, &call.Call{Outcome: call.OK, Instants: call.Instants{Due: due, Arrived: due + call.Instant(late)}})
		}
		r := &Result{}
		tally.result(r)
		if r.PlannedInTime != 20 || r.PlannedRate != 2 {
			t.Errorf("%s: 20 requests in 10 s were planned at %g/s", name, r.PlannedRate)
		}
		if r.Sent != 220 || r.WarmUp != 200 || r.Lag.N != 20 || r.Lag.Max > 2*time.Millisecond || r.Late != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
