package report

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store/call"
)

// queuedFor makes a call wait in a lane before it is sent.
func queuedFor(c *call.Call, wait int) *call.Call {
	d := call.Instant(wait) * millisecond
	for _, i := range []*call.Instant{
		&c.Admitted, &c.Connected, &c.Sent, &c.Headers, &c.FirstByte.Received, &c.FirstByte.Delivered, &c.FirstEvent.Received, &c.FirstEvent.Delivered,
		&c.FirstToken.Received, &c.FirstToken.Delivered, &c.FirstText.Received, &c.FirstText.Delivered, &c.LastToken.Received, &c.LastToken.Delivered, &c.Done,
	} {
		if i.Reached() {
			*i += d
		}
	}
	c.Lane, c.LaneLimit, c.QueuePosition = "scenario="+c.Scenario, "requests", 3
	c.ReservedInput, c.ReservedOutput = wire.N(120), wire.N(512)
	return c
}

// sentAgain makes a call of one that was refused twice before.
func sentAgain(c *call.Call) *call.Call {
	first := c.Admitted
	queuedFor(c, 300)
	c.Again, c.Admitted = c.Admitted, first
	c.Refusals, c.Attempts = 2, 3
	return c
}

// laneRefused is a call that a lane did not let go.
func laneRefused(scenario, limit string, wait time.Duration) *call.Call {
	why, refusal := "its queue is full", "full queue"
	if wait > 0 {
		refusal = "hopeless wait"
		why = "it would have to wait for " + wait.String() + ", and may for 1s"
	}
	c := failedCall(scenario, call.Refused, 429, "refused: lane scenario="+scenario+": "+why+"; try again in 3s")
	c.Lane, c.LaneLimit, c.LaneRefusal, c.RetryAfter, c.ExpectedWait = "scenario="+scenario, limit, refusal, 3*time.Second, wait
	c.Admitted, c.Connected, c.Sent, c.Headers, c.FirstByte, c.FirstEvent = 0, 0, 0, 0, call.Mark{}, call.Mark{}
	return c
}

// shaped is a report in which the shaper had much to do.
func shaped(t *testing.T) *Report {
	t.Helper()
	return summary(t, Options{}, stored(
		queuedFor(seen("rag", 600), 200), queuedFor(seen("rag", 500), 300), sentAgain(queuedFor(seen("rag", 500), 100)), seen("chat", 400),
		laneRefused("rag", "requests", 2*time.Second), laneRefused("rag", "requests", 5*time.Second), laneRefused("rag", "in flight", 0), laneRefused("rag", "requests", 0),
		failedCall("chat", call.RateLimited, 429, "slow down"))...)
}

func TestWhatIsWrittenOfTheShaper(t *testing.T) {
	r := shaped(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"shaped.txt":        func(b *bytes.Buffer) error { r.Text(b, Style{Width: 120}); return nil },
		"shaped-narrow.txt": func(b *bytes.Buffer) error { r.Text(b, Style{Width: 70}); return nil },
		"shaped.json":       func(b *bytes.Buffer) error { return r.JSON(b) },
		"shaped.md":         func(b *bytes.Buffer) error { r.Markdown(b); return nil },
		"shaped-account.txt": func(b *bytes.Buffer) error {
			c := sentAgain(queuedFor(spans(seen("rag", 400), 7, 0), 250))
			c.Held, c.HoldReason = 180*time.Millisecond, "429"
			Explain(b, c, nil, Style{Width: 100})
			return nil
		},
		"shaped-list.txt": func(b *bytes.Buffer) error {
			calls := []*call.Call{spans(queuedFor(seen("rag", 400), 250), 7, 0), spans(sentAgain(queuedFor(seen("rag", 400), 250)), 6, 0), spans(laneRefused("rag", "in flight", 0), 8, 0), spans(seen("chat", 400), 9, 0)}
			List(b, calls, Style{})
			for _, c := range calls {
				ListLine(b, c, Style{Width: 140})
				ListRow(b, c)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, dates.ReplaceAll(b.Bytes(), []byte("DATE")))
		})
	}
}

