package call

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
)

// failure explains an error that the endpoint stated: as a status with a body,
// or as an event inside a stream. What it said goes before its status, since
// providers and gateways give one status to different things. The order is
// from the particular to the general.
func (c *Call) failure() advice {
	said := c.said()
	for _, of := range []func(*Call, string) (advice, bool){
		ofWeir, ofUpgrade, ofPage, ofAccount, ofLogin, ofPlace, ofContext, ofModel, ofKey, ofField,
	} {
		if a, ok := of(c, said); ok {
			return a
		}
	}
	return c.byStatus(said)
}

// ofUpgrade explains that the endpoint has no WebSocket, which harms nobody.
func ofUpgrade(c *Call, _ string) (advice, bool) {
	missing := c.Status == 404 || c.Status == 405 || c.Status == 501
	if !missing || c.Purpose != PurposeConnection || c.API != wire.Responses {
		return advice{}, false
	}
	return advice{fmt.Sprintf("The endpoint has no WebSocket at %s (status %d).", c.place(), c.Status),
		"Nothing needs to be done: weir answered 426, by which the client knows to ask without one."}, true
}

// ofWeir explains what weir's proxy answered itself: the caller saw it as a
// status.
func ofWeir(c *Call, said string) (advice, bool) {
	switch {
	case says(said, "x-weir-token"):
		return advice{"weir wants its own client token, and none or a wrong one came.",
			"Put the token that weir was started with into the header X-Weir-Token."}, true
	case !says(said, "upstream_error"):
		return advice{}, false
	case says(said, "weir waited too long"):
		return advice{"weir waited too long for its upstream.", "See whether the upstream is overloaded."}, true
	case says(said, "weir could not reach"), says(said, "weir got no answer from"):
		a := c.noConnection(said)
		upstream := "weir's upstream"
		if m := weirsUpstream.FindStringSubmatch(c.ErrorMessage); m != nil {
			upstream = m[1]
		}
		a.what = strings.ReplaceAll(a.what, c.endpoint(), upstream)
		return a, true
	}
	return advice{}, false
}

// weirsUpstream finds the address in the error that weir answers for an
// upstream which it cannot reach.
var weirsUpstream = regexp.MustCompile(`the upstream \S+ \(([^)]+)\)`)

// ofPage explains a web page where the API's JSON should be, and servers that
// were spoken to in the wrong protocol.
func ofPage(c *Call, said string) (advice, bool) {
	body := strings.ToLower(strings.TrimSpace(c.ErrorBody))
	switch {
	case says(body, "http request to an https server", "plain http request was sent to https port"):
		return advice{c.endpoint() + " speaks TLS at that port, and was asked without it.", "Use https:// in --upstream."}, true
	case !strings.HasPrefix(body, "<") || !says(body, "<html", "<!doctype", "<head", "<body", "<title"):
		return advice{}, false
	case says(body, "just a moment", "attention required", "cf-chl", "captcha"):
		return advice{"A page that keeps robots out answered instead of the API.",
			"Reach the API by the address that its documentation names, not through its web site; a VPN's address may be blocked too."}, true
	}
	switch c.Status {
	case 404, 405:
		return advice{fmt.Sprintf("A web page answered (status %d) instead of the API: there is no API at %s.", c.Status, c.place()), c.correctPath()}, true
	case 401, 403, 407:
		return advice{fmt.Sprintf("A web page refused the request (status %d): something before the API wants a login, or blocks.", c.Status),
			"See what stands before the API: a company's gateway, a firewall, a login page."}, true
	case 413:
		return tooLarge(c), true
	case 502, 503, 504:
		return badGateway(c), true
	}
	return advice{}, false
}

// ofAccount explains what money or a plan would mend, and waiting would not.
func ofAccount(c *Call, said string) (advice, bool) {
	switch {
	case says(said, "usage_limit_reached", "usage limit has been reached", "usage_not_included"):
		wait := c.RetryAfter
		if m := resetsIn.FindStringSubmatch(said); m != nil && wait == 0 {
			n, _ := strconv.Atoi(m[1])
			wait = time.Duration(n) * time.Second
		}
		if wait > 0 {
			return advice{"The subscription's usage limit is reached; it opens again in " + spell(wait) + ".",
				"Wait so long, or use a key of the paid API."}, true
		}
		return advice{"The subscription's usage limit is reached.", "Wait for its reset, or use a key of the paid API."}, true
	case says(said, "insufficient_user_quota", "pre_consume_token_quota_failed", "token quota is not enough", "user quota is not enough",
		"用户额度不足", "令牌额度", "额度已用尽", "credit limit is insufficient"):
		return advice{"The gateway's account or key has no quota left, so trying again does not help.",
			"Top up the account or raise the key's quota in the gateway."}, true
	case c.Status == 402, says(said, "insufficient_quota", "exceeded_current_quota_error", "insufficient balance", "insufficient credits",
		"credit balance is too low", "billing_hard_limit", "billing_not_active", "余额不足", "账户欠费", "arrearage", "account is not active"):
		return advice{"The account has no credit left, so trying again does not help.",
			"Add credit or raise the spending limit at the provider, or use another account's key."}, true
	}
	return advice{}, false
}

