package shaper

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// TimeDist is a distribution of times. Between Low and High all are alike; a
// lognormal one has a median and a 99th percentile in their place. The zero
// TimeDist is no time.
type TimeDist struct {
	Low, High   time.Duration
	Median, P99 time.Duration
}

// longestTime bounds what may be asked for, and what may be drawn.
const longestTime = time.Hour

// parseTimeDist reads 800ms, 200ms..2s and lognormal(500ms,2s).
func parseTimeDist(text string) (d TimeDist, err error) {
	fail := func(why string) (TimeDist, error) {
		return TimeDist{}, fmt.Errorf("time %q %s", text, why)
	}
	const forms = "is none of 800ms, 200ms..2s and lognormal(500ms,2s)"
	if inner, ok := strings.CutPrefix(text, "lognormal("); ok {
		inner, closed := strings.CutSuffix(inner, ")")
		median, p99, two := strings.Cut(inner, ",")
		if !closed || !two {
			return fail(forms)
		}
		if err := errors.Join(parseTime(median, &d.Median), parseTime(p99, &d.P99)); err != nil {
			return fail(forms)
		}
		if d.Median <= 0 || d.P99 <= d.Median || d.P99 > longestTime {
			return fail("wants a median above 0, a greater 99th percentile, and at most an hour")
		}
		return d, nil
	}
	low, high, two := strings.Cut(text, "..")
	if !two {
		high = low
	}
	if err := errors.Join(parseTime(low, &d.Low), parseTime(high, &d.High)); err != nil {
		return fail(forms)
	}
	if d.Low < 0 || d.High <= 0 || d.High < d.Low || d.High > longestTime {
		return fail("wants times above 0 that rise, and at most an hour")
	}
	return d, nil
}

func parseTime(text string, to *time.Duration) (err error) {
	*to, err = time.ParseDuration(strings.TrimSpace(text))
	return err
}

// String is the distribution as it is written.
func (d TimeDist) String() string {
	switch {
	case d.Median > 0:
		return "lognormal(" + spell(d.Median) + "," + spell(d.P99) + ")"
	case d.Low == d.High:
		return spell(d.Low)
	}
	return spell(d.Low) + ".." + spell(d.High)
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// draw gives the time below which a draw lies with the probability u, from 0
// to below 1; to the millisecond where it is longer than a few, since it is
// shown.
func (d TimeDist) draw(u float64) time.Duration {
	if d.Low == d.High && d.Median == 0 {
		return d.Low
	}
	var t float64
	if d.Median > 0 {
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		t = float64(d.Median) * math.Exp(z/z99*math.Log(float64(d.P99)/float64(d.Median)))
	} else {
		t = float64(d.Low) + u*float64(d.High-d.Low)
	}
	drawn := time.Duration(min(t, float64(longestTime)))
	if drawn > 10*time.Millisecond {
		return drawn.Round(time.Millisecond)
	}
	return max(drawn.Round(time.Microsecond), 0)
}
