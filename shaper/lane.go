package shaper

import (
	"math"
	"time"
)

// laneKey tells lanes apart: two rules may give theirs one name.
type laneKey struct{ selector, name string }

// lane is who shares a limit, and how things stand.
type lane struct {
	name     string
	rule     int // its place among the rules; those of endpoints come last
	selector string
	limit    Limit
	each     bool // it is one of many, made as calls come
	endpoint bool // it has no rule, and only the endpoint's word limits it

	inFlight int
	pace     pacer
	tokens   bucket
	input    bucket
	output   bucket
	adapt    adapter
	hold     hold

	keeps *line // that a place is kept for, or that has the next one
	kept  int   // 1: it is kept already

	lines   int // that pass it, of those that are remembered
	queue   queue
	waiting [Low]int // calls of each class that have to pass it, wherever they stand
	demand  float64  // tokens that they will reserve
	full    string   // the limit that kept the queue's first, last time
	timer   *time.Timer
	wakes   time.Duration // when the timer fires; 0: it does not

	rate                                     meter
	took                                     average // seconds from admission to release
	admitted, refused, left, endpointRefused int64
}

// The limits, as a call's span names them.
const (
	limitHold     = "hold"
	limitInFlight = "in flight"
	limitRequests = "requests"
	limitTokens   = "tokens"
	limitInput    = "input tokens"
	limitOutput   = "output tokens"
)

func (l *lane) configure(limit Limit, now time.Duration) {
	l.limit = limit
	l.pace.set(limit.Requests, limit.Burst, now)
	l.tokens.set(limit.Tokens, limit.BurstTokens, now)
	l.input.set(limit.InputTokens, limit.BurstTokens, now)
	l.output.set(limit.OutputTokens, limit.BurstTokens, now)
	if limit.Adaptive {
		l.adapt.begin(limit.InFlight)
	} else {
		l.adapt = adapter{}
	}
}

// slots is how many calls may be in flight; 0: any number.
func (l *lane) slots() int {
	if l.limit.Adaptive {
		return l.adapt.slots()
	}
	return l.limit.InFlight
}

func (l *lane) waiters() int { return l.waiting[0] + l.waiting[1] + l.waiting[2] }

// budgeted says whether the lane counts tokens.
func (l *lane) budgeted() bool {
	return l.tokens.perSecond > 0 || l.input.perSecond > 0 || l.output.perSecond > 0
}

// closed says which limit keeps a call from passing, "" for none, and until
// when; 0 where it is another call's end that opens it.
func (l *lane) closed(now time.Duration) (limit string, until time.Duration) {
	if until, held := l.hold.closed(now); held {
		return limitHold, until
	}
	if slots := l.slots(); slots > 0 && l.inFlight+l.kept >= slots {
		return limitInFlight, 0
	}
	if at := l.pace.next(now, l.waiters() == 0); at > now {
		return limitRequests, at
	}
	for _, b := range [...]struct {
		bucket *bucket
		limit  string
	}{{&l.tokens, limitTokens}, {&l.input, limitInput}, {&l.output, limitOutput}} {
		if at := b.bucket.next(now); at > now {
			return b.limit, at
		}
	}
	return "", 0
}

// taken is what a call has of a lane.
type taken struct {
	lane          *lane
	input, output float64 // tokens
	era           int32   // of the adapter
	accepted      bool    // the adapter knows that the endpoint took the call
	round         int     // of the hold, while nothing was heard of the call
}

// take lets a call pass; its pace is taken apart.
func (l *lane) take(now time.Duration, reserved reservation, weight float64) taken {
	t := taken{lane: l}
	if l.budgeted() {
		if l.limit.CachedWeight != nil {
			weight = *l.limit.CachedWeight
		}
		t.input, t.output = reserved.inputCost(weight), reserved.output
		l.tokens.take(t.input + t.output)
		l.input.take(t.input)
		l.output.take(t.output)
	}
	l.inFlight++
	l.admitted++
	l.rate.add(now)
	t.era, t.round = int32(l.adapt.era), l.hold.take(now)
	return t
}

