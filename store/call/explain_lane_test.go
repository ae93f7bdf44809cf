package call

import (
	"strings"
	"testing"
	"time"
)

// laneRefused is a call that weir's shaper refused.
func laneRefused(lane, limit, refusal string, wait time.Duration) *Call {
	c := &Call{Outcome: Refused, Upstream: "main", ErrorMessage: "refused: lane " + lane + ": its queue is full"}
	if wait > 0 {
		c.ErrorMessage = "refused: lane " + lane + ": it would have to wait for " + wait.String() + ", and may for 1s; try again in 3s"
		c.RetryAfter = 3 * time.Second
	}
	c.Shaping = Shaping{Lane: lane, LaneLimit: limit, LaneRefusal: refusal, ExpectedWait: wait}
	return c
}

// waited is a call that went well after the endpoint's word had held it.
func waited(held, ttft time.Duration) *Call {
	c := &Call{Side: Proxy, Outcome: OK, Streamed: true, Upstream: "main", Shaping: Shaping{Lane: "all", Held: held, HoldReason: "429"}}
	c.Arrived = t0
	c.FirstToken = Mark{t0 + Instant(ttft), t0 + Instant(ttft)}
	c.Done = c.FirstToken.Received
	return c
}

func TestWhatTheShaperDidIsExplained(t *testing.T) {
	for _, row := range []told{
		{"it would have waited too long", laneRefused("scenario=rag", "requests", "hopeless wait", 12*time.Second),
			"the lane scenario=rag is at its rate of requests; it would have waited 12s, which is longer than it may.", "Raise it with weir limit scenario=rag rps=…, or let calls wait longer with wait=…."},
		{"for tokens", laneRefused("all", "tokens", "hopeless wait", time.Minute), "the lane all is at its budget of tokens; it", "weir limit all tpm=…"},
		{"for input tokens", laneRefused("model=gpt-*", "input tokens", "hopeless wait", time.Minute), "budget of input tokens", "weir limit model=gpt-* input_tpm=…"},
		{"for output tokens", laneRefused("all", "output tokens", "hopeless wait", time.Minute), "budget of output tokens", "output_tpm=…"},
		{"it has waited too long", laneRefused("upstream=main key=00c0ffee", "in flight", "deadline", 0),
			"it had waited as long as it may, while the lane upstream=main key=00c0ffee is at its number of calls in flight.", "weir limit upstream=main key=00c0ffee concurrency=…"},
		{"the queue was full", laneRefused("scenario=rag", "requests", "full queue", 0),
			"the queue of the lane scenario=rag was full, while it is at its rate of requests.", "Let more calls wait with weir limit scenario=rag queue=…, or send less at once."},
		{"the queue was full for what another lane keeps", laneRefused("all", "", "full queue", 0), "the queue of the lane all was full", "queue=…"},
		{"the queue was full behind a hold", with(laneRefused("all", "hold", "full queue", 0), func(c *Call) { c.HoldReason = "429" }),
			"the queue of the lane all was full, while the endpoint asks to wait (429) and it does.", "queue=…"},
		{"weir was stopped meanwhile", with(laneRefused("all", "in flight", "", 0), func(c *Call) { c.ErrorMessage = "refused: " + Stopping + "; send it again" }),
			"weir was stopped while the call waited, and did not send it.", "Send it again"},
		{"its client left the queue", with(laneRefused("scenario=rag", "requests", "", 0), func(c *Call) { c.Outcome = ClientGone }),
			"the call waited in weir's lane scenario=rag, and was never sent.", "raise the lane's limit"},
		{"for another reason than a lane", &Call{Outcome: Refused, ErrorMessage: "weir does not lend its key to web pages: send it yourself"},
			"weir itself refused the request: weir does not lend its key to web pages: send it yourself.", ""},
		{"as spans said it before there was a reason", laneRefused("all", "in flight", "", 0), "the lane all is at its number of calls in flight.", "concurrency=…, or wait"},
		{"held by the endpoint", with(laneRefused("endpoint main sim-small", "hold", "hopeless wait", 30*time.Second), func(c *Call) { c.HoldReason = "requests used up" }),
			"the endpoint asks to wait (requests used up) and the lane endpoint main sim-small does; it would have waited 30s, which", "weir limit upstream=main hold=off"},
		{"a wait that the endpoint asked for is not the model's", waited(4*time.Second, 5*time.Second), "waited 4s because the endpoint had asked to wait (429)", "weir limit all rps=…"},
		{"a wait of less than a tenth is passed over", waited(time.Second, 20*time.Second), "", ""},
		{"no wait", waited(0, time.Second), "", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			what, next := row.call.Explain()
			if row.what == "" && what != "" || !strings.Contains(what, row.what) || !strings.Contains(next, row.next) {
				t.Errorf("said %q → %q, want %q → %q", what, next, row.what, row.next)
			}
		})
	}
}

func TestOnlyLoadIsARefusalForLoad(t *testing.T) {
	for _, row := range []struct {
		sentence string
		call     *Call
		want     bool
	}{
		{"429", answered("", 429, `{"error":{"message":"slow down"}}`), true},
		{"503", answered("", 503, `{"error":{"message":"busy"}}`), true},
		{"529", answered("", 529, `{"error":{"message":"overloaded"}}`), true},
		{"429 for want of credit", answered("", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), false},
		{"500", answered("", 500, `{}`), false},
		{"weir's own refusal", &Call{Outcome: Refused, Status: 429}, false},
	} {
		if got := row.call.RefusedForLoad(); got != row.want {
			t.Errorf("%s: %v, want %v", row.sentence, got, row.want)
		}
	}
}
