package call

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter is how long an error response asks to wait, from the time it
// came; 0 when it does not say. retry-after-ms and Retry-After (seconds or an
// HTTP date) are the server's word. Without them a refusal for the sake of a
// limit asks to wait for the reset of the one that is used up, or the longest
// where none says that it is; other errors carry the same headers and do not
// ask for anything.
func retryAfter(status int, h http.Header, now time.Time) time.Duration {
	if wait, said := toldToWait(h, now); said {
		return wait
	}
	switch outcomeOf(status) {
	case RateLimited, Overloaded:
		return limitReset(h, now)
	}
	return 0
}

// toldToWait reads the server's own word. A wait of 0 that is said is one too:
// to come again at once.
func toldToWait(h http.Header, now time.Time) (wait time.Duration, said bool) {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms >= 0 {
		return limited(ms / 1e3), true
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 {
			return limited(s), true
		}
		if date, err := http.ParseTime(v); err == nil {
			// The server's own clock, if it tells it: only the difference counts.
			if sent, err := http.ParseTime(h.Get("Date")); err == nil {
				now = sent
			}
			return atMost(date.Sub(now)), true
		}
	}
	return 0, false
}

// limitReset reads x-ratelimit-reset-<what> (a duration as 1s, 6m0s, 20ms, or
// seconds, or seconds or milliseconds since 1970) and
// anthropic-ratelimit-<what>-reset (RFC 3339).
func limitReset(h http.Header, now time.Time) time.Duration {
	var used, longest time.Duration
	for name, values := range h {
		name = strings.ToLower(name)
		var remaining string
		switch {
		case strings.HasPrefix(name, "x-ratelimit-reset"):
			remaining = strings.Replace(name, "reset", "remaining", 1)
		case strings.HasPrefix(name, "anthropic-ratelimit-") && strings.HasSuffix(name, "-reset"):
			remaining = strings.TrimSuffix(name, "reset") + "remaining"
		default:
			continue
		}
		d, ok := resetIn(values[0], now)
		if !ok {
			continue
		}
		longest = max(longest, d)
		if h.Get(remaining) == "0" {
			used = max(used, d)
		}
	}
	if used > 0 {
		return used
	}
	return longest
}

// Asked is how long an endpoint asks to leave it alone, from the time its
// response came, and what that rests on: "429", "503" or "529" for a refusal,
// "requests used up" where an answer says that a limit has nothing left. It is
// 0 where the endpoint does not ask, and where it asks to come again at once;
// the reason of a refusal is given all the same.
func Asked(status int, h http.Header, now time.Time) (wait time.Duration, atOnce bool, why string) {
	switch outcomeOf(status) {
	case RateLimited, Overloaded:
		_, said := toldToWait(h, now)
		wait = retryAfter(status, h, now)
		return wait, said && wait == 0, strconv.Itoa(status)
	}
	if status >= http.StatusBadRequest {
		return 0, false, ""
	}
	for _, l := range Limits(h, now) {
		if l.Remaining == "0" && l.Reset > wait {
			wait, why = l.Reset, strings.TrimSpace(l.What+" used up")
		}
	}
	return wait, false, why
}

func resetIn(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 1e11 { // a point in time, in milliseconds
			s /= 1e3
		}
		if s > 1e9 { // a point in time
			return atMost(time.Unix(0, int64(math.Min(s, 9e9)*1e9)).Sub(now)), true
		}
		return limited(s), s >= 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return atMost(d), true
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return atMost(t.Sub(now)), true
	}
	return 0, false
}

// limited makes seconds a duration: at most a year, so that nothing overflows.
func limited(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(math.Min(seconds, longestWait.Seconds()) * float64(time.Second))
}

// atMost keeps a time between 0 and the longest wait.
func atMost(d time.Duration) time.Duration { return min(max(d, 0), longestWait) }

// longestWait can be added to without an overflow.
const longestWait = 365 * 24 * time.Hour
