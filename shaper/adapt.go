package shaper

import (
	"math"
	"time"
)

// adapter finds how many calls an endpoint takes at a time. It goes up by one
// for as many successes as are in flight, and down by a part, as TCP does
// (additive increase, multiplicative decrease: Chiu and Jain 1989), on two
// signs: that a call is refused, and that the first token takes longer than is
// usual for the model and the prompt's uncached tokens. How long answers take is no sign: long answers are
// not congestion. The zero adapter is off.
type adapter struct {
	most     int     // 0: none
	level    float64 // calls in flight
	started  bool    // it has met a limit, and no longer doubles
	era      int     // goes up with each fall: what was admitted before tells nothing new
	accepted int     // calls in flight that the endpoint took
	proven   int     // the most that they were, since it last refused as many

	// Where the endpoint refused a level just above one that it had taken, it
	// is tried again after a while, which grows each time.
	refused float64 // that level; 0: none is known
	retryAt time.Duration
	retryIn time.Duration

	firstTokens firstTokens
}

const (
	firstLevel   = 4.0
	refusedFall  = 0.5 // of the level, when it has become too much
	slowFall     = 0.85
	firstRetryIn = 5 * time.Second
	lastRetryIn  = time.Minute
)

func (a *adapter) begin(most int) {
	if a.level == 0 {
		a.level = firstLevel
	}
	a.most = most
	a.bound()
}

func (a *adapter) bound() {
	a.level = math.Max(a.level, 1)
	if a.most > 0 {
		a.level = math.Min(a.level, float64(a.most))
	}
}

func (a *adapter) slots() int { return int(a.level) }

// fall goes down to a level.
func (a *adapter) fall(to float64) {
	a.level = to
	a.started = true
	a.era++
	a.firstTokens.restart()
	a.bound()
}

// heard takes down whether the endpoint took a call, while so many were in
// flight, the call among them. Which of several that were sent at once it
// refuses is chance, so the level is taken from those it took.
func (a *adapter) heard(now time.Duration, refused bool, inFlight, era int) {
	if !refused {
		a.accepted++
		a.proven = max(a.proven, a.accepted)
		return
	}
	if era != a.era {
		return
	}
	if inFlight <= a.proven {
		// It took as many before: things have changed.
		a.refused, a.retryIn = 0, 0
		a.fall(math.Min(a.level, float64(inFlight)) * refusedFall)
		a.proven = 0
		return
	}
	// One more than it takes. Just below is right, and above is tried again
	// later, for limits rise too.
	a.refused = float64(a.proven + 1)
	a.retryIn = min(max(2*a.retryIn, firstRetryIn), lastRetryIn)
	a.retryAt = now + a.retryIn
	a.fall(math.Min(a.level, float64(a.proven)))
}

// left takes down that a call which the endpoint took has ended.
func (a *adapter) left() { a.accepted = max(a.accepted-1, 0) } // it may have been told of before the adapter was

// ended takes down a call's success. full says that all that could be in
// flight were, for only then does it tell that more could be.
func (a *adapter) ended(now time.Duration, ask *Ask, st *Settlement, full bool, era int) {
	if era != a.era {
		return
	}
	if st.TTFT > 0 {
		fewer, more := a.firstTokens.heard(now, ask, st, a.level)
		if fewer {
			a.fall(a.level * slowFall)
			return
		}
		full = full && more
	}
	if !full {
		return
	}
	step := 1 / a.level
	if !a.started {
		step = 1 // doubles with each round
	}
	up := a.level + step
	if a.refused > 0 && up >= a.refused {
		if now < a.retryAt {
			a.level = math.Max(a.level, math.Min(up, a.refused-0.01))
			a.bound()
			return
		}
		a.retryAt = now + a.retryIn // once, unless it is refused
		up = math.Max(up, a.refused)
		if a.proven >= int(a.refused) {
			a.refused, a.retryIn = 0, 0 // it takes that many now
		}
	}
	a.level = up
	a.bound()
}
