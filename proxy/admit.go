package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

// admit waits for the shaper's leave. Only calls that a model works on are
// shaped: a list of models does not wait behind them.
func (x *exchange) admit() bool {
	c := x.c
	if !c.Operation.Generates() && c.Operation != wire.OpEmbeddings {
		c.Admitted = call.Now()
		return true
	}
	ctx, done := x.p.untilDraining(x.r.Context())
	defer done()
	permit, err := x.p.shape.Admit(ctx, x.ask(false))
	if err != nil {
		x.notAdmitted(err)
		return false
	}
	c.Admitted = call.Now()
	x.permit = permit
	x.shaped(permit.Account())
	return true
}

// untilDraining is a context for the time that a call waits in a lane: it ends
// with its caller's, and when weir is to stop. It is for one goroutine, and end
// must be called. Most calls do not wait, and are not hooked up to both.
func (p *Proxy) untilDraining(caller context.Context) (ctx context.Context, end func()) {
	w := &waitContext{Context: caller, draining: p.draining}
	return w, w.end
}

type waitContext struct {
	context.Context // the caller's
	draining        context.Context

	both   context.Context // nil until somebody waits
	unhook func() bool
	cancel context.CancelFunc
}

func (w *waitContext) Done() <-chan struct{} {
	if w.both == nil {
		w.both, w.cancel = context.WithCancel(w.Context)
		w.unhook = context.AfterFunc(w.draining, w.cancel)
	}
	return w.both.Done()
}

func (w *waitContext) Err() error {
	switch {
	case w.both != nil:
		return w.both.Err()
	case w.draining.Err() != nil:
		return context.Canceled
	}
	return w.Context.Err()
}

func (w *waitContext) end() {
	if w.both != nil {
		w.unhook()
		w.cancel()
	}
}

// ask is what the shaper is told of the call.
func (x *exchange) ask(patient bool) shaper.Ask {
	c := x.c
	return shaper.Ask{
		Scenario: c.Scenario, Upstream: c.Upstream, Model: c.Request.Model, Key: c.KeyFingerprint, Session: c.Session,
		Age: time.Duration(call.Now() - c.Arrived), Patient: patient,
		InputTokens: x.estimate(), OutputTokens: c.Request.MaxTokens.N, CachedWeight: cachedWeight(c.API),
	}
}

// cachedWeight is what a provider counts for an input token from its cache,
// against its limits: Anthropic nothing, the others as for any other.
func cachedWeight(api wire.API) float64 {
	if api == wire.Messages {
		return 0
	}
	return 1
}

// shaped takes down what the shaper did.
func (x *exchange) shaped(a shaper.Account) {
	c := x.c
	c.Lane, c.LaneLimit, c.QueuePosition = a.Lane, a.Limit, a.Position
	c.Held, c.HoldReason, c.LaneRefusal, c.ExpectedWait = a.Held, a.HoldReason, a.Refusal, a.ExpectedWait
	if a.Reserved {
		c.ReservedInput, c.ReservedOutput = wire.N(a.InputTokens), wire.N(a.OutputTokens)
	}
}

// notAdmitted ends a call that has to go, or whose caller went.
func (x *exchange) notAdmitted(err error) {
	var refusal *shaper.Refusal
	if !errors.As(err, &refusal) {
		if departure := (*shaper.Departure)(nil); errors.As(err, &departure) {
			x.shaped(departure.Account)
		}
		if x.p.draining.Err() != nil {
			x.refuse(http.StatusServiceUnavailable, "service_unavailable", "weir: "+errDraining.Error(), errDraining)
			return
		}
		x.end(x.left(err))
		return
	}
	x.shaped(refusal.Account)
	x.c.RetryAfter = refusal.RetryAfter
	if refusal.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", fmt.Sprintf("%.0f", refusal.RetryAfter.Seconds()))
	}
	x.refuse(http.StatusTooManyRequests, "rate_limit_error", "weir: "+refusal.Error(), refusal)
}

// refused tells the shaper what the endpoint says of its limits, and says
// whether the answer is a refusal after which the request can be sent again.
// Nothing has been sent to the client by then.
func (x *exchange) refused(resp *http.Response) bool {
	return x.heard(resp.StatusCode, resp.Header) && x.body.rest == nil
}

// heard is what refused tells and asks.
func (x *exchange) heard(status int, h http.Header) (again bool) {
	if x.permit == nil {
		return false
	}
	var next call.Use // as this one, for want of better
	next.InputTokens, next.OutputTokens = x.permit.Expects()
	wait, atOnce, why := call.Asked(status, h, time.Now(), next)
	return x.permit.Heard(shaper.Answer{Status: status, Wait: wait, AtOnce: atOnce, Why: why, OtherKey: !atOnce && x.restKey(status, wait)})
}

// restKey leaves weir's own key alone where the endpoint's word is about it,
// and says whether the call may be sent with another one meanwhile. An
// overloaded endpoint is so for all keys.
func (x *exchange) restKey(status int, wait time.Duration) (other bool) {
	switch {
	case x.key == nil || x.p.Fingerprint == nil: // keys cannot be told apart
		return false
	case status == http.StatusTooManyRequests && wait == 0:
		wait = limitedKeyFor
	case wait == 0 || status != http.StatusTooManyRequests && status >= http.StatusBadRequest:
		return false
	}
	return x.up.keyring.rest(x.key, wait)
}

// admitAgain lets a refusal go and waits for leave to try again.
func (x *exchange) admitAgain(resp *http.Response) bool {
	_, _ = io.CopyN(io.Discard, resp.Body, wholeError) // so that the connection can be used again
	resp.Body.Close()
	x.c.Refusals++
	if x.key != nil {
		x.key = x.up.keyring.change(x.key)
		x.secret = x.key.secret
		x.tellKey()
	}
	ctx, done := x.p.untilDraining(x.r.Context())
	defer done()
	if err := x.permit.Again(ctx, x.c.KeyFingerprint); err != nil {
		x.timing.fill(x.c)
		x.notAdmitted(err)
		return false
	}
	x.c.Again = call.Now()
	x.shaped(x.permit.Account())
	return true
}

// wholeError is how much of a refusal's body is read to its end.
const wholeError = 64 << 10

// settle gives the permit back with what the call turned out to be.
func (x *exchange) settle() {
	if x.permit == nil {
		return
	}
	c := x.c
	inside := refusedInside(c)
	if inside != 0 {
		x.heard(inside, nil)
	}
	ttft, _ := c.TTFTUpstream()
	x.permit.Release(shaper.Settlement{
		Used:        inside == 0 && c.Sent.Reached() && (c.Status == 0 || c.Status < http.StatusBadRequest),
		InputTokens: shaper.Tokens(c.Usage.Input), CachedTokens: shaper.Tokens(c.Usage.CacheRead), OutputTokens: shaper.Tokens(c.Usage.Output),
		TTFT: ttft,
	})
}

// refusedInside is the status of a refusal that came as an event of a 200, before
// anything of an answer, as an overloaded Anthropic gives it; 0 for none.
func refusedInside(c *call.Call) int {
	if c.Status != http.StatusOK || c.Outcome != call.StreamError || c.FirstToken.Reached() {
		return 0
	}
	switch c.ErrorType {
	case "overloaded_error", "server_is_overloaded":
		return 529
	case "rate_limit_error", "rate_limit_exceeded":
		return http.StatusTooManyRequests
	}
	return 0
}