func TestTheSharesOfTTFT(t *testing.T) {
	unknown := seen("chat", 400)
	unknown.Admitted = 0
	noToken := queuedFor(seen("chat", 400), 300)
	noToken.FirstToken = call.Mark{}
	for _, c := range []struct {
		sentence string
		calls    []*call.Call
		queue    Num
		attempts Num
	}{
		{"sums, not means of shares", []*call.Call{queuedFor(seen("chat", 100), 300), seen("chat", 600)}, N(0.3), N(0)},
		{"nobody waited", []*call.Call{seen("chat", 400)}, N(0), N(0)},
		{"it is not known when the call was let go", []*call.Call{unknown}, Num{}, Num{}},
		{"no first token", []*call.Call{noToken}, Num{}, Num{}},
		{"only successful calls", []*call.Call{queuedFor(failedCall("chat", call.StreamError, 200, ""), 300), seen("chat", 400)}, N(0), N(0)},
		{"the generator sees no queue", []*call.Call{clientOf(seen("chat", 400), 1, 0)}, Num{}, Num{}},
		{"waiting to be sent again is no queue, but attempts", []*call.Call{sentAgain(seen("chat", 400)), seen("chat", 300)}, N(0), N(0.3)},
		{"each has its own time", []*call.Call{sentAgain(queuedFor(seen("chat", 100), 100))}, N(0.2), N(0.6)},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			s := summary(t, Options{}, c.calls...).Total.Shaping
			if diff := cmp.Diff([]Num{c.queue, c.attempts}, []Num{s.QueueShare, s.AttemptsShare}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A call that waited to be sent again, and was not, is a refusal alone.
func TestOnlyCallsThatWereSentAgainAreToldAsSuch(t *testing.T) {
	given := failedCall("chat", call.Refused, 429, "its wait was over")
	given.Refusals, given.HoldReason = 1, "429"
	for _, c := range []struct {
		calls []*call.Call
		want  string
	}{
		{[]*call.Call{sentAgain(seen("chat", 400)), given}, "the endpoint refused 3 attempts, after which weir sent 1 call again"},
		{[]*call.Call{given}, "the endpoint refused 1 attempt, after which weir sent no call again"},
		{[]*call.Call{seen("chat", 400)}, ""},
	} {
		if got := summary(t, Options{}, c.calls...).resent(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Whatever the instants are, and however little sense they make.
func TestTheSharesAreWithinOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	known := 0
	for range 3000 {
		var calls []*call.Call
		for range 1 + rng.IntN(4) {
			c := seen("chat", 1)
			for _, i := range []*call.Instant{
				&c.Arrived, &c.Body, &c.Admitted, &c.Again, &c.Connected, &c.Sent, &c.Headers, &c.FirstToken.Received, &c.FirstToken.Delivered, &c.LastToken.Received, &c.Done,
			} {
				*i = call.Instant(rng.Int64N(2000)) - 700
			}
			calls = append(calls, c)
		}
		s := summary(t, Options{}, calls...).Total.Shaping
		if s.QueueShare.Known {
			known++
		}
		if s.QueueShare.V < 0 || s.AttemptsShare.V < 0 || s.QueueShare.V+s.AttemptsShare.V > 1+1e-9 {
			t.Fatalf("the shares are %v and %v, of %+v", s.QueueShare, s.AttemptsShare, calls)
		}
	}
	if known < 100 {
		t.Errorf("only %d shares were known: this test saw too little", known)
	}
}

func TestRefusalsAreToldByLaneAndLimit(t *testing.T) {
	got := shaped(t).Failures
	type line struct {
		Outcome     call.Outcome
		Lane, Limit string
		Refusal     string
		Calls       int
		Mean, Most  Num
	}
	var lines []line
	for _, f := range got {
		lines = append(lines, line{f.Outcome, f.Lane, f.Limit, f.Refusal, f.Calls, f.WouldWait, f.WouldWaitMost})
	}
	want := []line{
		{call.RateLimited, "", "", "", 1, Num{}, Num{}},
		{call.Refused, "scenario=rag", "requests", "hopeless wait", 2, N(3500), N(5000)},
		{call.Refused, "scenario=rag", "in flight", "full queue", 1, Num{}, Num{}},
		{call.Refused, "scenario=rag", "requests", "full queue", 1, Num{}, Num{}},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// What REPORT.md says of a call's lane is what its JSON holds.
func TestACallsJSONHoldsItsLane(t *testing.T) {
	c := sentAgain(queuedFor(spans(seen("rag", 400), 7, 0), 250))
	c.Held, c.HoldReason = time.Second, "429"
	var b bytes.Buffer
	if err := CallJSON(&b, c, nil, false); err != nil {
		t.Fatal(err)
	}
	var got struct{ Properties map[string]any }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile("REPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"weir.lane": "scenario=rag", "weir.lane.limit": "requests", "weir.lane.position": 3.0, "weir.lane.reserved.input_tokens": 120.0,
		"weir.lane.reserved.output_tokens": 512.0, "weir.lane.held_ns": 1e9, "weir.lane.hold_reason": "429", "weir.refusals": 2.0,
		"weir.part.queue_ns": 250e6, "weir.part.attempts_ns": 300e6,
	} {
		if got.Properties[key] != want {
			t.Errorf("%s is %v, want %v", key, got.Properties[key], want)
		}
		if !strings.Contains(string(contract), "`"+key+"`") {
			t.Errorf("REPORT.md does not explain %q", key)
		}
	}
}

// On a busy machine calls come back late from the shaper: that is no queue.
func TestTheQueuesColumnStandsOnlyWhereCallsWaited(t *testing.T) {
	late := queuedFor(seen("chat", 400), 300)
	late.Lane, late.LaneLimit, late.QueuePosition = "", "", 0
	for _, c := range []struct {
		call *call.Call
		want bool
	}{{late, false}, {queuedFor(seen("chat", 400), 300), true}, {queuedFor(seen("chat", 400), 3), false}} {
		var b bytes.Buffer
		summary(t, Options{}, c.call).Text(&b, Style{})
		if got := strings.Contains(b.String(), "of ttft"); got != c.want {
			t.Errorf("the column stands: %t, want %t:\n%s", got, c.want, &b)
		}
	}
}
