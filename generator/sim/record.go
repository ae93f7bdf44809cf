package sim

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"weir/proxy/wire"
)

// CorrelationHeader is a request header whose value stands in the request's
// Record, so that whoever sends a request through others can find its truth.
const CorrelationHeader = "X-Sim-Correlation"

// Record is the truth about one request: what the endpoint did, and when. Its
// times have monotonic readings, so that the same process can compare them.
//
// Of a WebSocket there is one for each response that was asked for: Accepted is
// when the message that asked began, Headers when its answer did, and After of a
// Ping when it was handed over: its pong is not waited for.
type Record struct {
	ID          string // X-Request-Id of the response, and the id in its body
	Correlation string // of the request's CorrelationHeader; empty without
	API         wire.API
	Operation   wire.Operation
	Stream      bool
	Status      int
	Fault       string // kind of the fault; empty for none
	Refused     Limit  // the limit that refused it; empty for none

	Accepted  time.Time // headers of the request read
	Body      time.Time // the whole request read
	Admitted  time.Time // a place in the batch; zero when it never had one
	Headers   time.Time // status line and headers written
	Events    []Written // of a stream; empty without a Config.Log to read them
	Cancelled time.Time // the client was noticed to be gone; zero if it stayed
	Broken    bool      // the endpoint broke the connection itself
	Done      time.Time

	// Usage is what was read and generated, told to the client or not. Of an
	// answer that broke off it has what was generated until then.
	Usage wire.Usage
}

// Written is one write, and the two instants around it and its flush.
type Written struct {
	Before, After time.Time
	What          What
	Output        wire.Kind // zero when it holds no token
	Bytes         int       // before any compression
}

// What names the purpose of a write.
type What string

// The purposes of writes. A write can hold several events of its dialect: what
// ends the reasoning and begins the text goes out with the first text.
const (
	Opening   What = "open"      // what stands before the first token: a role, message_start
	Text      What = "text"      // a step's tokens of text
	Reasoning What = "reasoning" // a step's tokens of reasoning
	ToolCall  What = "tool"      // a step's tokens of a tool call
	Ping      What = "ping"      // a keep-alive
	Failure   What = "error"     // the error event of the fault error
	Torn      What = "torn"      // the beginning of an event, after which the connection breaks
	Closing   What = "close"     // finish reason, usage, terminal event; and Gemini's tool calls
)

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

// line is a Record in JSON. Times are nanoseconds on the monotonic clock since
// start, null when not reached; counts are null when unknown.
type line struct {
	ID              string         `json:"id"`
	Correlation     string         `json:"correlation,omitempty"`
	API             wire.API       `json:"api"`
	Operation       wire.Operation `json:"operation"`
	Stream          bool           `json:"stream"`
	Status          int            `json:"status"`
	Fault           string         `json:"fault"`
	Refused         Limit          `json:"refused,omitempty"`
	StartUnix       int64          `json:"start_unix_ns"` // the one reading of the wall clock
	Accepted        *int64         `json:"accepted_ns"`
	Body            *int64         `json:"body_ns"`
	Admitted        *int64         `json:"admitted_ns"`
	Headers         *int64         `json:"headers_ns"`
	FirstToken      *int64         `json:"first_token_ns"` // its event's after_ns
	Cancelled       *int64         `json:"cancelled_ns"`
	Broken          bool           `json:"broken"`
	Done            *int64         `json:"done_ns"`
	InputTokens     *int64         `json:"input_tokens"`
	CachedTokens    *int64         `json:"cached_tokens"`
	OutputTokens    *int64         `json:"output_tokens"`
	ReasoningTokens *int64         `json:"reasoning_tokens"`
	Events          []lineEvent    `json:"events"`
}

type lineEvent struct {
	Before *int64    `json:"before_ns"`
	After  *int64    `json:"after_ns"`
	What   What      `json:"what"`
	Output wire.Kind `json:"output"`
	Bytes  int       `json:"bytes"`
}

// LogTo writes each record as a line of JSON; times are nanoseconds since
// start, whose time on the wall clock stands in every line.
func LogTo(w io.Writer, start time.Time) func(*Record) {
	var mu sync.Mutex
	return func(r *Record) {
		text, err := json.Marshal(r.line(start))
		if err != nil {
			return // a line holds nothing that cannot be written
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(append(text, '\n'))
	}
}

func (r *Record) line(start time.Time) line {
	ns := func(t time.Time) *int64 {
		if t.IsZero() {
			return nil
		}
		n := t.Sub(start).Nanoseconds()
		return &n
	}
	count := func(c wire.Count) *int64 {
		if !c.Known {
			return nil
		}
		return &c.N
	}
	first, _ := r.FirstToken()
	events := make([]lineEvent, len(r.Events))
	for i, e := range r.Events {
		events[i] = lineEvent{ns(e.Before), ns(e.After), e.What, e.Output, e.Bytes}
	}
	return line{
		ID: r.ID, Correlation: r.Correlation, API: r.API, Operation: r.Operation, Stream: r.Stream, Status: r.Status, Fault: r.Fault, Refused: r.Refused,
		StartUnix: start.UnixNano(), Accepted: ns(r.Accepted), Body: ns(r.Body), Admitted: ns(r.Admitted), Headers: ns(r.Headers),
		FirstToken: ns(first.After), Cancelled: ns(r.Cancelled), Broken: r.Broken, Done: ns(r.Done),
		InputTokens: count(r.Usage.Input), CachedTokens: count(r.Usage.CacheRead),
		OutputTokens: count(r.Usage.Output), ReasoningTokens: count(r.Usage.Reasoning), Events: events,
	}
}
