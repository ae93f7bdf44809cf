package shaper

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A lane's rate is that of its last ten seconds, or of its life where that is
// shorter; of a lane younger than a second nothing is known.
func TestTheRateOfALane(t *testing.T) {
	for _, row := range []struct {
		sentence string
		opened   time.Duration // after the shaper's first call
		age      time.Duration
		want     string
	}{
		{"in its first second", 0, 900 * time.Millisecond, "none"},
		{"after two seconds", 0, 2 * time.Second, "4.0"},
		{"after nine", 0, 9 * time.Second, "4.0"},
		{"after an hour", 0, time.Hour, "4.0"},
		{"after an hour, and in the middle of a second", 0, time.Hour + 750*time.Millisecond, "4.0"},
		{"of one that opened later, in its first second", 5500 * time.Millisecond, 900 * time.Millisecond, "none"},
		{"of one that opened later, after three seconds", 5500 * time.Millisecond, 3 * time.Second, "4.0"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t)
				time.Sleep(row.opened)
				change(t, s, "rps=1000")
				for at := 250 * time.Millisecond; at <= row.age; at += 250 * time.Millisecond {
					time.Sleep(250*time.Millisecond - time.Nanosecond)
					admit(t, s, Ask{}).Release(Settlement{})
					time.Sleep(time.Nanosecond)
				}
				time.Sleep(row.age % (250 * time.Millisecond))
				got := "none"
				if rate := s.Lanes()[0].PerS; rate != nil {
					got = fmt.Sprintf("%.1f", *rate)
				}
				if got != row.want {
					t.Errorf("%s calls a second, want %s", got, row.want)
				}
			})
		})
	}
}

func TestLanesSayWhetherTheyAreOneOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, "session=each concurrency=2", "session=a rps=1", "session=a* rps=1")
		admit(t, s, Ask{Session: "a"})
		got := map[string]int{}
		for _, l := range s.Lanes() {
			got[fmt.Sprintf("%s (%s) %t", l.Name, l.Limit, l.Each)]++
		}
		if diff := cmp.Diff(map[string]int{"session=a (concurrency=2) true": 1, "session=a (rps=1) false": 1, "session=a* (rps=1) false": 1, "endpoint () false": 1}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
