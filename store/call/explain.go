package call

import (
	"fmt"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Explain says in one plain sentence what happened to a call that failed, or
// that went well only to look at, and in another what to do next. Both are
// empty for a healthy call and for one that has not ended. They hold no key;
// names in them are as the client or the provider wrote them.
func (c *Call) Explain() (what, next string) {
	a := c.explanation()
	if on := c.befell(); on != "" && a.what != "" {
		a = advice{"weir made the call worse on purpose: " + on + ".", "Nothing need be wrong with the endpoint: see how the client coped, and leave --impair out to measure."}
	}
	if rest, unnamed := strings.CutPrefix(a.what, anEndpoint); unnamed {
		a.what = "The endpoint" + rest
	}
	return a.what, a.next
}

// advice is what Explain gives.
type advice struct{ what, next string }

func (c *Call) explanation() advice {
	if a, ok := c.ranOut(); ok {
		return a
	}
	switch c.Outcome {
	case "":
		return advice{}
	case OK:
		return c.oddity()
	case Refused:
		return c.refused()
	case Unreachable:
		return c.unreachable()
	case Timeout:
		return c.timedOut()
	case ClientGone:
		return c.clientGone()
	case Truncated:
		return c.truncated()
	case Malformed:
		return c.malformed()
	}
	return c.failure()
}

// oddity explains a call that is ok and yet not what it should be. What makes
// its TTFT unusable comes before what makes its tokens so.
func (c *Call) oddity() advice {
	if !c.WantsAnswer() {
		return advice{}
	}
	switch {
	case c.NoFirstToken == AbsentUnreadable:
		return advice{"The answer is compressed in a way that weir cannot undo, so it has no first token and no usage.",
			"Let the client accept gzip, br, zstd or deflate."}
	case c.Request.Stream && !c.Streamed:
		return advice{"A stream was asked for, but the answer came whole, so there is no time to first token.",
			"Look for what gathers the answer on the way (a gateway's setting, a plugin), or for a model that cannot stream."}
	case c.NoFirstToken == AbsentEmpty && cutShort(c.Finish):
		return advice{"The answer ended at its limit of tokens before any output was seen: hidden reasoning used it up.",
			"Raise the limit of output tokens, or ask for less reasoning."}
	case c.NoFirstToken == AbsentEmpty:
		return advice{"The stream ended in order, but held no output.",
			"Look at the finish reason" + suffix(" ", quoted(c.Finish)) + "; a filter or an empty prompt can be why."}
	case c.Gaps.Coalesced:
		return advice{"The stream arrived in lumps, or all at once: something on the way buffers it, and its time to first token is not the model's.",
			"Turn buffering off on the way: proxy_buffering off in nginx, no compression of event streams, no scanning middlebox."}
	}
	if a, ok := c.held(); ok {
		return a
	}
	return c.usageOddity()
}

func (c *Call) usageOddity() advice {
	if c.Side == Imported {
		switch c.UsageSource {
		case UsageMissing:
			return advice{"The span tells of no tokens.", "See whether the program that made it can record gen_ai.usage.input_tokens and output_tokens."}
		case UsageSuspicious:
			return advice{"The span's tokens contradict each other, as a cache larger than the input, and those that do are not counted.",
				"See how the program that made it counts; the input is to hold what came from the cache."}
		}
		return advice{}
	}
	switch c.UsageSource {
	case UsageMissing:
		if !c.Streamed || c.API != wire.Chat && c.API != wire.Completions {
			return advice{"The endpoint reported no token usage, or only its beginning.",
				"Ask its operator; without usage there is no time per output token."}
		}
		if ask := c.Request.IncludeUsage; ask == nil || !*ask {
			return advice{"The stream has no token usage, because the request did not ask for it.",
				`Let the client send "stream_options": {"include_usage": true}, or start weir with --usage inject.`}
		}
		return advice{"The request asked for token usage, but the stream ended without it.",
			"The endpoint, or a gateway before it, passes over stream_options: ask its operator, or update it."}
	case UsageSuspicious:
		return advice{"The usage that was reported contradicts the stream, so something on the way may have made it up.",
			"Compare it with the provider's own bill before trusting it."}
	}
	return advice{}
}

// cutShort says whether a finish reason means that the limit of tokens ended
// the answer, in any dialect.
func cutShort(finish string) bool {
	switch strings.ToLower(finish) {
	case "length", "max_tokens", "max_output_tokens", "incomplete":
		return true
	}
	return false
}

func (c *Call) timedOut() advice {
	switch {
	case c.Side == Imported:
		return advice{"The call's time was up.", "See whether " + c.endpoint() + " is overloaded, or raise the timeout; models that reason can think for minutes."}
	case !c.Headers.Reached():
		return advice{c.endpoint() + " did not begin to answer in time.",
			"See whether it is overloaded, or raise the timeout; models that reason can think for minutes."}
	case !c.FirstToken.Reached():
		return advice{c.endpoint() + " began to answer, but no token came in time.",
			"Raise the timeout; models that reason can think for minutes."}
	}
	return advice{"The answer was still coming when its time was up.",
		"Raise the timeout, or ask for a shorter answer."}
}

func (c *Call) clientGone() advice {
	when := " before the answer had begun"
	switch {
	case c.FirstToken.Reached():
		when = " in the midst of the answer"
	case c.Side == Imported:
		when = "" // its answer may have begun
	case c.Headers.Reached():
		when = " before a first token came"
	}
	if d, ok := c.Duration(); ok {
		when += ", after " + spell(d)
	}
	if c.Lane != "" && !c.Admitted.Reached() {
		return advice{"The client left" + when + ": the call waited in weir's lane " + c.Lane + ", and was never sent.",
			"If nobody cancelled it, raise the lane's limit with weir limit, or the client's own timeout."}
	}
	return advice{"The client left" + when + ".",
		"If nobody cancelled it, raise the client's own timeout."}
}

func (c *Call) truncated() advice {
	switch {
	case c.Status == 0 && says(c.said(), "malformed http response"):
		return noTrust(c.said(), c.endpoint())
	case c.Status == 0:
		return advice{c.endpoint() + " took the request and closed the connection without an answer.",
			"See the endpoint's own log: it, or a gateway before it, may have crashed or restarted."}
	case c.ErrorMessage == noFinish:
		return advice{"The stream ended as if it were complete, but no finish reason came: a gateway closed over a broken stream.",
			"Do not trust the answer's end; see the gateway's log for what its upstream did."}
	}
	if quiet := c.silence(); quiet >= idleLimit {
		return advice{fmt.Sprintf("The stream broke off after %s in which nothing came, which is what an idle limit does.", spell(quiet)),
			"Raise the idle limit on the way (proxy_read_timeout in nginx), or let the endpoint send pings."}
	}
	after := "before any output"
	if c.TokenEvents > 0 {
		after = fmt.Sprintf("after %d events with output", c.TokenEvents)
	}
	if !c.Streamed {
		return advice{"The answer broke off before its end.", "See the endpoint's own log, and what stands between it and weir; then ask again."}
	}
	return advice{"The stream broke off " + after + ", without its last event.",
		"See the endpoint's own log, and what stands between it and weir; then ask again."}
}

// idleLimit is a silence at which middleboxes begin to close connections.
const idleLimit = 25 * time.Second

// silence is the time before the end in which nothing with output came.
func (c *Call) silence() time.Duration {
	last := c.LastToken.Received
	if !last.Reached() {
		last = max(c.Headers, c.FirstEvent.Received)
	}
	d, _ := between(last, c.Done)
	return d
}

func (c *Call) malformed() advice {
	said := c.ErrorMessage
	switch {
	case c.Status >= 300:
		return advice{fmt.Sprintf("The endpoint sends the request elsewhere (status %d), and weir does not follow.", c.Status),
			"Put the address that it names into --upstream: mostly https:// for http://, or another host."}
	case strings.HasSuffix(said, webPage):
		return advice{"Status 200, but the answer is a web page, not the API's JSON: the base URL leads to a site, not to its API.",
			c.correctPath()}
	case strings.HasSuffix(said, emptyBody):
		return advice{fmt.Sprintf("Status %d, but the answer is empty.", c.Status),
			"See the gateway's own log: its upstream has failed, and it did not say so."}
	case c.NoFirstToken == AbsentUnreadable:
		return advice{"The answer's compression is broken: " + said + ".",
			"See what compresses or cuts the answer on the way."}
	case c.Streamed:
		return advice{"A stream came, but none of its events belong to " + c.dialect() + ".",
			"Ask in the API that the endpoint speaks; weir doctor --upstream URL finds out which."}
	}
	return advice{"Status 200, but the answer lacks " + promised(c.API) + ".",
		"See the gateway's own log: its upstream has failed and it did not say so, or it speaks another API."}
}

// promised is what an answer of a dialect must have.
func promised(api wire.API) string {
	switch api {
	case wire.Messages:
		return `the "content" that ` + apiNames[api] + " promises"
	case wire.Responses:
		return `the "output" that ` + apiNames[api] + " promises"
	case wire.Gemini:
		return `the "candidates" that ` + apiNames[api] + " promises"
	}
	return `the "choices" that the API promises`
}

// apiNames are what people call the dialects.
var apiNames = map[wire.API]string{
	wire.Chat: "OpenAI's chat completions", wire.Completions: "OpenAI's completions", wire.Responses: "OpenAI's Responses",
	wire.Messages: "Anthropic's Messages", wire.Gemini: "Gemini's API",
}

func (c *Call) dialect() string {
	if name := apiNames[c.API]; name != "" {
		return name
	}
	return "the API asked in"
}

// anEndpoint is an upstream of which nothing is known.
const anEndpoint = "the endpoint"

// endpoint names the upstream in a sentence.
func (c *Call) endpoint() string {
	switch {
	case c.Host != "" && c.Port != 0 && c.Port != 443:
		return fmt.Sprintf("%s:%d", c.Host, c.Port)
	case c.Host != "":
		return c.Host
	}
	return anEndpoint
}

// said is all that was stated of a failure, in lower case, to be searched.
func (c *Call) said() string {
	return strings.ToLower(c.ErrorType + "\n" + c.ErrorMessage + "\n" + c.ErrorBody)
}

// says finds any of some phrases, which are in lower case.
func says(text string, phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// spell writes a time as people say it, without digits that mean nothing.
func spell(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q", name)
}

// suffix puts text behind something where there is any.
func suffix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
