package call

import (
	"encoding/json"
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
		got, ok := foreign(attributes).Call()
		if d := cmp.Diff(want, got); d != "" || !ok {
			t.Errorf("%s: %v\n%s", name, ok, d)
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
	for name, attributes := range map[string]map[string]any{
		"an agent's": {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": json.Number("1")},
		"a tool's":   {"gen_ai.operation.name": "execute_tool"}, "a database's": {"db.system": "x"}, "none": nil,
		"a rerank": {"llm.request.type": "rerank", "gen_ai.request.model": "m"}, "a model alone": {"gen_ai.request.model": "m"},
	} {
		if c, ok := foreign(attributes).Call(); ok {
			t.Errorf("%s: %v", name, c)
		}
	}
	backwards := foreign(map[string]any{"gen_ai.operation.name": "chat"})
	backwards.End = backwards.Start.Add(-1)
	if _, ok := backwards.Call(); ok {
		t.Error("one that ends before it begins")
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
		if c, ok := f.Call(); !ok || c.Outcome != row.want || c.UsageSource != UsageMissing {
			t.Errorf("%s: %v, %v", row.name, c, ok)
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

func TestUsageThatContradictsItselfIsSuspicious(t *testing.T) {
	c, _ := foreign(map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": json.Number("10"), "gen_ai.usage.cache_read.input_tokens": json.Number("90")}).Call()
	if c.UsageSource != UsageSuspicious {
		t.Errorf("usage is %s", c.UsageSource)
	}
}
