package call

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

const ms = Instant(time.Millisecond)

// t0 is when every scripted call arrives.
const t0 = 1000 * ms

var sse = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}
var document = http.Header{"Content-Type": {"application/json"}}

// read is what one read brought, so many milliseconds after the call arrived;
// it was delivered a millisecond later.
type read struct {
	ms   int
	body string
}

// script is a response as a meter sees it.
type script struct {
	api     wire.API
	request wire.Head
	status  int // 0 is 200
	header  http.Header
	reads   []read
	end     End
	err     error
}

// start makes the call that a script answers: sent after 5 ms.
func (s *script) start() (*Call, *Meter) {
	c := &Call{Side: Proxy, API: s.api, Operation: wire.OpChat, Request: s.request,
		Instants: Instants{Arrived: t0, Body: t0 + ms, Admitted: t0 + 2*ms, Connected: t0 + 3*ms, Sent: t0 + 5*ms}}
	return c, NewMeter(c, wire.For(s.api))
}

// run plays the script and gives the call.
func (s script) run() *Call {
	c, m := s.start()
	status := s.status
	if status == 0 {
		status = 200
	}
	m.Begin(status, s.header, t0+8*ms)
	last := t0 + 8*ms
	for _, r := range s.reads {
		last = t0 + Instant(r.ms)*ms
		m.Observe([]byte(r.body), last, last+ms)
	}
	m.End(s.end, s.err, last+2*ms)
	return c
}

// at is the mark of a read so many milliseconds after the call arrived.
func at(n int) Mark { return Mark{t0 + Instant(n)*ms, t0 + Instant(n+1)*ms} }

// data frames JSON documents as SSE events without a name.
func data(docs ...string) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// event frames one SSE event.
func event(name, doc string) string { return "event: " + name + "\ndata: " + doc + "\n\n" }

const (
	chatRole  = `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	chatHel   = `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}`
	chatLo    = `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}`
	chatStop  = `{"id":"c1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chatUsage = `{"id":"c1","model":"m-1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`
	done      = `[DONE]`
)

var (
	messageStart = event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}`)
	ping         = event("ping", `{"type":"ping"}`)
	blockStart   = event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	blockStop    = event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	messageDelta = event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
	messageStop  = event("message_stop", `{"type":"message_stop"}`)
)

func textDelta(s string) string {
	return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+s+`"}}`)
}

