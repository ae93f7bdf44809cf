package report

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"weir/store/call"
)

// Shaping is what weir's shaper did with the calls of a row.
type Shaping struct {
	// QueueShare is the queue's share of the TTFT that callers felt: the sum of
	// the one over the sum of the other, of the successful calls of the proxy
	// that have both. AttemptsShare is that of the time from the first attempt to
	// the one that was answered: refused attempts, and the waits in lanes after
	// them. Each is that part of the account, so that they never overlap.
	QueueShare    Num `json:"queue_share"`
	AttemptsShare Num `json:"attempts_share"`

	Waited   int `json:"waited_calls"`      // in a lane, those that did not go on included
	Resent   int `json:"resent_calls"`      // that weir sent again, because the endpoint had refused them
	Refusals int `json:"endpoint_refusals"` // after which weir sent a call again, or would have
}

// shapingSums gather a row's Shaping.
type shapingSums struct {
	queued, attempts, felt   time.Duration
	waited, resent, refusals int
}

// add counts a call, whatever its outcome.
func (s *shapingSums) add(c *call.Call) {
	if c.QueuePosition > 0 {
		s.waited++
	}
	if c.Again.Reached() {
		s.resent++
	}
	s.refusals += c.Refusals
}

// addTTFT counts the TTFT of a call that went well.
func (s *shapingSums) addTTFT(c *call.Call) {
	felt, ok := c.TTFTFelt()
	queue, known := queued(c)
	if !ok || !known || felt <= 0 {
		return
	}
	parts, _ := c.Account()
	queue = min(queue, felt)
	s.felt += felt
	s.queued += queue
	s.attempts += min(parts.Attempts, felt-queue)
}

func (s *shapingSums) figures() Shaping {
	return Shaping{
		QueueShare: share(int64(s.queued), int64(s.felt)), AttemptsShare: share(int64(s.attempts), int64(s.felt)),
		Waited: s.waited, Resent: s.resent, Refusals: s.refusals,
	}
}

// worthAColumn is the share of the queue, or of refused attempts, from which on
// text shows it.
const worthAColumn = 0.01

// queueCounts says whether any row's queue has a share worth showing. Where
// nobody waited in a lane it has none: on a busy machine a request that comes
// back late from the shaper is not its queue's doing.
func (r *Report) queueCounts() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Shaping.Waited > 0 && row.Shaping.QueueShare.V >= worthAColumn })
}

// attemptsCount says whether any row's refused attempts have such a share.
func (r *Report) attemptsCount() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Shaping.AttemptsShare.V >= worthAColumn })
}

// resent is the sentence about calls that were sent again; empty for none.
func (r *Report) resent() string {
	s := r.Total.Shaping
	if s.Refusals == 0 {
		return ""
	}
	sent := "no call"
	if s.Resent > 0 {
		sent = count(s.Resent, "call")
	}
	return fmt.Sprintf("the endpoint refused %s, after which weir sent %s again", count(s.Refusals, "attempt"), sent)
}

// statusText is the HTTP status that a caller got. Where weir gave it in the
// endpoint's place, which was not asked, it says so.
func statusText(o call.Outcome, status int) string {
	switch {
	case status == 0:
		return absent
	case o == call.Refused:
		return strconv.Itoa(status) + " weir"
	}
	return strconv.Itoa(status)
}

// bound is what is known of calls that weir's shaper refused: the lane, the
// limit of it that they waited for, and why they were refused.
type bound struct{ lane, limit, refusal string }

// boundOf is empty for a call that was not refused by a lane.
func boundOf(c *call.Call) bound {
	if c.Outcome != call.Refused || c.WasStopped() {
		return bound{}
	}
	return bound{c.Lane, c.LaneLimit, c.LaneRefusal}
}

// waits gather how long refused calls would have waited.
type waits struct {
	sum, longest time.Duration
	n            int
}

func (w *waits) add(d time.Duration) {
	w.sum += d
	w.longest = max(w.longest, d)
	w.n++
}

func (w *waits) mean() Num {
	if w.n == 0 {
		return Num{}
	}
	return Ms(w.sum / time.Duration(w.n))
}

func (w *waits) most() Num { return msIf(w.longest, w.n > 0) }

// laneText says why and by which lane calls were refused, what they waited for,
// and how long they would have; empty where no lane refused.
func (f *Failure) laneText() string {
	if f.Lane == "" {
		return ""
	}
	text := "lane " + plain(f.Lane)
	if f.Limit != "" {
		text += ": " + plain(f.Limit)
	}
	if f.Refusal != "" {
		text = plain(f.Refusal) + ", " + text
	}
	if f.WouldWait.Known {
		text += fmt.Sprintf("; would have waited %s, at most %s", ms(f.WouldWait), ms(f.WouldWaitMost))
	}
	return text
}