// resetsIn finds when a subscription opens again.
var resetsIn = regexp.MustCompile(`"resets_in_seconds"\s*:\s*(\d{1,8})`)

// ofLogin explains tokens of a login that ran out or were taken back.
func ofLogin(c *Call, said string) (advice, bool) {
	if c.Status >= 404 {
		return advice{}, false
	}
	const again = "Log in again in the client (claude /login, codex login), which gets a new token."
	switch {
	case says(said, "invalid_grant", "refresh token"):
		return advice{"The login could not be renewed: its refresh token is no longer valid.", again}, true
	case says(said, "token has expired", "token is expired", "token_expired", "token expired", "expired token", "jwt expired", "已过期"):
		return advice{"The token has expired.", "Log in again in the client (claude /login, codex login), or make a new key."}, true
	case says(said, "token_revoked", "token_invalidated", "token revoked", "token has been revoked", "token has been invalidated", "invalidated oauth token"):
		return advice{"The login's token was taken back.", again}, true
	}
	return advice{}, false
}

// ofPlace explains providers that do not serve a country, and clients that may
// not use a credential.
func ofPlace(c *Call, said string) (advice, bool) {
	switch {
	case says(said, "unsupported_country_region_territory", "country, region, or territory not supported", "user location is not supported"),
		c.Status == 403 && says(said, "request not allowed"):
		return advice{"The provider does not serve the place where the request came from.",
			"Let it go out from a place that is served; see what address a VPN or --upstream-proxy gives it."}, true
	case says(said, "only authorized for use with claude code", "only allows claude code"):
		return advice{"The credential is one that only Claude Code may use.", "Use a key of the API itself."}, true
	}
	return advice{}, false
}

// ofContext explains prompts that are too long.
func ofContext(c *Call, said string) (advice, bool) {
	if c.Status == 413 && !says(said, "context") {
		return tooLarge(c), true
	}
	if c.Status == 429 || !says(said, "context_length_exceeded", "maximum context length", "context window", "prompt is too long", "exceed context limit",
		"exceeds the maximum number of tokens", "exceeds the available context", "range of input length", "context size", "input is too long",
		"reduce the length of the messages") {
		return advice{}, false
	}
	what := "The prompt is longer than the model's context"
	if c.Request.Model != "" {
		what = "The prompt is longer than the context of " + quoted(c.Request.Model)
	}
	if m := overBy.FindStringSubmatch(said); m != nil {
		what += ": " + m[1] + " of " + m[2] + " tokens"
	} else if says(said, "max_tokens") {
		what += ", counted together with the limit of the answer"
	}
	return advice{what + ".", "Shorten the history (compact it), lower the limit of output tokens, or take a model with a larger context."}, true
}

// overBy finds the two figures where Anthropic and Gemini state them.
var overBy = regexp.MustCompile(`(?:too long: |count \()(\d{3,9})(?: tokens >|\) exceeds the maximum number of tokens allowed \()\s*(\d{3,9})`)

func tooLarge(c *Call) advice {
	size := ""
	if c.RequestBytes > 1<<20 {
		size = fmt.Sprintf(" (%.1f MB)", float64(c.RequestBytes)/1e6)
	}
	return advice{"The request" + size + " is larger than the endpoint, or a gateway before it, takes.",
		"Send fewer or smaller images and files, or shorten the history; in nginx, raise client_max_body_size."}
}

