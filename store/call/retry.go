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
// to come again at once. What is no time, is below 0 or beyond longestWait is
// a slip, of which nobody knows what it meant: it counts as unsaid.
func toldToWait(h http.Header, now time.Time) (wait time.Duration, said bool) {
	if ms, ok := decimal(h.Get("Retry-After-Ms")); ok {
		if wait, said = seconds(ms / 1e3); said {
			return wait, true
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, ok := decimal(v); ok {
		return seconds(s)
	}
	if date, err := http.ParseTime(v); err == nil {
		// The server's own clock, if it tells it: only the difference counts.
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		return sane(max(date.Sub(now), 0))
	}
	return 0, false
}

// limitReset is when the limit is back that is used up, or the last of them all
// where none says that it is.
func limitReset(h http.Header, now time.Time) time.Duration {
	var used, longest time.Duration
	for _, l := range Limits(h, now) {
		longest = max(longest, l.Reset)
		if l.usedUp() {
			used = max(used, l.Reset)
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
		used := l.usedUp()
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

// resetIn reads when a limit is back: a duration as 1s, 6m0s or 20ms, seconds,
// seconds or milliseconds since 1970, or an RFC 3339 instant.
func resetIn(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if s, ok := decimal(v); ok {
		if s > 1e11 { // a point in time, in milliseconds
			s /= 1e3
		}
		if s > 1e9 { // a point in time
			return sane(max(time.Unix(0, int64(math.Min(s, 9e9)*1e9)).Sub(now), 0))
		}
		return seconds(s)
	}
	if d, err := time.ParseDuration(v); err == nil {
		return sane(d)
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return sane(max(t.Sub(now), 0))
	}
	return 0, false
}

// decimal reads digits with or without a fraction, as servers write numbers:
// 1e9, Inf and 0x10 are none.
func decimal(v string) (float64, bool) {
	v = strings.TrimSpace(v)
	if strings.Trim(v, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil
}

// seconds makes a duration of them, if it is a sane one.
func seconds(s float64) (time.Duration, bool) {
	return sane(time.Duration(math.Min(s, 2*longestWait.Seconds()) * float64(time.Second)))
}

// longestWait is what an endpoint can mean: no provider's limit has a longer
// period than a month.
const longestWait = 31 * 24 * time.Hour

// sane passes on what an endpoint can mean.
func sane(d time.Duration) (time.Duration, bool) {
	if d < 0 || d > longestWait {
		return 0, false
	}
	return d, true
}
