package call

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"weir/proxy/wire"
)

// Faults that comparable tools shipped: a test a line.

func chatStream(docs ...string) *Call {
	return script{api: wire.Chat, request: wire.Head{Stream: true}, header: sse, reads: []read{{10, data(docs...)}}}.run()
}

func TestTrapOnlyLFAndOnlyDataWithASpace(t *testing.T) {
	body := "\xef\xbb\xbf:hello\r\rdata:" + chatHel + "\r\n\r\nid: 7\revent: x\rdata: {\"choices\":\rdata: [{\"finish_reason\":\"stop\"}]}\r\rdata: [DONE]\n\n"
	c := script{api: wire.Chat, request: wire.Head{Stream: true}, header: sse, reads: []read{{10, body}}}.run()
	if c.Events != 3 || c.TokenEvents != 1 || c.Outcome != OK {
		t.Errorf("%d events, %d token events, %s; want 3, 1, ok", c.Events, c.TokenEvents, c.Outcome)
	}
}

// Of an event that comes in many reads 8 MiB are inspected; it is passed and
// counted as unknown.
func TestTrapMegabyteDataLine(t *testing.T) {
	big := `{"choices":[{"delta":{"content":"` + strings.Repeat("a", 3<<20) + `"}}]}`
	huge := `{"choices":[{"delta":{"content":"` + strings.Repeat("a", 9<<20) + `"}}]}`
	s := script{api: wire.Chat, request: wire.Head{Stream: true}, header: sse}
	for b := data(big, huge, chatStop, done); b != ""; b = b[min(1<<20, len(b)):] {
		s.reads = append(s.reads, read{10, b[:min(1<<20, len(b))]})
	}
	c := s.run()
	if c.Outcome != OK || c.TokenEvents != 1 || c.UnknownEvents != 1 || c.Events != 4 {
		t.Errorf("%s, %d events, %d token events, %d unknown; want ok, 4, 1, 1", c.Outcome, c.Events, c.TokenEvents, c.UnknownEvents)
	}
}

func TestTrapWholeBodyIsInspectedTo8MiB(t *testing.T) {
	c, m := (&script{api: wire.Chat}).start()
	m.Begin(200, document, t0)
	m.Observe([]byte("{"), t0, t0)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 20 {
		m.Observe(chunk, t0, t0)
	}
	m.End(EndClean, nil, t0+ms)
	if c.Outcome != OK || c.UsageSource != UsageMissing || c.ResponseBytes != 20<<20+1 {
		t.Errorf("got %s, usage %s, %d bytes", c.Outcome, c.UsageSource, c.ResponseBytes)
	}
}

func TestTrapNullsAndMissingFields(t *testing.T) {
	c := chatStream(
		`{"choices":null}`, `{"choices":[{"delta":null}]}`, `{"choices":[{"delta":{"tool_calls":null,"content":null}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":null,"arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":"x","function":{"name":"ls"}}]}}]}`, chatStop, done)
	if c.Outcome != OK || c.TokenEvents != 1 || !c.FirstTool.Reached() || c.FirstText.Reached() {
		t.Errorf("%s, %d token events, first tool %v, first text %v", c.Outcome, c.TokenEvents, c.FirstTool, c.FirstText)
	}
}

func TestTrapUnknownEventsAreCountedAndPassedOver(t *testing.T) {
	c := script{api: wire.Messages, request: wire.Head{Stream: true}, header: sse, reads: []read{{10,
		messageStart + event("new_thing", `{"type":"new_thing"}`) + "data: not JSON\n\n" + textDelta("a") + messageDelta + messageStop}}}.run()
	if c.Outcome != OK || c.UnknownEvents != 2 || c.Events != 6 {
		t.Errorf("%s, %d events, %d unknown; want ok, 6, 2", c.Outcome, c.Events, c.UnknownEvents)
	}
}

