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

	// When a hold ends, not all who waited go at once, for most of them would be
	// refused and hold the others again. One goes first; how many may be under way
	// that the endpoint has said nothing of doubles as it takes them, and from half
	// of those on at which it refused last time it goes up by one, as in TCP.
	round   int           // holds so far
	few     int           // that may be under way so; 0: any number
	slow    int           // from so many on it goes up by one; 0: it doubles
	taken   int           // by the endpoint, since it went up by one
	unheard int           // that are
	went    time.Duration // when the last of them did
}

// add holds until then, unless it is held longer already.
func (h *hold) add(now, until time.Duration, reason string) {
	if until <= h.until {
		return
	}
	if h.until <= now {
		h.total += h.until - h.from
		h.from = now
		if h.slow = 0; h.few > 0 {
			h.slow = max(h.few/2, 1)
		}
	}
	h.until, h.reason = until, reason
	h.round++
	h.few, h.taken, h.unheard = 1, 0, 0
}

// silence is how long after a call went no word of it is none of refusal: these
// come at once, and the head of a long answer may take minutes.
const silence = time.Second

// closed says whether calls are to wait, and until when.
func (h *hold) closed(now time.Duration) (until time.Duration, closed bool) {
	if h.until > now {
		return h.until, true
	}
	if h.few == 0 || h.unheard < h.few {
		return 0, false
	}
	if until = h.went + silence; until > now {
		return until, true
	}
	h.few = 2 * h.unheard
	return 0, false
}

// take lets a call go, and gives the round in which it does; 0 stands for none
// that anything is to be heard of.
func (h *hold) take(now time.Duration) (round int) {
	if h.few == 0 {
		return 0
	}
	h.unheard++
	h.went = now
	return h.round
}

// heard takes down that a call of a round is not unheard any more. took says that
// the endpoint took it. Where fewer were under way than might be, nobody waits
// for more, and the round is over.
func (h *hold) heard(round int, took bool) {
	if round == 0 || round != h.round {
		return
	}
	switch {
	case !took || h.few == 0:
	case h.unheard < h.few:
		h.few = 0
	default:
		if h.taken++; h.slow == 0 || h.few < h.slow || h.taken > h.few {
			h.few, h.taken = h.few+1, 0
		}
	}
	h.unheard--
}

// so is how long it was held until now.
func (h *hold) so(now time.Duration) time.Duration {
	return h.total + max(min(now, h.until)-h.from, 0)
}

// forgotten says whether a hold that is over has nothing to say any more: after a
// while without a call nobody knows whether another refusal is one in a row.
func (h *hold) forgotten(now time.Duration) bool {
	return h.until <= now && (h.strikes == 0 && h.few == 0 || now-h.until > 10*lastBackoff)
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

// longestHold is when an endpoint is asked again, whatever it said. Some limits
// have longer periods, but one call a day tells whether it was a slip, such as
// milliseconds in the place of seconds, or the limit was raised meanwhile.
const longestHold = 24 * time.Hour

// jitter is added to a hold at most, so that several weirs that were told the
// same do not come back at once.
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
