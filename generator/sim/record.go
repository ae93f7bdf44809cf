package sim

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"weir/proxy/wire"
)

// Record is the truth about one request: what the endpoint did, and when. Its
// times have monotonic readings, so that the same process can compare them.
type Record struct {
	ID        string // X-Request-Id of the response, and the id in its body
	API       wire.API
	Operation wire.Operation
	Stream    bool
	Status    int
	Fault     string // kind of the fault; empty for none

	Accepted  time.Time // headers of the request read
	Body      time.Time // the whole request read
	Admitted  time.Time // a place in the batch; zero when it never had one
	Headers   time.Time // status line and headers written
	Events    []Written
	Cancelled time.Time // the client was noticed to be gone; zero if it stayed
	Done      time.Time

	Usage wire.Usage
}

// Written is one event and the two instants around its write and flush.
type Written struct {
	Before, After time.Time
	Output        wire.Kind // zero when it holds no token
	Bytes         int
}

// FirstToken is the first event with generated output; ok is false when none
// was written.
func (r *Record) FirstToken() (w Written, ok bool) {
	for _, w := range r.Events {
		if w.Output != 0 {
			return w, true
		}
	}
	return Written{}, false
}

// LastToken is the last event with generated output.
func (r *Record) LastToken() (w Written, ok bool) {
	for i := len(r.Events) - 1; i >= 0; i-- {
		if r.Events[i].Output != 0 {
			return r.Events[i], true
		}
	}
	return Written{}, false
}

// LogTo writes each record as a line of JSON; times are nanoseconds since
// start, which the caller's first line may state.
func LogTo(w io.Writer, start time.Time) func(*Record) {
	var mu sync.Mutex
	ns := func(t time.Time) *int64 {
		if t.IsZero() {
			return nil
		}
		n := t.Sub(start).Nanoseconds()
		return &n
	}
	type event struct {
		Before *int64    `json:"before_ns"`
		After  *int64    `json:"after_ns"`
		Output wire.Kind `json:"output"`
		Bytes  int       `json:"bytes"`
	}
	count := func(c wire.Count) *int64 {
		if !c.Known {
			return nil
		}
		return &c.N
	}
	return func(r *Record) {
		events := make([]event, len(r.Events))
		for i, e := range r.Events {
			events[i] = event{ns(e.Before), ns(e.After), e.Output, e.Bytes}
		}
		line, err := json.Marshal(map[string]any{
			"id": r.ID, "api": r.API, "operation": r.Operation, "stream": r.Stream, "status": r.Status, "fault": r.Fault,
			"accepted_ns": ns(r.Accepted), "body_ns": ns(r.Body), "admitted_ns": ns(r.Admitted), "headers_ns": ns(r.Headers),
			"cancelled_ns": ns(r.Cancelled), "done_ns": ns(r.Done), "events": events,
			"input_tokens": count(r.Usage.Input), "cached_tokens": count(r.Usage.CacheRead),
			"output_tokens": count(r.Usage.Output), "reasoning_tokens": count(r.Usage.Reasoning),
		})
		if err != nil {
			return // the values above can all be written
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(append(line, '\n'))
	}
}