// complete is one whole answer in each dialect, an event a read, with the
// read's index at which each first came.
var complete = []struct {
	sentence                            string
	script                              script
	token, reasoning, text, tool, last  int // milliseconds; 0: none
	events, tokens                      int64
	finish, model, id, tier, systemName string
	usage                               wire.Usage
}{
	{
		sentence: "chat: the role chunk is no token, the reasoning before the text is",
		script: script{api: wire.Chat, header: sse, request: wire.Head{Stream: true}, reads: []read{
			{10, data(chatRole)},
			{20, data(`{"id":"c1","model":"m-1","system_fingerprint":"fp","service_tier":"default","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`)},
			{30, data(chatHel)}, {40, data(chatLo)}, {50, data(chatStop)}, {60, data(chatUsage)}, {61, data(done)},
		}},
		token: 20, reasoning: 20, text: 30, last: 40, events: 7, tokens: 3,
		finish: "stop", model: "m-1", id: "c1", tier: "default", systemName: "fp",
		usage: wire.Usage{Input: wire.N(11), Output: wire.N(2), CacheRead: wire.N(4)},
	},
	{
		sentence: "completions: text alone",
		script: script{api: wire.Completions, header: sse, request: wire.Head{Stream: true}, reads: []read{
			{10, data(`{"id":"t1","model":"m","choices":[{"text":"","index":0}]}`)},
			{20, data(`{"id":"t1","model":"m","choices":[{"text":"a","index":0,"finish_reason":null}]}`)},
			{30, data(`{"id":"t1","model":"m","choices":[{"text":"b","index":0,"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, done)},
		}},
		token: 20, text: 20, last: 30, events: 4, tokens: 2, finish: "length", model: "m", id: "t1",
		usage: wire.Usage{Input: wire.N(3), Output: wire.N(2)},
	},
	{
		sentence: "messages: start, ping and an empty block are no tokens; the last message_delta's usage replaces",
		script: script{api: wire.Messages, header: sse, request: wire.Head{Stream: true}, reads: []read{
			{10, messageStart}, {11, ping}, {12, blockStart}, {20, textDelta("Hi")}, {30, textDelta(" you")}, {31, blockStop},
			{32, event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"tu","name":"ls","input":{}}}`)},
			{33, messageDelta}, {34, messageStop},
		}},
		token: 20, text: 20, tool: 32, last: 32, events: 9, tokens: 3, finish: "end_turn", model: "claude-x", id: "msg_1",
		usage: wire.Usage{Input: wire.N(17), Fresh: wire.N(10), CacheRead: wire.N(5), CacheWrite: wire.N(2), Output: wire.N(7)},
	},
	{
		sentence: "responses: created and in_progress are no tokens, completed ends the stream",
		script: script{api: wire.Responses, header: sse, request: wire.Head{Stream: true}, reads: []read{
			{10, event("response.created", `{"type":"response.created","response":{"id":"r1","model":"g","status":"in_progress","output":[]}}`)},
			{11, event("response.in_progress", `{"type":"response.in_progress","response":{"id":"r1","model":"g"}}`)},
			{20, event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`)},
			{30, event("response.output_text.delta", `{"type":"response.output_text.delta","delta":"Hello"}`)},
			{40, event("response.output_text.done", `{"type":"response.output_text.done","text":"Hello"}`)},
			{50, event("response.completed", `{"type":"response.completed","response":{"id":"r1","model":"g-2","status":"completed","output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3}}}}`)},
		}},
		token: 30, text: 30, last: 30, events: 6, tokens: 1, finish: "completed", model: "g-2", id: "r1",
		usage: wire.Usage{Input: wire.N(9), CacheRead: wire.N(0), Output: wire.N(5), Reasoning: wire.N(3)},
	},
	{
		sentence: "gemini: a thought, then text; usage on every chunk replaces",
		script: script{api: wire.Gemini, header: sse, request: wire.Head{Stream: true}, reads: []read{
			{10, data(`{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"parts":[{"text":"so","thought":true}]}}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":0,"thoughtsTokenCount":1}}`)},
			{20, data(`{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1,"thoughtsTokenCount":1}}`)},
			{30, data(`{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":1}}`)},
		}},
		token: 10, reasoning: 10, text: 20, last: 30, events: 3, tokens: 3, finish: "STOP", model: "gem", id: "g1",
		usage: wire.Usage{Input: wire.N(8), Output: wire.N(3), Reasoning: wire.N(1)},
	},
	{
		sentence: "gemini without alt=sse: one JSON array, an element an event",
		script: script{api: wire.Gemini, header: document, request: wire.Head{Stream: true}, reads: []read{
			{10, "[" + `{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}`},
			{30, "\n,\r\n" + `{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2}}` + "\n]"},
		}},
		token: 10, text: 10, last: 30, events: 2, tokens: 2, finish: "STOP", model: "gem", id: "g1",
		usage: wire.Usage{Input: wire.N(8), Output: wire.N(2)},
	},
}

func TestEachDialectIsMeasured(t *testing.T) {
	for _, row := range complete {
		t.Run(row.sentence, func(t *testing.T) {
			c := row.script.run()
			want := *c
			mark := func(n int) Mark {
				if n == 0 {
					return Mark{}
				}
				return at(n)
			}
			first := row.script.reads[0].ms
			want.FirstByte, want.FirstEvent = at(first), at(first)
			want.FirstToken, want.LastToken = mark(row.token), mark(row.last)
			want.FirstReasoning, want.FirstText, want.FirstTool = mark(row.reasoning), mark(row.text), mark(row.tool)
			want.Events, want.TokenEvents, want.UnknownEvents = row.events, row.tokens, 0
			want.Finish, want.ServedModel, want.ResponseID = row.finish, row.model, row.id
			want.ServiceTier, want.SystemFingerprint = row.tier, row.systemName
			want.Usage, want.UsageSource = row.usage, UsageReported
			want.Streamed, want.Outcome, want.NoFirstToken = true, OK, ""
			want.ErrorType, want.ErrorMessage, want.ErrorBody = "", "", ""
			if diff := cmp.Diff(&want, c); diff != "" {
				t.Errorf("measured otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the split of the bytes, the figures that hold no instants are the
// same, and an event counts with the read that completes it.
func TestAnySplitGivesTheSameFigures(t *testing.T) {
	for _, row := range complete {
		t.Run(row.sentence, func(t *testing.T) {
			var body strings.Builder
			for _, r := range row.script.reads {
				body.WriteString(r.body)
			}
			whole := row.script
			whole.reads = []read{{10, body.String()}}
			want := whole.run()
			for _, size := range []int{1, 2, 3, 7, 64, 1000} {
				split := row.script
				split.reads = nil
				for b := body.String(); b != ""; b = b[min(size, len(b)):] {
					split.reads = append(split.reads, read{10, b[:min(size, len(b))]})
				}
				got := split.run()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("reads of %d bytes give other figures:\n%s", size, diff)
				}
			}
		})
	}
}

func TestEventCountsWithTheReadThatCompletesIt(t *testing.T) {
	s := script{api: wire.Chat, header: sse, request: wire.Head{Stream: true}, reads: []read{
		{10, data(chatRole) + "data: " + chatHel[:40]}, {20, chatHel[40:]}, {30, "\n\n" + data(chatStop, done)},
	}}
	c := s.run()
	if c.FirstEvent != at(10) || c.FirstToken != at(30) {
		t.Errorf("first event %v, first token %v: want %v and %v", c.FirstEvent, c.FirstToken, at(10), at(30))
	}
}

func TestWholeAnswers(t *testing.T) {
	for _, row := range []struct {
		sentence string
		api      wire.API
		body     string
		outcome  Outcome
		finish   string
		usage    wire.Usage
		source   UsageSource
	}{
		{"chat", wire.Chat, `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":1}}`,
			OK, "stop", wire.Usage{Input: wire.N(4), Output: wire.N(1)}, UsageReported},
		{"messages", wire.Messages, `{"id":"m","type":"message","model":"c","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":4,"output_tokens":1}}`,
			OK, "end_turn", wire.Usage{Input: wire.N(4), Fresh: wire.N(4), Output: wire.N(1)}, UsageReported},
		{"gemini", wire.Gemini, `{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":1}}`,
			OK, "STOP", wire.Usage{Input: wire.N(4), Output: wire.N(1)}, UsageReported},
		{"responses", wire.Responses, `{"id":"r","object":"response","status":"completed","model":"g","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":4,"output_tokens":1}}`,
			OK, "completed", wire.Usage{Input: wire.N(4), Output: wire.N(1)}, UsageReported},
		{"no choices → malformed", wire.Chat, `{"id":"c","object":"x"}`, Malformed, "", wire.Usage{}, UsageMissing},
		{"HTML → malformed", wire.Chat, `<html>hello</html>`, Malformed, "", wire.Usage{}, UsageMissing},
		{"nothing at all → malformed", wire.Chat, ``, Malformed, "", wire.Usage{}, UsageMissing},
		{"an error in a 200 → stream_error", wire.Chat, `{"error":{"message":"busy","type":"overloaded"}}`, StreamError, "", wire.Usage{}, UsageMissing},
		{"null usage → missing", wire.Chat, `{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":null}`,
			OK, "stop", wire.Usage{}, UsageMissing},
		{"half of the usage → missing, the half stays", wire.Chat, `{"id":"c","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":null}}`,
			OK, "stop", wire.Usage{Input: wire.N(4)}, UsageMissing},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := script{api: row.api, header: document}
			if row.body != "" {
				half := len(row.body) / 2
				s.reads = []read{{10, row.body[:half]}, {20, row.body[half:]}}
			}
			c := s.run()
			if c.Outcome != row.outcome || c.Finish != row.finish || c.UsageSource != row.source {
				t.Errorf("got %s, finish %q, usage %s; want %s, %q, %s", c.Outcome, c.Finish, c.UsageSource, row.outcome, row.finish, row.source)
			}
			if diff := cmp.Diff(row.usage, c.Usage); diff != "" {
				t.Errorf("usage:\n%s", diff)
			}
			wantAbsent := AbsentNotStreamed
			if row.outcome == StreamError {
				wantAbsent = AbsentStreamError
			}
			if c.Streamed || c.FirstToken.Reached() || c.FirstEvent.Reached() || c.NoFirstToken != wantAbsent {
				t.Errorf("streamed %v, first token %v, absent because %q", c.Streamed, c.FirstToken, c.NoFirstToken)
			}
			if _, ok := c.TTFTUpstream(); ok {
				t.Error("an answer that was not streamed has a TTFT")
			}
		})
	}
}

func TestErrorsAreToldFromEveryAnswer(t *testing.T) {
	c := script{api: wire.Messages, status: 529, header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"7"}},
		reads: []read{{10, `{"type":"error","error":{"type":"overloaded_error","message":"key sk-ant-0123456789abc is`}, {11, ` busy"}}`}}}.run()
	got := []any{c.Outcome, c.NoFirstToken, c.ErrorType, c.ErrorMessage, c.RetryAfter, c.UsageSource, c.ErrorBody}
	want := []any{Overloaded, AbsentHTTPError, "overloaded_error", "key sk-[redacted] is busy", 7 * time.Second, UsageSource(""),
		`{"type":"error","error":{"type":"overloaded_error","message":"key sk-[redacted] is busy"}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorBodyIsKeptTo64KiBAndAKeyAcrossTheBorderIsRedacted(t *testing.T) {
	body := strings.Repeat("x", bodyLimit-6) + " sk-0123456789012345678901234567890 " + strings.Repeat("y", 1<<20)
	c := script{api: wire.Chat, status: 500, header: document, reads: []read{{10, body}}}.run()
	if len(c.ErrorBody) > bodyLimit || strings.Contains(c.ErrorBody, "sk-0") {
		t.Errorf("kept %d bytes, ending in %q", len(c.ErrorBody), c.ErrorBody[len(c.ErrorBody)-20:])
	}
}
