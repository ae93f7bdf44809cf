// Package call holds the central type of weir: one call to a model, with the
// instants at which things happened to it, what it used and how it ended. It
// has the ruler with which the proxy and the generator both measure (Meter),
// the figures that follow from the instants, and the only place that spells
// the span attributes in which a call travels.
package call

import (
	"fmt"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Instant is a point on the process's monotonic clock, in nanoseconds since
// the process's anchor. The zero Instant was not reached.
type Instant int64

// anchor ties the monotonic clock to the wall clock, once a process: an NTP
// step moves no duration and reorders no instants.
var anchor = time.Now()

// Now reads the clock.
func Now() Instant { return reached(Instant(time.Since(anchor))) }

// At converts a time. One that this process read off its clock is converted by
// its monotonic reading; one without (from a database, another process, or
// Time) by the wall clock, and At(i.Time()) is i exactly. So a call of another
// process is rebuilt by At(start) plus the differences it was stored with, and
// has the same figures, since those are differences. The zero time gives the
// zero Instant, and no other time does.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return reached(Instant(t.Sub(anchor)))
}

// reached keeps an instant that came from being the zero Instant: the very
// anchor is one nanosecond late.
func reached(i Instant) Instant {
	if i == 0 {
		return 1
	}
	return i
}

// Time is the wall-clock time of the instant; the zero time if it was not
// reached.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return anchor.Add(time.Duration(i)).Round(0)
}

// Reached says whether the instant came.
func (i Instant) Reached() bool { return i != 0 }

// String is the time since the anchor, "–" if the instant was not reached.
func (i Instant) String() string {
	if i == 0 {
		return "–"
	}
	return time.Duration(i).String()
}

// Mark is an instant seen twice: Received when the read from the upstream
// returned, Delivered when the write and flush to the client returned. The
// generator, which delivers to nobody, sets only Received.
type Mark struct{ Received, Delivered Instant }

// Reached says whether the instant came.
func (m Mark) Reached() bool { return m.Received != 0 }

// Side says who measured a call.
type Side string

// The sides.
const (
	Proxy    Side = "proxy"
	Client   Side = "client" // weir's own generator
	Imported Side = "import" // another program, whose spans were read
)

// Purposes of what is recorded beside the calls that ask for an answer.
const (
	PurposeConnection = "connection" // carries other calls, as a WebSocket does
	PurposePrewarm    = "prewarm"    // has a cache made ready, and has no answer
)

// Call is one call to a model. Every field may be absent, which is its zero
// value.
type Call struct {
	TraceID    [16]byte
	SpanID     [8]byte
	ParentSpan [8]byte
	TraceState string // the caller's, which goes on with its trace
	Side       Side

	// Where it belongs.
	Run          string
	Scenario     string
	ScenarioFrom string // how the scenario was found: "header", "path", "proxy", "rule", "default", "automatic"
	Session      string
	SessionFrom  string        // how the session was found: "weir", "header", "body", "response", "conversation"
	Turn         int           // from 1
	Purpose      string        // what the client makes the call for: "main", "subagent", or a side call as "title"
	Agent        string        // the client's id of the agent that calls, where a session has several
	Think        time.Duration // from the end of the session's call before to Arrived; 0 where there was none
	ThinkFor     string        // what that time was: "user" or "tools"
	Labels       map[string]string
	WarmUp       bool

	// What was asked, of whom, by whom.
	API            wire.API
	Operation      wire.Operation
	Provider       string // gen_ai.provider.name
	Upstream       string // weir's name for the endpoint
	Host           string // the upstream's, never weir's
	Port           int
	Door           string // by which it came: "reverse", "forward", "connect"
	Method         string
	Path           string // without query, prefix tags removed
	Request        wire.Head
	RequestBytes   int64
	ClientName     string
	ClientVersion  string
	KeyFingerprint string
	ExpectedInput  wire.Count // what the load model planned; generator only
	ExpectedOutput wire.Count
	Text           Text // what the prompt is made of; generator only, for models whose tokenizer weir lacks
	ReusedConn     bool
	Attempts       int // upstream attempts; 0 when none was made

	// What came back.
	Status            int // 0 when none came; of a call that weir refused, what it told the caller
	ResponseID        string
	ServedModel       string
	Finish            string
	ServiceTier       string
	SystemFingerprint string
	ResponseBytes     int64
	Streamed          bool // the response was a stream, whatever was asked
	Usage             wire.Usage
	UsageSource       UsageSource
	Events            int64 // events of the stream
	TokenEvents       int64 // those with generated output
	UnknownEvents     int64
	Gaps              Gaps
	Timeline          Timeline

	Outcome      Outcome
	NoFirstToken Absence // why there is no first token; empty when there is one
	ErrorType    string  // the provider's, or weir's own class of failure
	ErrorMessage string
	ErrorBody    string // first 64 KiB, secrets redacted
	RetryAfter   time.Duration

	Instants

	// Of which: overlaps the parts of the account, never added to them.
	DNS          time.Duration
	TLS          time.Duration
	WriteBlocked time.Duration // time in writes to the client
	Injected     time.Duration // delay that the shaper's impairments added

	Shaping
}

