// Package wire knows what the LLM APIs say: it reads and writes the requests,
// streamed events, whole answers and errors of each dialect, and it knows
// which events carry generated output and which figures are usage.
//
// Parsers and builders live side by side in one Format a dialect, so that they
// prove each other and the proxy, the generator and the simulator cannot
// disagree about a byte. The package knows nothing of clocks, HTTP servers or
// storage.
package wire

import "encoding/json"

// API names a dialect.
type API string

// The dialects that weir speaks.
const (
	Chat        API = "chat"        // OpenAI chat completions
	Completions API = "completions" // OpenAI legacy completions
	Responses   API = "responses"   // OpenAI Responses
	Messages    API = "messages"    // Anthropic Messages
	Gemini      API = "gemini"      // Gemini generateContent and streamGenerateContent
)

// Operation is what a request asks for, by the names of the GenAI semantic
// conventions where they have one.
type Operation string

// The operations. Only the first three generate tokens and can have a TTFT.
const (
	OpChat            Operation = "chat"
	OpTextCompletion  Operation = "text_completion"
	OpGenerateContent Operation = "generate_content"
	OpEmbeddings      Operation = "embeddings"
	OpModels          Operation = "models"
	OpCountTokens     Operation = "count_tokens"
	OpOther           Operation = "other" // a path that weir does not know
)

// Generates says whether the operation produces tokens, so whether a call of
// it can have a TTFT.
func (o Operation) Generates() bool {
	return o == OpChat || o == OpTextCompletion || o == OpGenerateContent
}

// A Format reads and writes one dialect. Implementations hold no state and are
// safe for concurrent use.
type Format interface {
	API() API

	// Path is the request target, below a host, of a request of this dialect
	// with the provider's own version segment: "/v1/messages",
	// "/v1beta/models/M:streamGenerateContent?alt=sse".
	Path(r *Request) string

	// ParseHead reads what steers and describes a request, in one pass and
	// without building its messages. A field of an unexpected type is taken as
	// absent. A body that breaks off or is not an object is an error, and what
	// stood before the break is in h; what no field is read from is not
	// checked.
	ParseHead(h *Head, body []byte) error

	// ParseRequest reads the whole request, AppendRequest writes it;
	// ParseRequest(AppendRequest(r)) gives r.
	ParseRequest(r *Request, body []byte) error
	AppendRequest(dst []byte, r *Request) ([]byte, error)

	// ParseEvent reads one frame of a stream into ev, which it resets first.
	// The byte fields of ev alias f or ev's own buffer, and hold until the
	// next call with the same ev. An unknown event type is no error: it has
	// no facts, and ev.Unknown is set.
	ParseEvent(ev *Event, f Frame) error

	// AppendEvent writes the facts of ev as one frame, with its SSE framing.
	// ParseEvent of that frame gives ev.
	AppendEvent(dst []byte, ev *Event) []byte

	// ParseAnswer reads a whole, non-streamed answer (or the object that ends
	// a Responses stream), AppendAnswer writes it. Malformed says that the
	// body is valid JSON without what the API promises (choices, content,
	// output, candidates).
	ParseAnswer(a *Answer, body []byte) error
	AppendAnswer(dst []byte, a *Answer) []byte

	// ParseError reads an error body or the data of an error event; ok is
	// false when body holds no error of any known dialect. AppendError writes
	// a body in this dialect.
	ParseError(body []byte) (e Error, ok bool)
	AppendError(dst []byte, e *Error) []byte
}

// Head is what describes a request without its words: the fields that select,
// steer and size it.
type Head struct {
	Model  string
	Stream bool

	MaxTokens        Count // max_tokens, max_completion_tokens, max_output_tokens, maxOutputTokens
	Temperature      Float
	TopP             Float
	TopK             Float
	FrequencyPenalty Float
	PresencePenalty  Float
	Seed             Count
	Choices          Count // n, candidateCount
	Stop             []string
	ReasoningLevel   string
	OutputType       string // "text", "json"; empty when unsaid
	ServiceTier      string

	// IncludeUsage is stream_options.include_usage of the two OpenAI
	// completions APIs: nil when unsaid, which means no usage in a stream.
	IncludeUsage *bool

	// What clients send that tells conversations apart; empty when unsaid.
	PreviousResponse string // previous_response_id, or thread.previous_message_id
	PromptCacheKey   string // prompt_cache_key
	User             string // user, or metadata.user_id; never kept

	MessageCount int // messages, input items or contents; a plain string counts 1
	TurnCount    int // messages of role user that are not tool results
	ToolCount    int // tool definitions
}

// Request is a whole request in a normal form.
type Request struct {
	Head
	System   string
	Messages []Message
	Tools    []Tool

	// Extra is merged into the top level of the body, over what stands there.
	// ParseRequest leaves it nil.
	Extra map[string]json.RawMessage
}

// Role says who speaks.
type Role string

// The roles. A dialect's own spelling ("model", "developer") is mapped.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // results of tools, whatever role the dialect gives them
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a piece of a message. Kind says which fields are set: KindText and
// KindReasoning have Text; KindTool (a call) has ID, Name and Arguments;
// KindToolResult has ID, Name and Text; KindOther (an image, a file) has Raw.
type Part struct {
	Kind      Kind
	Text      string
	ID        string
	Name      string
	Arguments string // a JSON object
	Raw       json.RawMessage
}