func TestTrapReasoningUnderBothNamesCountsOnce(t *testing.T) {
	c := chatStream(`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm","content":null}}]}`, `{"choices":[{"delta":{"reasoning":"so"}}]}`, chatStop, done)
	if c.TokenEvents != 2 || c.FirstReasoning != at(10) || c.FirstText.Reached() {
		t.Errorf("%d token events, first reasoning %v, first text %v", c.TokenEvents, c.FirstReasoning, c.FirstText)
	}
}

func TestTrapToolOnlyTurnHasAFirstToken(t *testing.T) {
	s := script{api: wire.Chat, request: wire.Head{Stream: true}, header: sse, reads: []read{
		{10, data(chatRole)},
		{20, data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"ls","arguments":""}}]}}]}`)},
		{30, data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, done)},
	}}
	if c := s.run(); c.FirstToken != at(20) || c.FirstTool != at(20) || c.LastToken != at(30) || c.Outcome != OK {
		t.Errorf("first token %v, first tool %v, last %v, %s", c.FirstToken, c.FirstTool, c.LastToken, c.Outcome)
	}
}

func TestTrapChunksAreNoTokens(t *testing.T) {
	c := chatStream(chatHel, chatLo, chatStop, done)
	if _, ok := c.TPOT(); ok {
		t.Error("a time per token without usage")
	}
	if _, ok := c.TokensPerEvent(); ok {
		t.Error("tokens per event without usage")
	}
}

func TestTrapFailureInsideAStreamThatAGatewayOpenedEarly(t *testing.T) {
	s := script{api: wire.Chat, request: wire.Head{Stream: true}, header: sse, reads: []read{
		{10, ": PING\n\n"}, {5000, ": PING\n\n"}, {9000, data(`{"error":{"message":"upstream timeout","type":"upstream_error","code":504}}`, done)}}}
	c := s.run()
	if c.Outcome != StreamError || c.NoFirstToken != AbsentStreamError || c.FirstByte != at(10) || c.ErrorType != "upstream_error" || c.TokenEvents != 0 || c.ErrorBody == "" {
		t.Errorf("got %v, first byte %v, %q %q", c, c.FirstByte, c.ErrorType, c.ErrorBody)
	}
}

func TestTrapModelNamesAreMappedOnTheWay(t *testing.T) {
	c := script{api: wire.Chat, request: wire.Head{Stream: true, Model: "openai/m"}, header: sse, reads: []read{{10, data(chatHel, chatStop, done)}}}.run()
	if c.Request.Model != "openai/m" || c.ServedModel != "m-1" {
		t.Errorf("asked %q, served %q", c.Request.Model, c.ServedModel)
	}
}

func TestNamesAreBounded(t *testing.T) {
	c := chatStream(`{"model":"`+strings.Repeat("m", 1<<20)+`","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, done)
	if len(c.ServedModel) != nameLimit {
		t.Errorf("a model's name of %d bytes was kept", len(c.ServedModel))
	}
}

func TestTrapContentTypeIsWrong(t *testing.T) {
	events := data(chatHel, chatStop, done)
	answer := `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`
	stream := wire.Head{Stream: true}
	for _, row := range []struct {
		sentence string
		request  wire.Head
		header   http.Header
		body     string
		streamed bool
	}{
		{"events called JSON", stream, document, events, true},
		{"events called nothing", stream, http.Header{}, events, true},
		{"events called text, after blank lines", stream, http.Header{"Content-Type": {"text/plain"}}, "\n\n" + events, true},
		{"events that nobody asked for", wire.Head{}, sse, events, true},
		{"a document called events", stream, sse, answer, false},
		{"a document, though a stream was asked for", stream, document, "\n" + answer, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := script{api: wire.Chat, request: row.request, header: row.header, reads: []read{{10, row.body}}}.run()
			if c.Outcome != OK || c.Streamed != row.streamed || c.FirstToken.Reached() != row.streamed {
				t.Errorf("got %v, streamed %v, first token %v", c, c.Streamed, c.FirstToken)
			}
		})
	}
}

