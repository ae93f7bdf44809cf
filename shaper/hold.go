package shaper

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// hold keeps a lane shut because the endpoint said so.
type hold struct {
	from, until time.Duration
	reason      string
	strikes     int           // refusals in a row that did not say how long to wait
	total       time.Duration // of holds that are over
}

// add holds until then, unless it is held longer already.
func (h *hold) add(now, until time.Duration, reason string) {
	if until <= h.until {
		return
	}
	if h.until <= now {
		h.total += h.until - h.from
		h.from = now
	}
	h.until, h.reason = until, reason
}

// so is how long it was held until now.
func (h *hold) so(now time.Duration) time.Duration {
	return h.total + max(min(now, h.until)-h.from, 0)
}

// forgotten says whether a hold that is over has nothing to say any more: after a
// while without a call nobody knows whether another refusal is one in a row.
func (h *hold) forgotten(now time.Duration) bool {
	return h.until <= now && (h.strikes == 0 || now-h.until > 10*lastBackoff)
}

// The waits after refusals that do not say how long: 1 s, doubled each time.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// backoff is how long to wait after another refusal that does not say.
func (h *hold) backoff() time.Duration {
	d := time.Duration(math.Min(float64(firstBackoff)*math.Pow(2, float64(h.strikes)), float64(lastBackoff)))
	h.strikes++
	return d
}

// endpoint is the lane of a call's endpoint, which keeps its word. A call that
// does not pass it, for there are no rules or they pass over such words, has
// one only once there is a word to keep: who passes it later goes by it.
func (s *Shaper) endpoint(p *Permit, word bool, now time.Duration) *lane {
	if path := p.line.path; len(path) > 0 && path[len(path)-1].endpoint {
		return path[len(path)-1]
	}
	name := endpointName(&p.ask)
	if word {
		return s.lane(name, len(s.rules), now)
	}
	return s.lanes[laneKey{name: name}]
}

func endpointName(a *Ask) string {
	return strings.TrimRight(strings.Join([]string{"endpoint", a.Upstream, a.Model, a.Key}, " "), " ")
}

// jitter is added to a hold at most, so that several who were told the same do
// not come back at once.
func jitter(wait time.Duration) time.Duration { return min(wait/10, time.Second) }

// refuses says whether a status means that the endpoint has too much to do.
func refuses(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
		return true
	}
	return false
}

const statusOverloaded = 529 // Anthropic's
