package shaper

import (
	"time"

	"go.uber.org/ratelimit"
)

// pacer hands out a lane's requests a second, one permit after the other. It
// asks the limiter for a permit only when somebody wants one, and keeps it
// until somebody takes it, so that who leaves costs nothing. The zero pacer
// does not limit.
//
// The limiter would sleep until a permit is due. Here it sleeps on a clock that
// only takes down the time, and the lane sets a timer: so nobody is stuck in a
// sleep that cannot be cancelled.
type pacer struct {
	interval time.Duration // 0: no limit
	burst    int           // permits that a pause may save, and that may go at once
	limiter  ratelimit.Limiter
	clock    stillClock
	due      time.Duration // of the permit in hand
	held     bool          // there is one
	taken    time.Duration // when the last one was
	used     bool          // one was taken
	spare    int           // permits that came back unused
}

// catchUp is for how long permits that a late timer missed can be made up for;
// a sleep overshoots by a millisecond or so, which would halve a high rate. It
// is also how late a permit may be taken without moving those after it.
const catchUp = 10 * time.Millisecond

// longestPause is what a burst can save: 30 years still fit into a Duration.
const longestPause = 30 * 365 * 24 * time.Hour

// stillClock stands still between the times that it is told.
type stillClock struct{ now time.Duration }

// clockStart keeps the limiter's times above 0, which it takes for unset.
const clockStart = time.Duration(1) << 60

func (c *stillClock) Now() time.Time      { return time.Unix(0, int64(clockStart+c.now)) }
func (c *stillClock) Sleep(time.Duration) {}

// set changes the rate. What was taken before counts.
func (p *pacer) set(perSecond float64, burst int, now time.Duration) {
	var interval time.Duration
	if perSecond > 0 {
		interval = max(time.Duration(float64(time.Second)/perSecond), 1)
	}
	burst = max(burst, 1)
	if interval > 0 {
		burst = max(min(burst, int(longestPause/interval)), 1)
	}
	if interval == p.interval && burst == p.burst {
		return
	}
	p.interval, p.burst, p.held, p.spare = interval, burst, false, 0
	if interval == 0 {
		p.limiter = nil
		return
	}
	from := now - time.Duration(burst)*interval // as after a pause
	if p.used {
		from = max(from, p.taken)
	}
	p.start(from)
}

// start begins anew, as if a permit had been taken then.
func (p *pacer) start(at time.Duration) {
	p.limiter = ratelimit.New(1, ratelimit.Per(p.interval), ratelimit.WithSlack(p.slack()), ratelimit.WithClock(&p.clock))
	p.clock.now = at
	p.limiter.Take()
}

// slack is how many permits the limiter makes up for.
func (p *pacer) slack() int { return max(p.burst-1, int(catchUp/p.interval)) }

// next is when the next permit can be taken. idle says that nobody has wanted
// one since the last was taken, so that none may be made up for.
func (p *pacer) next(now time.Duration, idle bool) time.Duration {
	if p.interval == 0 {
		return now
	}
	if p.spare > 0 {
		if now-p.taken <= p.interval {
			return now
		}
		p.spare = 0
	}
	if !p.held {
		if idle && p.burst == 1 && p.interval < catchUp && now-p.taken > p.interval {
			// As far ahead as the limiter would make up for, it forgets what is
			// before now.
			p.clock.now = now + time.Duration(p.slack())*p.interval
			p.limiter.Take()
			p.due, p.held = now, true
			return now
		}
		p.clock.now = now
		if !idle && p.used {
			p.clock.now = p.taken // who asks only to know changes nothing
		}
		p.due, p.held = time.Duration(p.limiter.Take().UnixNano())-clockStart, true
	}
	return p.due
}

// take takes the permit that next has told of, which somebody has wanted since
// then. Where it lay for long because nobody wanted it, the next one is due an
// interval from now; where another lane kept it from being taken, up to half an
// interval is made up for, so that the rate is kept, and never two go at once.
func (p *pacer) take(now, wanted time.Duration) {
	if p.interval == 0 {
		return
	}
	p.taken, p.used = now, true
	if p.spare > 0 {
		p.spare--
		return
	}
	p.held = false
	if p.burst == 1 && now-p.due > catchUp {
		p.start(max(p.due, wanted, now-p.interval/2))
	}
}

// giveBack returns a permit with which nothing was sent: the next one may have
// it at once.
func (p *pacer) giveBack() {
	if p.interval > 0 {
		p.spare = min(p.spare+1, p.burst)
	}
}

// rested says whether a new pacer would do the same as this one.
func (p *pacer) rested(now time.Duration) bool {
	return p.interval == 0 || !p.used || now-p.taken > time.Duration(p.burst)*p.interval
}