// Kind is a set of kinds of content; a Part has exactly one.
type Kind uint8

// The kinds. Those of Output, in an answer, are generated output; the first
// event that holds any is the first token.
const (
	KindText Kind = 1 << iota
	KindReasoning
	KindRefusal
	KindTool
	KindToolResult
	KindOther

	Output = KindText | KindReasoning | KindRefusal | KindTool
)

// Tool is the definition of a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema
}

// Event is what one frame of a stream says. A frame may say several things at
// once: text, usage and a finish reason.
//
// Terminal alone does not make a stream complete. In the two OpenAI completions
// APIs it is the marker "[DONE]", which gateways send after broken streams too,
// so a complete stream has also given a Finish. In Responses and Messages it is
// the dialect's last event. In Gemini it is the chunk with a finishReason,
// which further chunks may follow: candidates beside the first, and usage.
type Event struct {
	Type    []byte // the frame's own type: "message_start", "response.created"; empty where the dialect has none
	Unknown bool   // the type is not one that weir knows

	// StreamID names the lane of a WebSocket connection to which the event
	// belongs; empty for the one without a name. Lanes run at the same time.
	StreamID []byte

	ID    []byte // id of the response
	Model []byte // the model that serves it

	// Generated output. Each is empty or non-empty output: a role-only chunk,
	// empty strings and nulls leave all of them empty.
	Text      []byte
	Reasoning []byte
	Refusal   []byte
	Tools     []ToolDelta

	Finish   []byte // finish or stop reason, verbatim; empty when none was given
	Usage    Usage
	Terminal bool   // the event after which the dialect's stream is complete
	Err      *Error // an error event

	ServiceTier       []byte
	SystemFingerprint []byte

	scratch []byte // strings whose escapes were undone

	text, reasoning joined
}

// reset makes ev say nothing, keeping its memory.
func (ev *Event) reset() {
	*ev = Event{Tools: ev.Tools[:0], scratch: ev.scratch[:0], text: joined{memory: ev.text.memory}, reasoning: joined{memory: ev.reasoning.memory}}
}

// addText and addReasoning add to what the event holds: a frame may hold
// several pieces of it.
func (ev *Event) addText(t []byte)      { ev.Text = ev.text.join(ev.Text, t) }
func (ev *Event) addReasoning(t []byte) { ev.Reasoning = ev.reasoning.join(ev.Reasoning, t) }

// joined is where pieces of output are put together. A single piece, which is
// the rule, is not copied.
type joined struct {
	memory []byte
	used   bool // it holds what was joined so far
}

func (j *joined) join(a, b []byte) []byte {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	case !j.used:
		j.memory, j.used = append(j.memory[:0], a...), true
	}
	j.memory = append(j.memory, b...)
	return j.memory
}

// Output gives the kinds of generated output that the event holds: zero when
// it is not a token.
func (ev *Event) Output() Kind {
	var k Kind
	if len(ev.Text) > 0 {
		k |= KindText
	}
	if len(ev.Reasoning) > 0 {
		k |= KindReasoning
	}
	if len(ev.Refusal) > 0 {
		k |= KindRefusal
	}
	for i := range ev.Tools {
		if len(ev.Tools[i].Name) > 0 || len(ev.Tools[i].Arguments) > 0 {
			k |= KindTool
			break
		}
	}
	return k
}

// ToolDelta is a piece of a tool call. Index tells the calls of one answer
// apart; it is -1 where the dialect gave none.
type ToolDelta struct {
	Index     int
	ID        []byte
	Name      []byte
	Arguments []byte
}

// Answer is a whole answer in a normal form.
type Answer struct {
	ID        string
	Model     string
	Parts     []Part
	Finish    string // finish or stop reason of the dialect, verbatim
	Usage     Usage
	Malformed bool

	ServiceTier       string
	SystemFingerprint string
}

// Error is an error as a provider states it.
type Error struct {
	Status  int    // HTTP status, where it is known or stands in the body
	Type    string // "rate_limit_error", "RESOURCE_EXHAUSTED"
	Code    string
	Message string
}

// Count is a number of things that may be unreported: the zero Count is
// unknown, not 0.
type Count struct {
	N     int64
	Known bool
}

// N gives a known count.
func N(n int64) Count { return Count{n, true} }

// Float is a number that may be unsaid; the zero Float is unsaid.
type Float struct {
	F     float64
	Known bool
}

// F gives a known number.
func F(f float64) Float { return Float{f, true} }

// Usage is the provider's own account of tokens in weir's normal form: Input
// holds all prompt tokens, CacheRead and CacheWrite are parts of it; Output
// holds all generated tokens, Reasoning is a part of it.
type Usage struct {
	Input      Count
	CacheRead  Count
	CacheWrite Count
	Output     Count
	Reasoning  Count

	// Fresh is the prompt tokens outside any cache, known only where the
	// dialect reports those instead of Input (Anthropic): Merge needs it to
	// keep Input the sum when an update names only some of the parts.
	Fresh Count
}

// Known says whether any figure was reported.
func (u Usage) Known() bool {
	return u.Input.Known || u.CacheRead.Known || u.CacheWrite.Known || u.Output.Known || u.Reasoning.Known
}
