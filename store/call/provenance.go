package call

import "weir/proxy/wire"

// usageSource says how far the usage of an answer can be trusted. It is
// missing without a figure for both sides: half an account is none. Injected
// stays what the proxy set. It is suspicious when one of these holds:
//
//   - the answer has token events or text, yet 0 output tokens; or a prompt
//     of 0 tokens;
//   - a part exceeds its whole: cached tokens the input, reasoning the output;
//   - more than 128 bytes of text, refusals and tool calls came for each
//     output token: no vocabulary has longer tokens. (The opposite, many
//     tokens and little text, is what hidden reasoning looks like.);
//   - [DONE], or another terminal event, came without any finish reason: who
//     invented the one may have invented the other;
//   - input and output are both multiples of 100, no detail stands beside
//     them, and neither the request's limit nor the load model's plan explains
//     it: gateways make up such figures when the upstream sent none.
//
// Fewer output tokens than token events is not suspicious: servers and
// gateways cut tool arguments and text into pieces smaller than tokens.
func (m *Meter) usageSource() UsageSource {
	c, u := m.call, m.call.Usage
	if !u.Input.Known || !u.Output.Known {
		return UsageMissing
	}
	generated := c.TokenEvents > 0 || m.stream.textBytes > 0
	switch {
	case generated && (u.Output.N <= 0 || u.Input.N <= 0),
		u.CacheRead.N+u.CacheWrite.N > u.Input.N,
		u.Reasoning.N > u.Output.N,
		m.stream.textBytes > longestToken*u.Output.N,
		c.Streamed && m.stream.terminal && c.Finish == "",
		m.roundUsage():
		return UsageSuspicious
	}
	if c.UsageSource == UsageInjected {
		return UsageInjected
	}
	return UsageReported
}

// dropPartialUsage takes away a figure for output tokens that is only a
// beginning, such as that of Anthropic's message_start: one that token events
// came after, or one of a stream that broke off before its finish reason and its end. What
// the prompt had is known from the start, and stays.
func (m *Meter) dropPartialUsage() {
	c, s := m.call, &m.stream
	if c.Streamed && (s.outputStale || c.Outcome != OK && !s.outputFinal && !s.terminal) {
		c.Usage.Output, c.Usage.Reasoning = wire.Count{}, wire.Count{}
	}
}

// longestToken is the length in bytes of the longest tokens of known
// vocabularies (128 blanks).
const longestToken = 128

func (m *Meter) roundUsage() bool {
	c, u := m.call, m.call.Usage
	round := func(n int64) bool { return n > 0 && n%100 == 0 }
	detailed := u.CacheRead.Known || u.CacheWrite.Known || u.Reasoning.Known
	limit, plan := c.Request.MaxTokens, c.ExpectedInput
	explained := limit.Known && limit.N == u.Output.N || plan.Known && plan.N == u.Input.N
	return round(u.Input.N) && round(u.Output.N) && !detailed && !explained
}