// Shaping is what the shaper did with a call. It is zero where no lane had to
// do with it.
type Shaping struct {
	Lane           string        // that the call waited in last or, if it did not wait, the first that it passed
	LaneLimit      string        // of that lane, what the call waited for last: "requests", "tokens", "input tokens", "output tokens", "in flight", "hold"
	QueuePosition  int           // in that lane when the call came, from 1; 0: it did not wait
	ReservedInput  wire.Count    // tokens that were reserved when it was admitted, to be settled by Usage
	ReservedOutput wire.Count    //
	LaneRefusal    string        // why the lane refused the call: "full queue", "hopeless wait", "deadline"; empty: it did not
	ExpectedWait   time.Duration // that was hopeless; 0 for every other call
	Held           time.Duration // of the waits in lanes, those before later attempts included: while the endpoint's word held the lane
	HoldReason     string        // what that word was: "429", "529", "requests used up"
	Refusals       int           // answers that refused the call, after which weir sent it again
	Impaired       []string      // what was made worse on purpose, as "first_token+800ms", what could not be applied included; see Worsened
}

// Text says of how many characters of each kind a prompt is made, and how many
// tokens it costs beside them, in messages and tools. The zero value is that it
// is not known.
type Text struct {
	Words, Letters, Digits, Ideographs, Others int
	Overhead                                   int // tokens
}

// Instants are the moments of a call, in the order of the account.
type Instants struct {
	Due       Instant // when the load model planned the send; generator only
	Arrived   Instant // request line and headers read; generator: the send began
	Body      Instant // whole request body read
	Admitted  Instant // left the shaper
	Again     Instant // left the shaper for the attempt that answered, after others were refused; not reached when the first one answered
	Connected Instant // connection of the attempt that answered was in hand
	Sent      Instant // last byte of the request written
	Headers   Instant // status line and headers received

	FirstByte      Mark // first body byte
	FirstEvent     Mark // first complete event of any kind
	FirstToken     Mark // first event with generated output
	FirstReasoning Mark
	FirstText      Mark
	FirstTool      Mark
	LastToken      Mark

	Done Instant // body end, error or cancel
}

// UsageSource says where the token figures come from.
type UsageSource string

// The provenances of usage.
const (
	UsageReported   UsageSource = "reported"
	UsageInjected   UsageSource = "injected"   // weir asked for it
	UsageEstimated  UsageSource = "estimated"  // by a tokenizer
	UsageMissing    UsageSource = "missing"    // the endpoint gave none, or only its beginning
	UsageSuspicious UsageSource = "suspicious" // contradicts the stream
)

// Outcome is how a call ended. The HTTP status alone decides nothing.
type Outcome string

// The outcomes.
const (
	OK          Outcome = "ok"
	Refused     Outcome = "refused"      // by weir: its shaper, or since this machine had no file or port left
	RateLimited Outcome = "rate_limited" // 429
	Auth        Outcome = "auth"         // 401, 403
	Overloaded  Outcome = "overloaded"   // 503, 529
	ClientError Outcome = "client_error" // other 4xx
	ServerError Outcome = "server_error" // other 5xx
	StreamError Outcome = "stream_error" // an error event inside a 200
	Truncated   Outcome = "truncated"    // ended without its terminal event, or broke
	Malformed   Outcome = "malformed"    // 200 without what the API promises
	Unreachable Outcome = "unreachable"  // DNS, connect, TLS
	Timeout     Outcome = "timeout"
	ClientGone  Outcome = "client_gone"
)

// Absence is why a call has no first token.
type Absence string

// The reasons.
const (
	AbsentRefused     Absence = "refused"
	AbsentHTTPError   Absence = "http_error"
	AbsentStreamError Absence = "stream_error"
	AbsentTruncated   Absence = "truncated"
	AbsentClientGone  Absence = "client_gone"
	AbsentTimeout     Absence = "timeout"
	AbsentUnreachable Absence = "unreachable"
	AbsentNotStreamed Absence = "not_streamed"
	AbsentEmpty       Absence = "empty"
	AbsentUnreadable  Absence = "unreadable"    // encoded in a way that weir cannot undo
	AbsentOperation   Absence = "no_generation" // the operation generates nothing
)

// Started is the wall-clock time of the call: when it arrived or, if that is
// not known, the earliest moment of the account that is. It is the zero time
// when none was reached.
func (c *Call) Started() time.Time { return c.started().Time() }

func (c *Call) started() Instant {
	if c.Arrived.Reached() {
		return c.Arrived
	}
	first := c.Due
	for _, i := range []Instant{
		c.Body, c.Admitted, c.Connected, c.Sent, c.Headers,
		c.FirstByte.Received, c.FirstEvent.Received, c.FirstToken.Received, c.LastToken.Received, c.Done,
	} {
		if i.Reached() && (!first.Reached() || i < first) {
			first = i
		}
	}
	return first
}

// String is the call in one line. It holds no secrets and no content.
func (c *Call) String() string {
	var b strings.Builder
	word := func(format string, v any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, format, v)
	}
	for _, s := range []string{string(c.Side), c.Scenario, string(c.Operation), c.Request.Model, string(c.Outcome)} {
		if s != "" {
			word("%s", fittingName(s))
		}
	}
	if c.Status != 0 {
		word("%d", c.Status)
	}
	if d, ok := c.TTFTUpstream(); ok {
		word("ttft %v", d)
	}
	if d, ok := c.Duration(); ok {
		word("took %v", d)
	}
	if u := c.Usage; u.Input.Known || u.Output.Known {
		word("tokens %s", number(u.Input)+"→"+number(u.Output))
	}
	if c.ErrorMessage != "" {
		word("%q", Shorten(c.ErrorMessage, messageLimit))
	}
	return b.String()
}

func number(c wire.Count) string {
	if !c.Known {
		return "–"
	}
	return fmt.Sprint(c.N)
}