// ofModel explains models that the endpoint does not have, or not for this key.
func ofModel(c *Call, said string) (advice, bool) {
	name := "The model " + quoted(c.Request.Model)
	if c.Request.Model == "" {
		name = "The model"
	}
	message := strings.ToLower(c.ErrorMessage)
	const names = "Name one that it has, as GET /v1/models lists them; weir doctor --upstream URL shows the nearest."
	switch {
	case says(said, "无可用渠道", "no available channel"):
		return advice{name + " has no channel in this gateway for this key's group.",
			"Add a channel for it in the gateway, or name a model that the group has."}, true
	case says(said, "does not have access to model", "no access to model", "not allowed to sample from this model", "无权访问模型", "无权使用模型",
		"must be verified to use the model", "key not allowed to access model", "access to the model"):
		return advice{name + " exists, but not for this key.", "Get access to it at the provider, or name another model."}, true
	case says(said, "must be verified to stream"):
		return advice{name + " is streamed only to verified organisations.", "Verify the organisation at OpenAI, or name another model."}, true
	case c.Status >= 500 && c.Status != 503 || c.Status == 429 || c.Status == 401:
		return advice{}, false
	case says(said, "ollama pull", "try pulling it first"):
		return advice{name + " is not on this Ollama server.", "Fetch it there with ollama pull, or name one that ollama list shows."}, true
	case says(said, "model_not_found", "model not found", "model not exist", "模型不存在", "unknown model", "invalid model", "unsupported model", "no such model",
		"not a valid model", "not found the model", "is not found for api version", "model does not exist", "model is not available"),
		c.Status == 404 && says(said, "not_found_error") && says(said, "model: "),
		c.Status >= 400 && c.Status < 500 && says(message, "model") && says(message, "does not exist", "not found", "is not supported when"):
		return advice{name + " is not one that the endpoint has.", names}, true
	}
	return advice{}, false
}

// badField finds the name of the field that a request should not have had.
var badField = regexp.MustCompile(`(?i)(?:un(?:known|supported|recognized) (?:parameter|value|name|field)s?:? *|argument supplied: *|invalid value for *)['"]?([a-z_][\w.\[\]]{0,60})|([a-z_][\w.]{0,60}): extra (?:inputs|fields)|the ['"]([a-z_][\w.]{0,60})['"] parameter`)

// ofField explains requests that hold what the endpoint does not take.
func ofField(c *Call, said string) (advice, bool) {
	if c.Status != 400 && c.Status != 422 {
		return advice{}, false
	}
	if says(said, "anthropic-version") {
		return advice{"The header anthropic-version is missing.", "Send anthropic-version: 2023-06-01, as every Anthropic SDK does."}, true
	}
	if says(said, "stream_options") {
		return advice{"The endpoint does not take the field stream_options.",
			"Leave it out: turn off the client's usage in streams; weir then has no token counts unless the endpoint sends them unasked."}, true
	}
	if says(said, "max_tokens") && says(said, "max_completion_tokens") {
		return advice{"The model wants max_completion_tokens in the place of max_tokens.", "Update the client, or set the other field in it."}, true
	}
	if says(said, "stream must be set to true", "only support stream", "only supports stream") {
		return advice{"The endpoint answers only in streams.", `Ask with "stream": true.`}, true
	}
	m := badField.FindStringSubmatch(c.ErrorMessage)
	if m == nil {
		return advice{}, false
	}
	field := strings.TrimPrefix(m[1]+m[2]+m[3], "body.")
	return advice{"The endpoint does not take the field " + field + " as it was sent.",
		"Leave it out in the client, or set another value; the endpoint may be an older version than the client expects."}, true
}

// byStatus explains what nothing else did.
func (c *Call) byStatus(said string) advice {
	status := c.Status
	if c.Outcome == StreamError {
		if a, ok := c.inStream(said); ok {
			return a
		}
	}
	switch {
	case c.Outcome == RateLimited:
		return c.rateLimited(said)
	case c.Outcome == Auth:
		return c.notAllowed(said)
	case c.Outcome == Overloaded, says(said, "overloaded_error", "server_is_overloaded"):
		return c.overloaded(said)
	case status == 404, status == 405, status == 501:
		return advice{fmt.Sprintf("The endpoint has nothing at %s (status %d).", c.place(), status), c.correctPath()}
	case status == 408:
		return advice{"The endpoint did not get the whole request in time.", "See whether the way to it is slow; send less at once."}
	case status == 421, status == 426:
		return advice{fmt.Sprintf("The endpoint wants another protocol (status %d).", status), "Let the client use plain HTTP requests, not WebSocket."}
	case status == 502, status == 504, status >= 520 && status <= 527:
		return badGateway(c)
	case status >= 500:
		return advice{fmt.Sprintf("The endpoint failed by itself (status %d)%s.", status, c.quoteSaid()),
			"Try again; if it lasts, see the provider's status page or the server's own log."}
	case status >= 400:
		return advice{fmt.Sprintf("The endpoint did not accept the request (status %d)%s.", status, c.quoteSaid()),
			"Mend what it names; weir calls with this call's id shows all that it said."}
	}
	return advice{"The endpoint reported an error" + c.quoteSaid() + ".", "Try again; if it lasts, see the server's own log."}
}

