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

// Use is what a call uses of its limits, beside one request.
type Use struct{ InputTokens, OutputTokens float64 }

// of is what it uses of a limit, by its name.
func (u Use) of(what string) float64 {
	switch {
	case strings.Contains(what, "input-tokens"):
		return u.InputTokens
	case strings.Contains(what, "output-tokens"):
		return u.OutputTokens
	case strings.Contains(what, "tokens"):
		return u.InputTokens + u.OutputTokens
	}
	return 1
}

// fills says whether a limit comes back evenly until its reset. OpenAI and those
// like it tell it as a span, the time until the limit is as at its beginning,
// and Anthropic the instant at which it is fully replenished. Others tell a
// number, at which a window ends.
func fills(name, value string) bool {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(strings.ToLower(name), "anthropic-") {
		_, err := time.Parse(time.RFC3339, value)
		return err == nil
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return false
	}
	_, err := time.ParseDuration(value)
	return err == nil
}

// The least time to wait for what comes back evenly: what such headers say is
// rounded, and a refusal shows that it was not enough.
const (
	leastRefill        = 50 * time.Millisecond
	leastAfterRefusing = time.Second
)

// until is how long it takes until the next call finds enough left of a limit.
// Of one that fills that is its part of the reset: of 60 requests that are back
// in a minute, the next one may go after a second.
func (l *Limit) until(next Use, least time.Duration) time.Duration {
	limit, err := strconv.ParseFloat(l.Most, 64)
	left, leftErr := strconv.ParseFloat(l.Remaining, 64)
	if err != nil || leftErr != nil || !l.fills || !(left >= 0 && left < limit) {
		return l.Reset
	}
	missing := math.Max(next.of(l.What)-left, 0)
	part := time.Duration(math.Min(missing/(limit-left), 1) * float64(l.Reset))
	return min(max(part, least), l.Reset)
}

// lacking is how long it takes until no limit is used up any more, and which is
// the last of them. After a refusal one that fills is used up, too, where it has
// less left than the next call uses.
func lacking(h http.Header, now time.Time, next Use, refused bool) (wait time.Duration, what string) {
	least := leastRefill
	if refused {
		least = leastAfterRefusing
	}
	for _, l := range Limits(h, now) {
		used := l.Remaining == "0"
		if left, err := strconv.ParseFloat(l.Remaining, 64); err == nil && refused && l.fills {
			used = left < next.of(l.What)
		}
		if d := l.until(next, least); used && d > wait {
			wait, what = d, l.What
		}
	}
	return wait, what
}

// Asked is how long an endpoint asks to leave it alone, from the time its
// response came, and what that rests on: "429", "503" or "529" for a refusal,
// "requests used up" where an answer says that a limit has nothing left. It is
// 0 where the endpoint does not ask, and where it asks to come again at once;
// the reason of a refusal is given all the same. The server's own word goes
// before what its limits let one conclude, for a next call that uses so much.
func Asked(status int, h http.Header, now time.Time, next Use) (wait time.Duration, atOnce bool, why string) {
	switch outcomeOf(status) {
	case RateLimited, Overloaded:
		wait, said := toldToWait(h, now)
		if !said {
			wait, _ = lacking(h, now, next, true)
		}
		if !said && wait == 0 {
			wait = limitReset(h, now)
		}
		return wait, said && wait == 0, strconv.Itoa(status)
	}
	if status >= http.StatusBadRequest {
		return 0, false, ""
	}
	if wait, what := lacking(h, now, next, false); wait > 0 {
		return wait, false, strings.TrimSpace(what + " used up")
	}
	return 0, false, ""
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