func TestTrapCompressedStreamsAreReadAsTheyCome(t *testing.T) {
	type flusher interface {
		Write([]byte) (int, error)
		Flush() error
	}
	for _, row := range []struct {
		coding string
		open   func(b *bytes.Buffer) flusher
	}{
		{"gzip", func(b *bytes.Buffer) flusher { return gzip.NewWriter(b) }},
		{"br", func(b *bytes.Buffer) flusher { return brotli.NewWriter(b) }},
		{"zstd", func(b *bytes.Buffer) flusher { w, _ := zstd.NewWriter(b); return w }},
	} {
		t.Run(row.coding, func(t *testing.T) {
			var b bytes.Buffer
			w := row.open(&b)
			s := script{api: wire.Chat, request: wire.Head{Stream: true}, header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {row.coding}}}
			for i, doc := range []string{chatRole, chatHel, chatLo, chatStop, done} {
				w.Write([]byte(data(doc)))
				w.Flush()
				s.reads = append(s.reads, read{10 * (i + 1), b.String()})
				b.Reset()
			}
			c := s.run()
			if c.Outcome != OK || c.FirstToken != at(20) || c.LastToken != at(30) || c.Events != 5 {
				t.Errorf("got %v, first token %v, last %v, %d events", c, c.FirstToken, c.LastToken, c.Events)
			}
		})
	}
}

func TestTrapUnknownCodingIsNoFault(t *testing.T) {
	c := script{api: wire.Chat, request: wire.Head{Stream: true}, header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"dcb"}}, reads: []read{{10, "\x01\x02"}}}.run()
	if c.Outcome != OK || c.NoFirstToken != AbsentUnreadable || c.ResponseBytes != 2 || c.UsageSource != UsageMissing {
		t.Errorf("got %v, %q, usage %s", c, c.NoFirstToken, c.UsageSource)
	}
}

func TestTrapDamagedCodingIsMalformed(t *testing.T) {
	c := script{api: wire.Chat, request: wire.Head{Stream: true}, header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}, reads: []read{{10, "this is no gzip stream"}, {20, "nor is this"}}}.run()
	if c.Outcome != Malformed || c.ErrorMessage == "" || c.NoFirstToken != AbsentUnreadable {
		t.Errorf("got %v, %q", c, c.NoFirstToken)
	}
}

