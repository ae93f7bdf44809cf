package call

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"weir/proxy/wire"
)

// Keys that others must name. All other keys are spelled in fields, once.
const (
	KeyTimeline  = "weir.timeline"
	keySide      = "weir.side"
	keyScenario  = "weir.scenario"
	keyOperation = "gen_ai.operation.name"
	keyModel     = "gen_ai.request.model"
	keyProvider  = "gen_ai.provider.name"
	keyHost      = "server.address"
	keyPort      = "server.port"
	keyAPI       = "weir.api"
	keyUpstream  = "weir.upstream"
	keyOutcome   = "weir.outcome"
	keyErrorType = "error.type"
)

// fields are all properties of a call, by the GenAI semantic conventions where
// they have a name for one, else under weir. The first group is stated at a
// span's creation.
var fields = concat(startFields, endFields)

var startFields = []field{
	stringField(keySide, func(c *Call) *Side { return &c.Side }),
	stringField(keyOperation, func(c *Call) *wire.Operation { return &c.Operation }),
	stringField(keyProvider, func(c *Call) *string { return &c.Provider }),
	stringField(keyModel, func(c *Call) *string { return &c.Request.Model }),
	stringField(keyHost, func(c *Call) *string { return &c.Host }),
	intField(keyPort, func(c *Call) *int { return &c.Port }),
	stringField(keyAPI, func(c *Call) *wire.API { return &c.API }),
	stringField(keyUpstream, func(c *Call) *string { return &c.Upstream }),
	stringField("weir.run", func(c *Call) *string { return &c.Run }),
	stringField(keyScenario, func(c *Call) *string { return &c.Scenario }),
	stringField("gen_ai.conversation.id", func(c *Call) *string { return &c.Session }),
	intField("weir.turn", func(c *Call) *int { return &c.Turn }),
	boolField("weir.warm_up", func(c *Call) *bool { return &c.WarmUp }),
	stringField("weir.client.name", func(c *Call) *string { return &c.ClientName }),
	boolField("gen_ai.request.stream", func(c *Call) *bool { return &c.Request.Stream }),
	countField("weir.expected.input_tokens", func(c *Call) *wire.Count { return &c.ExpectedInput }),
	countField("weir.expected.output_tokens", func(c *Call) *wire.Count { return &c.ExpectedOutput }),
	instantField("due", func(c *Call) *Instant { return &c.Due }),
}

