package sim

import (
	"fmt"
	"strconv"
	"time"

	"weir/proxy/wire"
)

// state puts the limits into the response's headers, in the dialect's way:
//
//   - OpenAI: x-ratelimit-limit-, -remaining- and -reset-, with requests,
//     tokens, and, where they have limits of their own, input-tokens and
//     output-tokens behind it; a reset is a duration, as 6m0s or 20ms.
//   - Anthropic: anthropic-ratelimit-requests-, -input-tokens-,
//     -output-tokens- and -tokens-, with limit, remaining and reset behind it;
//     a reset is an instant. Unlike Anthropic it does not round what remains.
//   - Gemini states nothing.
//
// A limit is a minute's; a reset is when the bucket is full again.
func (x *exchange) state() {
	if x.s.c.Limits.Unstated {
		return
	}
	h, now := x.w.Header(), time.Now()
	switch x.route.API {
	case wire.Gemini:
	case wire.Messages:
		var rate int
		var left int64
		var full time.Time
		together := false
		for _, b := range x.s.limits.look() {
			name := "Anthropic-Ratelimit-" + string(b.limit)
			h.Set(name+"-Limit", strconv.Itoa(b.rate))
			h.Set(name+"-Remaining", strconv.FormatInt(b.left(now), 10))
			h.Set(name+"-Reset", instant(now.Add(b.lacks(now))))
			together = together || b.limit == LimitTokens
			if b.limit == LimitInputTokens || b.limit == LimitOutputTokens {
				rate, left = rate+b.rate, left+b.left(now)
				if at := now.Add(b.lacks(now)); at.After(full) {
					full = at
				}
			}
		}
		if rate > 0 && !together { // then it is the sum of both
			h.Set("Anthropic-Ratelimit-Tokens-Limit", strconv.Itoa(rate))
			h.Set("Anthropic-Ratelimit-Tokens-Remaining", strconv.FormatInt(left, 10))
			h.Set("Anthropic-Ratelimit-Tokens-Reset", instant(full))
		}
	default:
		for _, b := range x.s.limits.look() {
			h.Set("X-Ratelimit-Limit-"+string(b.limit), strconv.Itoa(b.rate))
			h.Set("X-Ratelimit-Remaining-"+string(b.limit), strconv.FormatInt(b.left(now), 10))
			h.Set("X-Ratelimit-Reset-"+string(b.limit), roundUp(b.lacks(now), time.Millisecond).String())
		}
	}
}

// instant is a time in whole seconds, not before t.
func instant(t time.Time) string {
	return t.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// retryAfter says when it is worth asking again.
func (x *exchange) retryAfter(wait time.Duration) {
	x.w.Header().Set("Retry-After", strconv.FormatInt(int64(roundUp(wait, time.Second)/time.Second), 10))
	if x.s.c.Limits.Milliseconds {
		x.w.Header().Set("Retry-After-Ms", strconv.FormatInt(int64(roundUp(wait, time.Millisecond)/time.Millisecond), 10))
	}
}

// kind is what a dialect calls a refusal.
func (r *refusal) kind(api wire.API) string {
	switch {
	case api == wire.Messages:
		return "rate_limit_error"
	case api == wire.Gemini:
		return "RESOURCE_EXHAUSTED"
	case r.limit == LimitRequests:
		return "requests"
	}
	return "tokens"
}

// message says in a dialect's words what refused a request.
func (r *refusal) message(api wire.API, model string) string {
	what := map[Limit]string{
		LimitRequests: "requests per min (RPM)", LimitTokens: "tokens per min (TPM)",
		LimitInputTokens: "input tokens per min (TPM)", LimitOutputTokens: "output tokens per min (TPM)",
	}[r.limit]
	if api == wire.Messages || api == wire.Gemini {
		return fmt.Sprintf("This request would exceed the rate limit of %d %s: %d used, %d requested.", r.rate, what, r.used, r.asked)
	}
	if !r.ever {
		return fmt.Sprintf("Request too large for %s on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.",
			model, what, r.rate, r.asked)
	}
	return fmt.Sprintf("Rate limit reached for %s on %s: Limit %d, Used %d, Requested %d. Please try again in %s.",
		model, what, r.rate, r.used, r.asked, roundUp(r.wait, time.Millisecond))
}
