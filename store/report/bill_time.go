package report

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/store/call"
)

// span is a length of time.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return max(s.to.Sub(s.from), 0) }

// moments are when calls were at what. A moment belongs to the first kind in this
// order in which any call was, and to no other, so that the parts of a command's
// time add up to it.
type moments struct {
	model      []span // from the request's end to the end of an answer
	sending    []span // reading, connecting and sending, of calls that were answered
	unanswered []span // from the leave of weir's queue to the end of calls that were not
	queue      []span // in weir's queue, and before weir sent again what was refused
}

// add takes a call's times.
func (s *moments) add(c *call.Call) {
	parts, ok := c.Account()
	if !ok {
		return
	}
	at := c.Arrived.Time()
	next := func(to *[]span, took time.Duration) {
		if took > 0 {
			*to = append(*to, span{at, at.Add(took)})
		}
		at = at.Add(took)
	}
	sending, rest := &s.sending, &s.model
	if !answered(c) {
		sending, rest = &s.unanswered, &s.unanswered
	}
	next(sending, parts.Read)
	next(&s.queue, parts.Queue)
	next(&s.queue, parts.Attempts)
	next(sending, parts.Connect+parts.Send)
	next(rest, parts.Wait+parts.Generate+parts.Tail)
}

// answered says whether a model answered a call: not when the endpoint, or weir,
// said no, nor when nothing came.
func answered(c *call.Call) bool {
	return c.FirstByte.Reached() && c.Status < http.StatusBadRequest
}

// split divides a command's time among what its calls were at; outside is when
// there was none.
func (b *Bill) split(s *moments, wall span) {
	var all []span
	var before time.Duration
	part := func(kind []span) Num {
		all = append(all, kind...)
		now := covered(all, wall)
		d := now - before
		before = now
		return Ms(d)
	}
	b.Wall = Ms(wall.length())
	b.InModel, b.Sending, b.Unanswered, b.Queued = part(s.model), part(s.sending), part(s.unanswered), part(s.queue)
	if !b.Partial { // else calls that nobody recorded took some of it
		b.Outside = Ms(wall.length() - before)
	}
}

// covered is how much of a time is covered by spans, which may overlap and
// reach beyond it. It sorts them.
func covered(spans []span, within span) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	at := within.from
	for _, s := range spans {
		if s.from.Before(at) {
			s.from = at
		}
		if s.to.After(within.to) {
			s.to = within.to
		}
		if s.to.After(s.from) {
			sum += s.length()
			at = s.to
		}
	}
	return sum
}

// timeText says where the command's time went. What is below a hundredth of it
// is left out, but for the model's and the command's own.
func (b *Bill) timeText() string {
	parts := []string{lasted(b.InModel) + " in the model (" + percent(ratio(b.InModel, b.Wall)) + ")"}
	for _, part := range []struct {
		took Num
		at   string
	}{{b.Sending, "sending"}, {b.Unanswered, "in calls without an answer"}, {b.Queued, "in weir's queue"}} {
		if share := ratio(part.took, b.Wall); share.Known && share.V >= 0.01 {
			parts = append(parts, lasted(part.took)+" "+part.at)
		}
	}
	if b.Outside.Known {
		parts = append(parts, lasted(b.Outside)+" in tools and thought")
	}
	return strings.Join(parts, ", ")
}