// inStream explains an error event, whose status, if it has one, stands in it.
func (c *Call) inStream(said string) (advice, bool) {
	switch {
	case says(said, "overloaded", "unavailable"):
		a := c.overloaded(said)
		a.what = "Inside the stream: " + lowerFirst(a.what)
		return a, true
	case says(said, "rate_limit", "rate limit", "resource_exhausted"):
		a := c.rateLimited(said)
		a.what = "Inside the stream: " + lowerFirst(a.what)
		return a, true
	}
	return advice{"The endpoint began a stream with status 200, and then reported an error in it" + c.quoteSaid() + ".",
		"Try again; if it lasts, see the server's own log: the model failed after the gateway had answered."}, true
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// retryDelay finds how long Gemini asks to wait, in its body.
var retryDelay = regexp.MustCompile(`(?i)(?:"retrydelay"\s*:\s*"|please retry in |try again in )(\d+(?:\.\d+)?)(ms|s)`)

// rateLimited tells limits that pass from those that stay for the day.
func (c *Call) rateLimited(said string) advice {
	wait := c.RetryAfter
	if m := retryDelay.FindStringSubmatch(said); m != nil && wait == 0 {
		wait, _ = time.ParseDuration(m[1] + m[2])
	}
	of := ""
	if c.Request.Model != "" {
		of = " for " + quoted(c.Request.Model)
	}
	switch {
	case says(said, "weir: refused: "): // a weir on the way, of whose lane its own record tells more
		return advice{"A weir between here and the endpoint refused the request, because a limit of its own was reached.",
			"Raise the limit of its lane with weir limit, or send less at once."}
	case says(said, "request too large"):
		return advice{"This one request needs more tokens than the limit" + of + " allows in a minute, so waiting does not help.",
			"Shorten the prompt or lower its limit of output tokens, or ask the provider for a higher limit."}
	case says(said, "perday", "per day", "daily"):
		return advice{"The day's limit of requests or tokens" + of + " is used up.", "Wait for the next day, or ask the provider for a higher limit."}
	case says(said, "上游负载已饱和", "upstream load"):
		return advice{"The gateway's upstream is busy" + of + ".", "Try again in a moment, or name another group or model in the gateway."}
	case wait > 0:
		return advice{"The rate limit" + of + " is reached; the endpoint asks to wait " + spell(wait) + ".",
			"Wait so long, and send less at once: fewer agents side by side, shorter prompts."}
	}
	return advice{"The rate limit" + of + " is reached.", "Wait a little, and send less at once: fewer agents side by side, shorter prompts."}
}

func (c *Call) overloaded(said string) advice {
	next := "Try again, each time after a longer wait; if it lasts, take another model."
	if c.RetryAfter > 0 {
		next = "Try again in " + spell(c.RetryAfter) + "."
	}
	switch {
	case says(said, "loading"):
		return advice{"The server is still loading the model.", "Wait until it has, and try again."}
	case says(said, "no healthy upstream", "upstream connect error", "no available server"):
		return advice{"The gateway has no server behind it that works.", "See which of them run, and the gateway's own log."}
	}
	return advice{c.endpoint() + " is overloaded, and not because of you alone.", next}
}

func badGateway(c *Call) advice {
	if c.Status == 504 || c.Status == 524 {
		return advice{fmt.Sprintf("A gateway before the model waited too long for it (status %d).", c.Status),
			"Stream the answer, ask for a shorter one, or raise the gateway's limit (proxy_read_timeout in nginx)."}
	}
	return advice{fmt.Sprintf("A gateway answered, but the model's server behind it did not (status %d).", c.Status),
		"See whether that server runs, and the gateway's own log."}
}

// quoteSaid gives what the provider said, to be put into a sentence.
func (c *Call) quoteSaid() string {
	m := strings.Join(strings.Fields(c.ErrorMessage), " ")
	if m == "" || strings.HasPrefix(m, "<") {
		return ""
	}
	const most = 160
	if r := []rune(m); len(r) > most {
		m = string(r[:most]) + "…"
	}
	return ": " + strings.TrimRight(m, ".。")
}

// place is the path that was asked, for a sentence.
func (c *Call) place() string {
	if c.Path == "" {
		return "this path"
	}
	return strings.TrimSpace(c.Method + " " + c.Path)
}

var (
	doubled   = regexp.MustCompile(`/(v\d+(?:(?:alpha|beta)\d*)?)(?:/v\d+(?:(?:alpha|beta)\d*)?)+/`)
	versioned = regexp.MustCompile(`/v\d+(?:(?:alpha|beta)\d*)?/`)
)

// correctPath says what is wrong with the path of a base URL, as far as the
// path shows it.
func (c *Call) correctPath() string {
	want := "v1"
	if c.API == wire.Gemini {
		want = "v1beta"
	}
	switch {
	case doubled.MatchString(c.Path):
		return "The API's version stands in the path twice: take it off the base URL."
	case c.Path != "" && c.API != "" && !versioned.MatchString(c.Path):
		return "The API's version is missing in the path: end the base URL with /" + want + "."
	}
	return "Correct the path of the base URL; weir doctor --upstream URL tries the usual ones."
}
