package call

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// foreign is a span of two seconds with attributes as JSON gives them.
func foreign(attributes map[string]any) Foreign {
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	return Foreign{Start: start, End: start.Add(2 * time.Second), Attributes: attributes}
}

// Both generations of attributes give the same call.
func TestForeignSpansOfBothGenerations(t *testing.T) {
	n := func(s string) json.Number { return json.Number(s) }
	now := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "azure.ai.openai", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "gen_ai.request.stream": true,
		"gen_ai.usage.input_tokens": n("100"), "gen_ai.usage.output_tokens": n("20"), "gen_ai.usage.cache_read.input_tokens": n("60"), "gen_ai.usage.cache_write.input_tokens": n("10"),
		"gen_ai.usage.reasoning.output_tokens": n("5"), "gen_ai.response.finish_reasons": []any{"stop"}, "gen_ai.request.temperature": n("1"), "gen_ai.conversation.id": "s",
		"openai.request.service_tier": "auto", "openai.api.type": "chat_completions", "server.address": "h", "server.port": n("443"), "gen_ai.input.messages": "secret", "weir.scenario": "forged",
	}
	then := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.openai", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "llm.is_streaming": true,
		"gen_ai.usage.prompt_tokens": n("100"), "gen_ai.usage.completion_tokens": n("20"), "gen_ai.usage.cache_read_input_tokens": n("60"), "gen_ai.usage.cache_creation_input_tokens": n("10"),
		"gen_ai.usage.reasoning_tokens": n("5"), "gen_ai.response.finish_reason": "stop", "gen_ai.request.temperature": n("1"), "session.id": "s",
		"gen_ai.openai.request.service_tier": "auto", "openai.api.type": "chat_completions", "net.peer.name": "h", "net.peer.port": n("443"), "gen_ai.prompt.0.content": "secret",
	}
	at := At(foreign(nil).Start)
	want := &Call{
		Side: Imported, Operation: wire.OpChat, API: wire.Chat, Provider: "azure.ai.openai", Host: "h", Port: 443, Session: "s", ServedModel: "m-1", Finish: "stop", Streamed: true, Outcome: OK,
		Request:     wire.Head{Model: "m", Stream: true, Temperature: wire.F(1), ServiceTier: "auto"},
		Usage:       wire.Usage{Input: wire.N(100), Output: wire.N(20), CacheRead: wire.N(60), CacheWrite: wire.N(10), Reasoning: wire.N(5)},
		UsageSource: UsageReported, Instants: Instants{Arrived: at, Done: at + Instant(2*time.Second)},
	}
	for name, attributes := range map[string]map[string]any{"now": now, "then": then} {
		got, err := foreign(attributes).Call()
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
	both := maps.Clone(then)
	maps.Copy(both, now)
	both["gen_ai.usage.prompt_tokens"] = n("1")
	if got, _ := foreign(both).Call(); got.Usage.Input != wire.N(100) {
		t.Errorf("of both the former counts: %+v", got.Usage)
	}
}

func TestForeignSpansThatAreNoCalls(t *testing.T) {
	own := func(side string, done any) map[string]any {
		return map[string]any{"weir.side": side, "weir.instant.done_ns": done}
	}
	for _, row := range []struct {
		name       string
		attributes map[string]any
		want       NoCall
	}{
		{"an agent's", map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": json.Number("1")}, NoSuchOperation + `"invoke_agent"`},
		{"a tool's", map[string]any{"gen_ai.operation.name": "execute_tool"}, NoSuchOperation + `"execute_tool"`},
		{"a rerank", map[string]any{"llm.request.type": "rerank", "gen_ai.request.model": "m"}, NoSuchOperation + `"rerank"`},
		{"a database's", map[string]any{"db.system": "x"}, NoGenAI},
		{"none", nil, NoGenAI},
		{"a model alone", map[string]any{"gen_ai.request.model": "m"}, NoGenAI},
		{"weir's own, of no side", own("nobody", json.Number("5")), NoGenAI},
		{"weir's own, in flight", map[string]any{"weir.side": "proxy"}, NoEnd},
		{"weir's own, backwards", own("proxy", json.Number("-5")), EndsTooEarly},
	} {
		if c, err := foreign(row.attributes).Call(); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, %v; want %q", row.name, c, err, row.want)
		}
	}
	for want, change := range map[NoCall]func(*Foreign){
		EndsTooEarly: func(f *Foreign) { f.End = f.Start.Add(-1) },
		NoStart:      func(f *Foreign) { f.Start = time.Time{} },
		NoEnd:        func(f *Foreign) { f.End = time.Time{} },
	} {
		f := foreign(map[string]any{"gen_ai.operation.name": "chat"})
		change(&f)
		if c, err := f.Call(); !errors.Is(err, want) {
			t.Errorf("%v, %v; want %q", c, err, want)
		}
	}
}

