package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func milliseconds(values ...int) []time.Duration {
	d := make([]time.Duration, len(values))
	for i, v := range values {
		d[i] = time.Duration(v) * time.Millisecond
	}
	return d
}

func TestPercentilesAreByNearestRank(t *testing.T) {
	oneTo := func(n int) []time.Duration {
		d := make([]time.Duration, n)
		for i := range d {
			d[n-1-i] = time.Duration(i+1) * time.Millisecond // unsorted on purpose
		}
		return d
	}
	for _, c := range []struct {
		sentence           string
		values             []time.Duration
		p50, p90, p95, p99 Num
		unreliable         []string
	}{
		{"of nothing, nothing is known", nil, Num{}, Num{}, Num{}, Num{}, []string{}},
		{"of one value, all are that value", milliseconds(7), N(7), N(7), N(7), N(7), []string{"p50", "p90", "p95", "p99"}},
		{"of an even count, the median is the lower of the middle two", milliseconds(4, 1, 3, 2), N(2), N(4), N(4), N(4), []string{"p50", "p90", "p95", "p99"}},
		{"of ten, p90 is the ninth, and p95 the tenth", oneTo(10), N(5), N(9), N(10), N(10), []string{"p50", "p90", "p95", "p99"}},
		{"from 11 values on, the median is reliable", oneTo(11), N(6), N(10), N(11), N(11), []string{"p90", "p95", "p99"}},
		{"from 130 on, p95 is", oneTo(130), N(65), N(117), N(124), N(129), []string{"p99"}},
		{"at 661, p99 is not yet", oneTo(661), N(331), N(595), N(628), N(655), []string{"p99"}},
		{"from 662 on, p99 is", oneTo(662), N(331), N(596), N(629), N(656), []string{}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			p := summarise(c.values)
			got := []Num{p.P50, p.P90, p.P95, p.P99}
			if diff := cmp.Diff([]Num{c.p50, c.p90, c.p95, c.p99}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.unreliable, p.Unreliable); diff != "" {
				t.Error("unreliable:", diff)
			}
			if p.N != len(c.values) {
				t.Errorf("count %d, want %d", p.N, len(c.values))
			}
		})
	}
}

func TestMillisecondsAreWrittenWithTheDigitsThatMeanSomething(t *testing.T) {
	for _, c := range []struct {
		in   Num
		want string
	}{
		{Num{}, "–"}, {N(0), "0ms"}, {N(0.034), "34µs"}, {N(0.4), "0.4ms"}, {N(9.96), "10.0ms"}, {N(18.4), "18ms"},
		{N(412.3), "412ms"}, {N(9999), "9999ms"}, {N(12345), "12.3s"}, {N(183_000), "183s"}, {N(-3.2), "-3.2ms"},
	} {
		if got := ms(c.in); got != c.want {
			t.Errorf("ms(%v) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestSharesSayAllOnlyOfAll(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "–"}, {0, 5, "0%"}, {5, 5, "100%"}, {99_999, 100_000, ">99.9%"}, {998, 1000, "99.8%"}, {1, 100_000, "<0.1%"}, {1, 3, "33%"}, {1, 20, "5.0%"}} {
		if got := percent(share(c.part, c.whole)); got != c.want {
			t.Errorf("%d of %d is written %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}