var endFields = concat([]field{
	textField("weir.trace_state", stateLimit, func(c *Call) *string { return &c.TraceState }),
	stringField("weir.scenario.from", func(c *Call) *string { return &c.ScenarioFrom }),
	stringField("weir.client.version", func(c *Call) *string { return &c.ClientVersion }),
	stringField("weir.key.fingerprint", func(c *Call) *string { return &c.KeyFingerprint }), // the last attempt's
	stringField("http.request.method", func(c *Call) *string { return &c.Method }),
	textField("url.path", pathLimit, func(c *Call) *string { return &c.Path }),
	stringField("weir.session.from", func(c *Call) *string { return &c.SessionFrom }),
	stringField("weir.purpose", func(c *Call) *string { return &c.Purpose }),
	stringField("weir.agent", func(c *Call) *string { return &c.Agent }),
	durationField("weir.think", func(c *Call) *time.Duration { return &c.Think }),
	stringField("weir.think.for", func(c *Call) *string { return &c.ThinkFor }),
	stringField("weir.door", func(c *Call) *string { return &c.Door }),
	countField("gen_ai.request.max_tokens", func(c *Call) *wire.Count { return &c.Request.MaxTokens }),
	floatField("gen_ai.request.temperature", func(c *Call) *wire.Float { return &c.Request.Temperature }),
	floatField("gen_ai.request.top_p", func(c *Call) *wire.Float { return &c.Request.TopP }),
	floatField("gen_ai.request.top_k", func(c *Call) *wire.Float { return &c.Request.TopK }),
	floatField("gen_ai.request.frequency_penalty", func(c *Call) *wire.Float { return &c.Request.FrequencyPenalty }),
	floatField("gen_ai.request.presence_penalty", func(c *Call) *wire.Float { return &c.Request.PresencePenalty }),
	countField("gen_ai.request.seed", func(c *Call) *wire.Count { return &c.Request.Seed }),
	countField("weir.request.choices", func(c *Call) *wire.Count { return &c.Request.Choices }),
	listField("gen_ai.request.stop_sequences", func(c *Call) *[]string { return &c.Request.Stop }),
	stringField("gen_ai.request.reasoning.level", func(c *Call) *string { return &c.Request.ReasoningLevel }),
	stringField("gen_ai.request.previous_response.id", func(c *Call) *string { return &c.Request.PreviousResponse }),
	stringField("gen_ai.output.type", func(c *Call) *string { return &c.Request.OutputType }),
	stringField("openai.request.service_tier", func(c *Call) *string { return &c.Request.ServiceTier }),
	stringField("weir.request.prompt_cache_key", func(c *Call) *string { return &c.Request.PromptCacheKey }),
	{"weir.request.include_usage",
		func(c *Call) attribute.Value {
			if c.Request.IncludeUsage != nil {
				return attribute.BoolValue(*c.Request.IncludeUsage)
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if v.Type() == attribute.BOOL {
				asked := v.AsBool()
				c.Request.IncludeUsage = &asked
			}
		}},
	intField("weir.request.messages", func(c *Call) *int { return &c.Request.MessageCount }),
	intField("weir.request.turns", func(c *Call) *int { return &c.Request.TurnCount }),
	intField("weir.request.tools", func(c *Call) *int { return &c.Request.ToolCount }),
	intField("weir.text.words", func(c *Call) *int { return &c.Text.Words }),
	intField("weir.text.letters", func(c *Call) *int { return &c.Text.Letters }),
	intField("weir.text.digits", func(c *Call) *int { return &c.Text.Digits }),
	intField("weir.text.ideographs", func(c *Call) *int { return &c.Text.Ideographs }),
	intField("weir.text.others", func(c *Call) *int { return &c.Text.Others }),
	intField("weir.text.overhead_tokens", func(c *Call) *int { return &c.Text.Overhead }),
	intField("http.request.body.size", func(c *Call) *int64 { return &c.RequestBytes }),
	boolField("weir.connection.reused", func(c *Call) *bool { return &c.ReusedConn }),
	intField("weir.attempts", func(c *Call) *int { return &c.Attempts }),

	intField("http.response.status_code", func(c *Call) *int { return &c.Status }),
	stringField("gen_ai.response.id", func(c *Call) *string { return &c.ResponseID }),
	stringField("gen_ai.response.model", func(c *Call) *string { return &c.ServedModel }),
	{"gen_ai.response.finish_reasons",
		func(c *Call) attribute.Value {
			if c.Finish != "" {
				return attribute.StringSliceValue([]string{fittingName(c.Finish)})
			}
			return absent
		},
		func(c *Call, v attribute.Value) {
			if v.Type() != attribute.STRINGSLICE {
				return
			}
			if reasons := v.AsStringSlice(); len(reasons) > 0 {
				c.Finish = reasons[0]
			}
		}},
	stringField("openai.response.service_tier", func(c *Call) *string { return &c.ServiceTier }),
	stringField("openai.response.system_fingerprint", func(c *Call) *string { return &c.SystemFingerprint }),
	intField("http.response.body.size", func(c *Call) *int64 { return &c.ResponseBytes }),
	boolField("weir.response.streamed", func(c *Call) *bool { return &c.Streamed }),

	countField("gen_ai.usage.input_tokens", func(c *Call) *wire.Count { return &c.Usage.Input }),
	countField("gen_ai.usage.output_tokens", func(c *Call) *wire.Count { return &c.Usage.Output }),
	countField("gen_ai.usage.cache_read.input_tokens", func(c *Call) *wire.Count { return &c.Usage.CacheRead }),
	countField("gen_ai.usage.cache_write.input_tokens", func(c *Call) *wire.Count { return &c.Usage.CacheWrite }),
	countField("gen_ai.usage.reasoning.output_tokens", func(c *Call) *wire.Count { return &c.Usage.Reasoning }),
	countField("weir.usage.fresh_input_tokens", func(c *Call) *wire.Count { return &c.Usage.Fresh }),
	stringField("weir.usage.source", func(c *Call) *UsageSource { return &c.UsageSource }),

	intField("weir.events", func(c *Call) *int64 { return &c.Events }),
	intField("weir.events.token", func(c *Call) *int64 { return &c.TokenEvents }),
	intField("weir.events.unknown", func(c *Call) *int64 { return &c.UnknownEvents }),
	intField("weir.gaps", func(c *Call) *int { return &c.Gaps.N }),
	gapField("weir.gaps.p50", func(g *Gaps) *time.Duration { return &g.P50 }),
	gapField("weir.gaps.p99", func(g *Gaps) *time.Duration { return &g.P99 }),
	gapField("weir.gaps.longest", func(g *Gaps) *time.Duration { return &g.Longest }),
	intField("weir.stalls", func(c *Call) *int { return &c.Gaps.Stalls }),
	durationField("weir.stalled", func(c *Call) *time.Duration { return &c.Gaps.Stalled }),
	boolField("weir.coalesced", func(c *Call) *bool { return &c.Gaps.Coalesced }),
	timelineField,

	stringField(keyOutcome, func(c *Call) *Outcome { return &c.Outcome }),
	stringField("weir.no_first_token", func(c *Call) *Absence { return &c.NoFirstToken }),
	stringField(keyErrorType, func(c *Call) *string { return &c.ErrorType }),
	textField("weir.error.message", messageLimit, func(c *Call) *string { return &c.ErrorMessage }),
	textField("weir.error.body", bodyLimit, func(c *Call) *string { return &c.ErrorBody }),
	durationField("weir.retry_after", func(c *Call) *time.Duration { return &c.RetryAfter }),
	durationField("weir.dns", func(c *Call) *time.Duration { return &c.DNS }),
	durationField("weir.tls", func(c *Call) *time.Duration { return &c.TLS }),
	durationField("weir.write_blocked", func(c *Call) *time.Duration { return &c.WriteBlocked }),
	durationField("weir.injected", func(c *Call) *time.Duration { return &c.Injected }),

	stringField("weir.lane", func(c *Call) *string { return &c.Lane }),
	stringField("weir.lane.limit", func(c *Call) *string { return &c.LaneLimit }),
	stringField("weir.lane.refusal", func(c *Call) *string { return &c.LaneRefusal }),
	intField("weir.lane.position", func(c *Call) *int { return &c.QueuePosition }),
	countField("weir.lane.reserved.input_tokens", func(c *Call) *wire.Count { return &c.ReservedInput }),
	countField("weir.lane.reserved.output_tokens", func(c *Call) *wire.Count { return &c.ReservedOutput }),
	durationField("weir.lane.expected_wait", func(c *Call) *time.Duration { return &c.ExpectedWait }),
	durationField("weir.lane.held", func(c *Call) *time.Duration { return &c.Held }),
	stringField("weir.lane.hold_reason", func(c *Call) *string { return &c.HoldReason }),
	intField("weir.refusals", func(c *Call) *int { return &c.Refusals }),
	listField("weir.impaired", func(c *Call) *[]string { return &c.Impaired }),

	instantField("body", func(c *Call) *Instant { return &c.Body }),
	instantField("admitted", func(c *Call) *Instant { return &c.Admitted }),
	instantField("again", func(c *Call) *Instant { return &c.Again }),
	instantField("connected", func(c *Call) *Instant { return &c.Connected }),
	instantField("sent", func(c *Call) *Instant { return &c.Sent }),
	instantField("headers", func(c *Call) *Instant { return &c.Headers }),
	instantField("done", func(c *Call) *Instant { return &c.Done }),
},
	markFields("first_byte", func(c *Call) *Mark { return &c.FirstByte }),
	markFields("first_event", func(c *Call) *Mark { return &c.FirstEvent }),
	markFields("first_token", func(c *Call) *Mark { return &c.FirstToken }),
	markFields("first_reasoning", func(c *Call) *Mark { return &c.FirstReasoning }),
	markFields("first_text", func(c *Call) *Mark { return &c.FirstText }),
	markFields("first_tool", func(c *Call) *Mark { return &c.FirstTool }),
	markFields("last_token", func(c *Call) *Mark { return &c.LastToken }),
)

func concat(lists ...[]field) []field {
	var all []field
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