// Nobody knows what another program's call waited for, nor whether it was a
// stream where nothing was said of it.
func TestWhatForeignSpansDoNotSayIsUnknown(t *testing.T) {
	for _, row := range []struct {
		name                    string
		more                    map[string]any
		streamed, streamUnknown bool
		firstChunk              time.Duration
	}{
		{"nothing said", nil, false, true, 0},
		{"asked for", map[string]any{"gen_ai.request.stream": true}, true, false, 0},
		{"a first chunk came", map[string]any{"gen_ai.response.time_to_first_chunk": json.Number("0.5")}, true, false, 500 * time.Millisecond},
		{"said that there was none", map[string]any{"gen_ai.request.stream": false}, false, false, 0},
		{"said so by a former key, of one that failed", map[string]any{"llm.is_streaming": false, "error.type": "429"}, false, false, 0},
	} {
		attributes := map[string]any{"gen_ai.operation.name": "chat"}
		maps.Copy(attributes, row.more)
		c, err := foreign(attributes).Call()
		if err != nil {
			t.Fatal(err)
		}
		if c.Streamed != row.streamed || c.StreamUnknown() != row.streamUnknown {
			t.Errorf("%s: streamed %v, unknown %v", row.name, c.Streamed, c.StreamUnknown())
		}
		if d, ok := c.FirstChunk(); d != row.firstChunk || ok != (d > 0) {
			t.Errorf("%s: first chunk after %v, %v", row.name, d, ok)
		}
		if p, ok := c.Account(); ok {
			t.Errorf("%s: an account: %+v", row.name, p)
		}
		if d, ok := c.Queued(); ok {
			t.Errorf("%s: queued for %v", row.name, d)
		}
		if e := c.SpanEvents(); len(e) > 0 {
			t.Errorf("%s: events %v", row.name, e)
		}
	}
}

func TestForeignOutcomes(t *testing.T) {
	for _, row := range []struct {
		name    string
		failed  bool
		message string
		more    map[string]any
		want    Outcome
	}{
		{"nothing said → ok", false, "", nil, OK},
		{"a status → its outcome", false, "", map[string]any{"http.response.status_code": json.Number("529")}, Overloaded},
		{"a status as the error's type", true, "", map[string]any{"error.type": "401"}, Auth},
		{"an SDK's class", true, "", map[string]any{"error.type": "openai.RateLimitError"}, RateLimited},
		{"an SDK's time-out", true, "", map[string]any{"error.type": "APITimeoutError"}, Timeout},
		{"no connection", true, "", map[string]any{"error.type": "APIConnectionError"}, Unreachable},
		{"only a message", true, "Request was aborted.", nil, ClientGone},
		{"an error that says nothing → the server's", true, "", map[string]any{"error.type": "_OTHER"}, ServerError},
	} {
		attributes := map[string]any{"gen_ai.operation.name": "chat"}
		maps.Copy(attributes, row.more)
		f := foreign(attributes)
		f.Failed, f.Message = row.failed, row.message
		if c, err := f.Call(); err != nil || c.Outcome != row.want || c.UsageSource != UsageMissing {
			t.Errorf("%s: %v, %v", row.name, c, err)
		}
	}
}

// A first chunk is no first token, and one after the end is none at all.
func TestForeignFirstTokens(t *testing.T) {
	for _, row := range []struct {
		key, seconds string
		ttft         time.Duration
		event        bool
	}{
		{"gen_ai.response.time_to_first_chunk", "0.25", 0, true},
		{"gen_ai.server.time_to_first_token", "0.25", 250 * time.Millisecond, false},
		{"gen_ai.latency.time_to_first_token", "1", time.Second, false},
		{"gen_ai.server.time_to_first_token", "3", 0, false},
		{"gen_ai.server.time_to_first_token", "-1", 0, false},
	} {
		c, _ := foreign(map[string]any{"gen_ai.operation.name": "chat", row.key: json.Number(row.seconds)}).Call()
		if d, ok := c.TTFTFelt(); d != row.ttft || ok != (row.ttft > 0) || c.FirstEvent.Reached() != row.event {
			t.Errorf("%s=%s: ttft %v, first event %v", row.key, row.seconds, d, c.FirstEvent)
		}
	}
}

// A share of the cache is never above 1, and no count below 0.
func TestForeignUsageIsCountedWholeOrNotAtAll(t *testing.T) {
	for _, row := range []struct {
		provider           string
		input, read, write string
		want               wire.Usage
		source             UsageSource
	}{
		{"anthropic", "10", "90", "0", wire.Usage{Input: wire.N(100), CacheRead: wire.N(90), CacheWrite: wire.N(0)}, UsageReported},
		{"Anthropic", "10", "20", "70", wire.Usage{Input: wire.N(100), CacheRead: wire.N(20), CacheWrite: wire.N(70)}, UsageReported},
		{"openai", "10", "90", "0", wire.Usage{}, UsageSuspicious},
		{"openai", "-5", "0", "0", wire.Usage{CacheRead: wire.N(0), CacheWrite: wire.N(0)}, UsageSuspicious},
	} {
		c, err := foreign(map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": row.provider, "gen_ai.usage.input_tokens": json.Number(row.input),
			"gen_ai.usage.cache_read.input_tokens": json.Number(row.read), "gen_ai.usage.cache_creation.input_tokens": json.Number(row.write),
		}).Call()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(row.want, c.Usage); d != "" || c.UsageSource != row.source {
			t.Errorf("%+v: %s\n%s", row, c.UsageSource, d)
		}
	}
}

func TestOperationsThatInstrumentationNamesOtherwise(t *testing.T) {
	for name, want := range map[string]wire.Operation{"responses": wire.OpChat, "completion": wire.OpTextCompletion, "embedding": wire.OpEmbeddings} {
		c, err := foreign(map[string]any{"gen_ai.operation.name": name}).Call()
		if err != nil || c.Operation != want {
			t.Errorf("%s: %v, %v; want %s", name, c, err, want)
		}
	}
}
