package report

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// absent is how text shows a figure that is not known.
const absent = "–"

// ms writes milliseconds with the digits that mean something.
func ms(n Num) string {
	switch v := n.V; {
	case !n.Known:
		return absent
	case v == 0:
		return "0ms"
	case v < 0.1 && v > -0.1:
		return fmt.Sprintf("%.0fµs", v*1000)
	case v < 10:
		return fmt.Sprintf("%.1fms", v)
	case v < 10_000:
		return fmt.Sprintf("%.0fms", v)
	case v < 100_000:
		return fmt.Sprintf("%.1fs", v/1000)
	default:
		return fmt.Sprintf("%.0fs", v/1000)
	}
}

// duration writes a duration as ms does.
func duration(d time.Duration, ok bool) string { return ms(msIf(d, ok)) }

// mark writes a percentile of p with a star where n is too small for it.
func mark(p Percentiles, name string, v Num) string {
	s := ms(v)
	if v.Known && slices.Contains(p.Unreliable, name) {
		s += "*"
	}
	return s
}

// percent writes a share; 100% and 0% are only said of all and of none.
func percent(n Num) string {
	switch v := n.V * 100; {
	case !n.Known:
		return absent
	case v == 100 || v == 0:
		return fmt.Sprintf("%.0f%%", v)
	case v > 99.9:
		return ">99.9%"
	case v < 0.1:
		return "<0.1%"
	case v >= 99.5 || v < 10:
		return fmt.Sprintf("%.1f%%", v)
	default:
		return fmt.Sprintf("%.0f%%", v)
	}
}

// whole writes a figure without digits behind the point.
func whole(n Num) string {
	if !n.Known {
		return absent
	}
	return strconv.FormatFloat(n.V, 'f', 0, 64)
}

// perSecond writes a rate.
func perSecond(n Num) string {
	if !n.Known {
		return absent
	}
	return fmt.Sprintf("%.1f/s", n.V)
}

// seconds writes a length of time in the largest fitting units: "30s", "5m".
func seconds(n Num) string {
	if !n.Known {
		return absent
	}
	d := time.Duration(n.V * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	d = d.Round(time.Second)
	if d < time.Hour && d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// named writes a group's value; calls that have none stand under "–".
func named(v string) string {
	if v == "" {
		return absent
	}
	return plain(v)
}
