package call

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads how long an endpoint asks to be left alone: Retry-After in
// seconds or as a date, retry-after-ms, or, on a refusal's headers, the reset
// of the limit that is used up. Zero when it does not ask.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return max(time.Duration(s*float64(time.Second)), 0)
		}
		if at, err := http.ParseTime(v); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	var wait time.Duration
	for name, values := range h {
		if len(values) == 0 || !spent(h, name) {
			continue
		}
		if d, ok := reset(values[0], now); ok {
			wait = max(wait, d)
		}
	}
	return wait
}

// spent says whether a header is the reset of a limit of which nothing remains.
func spent(h http.Header, name string) bool {
	var remaining string
	switch {
	case strings.HasPrefix(name, "X-Ratelimit-Reset"):
		remaining = strings.Replace(name, "Reset", "Remaining", 1)
	case strings.HasPrefix(name, "Anthropic-Ratelimit-") && strings.HasSuffix(name, "-Reset"):
		remaining = strings.TrimSuffix(name, "Reset") + "Remaining"
	default:
		return false
	}
	left, err := strconv.ParseFloat(h.Get(remaining), 64)
	return err == nil && left <= 0
}

// reset reads "1s", "6m0s", seconds, or a date.
func reset(v string, now time.Time) (time.Duration, bool) {
	if d, err := time.ParseDuration(v); err == nil {
		return d, true
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 1e9 { // an instant in Unix time
			return time.Unix(int64(s), 0).Sub(now), true
		}
		return time.Duration(s * float64(time.Second)), true
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return at.Sub(now), true
	}
	return 0, false
}