// give takes back what a call had, less what it used.
func (l *lane) give(t *taken, input, output float64) {
	l.inFlight--
	l.tokens.take(input + output - t.input - t.output)
	l.input.take(input - t.input)
	l.output.take(output - t.output)
}

// cost is what one call weighs in the lane's queue.
func (l *lane) cost(r reservation, weight float64) float64 {
	if l.budgeted() {
		return math.Max(r.inputCost(weight)+r.output, 1)
	}
	return 1
}

// idle says whether a lane that was made anew would be like this one.
func (l *lane) idle(now time.Duration) bool {
	return l.inFlight == 0 && l.waiters() == 0 && l.hold.forgotten(now) &&
		l.pace.rested(now) && l.tokens.full(now) && l.input.full(now) && l.output.full(now)
}

// expect is how long a call would have to wait that has so many before it, and
// whether that can be known at all.
func (l *lane) expect(now time.Duration, ahead int) (wait time.Duration, limit string) {
	longest := func(d time.Duration, by string) {
		if d > wait {
			wait, limit = d, by
		}
	}
	held := max(l.hold.until-now, 0)
	longest(held, limitHold)
	if l.pace.interval > 0 {
		longest(max(l.pace.next(now, l.waiters() == 0)-now, held)+time.Duration(ahead)*l.pace.interval, limitRequests)
	}
	tokensAhead := 0.0
	if n := l.waiters(); n > 0 {
		tokensAhead = l.demand * float64(ahead) / float64(n)
	}
	for _, b := range [...]struct {
		bucket *bucket
		limit  string
	}{{&l.tokens, limitTokens}, {&l.input, limitInput}, {&l.output, limitOutput}} {
		if b.bucket.perSecond > 0 {
			seconds := math.Min(tokensAhead/b.bucket.perSecond, farAway.Seconds())
			longest(b.bucket.next(now)-now+time.Duration(seconds*1e9), b.limit)
		}
	}
	if slots := l.slots(); slots > 0 && l.inFlight >= slots && l.took.n >= enoughCalls {
		// Of so many calls, one ends in this time.
		longest(time.Duration(float64(ahead+1)*l.took.mean/float64(slots)*1e9), limitInFlight)
	}
	return wait, limit
}

// enoughCalls is how many calls make a mean that something can rest on.
const enoughCalls = 10

// average is a mean that forgets: of the last so many.
type average struct {
	mean float64
	n    int
}

const remembered = 20

func (a *average) add(v float64) {
	if a.n < remembered {
		a.n++
	}
	a.mean += (v - a.mean) / float64(a.n)
}

// meter counts what happened in the last seconds.
type meter struct {
	from   time.Duration // when it began
	counts [meterSeconds]int32
	second int64 // the last one counted
}

const meterSeconds = 10

func (m *meter) move(now time.Duration) {
	second := int64(now / time.Second)
	if second-m.second >= meterSeconds {
		m.counts = [meterSeconds]int32{}
		m.second = second
	}
	for ; m.second < second; m.second++ {
		m.counts[(m.second+1)%meterSeconds] = 0
	}
}

func (m *meter) add(now time.Duration) {
	m.move(now)
	m.counts[m.second%meterSeconds]++
}

// age is for how long it has counted.
func (m *meter) age(now time.Duration) time.Duration { return now - m.from }

// perSecond is the rate of the last seconds, or since it began; in its first
// second, what has come so far.
func (m *meter) perSecond(now time.Duration) float64 {
	m.move(now)
	sum := int32(0)
	for _, n := range m.counts {
		sum += n
	}
	// The second under way is not over.
	counted := now - time.Duration(m.second-meterSeconds+1)*time.Second
	return float64(sum) / max(min(counted, m.age(now)), time.Second).Seconds()
}
