package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

// slowly is a call that arrives at a second, is read for 10 ms, held for 1 s,
// connected and sent for 30 ms and answered for 500 ms.
func slowly() *call.Call {
	c := seen("fix", 400)
	c.Body += 10 * millisecond
	c.Admitted += 1010 * millisecond
	c.Connected += 1020 * millisecond
	c.Sent += 1040 * millisecond
	for _, at := range []*call.Instant{
		&c.Headers, &c.FirstByte.Received, &c.FirstByte.Delivered, &c.FirstEvent.Received, &c.FirstEvent.Delivered,
		&c.FirstToken.Received, &c.FirstToken.Delivered, &c.LastToken.Received, &c.LastToken.Delivered, &c.Done,
	} {
		*at += 1040 * millisecond
	}
	return c
}

// unheard is one that the endpoint took, and closed after 2 s.
func unheard() *call.Call {
	c := failedCall("fix", call.Truncated, 0, "EOF")
	c.Headers, c.FirstByte, c.FirstEvent = 0, call.Mark{}, call.Mark{}
	c.Done = c.Sent + 2000*millisecond
	return c
}

// A moment stands in one part alone, and the parts add up to the command's time.
func TestTimeOutsideTheModelIsNotTheModels(t *testing.T) {
	type parts struct{ Model, Sending, Unanswered, Queued, Outside float64 }
	refused := failedCall("fix", call.RateLimited, 429, "slow down")
	refused.Done = refused.Sent + 2000*millisecond
	turnedAway := failedCall("fix", call.Refused, 0, "the queue is full")
	turnedAway.Headers, turnedAway.FirstByte, turnedAway.FirstEvent = 0, call.Mark{}, call.Mark{}
	turnedAway.Admitted, turnedAway.Connected, turnedAway.Sent = 0, 0, 0
	turnedAway.Done = turnedAway.Body + 2000*millisecond
	again := slowly()
	again.Again = again.Connected
	again.Admitted = again.Body
	left := unheard()
	left.Outcome = call.ClientGone
	broken := seen("fix", 400)
	broken.Outcome = call.Truncated
	for _, row := range []struct {
		sentence string
		calls    []*call.Call
		want     parts
	}{
		{"weir's queue → no model's", []*call.Call{slowly()}, parts{500, 40, 0, 1000, 7960}},
		{"waiting to be sent again → in the queue", []*call.Call{again}, parts{500, 30, 0, 1010, 7960}},
		{"no answer → no model's", []*call.Call{unheard()}, parts{0, 0, 2000, 0, 7500}},
		{"left before anything came → no model's", []*call.Call{left}, parts{0, 0, 2000, 0, 7500}},
		{"an error status → no model's", []*call.Call{refused}, parts{0, 0, 2000, 0, 7500}},
		{"refused by weir → it waited in the queue", []*call.Call{turnedAway}, parts{0, 0, 0, 2000, 7500}},
		{"an answer that broke off → the model's", []*call.Call{broken}, parts{500, 0, 0, 0, 9000}},
		{"a model answers while another call waits → the model's", []*call.Call{slowly(), later(seen("fix", 400), 200)}, parts{1000, 40, 0, 500, 7960}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			e := errand()
			e.Ended = e.Started.Add(9500e6)
			b, err := BillFor(e, each(row.calls...))
			if err != nil {
				t.Fatal(err)
			}
			got := parts{b.InModel.V, b.Sending.V, b.Unanswered.V, b.Queued.V, b.Outside.V}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, b.timeText())
			}
			if sum := got.Model + got.Sending + got.Unanswered + got.Queued + got.Outside; sum != b.Wall.V {
				t.Errorf("the parts are %v of %v", sum, b.Wall.V)
			}
		})
	}
}
