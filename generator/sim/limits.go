package sim

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"weir/proxy/wire"
)

// Limits are the rates that an endpoint admits. Each is a bucket that fills
// without pause, as the providers have them: a request takes from all of them,
// or is refused and takes nothing.
//
// What a request takes is the provider's way, by the dialect it is asked in.
// Anthropic does not count prompt tokens that come from the cache: it guesses
// how many those are when it admits a request, and puts that right when it
// reads the prompt. The others count the whole prompt. OpenAI takes max_tokens
// of a request that states it, at once and for good. Anthropic and Gemini, and
// OpenAI without it, take output tokens as they are generated: what has been
// admitted is never cut off, so that a bucket can be in debt.
type Limits struct {
	Requests     int           // a minute; 0: no limit, as in all below
	InputTokens  int           // a minute
	OutputTokens int           // a minute
	Tokens       int           // a minute, input and output together: OpenAI's only limit of tokens
	Burst        time.Duration // a full bucket holds what it gets in so long, and one token at least; 0: a minute
	Unstated     bool          // headers do not tell of them
	Milliseconds bool          // a refusal has Retry-After-Ms beside Retry-After
}

// Limit names the limit that refused a request.
type Limit string

// The limits.
const (
	LimitRequests     Limit = "requests"
	LimitInputTokens  Limit = "input-tokens"
	LimitOutputTokens Limit = "output-tokens"
	LimitTokens       Limit = "tokens"
	LimitInFlight     Limit = "in-flight" // Config.HiddenLimit
)

func (l *Limits) check() error {
	if l.Requests < 0 || l.InputTokens < 0 || l.OutputTokens < 0 || l.Tokens < 0 || l.Burst < 0 {
		return fmt.Errorf("simulated endpoint: limits of %d requests, %d input, %d output and %d tokens a minute, burst %s: none may be below 0",
			l.Requests, l.InputTokens, l.OutputTokens, l.Tokens, l.Burst)
	}
	return nil
}

// SetHiddenLimit changes Config.HiddenLimit while the endpoint runs; 0 takes it
// away. Requests in flight stay.
func (s *Sim) SetHiddenLimit(n int) { s.hidden.Store(int64(n)) }

// charge is what is taken from the buckets. What is below 0 is given back.
type charge struct{ requests, input, output int64 }

func (c charge) of(l Limit) int64 {
	switch l {
	case LimitRequests:
		return c.requests
	case LimitInputTokens:
		return c.input
	case LimitOutputTokens:
		return c.output
	}
	return c.input + c.output
}

// bucket is one limit. It holds an instant and no level, so that nothing must
// run to fill it.
type bucket struct {
	limit Limit
	rate  int           // a minute
	burst time.Duration // in which it fills, when empty
	full  time.Time     // when it will be full; it is from then on
}

// span is how long n take to flow in.
func (b *bucket) span(n int64) time.Duration {
	return time.Duration(float64(n) * float64(time.Minute) / float64(b.rate))
}

// lacks is how long it takes until the bucket is full.
func (b *bucket) lacks(now time.Time) time.Duration { return max(b.full.Sub(now), 0) }

// wait is how long it takes until it holds n; ever is false when it never does.
func (b *bucket) wait(n int64, now time.Time) (d time.Duration, ever bool) {
	if b.span(n) > b.burst {
		return 0, false
	}
	return max(b.lacks(now)+b.span(n)-b.burst, 0), true
}

func (b *bucket) take(n int64, now time.Time) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.span(n))
}

// holds is how many of n there are in so much time's worth, rounded down.
func (b *bucket) holds(d time.Duration) int64 {
	const nanosecondsCutOff = 1e-6 // by span
	return max(int64(math.Floor(float64(d)*float64(b.rate)/float64(time.Minute)+nanosecondsCutOff)), 0)
}

// left is how many there are now.
func (b *bucket) left(now time.Time) int64 { return b.holds(b.burst - b.lacks(now)) }

// buckets are an endpoint's limits; none when all is unlimited.
type buckets struct {
	mu  sync.Mutex
	all []bucket
}