func TestUsageProvenance(t *testing.T) {
	usage := func(u string) string { return `{"choices":[],"usage":` + u + `}` }
	long := `{"choices":[{"delta":{"content":"` + strings.Repeat("word ", 200) + `"}}]}`
	for _, row := range []struct {
		sentence string
		docs     []string
		limit    wire.Count
		plan     wire.Count
		injected bool
		want     UsageSource
	}{
		{"last chunk with empty choices", []string{chatHel, chatStop, chatUsage, done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"chunk with choices", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"weir asked for it", []string{chatHel, chatStop, chatUsage, done}, wire.Count{}, wire.Count{}, true, UsageInjected},
		{"weir asked in vain", []string{chatHel, chatStop, done}, wire.Count{}, wire.Count{}, true, UsageMissing},
		{"none", []string{chatHel, chatStop, done}, wire.Count{}, wire.Count{}, false, UsageMissing},
		{"null", []string{chatHel, chatStop, usage("null"), done}, wire.Count{}, wire.Count{}, false, UsageMissing},
		{"half", []string{chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":null}`), done}, wire.Count{}, wire.Count{}, false, UsageMissing},
		{"details are null", []string{chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":null}`), done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"0 output tokens, yet text", []string{chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":0}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"0 output tokens and no text", []string{chatRole, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":0}`), done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"a prompt of nothing", []string{chatHel, chatStop, usage(`{"prompt_tokens":0,"completion_tokens":1}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"more cached than asked", []string{chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"more reasoning than output", []string{chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":9}}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"1,000 bytes of text in 5 tokens", []string{long, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":5}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"1,000 bytes of text in 200 tokens", []string{long, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":201}`), done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"fewer tokens than events", []string{chatHel, chatLo, chatHel, chatStop, usage(`{"prompt_tokens":5,"completion_tokens":2}`), done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"round figures without details", []string{chatHel, chatStop, usage(`{"prompt_tokens":500,"completion_tokens":100}`), done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"round figures that the request's limit explains", []string{chatHel, chatStop, usage(`{"prompt_tokens":500,"completion_tokens":100}`), done}, wire.N(100), wire.Count{}, false, UsageReported},
		{"round figures that the plan explains", []string{chatHel, chatStop, usage(`{"prompt_tokens":500,"completion_tokens":100}`), done}, wire.Count{}, wire.N(500), false, UsageReported},
		{"round figures with details", []string{chatHel, chatStop, usage(`{"prompt_tokens":500,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":0}}`), done}, wire.Count{}, wire.Count{}, false, UsageReported},
		{"[DONE] without a finish reason", []string{chatHel, chatUsage, done}, wire.Count{}, wire.Count{}, false, UsageSuspicious},
		{"tokens after the last figure", []string{chatUsage, chatHel, chatStop, done}, wire.Count{}, wire.Count{}, false, UsageMissing},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := script{api: wire.Chat, request: wire.Head{Stream: true, MaxTokens: row.limit}}
			c, m := s.start()
			c.ExpectedInput = row.plan
			if row.injected {
				c.UsageSource = UsageInjected
			}
			m.Begin(200, sse, t0)
			m.Observe([]byte(data(row.docs...)), t0+ms, t0+ms)
			m.End(EndClean, nil, t0+2*ms)
			if c.UsageSource != row.want {
				t.Errorf("usage %+v is %s, want %s", c.Usage, c.UsageSource, row.want)
			}
		})
	}
}

// What a stream that broke off said of its output is no figure, whichever
// dialect; what it said of the prompt is.
func TestTrapMessageStartsFigureIsOnlyABeginning(t *testing.T) {
	gemini := func(tokens string) string {
		return data(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":17,"candidatesTokenCount":` + tokens + `,"thoughtsTokenCount":1}}`)
	}
	for _, row := range []struct {
		sentence string
		api      wire.API
		reads    []read
		end      End
		output   wire.Count
		source   UsageSource
	}{
		{"text had come", wire.Messages, []read{{10, messageStart}, {20, textDelta("a")}, {1030, textDelta("b")}}, EndClientGone, wire.Count{}, UsageMissing},
		{"nothing had come", wire.Messages, []read{{10, messageStart}}, EndClientGone, wire.Count{}, UsageMissing},
		{"the connection broke", wire.Messages, []read{{10, messageStart}, {20, textDelta("a")}}, EndBroken, wire.Count{}, UsageMissing},
		{"the last figure had come, and the end was lost", wire.Messages, []read{{10, messageStart}, {20, textDelta("a")}, {30, messageDelta}}, EndBroken, wire.N(7), UsageReported},
		{"a running count", wire.Gemini, []read{{10, gemini("1")}, {20, gemini("2")}}, EndClientGone, wire.Count{}, UsageMissing},
		{"a gateway dropped the last figure", wire.Messages, []read{{10, messageStart}, {20, textDelta("a")},
			{30, event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)}, {31, messageStop}}, EndClean, wire.Count{}, UsageMissing},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := script{api: row.api, request: wire.Head{Stream: true}, header: sse, end: row.end, reads: row.reads}.run()
			if c.Usage.Output != row.output || c.UsageSource != row.source || c.Usage.Input != wire.N(17) {
				t.Errorf("got usage %+v, %s, of a call that is %s; want an output of %v, %s", c.Usage, c.UsageSource, c.Outcome, row.output, row.source)
			}
		})
	}
}

func TestTrapWallClockStepsMoveNoDuration(t *testing.T) {
	// A time without a monotonic reading is converted by the wall clock and
	// back without loss; one with it, by that.
	i := Now()
	if got := At(i.Time()); got != i {
		t.Errorf("At(Time()) = %v, want %v", got, i)
	}
	if d := time.Duration(At(time.Now()) - Now()); d > time.Second || d < -time.Second {
		t.Errorf("At(now) and Now are %v apart", d)
	}
}