func newBuckets(l Limits) *buckets {
	burst := l.Burst
	if burst == 0 {
		burst = time.Minute
	}
	b := &buckets{}
	for _, each := range []bucket{
		{limit: LimitRequests, rate: l.Requests}, {limit: LimitTokens, rate: l.Tokens},
		{limit: LimitInputTokens, rate: l.InputTokens}, {limit: LimitOutputTokens, rate: l.OutputTokens},
	} {
		if each.rate > 0 {
			each.burst = max(burst, each.span(1))
			b.all = append(b.all, each)
		}
	}
	return b
}

// refusal says why a request was not admitted.
type refusal struct {
	limit Limit
	rate  int
	used  int64 // of what the bucket holds when full
	asked int64
	wait  time.Duration // until as much is there
	ever  bool          // false: it is more than the bucket can hold
}

// admit takes c, or, where it is not all there, nothing. The limit that makes
// the request wait longest is the one that refuses it.
func (b *buckets) admit(c charge, now time.Time) *refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	var worst *refusal
	for i := range b.all {
		k := &b.all[i]
		n := max(c.of(k.limit), 1) // what is taken later must not be used up now
		wait, ever := k.wait(n, now)
		if wait == 0 && ever || worst != nil && (!worst.ever || ever && wait <= worst.wait) {
			continue
		}
		worst = &refusal{limit: k.limit, rate: k.rate, used: k.holds(k.burst) - k.left(now), asked: n, wait: wait, ever: ever}
	}
	if worst == nil {
		b.spend(c, now)
	}
	return worst
}

// settle takes what is known only after the request was admitted.
func (b *buckets) settle(c charge) {
	if len(b.all) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spend(c, time.Now())
}

func (b *buckets) spend(c charge, now time.Time) {
	for i := range b.all {
		b.all[i].take(c.of(b.all[i].limit), now)
	}
}

// look copies the buckets.
func (b *buckets) look() []bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]bucket(nil), b.all...)
}

// admitted takes what a request needs from the limits; false when it was
// refused, and has been answered.
func (x *exchange) admitted() bool {
	if n := x.s.hidden.Load(); n > 0 && x.s.active.Load() > n {
		x.rec.Refused = LimitInFlight
		x.retryAfter(time.Second) // nobody knows
		x.fail(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "too many requests in flight")
		return false
	}
	if len(x.s.limits.all) == 0 {
		return true
	}
	x.readPrompt()
	c := charge{requests: 1, input: int64(x.input)}
	if x.route.API == wire.Messages {
		c.input -= int64(x.s.engine.cached(x.prompt, x.input))
	}
	switch x.route.API {
	case wire.Chat, wire.Completions, wire.Responses:
		if x.reserved = x.req.MaxTokens.Known && !x.silent; x.reserved {
			c.output = x.req.MaxTokens.N
		}
	}
	refused := x.s.limits.admit(c, time.Now())
	x.state()
	if refused == nil {
		x.charged = c.input
		return true
	}
	x.rec.Refused = refused.limit
	if refused.ever {
		x.retryAfter(refused.wait)
	}
	x.fail(http.StatusTooManyRequests, refused.kind(x.route.API), "rate_limit_exceeded", refused.message(x.route.API, x.req.Model))
	return false
}

// readPrompt counts the prompt, once.
func (x *exchange) readPrompt() {
	if x.input == 0 {
		x.input, x.prompt = max(countPrompt(&x.req), 1), newPrompt(promptBytes(&x.req))
	}
}

// settleInput puts the guess of how much of the prompt the cache holds right.
func (x *exchange) settleInput(cached int) {
	if x.route.API == wire.Messages {
		x.s.limits.settle(charge{input: int64(x.input-cached) - x.charged})
	}
}

// settleOutput takes n generated tokens, unless they were taken before.
func (x *exchange) settleOutput(n int) {
	if !x.reserved {
		x.s.limits.settle(charge{output: int64(n)})
	}
}
