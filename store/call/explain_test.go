package call

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/proxy/wire"
)

// told is a call and what must be said of it: some words of each sentence.
type told struct {
	sentence   string
	call       *Call
	what, next string
}

// answered is a call that an error response ended, read as any other.
func answered(api wire.API, status int, body string, header ...string) *Call {
	s := script{api: api, status: status, request: wire.Head{Model: "gpt-x", Stream: true}, header: http.Header{"Content-Type": {"application/json"}}, reads: []read{{10, body}}}
	for i := 0; i+1 < len(header); i += 2 {
		s.header.Set(header[i], header[i+1])
	}
	c := s.run()
	c.Host, c.Port, c.Method, c.Path = "api.example.com", 443, "POST", "/v1/chat/completions"
	return c
}

// with changes a call.
func with(c *Call, change func(*Call)) *Call {
	change(c)
	return c
}

func keyed(c *Call) *Call    { return with(c, func(c *Call) { c.KeyFingerprint = "00c0ffee" }) }
func ofClient(c *Call) *Call { return with(c, func(c *Call) { c.Side = Client }) }

func at404(api wire.API, path string) *Call {
	return with(answered(api, 404, `{"detail":"Not Found"}`), func(c *Call) { c.Path = path })
}

// unreached is a call that got no connection.
func unreached(message string) *Call {
	c, m := (&script{api: wire.Chat}).start()
	m.End(EndUnreachable, errors.New(message), t0+9*ms)
	c.Host, c.Port = "models.local", 8000
	return c
}

// ended is a call whose 200 came so.
func ended(s script, change ...func(*Call)) *Call {
	if s.api == "" {
		s.api = wire.Chat
	}
	if s.header == nil {
		s.header = sse
	}
	c := s.run()
	c.Host, c.Port, c.Method, c.Path = "api.example.com", 443, "POST", "/v1/chat/completions"
	for _, f := range change {
		f(c)
	}
	return c
}

var (
	streamed = wire.Head{Model: "gpt-x", Stream: true}
	yes      = true
)

const (
	htmlPage = "<!DOCTYPE html>\n<html><head><title>Open WebUI</title></head><body></body></html>"
	nginx    = "<html>\r\n<head><title>%s</title></head>\r\n<body>\r\n<center><h1>%s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)

func page(status int, title string) *Call {
	return answered(wire.Chat, status, fmt.Sprintf(nginx, title, title), "Content-Type", "text/html")
}

var unreachableCalls = []told{
	{"nobody listens", unreached("dial tcp 127.0.0.1:8000: connect: connection refused"), "Nothing listens at models.local:8000", "Start the endpoint"},
	{"Windows says it otherwise", unreached("connectex: No connection could be made because the target machine actively refused it."), "Nothing listens", "Start"},
	{"no such host", unreached("dial tcp: lookup models.local on 127.0.0.53:53: no such host"), "no host named models.local", "Correct the name"},
	{"DNS itself is down", unreached("dial tcp: lookup models.local: Temporary failure in name resolution"), "could not be looked up", "DNS"},
	{"unknown authority", unreached("tls: failed to verify certificate: x509: certificate signed by unknown authority"), "authority that this machine does not know", "--ca-file"},
	{"macOS words of it", unreached("tls: failed to verify certificate: x509: “models.local” certificate is not trusted"), "does not know", "--ca-file"},
	{"another name", unreached("tls: failed to verify certificate: x509: certificate is valid for *.internal, models, not models.local"), "not for that name, but for *.internal, models", "Use the name"},
	{"an address without a name", unreached("x509: cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs"), "not for that name", "Use the name"},
	{"expired", unreached("x509: certificate has expired or is not yet valid: current time 2026-12-01T10:00:00Z is after 2026-11-01T00:00:00Z"), "has expired", "Renew"},
	{"not yet valid", unreached("x509: certificate has expired or is not yet valid: current time 2020-12-01T10:00:00Z is before 2026-11-01T00:00:00Z"), "not yet valid by this machine's clock", "Set the clock"},
	{"TLS to a plain port", unreached("http: server gave HTTP response to HTTPS client"), "does not speak TLS", "http://"},
	{"plain to a TLS port", ended(script{header: http.Header{}, status: -1}, func(c *Call) {
		c.Status, c.Outcome = 0, Truncated
		c.ErrorMessage = `net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03\x01\x00\x02\x02"`
	}), "asked without it", "https://"},
	{"old TLS", unreached("remote error: tls: protocol version not supported"), "no version of TLS in common", "TLS 1.2"},
	{"client certificates", unreached("remote error: tls: certificate required"), "wants a client certificate", "Reach it"},
	{"a firewall", unreached("dial tcp 10.0.0.1:443: i/o timeout"), "did not take the connection in time", "firewall"},
	{"a slow handshake", unreached("net/http: TLS handshake timeout"), "TLS handshake", "--upstream-proxy"},
	{"offline", unreached("dial tcp 10.0.0.1:443: connect: network is unreachable"), "no way to", "online"},
	{"the way's own proxy", unreached("proxyconnect tcp: dial tcp 10.0.0.9:3128: connect: connection refused"), "The proxy on the way", "--upstream-proxy"},
	{"no file left", ended(script{header: http.Header{}, status: -1}, func(c *Call) { c.Status, c.Outcome, c.ErrorType = 503, Refused, "open_files" }), "This machine ran out of open files", "ulimit -n"},
	{"weir's own 503, as the generator sees it", ofClient(answered(wire.Chat, 503,
		`{"error":{"message":"weir has nothing left to reach the upstream x (h) with: socket: too many open files.","type":"open_files"}}`)), "This machine ran out of open files", "ulimit -n"},
	{"anything else", unreached("something new"), "cannot be reached", "--upstream"},
	{"weir's own 502, as the generator sees it", ofClient(answered(wire.Chat, 502,
		`{"error":{"message":"weir could not reach the upstream openai (api.openai.com): dial tcp: lookup api.openai.com: no such host. Is it running, and is --upstream right?","type":"upstream_error","param":null,"code":null}}`)),
		"no host named api.openai.com", "Correct the name"},
	{"weir's own 504", ofClient(answered(wire.Chat, 504, `{"error":{"message":"weir waited too long for the upstream x (h): timeout.","type":"upstream_error"}}`)), "weir waited too long", "overloaded"},
	{"weir's own 403", answered(wire.Chat, 403, `{"error":{"message":"weir wants its client token in the header X-Weir-Token","type":"permission_error"}}`), "client token", "X-Weir-Token"},
}

var keyCalls = []told{
	{"OpenAI: none", answered(wire.Chat, 401, `{"error":{"message":"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).","type":"invalid_request_error","param":null,"code":null}}`), "none came", "OPENAI_API_KEY"},
	{"OpenAI: in another header", keyed(answered(wire.Chat, 401, `{"error":{"message":"Missing bearer or basic authentication in header","type":"invalid_request_error","param":null,"code":null}}`)), "not in the header", "Authorization: Bearer KEY"},
	{"OpenAI: wrong", keyed(answered(wire.Chat, 401, `{"error":{"message":"Incorrect API key provided: sk-abcde*****wxyz. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)), "was refused", "key of api.example.com"},
	{"Anthropic: none", answered(wire.Messages, 401, `{"type":"error","error":{"type":"authentication_error","message":"x-api-key header is required"},"request_id":"req_1"}`), "none came", "x-api-key"},
	{"Anthropic: as Bearer", keyed(answered(wire.Messages, 401, `{"type":"error","error":{"type":"authentication_error","message":"x-api-key header is required"}}`)), "not in the header", "not ANTHROPIC_AUTH_TOKEN"},
	{"Anthropic: wrong", keyed(answered(wire.Messages, 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)), "was refused", "ANTHROPIC_API_KEY"},
	{"Anthropic: an API key as a token", keyed(answered(wire.Messages, 401, `{"type":"error","error":{"type":"authentication_error","message":"Invalid bearer token"}}`)), "an API key is not taken there", "x-api-key"},
	{"Anthropic: no version", keyed(answered(wire.Messages, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"anthropic-version: header is required"}}`)), "anthropic-version", "2023-06-01"},
	{"Gemini: none", answered(wire.Gemini, 403, `{"error":{"code":403,"message":"Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.","status":"PERMISSION_DENIED"}}`), "none came", "GEMINI_API_KEY"},
	{"Gemini: wrong, with a 400", keyed(answered(wire.Gemini, 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`)), "was refused", "GEMINI_API_KEY"},
	{"Gemini: expired key", keyed(answered(wire.Gemini, 400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`)), "has expired", "Make a new one"},
	{"Gemini: as Bearer", keyed(answered(wire.Gemini, 401, `{"error":{"code":401,"message":"Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.","status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_TYPE_UNSUPPORTED"}]}}`)), "came as a login's token", "x-goog-api-key"},
	{"Gemini: API not turned on", keyed(answered(wire.Gemini, 403, `{"error":{"code":403,"message":"Generative Language API has not been used in project 1 before or it is disabled.","status":"PERMISSION_DENIED"}}`)), "not turned this API on", "console"},
	{"one-api: wrong", keyed(answered(wire.Chat, 401, `{"error":{"message":"无效的令牌 (request id: 2026120110)","type":"one_api_error"}}`)), "was refused", "OPENAI_API_KEY"},
	{"new-api: none", answered(wire.Chat, 401, `{"error":{"code":"","message":"未提供令牌 (request id: 2026)","type":"new_api_error"}}`), "none came", "OPENAI_API_KEY"},
	{"new-api: wrong, in English", keyed(answered(wire.Chat, 401, `{"error":{"code":"","message":"Invalid token (request id: 2026)","type":"new_api_error"}}`)), "was refused", "OPENAI_API_KEY"},
	{"new-api: expired", keyed(answered(wire.Chat, 401, `{"error":{"message":"该令牌已过期 (request id: 2026)","type":"new_api_error"}}`)), "has expired", "new key"},
	{"LiteLLM: no key at all", keyed(answered(wire.Chat, 401, `{"error":{"message":"Authentication Error, LiteLLM Virtual Key expected. Received=x, expected to start with 'sk-'.","type":"auth_error","param":"None","code":"401"}}`)), "not in the form of a key", "quotes, white space"},
	{"missing or wrong, and one came", keyed(answered(wire.Chat, 401, `{"error":{"message":"Missing or invalid API key"}}`)), "was refused", "OPENAI_API_KEY"},
	{"missing or wrong, and none came", answered(wire.Chat, 401, `{"error":{"message":"the API key is missing or wrong"}}`), "none came", "OPENAI_API_KEY"},
	{"missing or wrong, as the generator sees it", ofClient(answered(wire.Chat, 401, `{"error":{"message":"the API key is missing or wrong"}}`)), "is missing, or it was refused", "OPENAI_API_KEY"},
	{"OpenRouter: none", answered(wire.Chat, 401, `{"error":{"message":"No auth credentials found","code":401}}`), "none came", "OPENAI_API_KEY"},
	{"vLLM: none", with(answered(wire.Chat, 401, `{"error":"Unauthorized"}`), func(*Call) {}), "none came", "OPENAI_API_KEY"},
	{"vLLM: wrong", keyed(answered(wire.Chat, 401, `{"error":"Unauthorized"}`)), "did not accept the key", "OPENAI_API_KEY"},
	{"DeepSeek: wrong", keyed(answered(wire.Chat, 401, `{"error":{"message":"Authentication Fails, Your api key: ****abcd is invalid","type":"authentication_error","param":null,"code":"invalid_request_error"}}`)), "was refused", "OPENAI_API_KEY"},
	{"OpenAI: missing scopes", keyed(answered(wire.Responses, 403, `{"error":{"message":"You have insufficient permissions for this operation. Missing scopes: api.responses.write.","type":"invalid_request_error"}}`)), "may not do this", "right"},
	{"Claude's login ran out", keyed(answered(wire.Messages, 401, `{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}}`)), "token has expired", "Log in again"},
	{"Claude's login was taken back", keyed(answered(wire.Messages, 403, `{"type":"error","error":{"type":"permission_error","message":"OAuth token revoked"}}`)), "taken back", "Log in again"},
	{"Codex's login ran out", keyed(answered(wire.Responses, 401, `{"error":{"message":"Provided authentication token is expired. Please try signing in again.","type":null,"code":"token_expired","param":null},"status":401}`)), "token has expired", "codex login"},
	{"a refresh that failed", answered("", 400, `{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}`), "could not be renewed", "Log in again"},
	{"a place that is not served", keyed(answered(wire.Chat, 403, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`)), "does not serve the place", "VPN"},
	{"a place that Gemini does not serve", keyed(answered(wire.Gemini, 400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`)), "does not serve the place", "VPN"},
	{"only Claude Code", keyed(answered(wire.Messages, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"This credential is only authorized for use with Claude Code and cannot be used for other API requests."}}`)), "only Claude Code", "key of the API"},
	{"a login page", page(403, "403 Forbidden"), "web page refused", "firewall"},
}

var requestCalls = []told{
	{"OpenAI's unknown model", answered(wire.Chat, 404, `{"error":{"message":"The model 'gpt-x' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`), `"gpt-x" is not one`, "GET /v1/models"},
	{"Anthropic's unknown model", answered(wire.Messages, 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`), "is not one", "nearest"},
	{"Gemini's unknown model", answered(wire.Gemini, 404, `{"error":{"code":404,"message":"models/gemini-x is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.","status":"NOT_FOUND"}}`), "is not one", "nearest"},
	{"DeepSeek's, with a 400", answered(wire.Chat, 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`), "is not one", "nearest"},
	{"OpenRouter's, with a 400", answered(wire.Chat, 400, `{"error":{"message":"gpt-x is not a valid model ID","code":400}}`), "is not one", "nearest"},
	{"LiteLLM's, with a 400", answered(wire.Chat, 400, `{"error":{"message":"/chat/completions: Invalid model name passed in model=gpt-x. Call /v1/models to view available models for your key.","type":"None","param":"None","code":"400"}}`), "is not one", "nearest"},
	{"vLLM's", answered(wire.Chat, 404, `{"error":{"message":"The model 'gpt-x' does not exist.","type":"NotFoundError","param":"model","code":404}}`), "is not one", "nearest"},
	{"Ollama's", answered(wire.Chat, 404, `{"error":{"message":"model \"gpt-x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`), "not on this Ollama", "ollama pull"},
	{"Zhipu's, with a 400", answered(wire.Chat, 400, `{"error":{"code":"1211","message":"模型不存在，请检查模型代码。"}}`), "is not one", "nearest"},
	{"one-api without a channel", answered(wire.Chat, 503, `{"error":{"message":"当前分组 default 下对于模型 gpt-x 无可用渠道 (request id: 2026)","type":"one_api_error"}}`), "no channel", "Add a channel"},
	{"new-api without a channel", answered(wire.Chat, 503, `{"error":{"code":"model_not_found","message":"No available channel for model gpt-x under group default (distributor)","type":"new_api_error"}}`), "no channel", "Add a channel"},
	{"a model that the key may not use", answered(wire.Chat, 403, "{\"error\":{\"message\":\"Project `proj_1` does not have access to model `gpt-x`\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}"), "not for this key", "Get access"},
	{"streams of verified organisations", answered(wire.Chat, 400, `{"error":{"message":"Your organization must be verified to stream this model.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`), "verified organisations", "Verify"},

	{"OpenAI's context", answered(wire.Chat, 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`), `longer than the context of "gpt-x"`, "Shorten"},
	{"Anthropic's context, with figures", answered(wire.Messages, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`), "215000 of 200000 tokens", "Shorten"},
	{"Anthropic's context, with the answer", answered(wire.Messages, 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 199759 + 21333 > 200000, decrease input length or `max_tokens` and try again\"}}"), "together with the limit of the answer", "lower the limit"},
	{"Gemini's context", answered(wire.Gemini, 400, `{"error":{"code":400,"message":"The input token count (1189101) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`), "1189101 of 1048575 tokens", "Shorten"},
	{"too large for Anthropic", answered(wire.Messages, 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`), "larger than", "images"},
	{"too large for nginx", page(413, "413 Request Entity Too Large"), "larger than", "client_max_body_size"},

	{"stream_options on Mistral", answered(wire.Chat, 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}]}`), "stream_options", "Leave it out"},
	{"stream_options on Azure", answered(wire.Chat, 400, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error","param":null,"code":null}}`), "stream_options", "Leave it out"},
	{"max_tokens on a reasoning model", answered(wire.Chat, 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`), "max_completion_tokens", "Update"},
	{"OpenAI's unknown field", answered(wire.Responses, 400, `{"error":{"message":"Unknown parameter: 'input[0].cache_control'.","type":"invalid_request_error","param":"input[0].cache_control","code":"unknown_parameter"}}`), "field input[0].cache_control", "Leave it out"},
	{"Anthropic's unknown field", answered(wire.Messages, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"context_management: Extra inputs are not permitted"}}`), "field context_management", "Leave it out"},
	{"Gemini's unknown field", answered(wire.Gemini, 400, `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"thinkingConfig\": Cannot find field.","status":"INVALID_ARGUMENT"}}`), "field thinkingConfig", "Leave it out"},
	{"a field with max_tokens in it is no key", keyed(answered(wire.Chat, 400, `{"error":{"message":"max_tokens is invalid: 999999 tokens","type":"invalid_request_error"}}`)), "did not accept the request (status 400): max_tokens is invalid", "Mend"},
	{"streams only", answered(wire.Responses, 400, `{"detail":"Stream must be set to true"}`), "only in streams", `"stream": true`},
	{"any other 400", answered(wire.Chat, 400, `{"error":{"message":"messages: roles must alternate","type":"invalid_request_error"}}`), "(status 400): messages: roles must alternate", "Mend"},

	{"the version twice", at404(wire.Chat, "/v1/v1/chat/completions"), "nothing at POST /v1/v1/chat/completions", "twice"},
	{"the version missing", at404(wire.Messages, "/messages"), "nothing at POST /messages", "end the base URL with /v1."},
	{"Gemini's version missing", at404(wire.Gemini, "/models/gemini-x:generateContent"), "nothing at", "/v1beta"},
	{"another base path", at404(wire.Chat, "/v1/chat/completions"), "nothing at", "weir doctor"},
	{"OpenAI's own words for it", with(answered(wire.Chat, 404, `{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error","param":null,"code":null}}`), func(c *Call) { c.Path = "/v1/v1/chat/completions" }), "nothing at", "twice"},
	{"no WebSocket", with(answered(wire.Responses, 404, "<html><title>404 Not Found</title></html>"), func(c *Call) {
		c.Method, c.Path, c.Purpose = "GET", "/v1/responses", PurposeConnection
	}), "no WebSocket at GET /v1/responses (status 404)", "Nothing needs to be done"},
	{"405", answered(wire.Chat, 405, `{"detail":"Method Not Allowed"}`), "nothing at", "weir doctor"},
	{"a web page with a 404", page(404, "404 Not Found"), "web page answered (status 404)", "weir doctor"},
	{"a page that keeps robots out", answered(wire.Chat, 403, `<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>`), "keeps robots out", "address"},
	{"plain HTTP to Go's TLS port", answered(wire.Chat, 400, "Client sent an HTTP request to an HTTPS server.\n"), "speaks TLS", "https://"},
	{"plain HTTP to nginx's TLS port", page(400, "400 The plain HTTP request was sent to HTTPS port"), "speaks TLS", "https://"},
}

var limitCalls = []told{
	{"OpenAI's rate limit", answered(wire.Chat, 429, `{"error":{"message":"Rate limit reached for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, "Retry-After-Ms", "2000"), `rate limit for "gpt-x" is reached; the endpoint asks to wait 2s`, "Wait so long"},
	{"a wait that only the text states", answered(wire.Chat, 429, `{"error":{"message":"Rate limit reached for gpt-x. Please try again in 150ms.","type":"requests","code":"rate_limit_exceeded"}}`), "wait 150ms", "Wait so long"},
	{"one request too large for the limit", answered(wire.Chat, 429, `{"error":{"message":"Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 42000.","type":"tokens","code":"rate_limit_exceeded"}}`), "waiting does not help", "Shorten"},
	{"Anthropic's rate limit", answered(wire.Messages, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`, "Retry-After", "90"), "wait 1m30s", "Wait so long"},
	{"no wait given", answered(wire.Chat, 429, `{"error":{"message":"Too many requests"}}`), "is reached.", "Wait a little"},
	{"OpenAI without credit", answered(wire.Chat, 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`), "trying again does not help", "Add credit"},
	{"Anthropic without credit", answered(wire.Messages, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`), "no credit left", "Add credit"},
	{"DeepSeek without credit", answered(wire.Chat, 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`), "no credit left", "Add credit"},
	{"Zhipu without credit", answered(wire.Chat, 429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`), "no credit left", "Add credit"},
	{"one-api without quota", answered(wire.Chat, 403, `{"error":{"message":"用户额度不足, 剩余额度: ＄0.000000 (request id: 2026)","type":"new_api_error","code":"insufficient_user_quota"}}`), "no quota left", "Top up"},
	{"Gemini's minute, which speaks of a quota", answered(wire.Gemini, 429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Quota exceeded for metric: generate_content_free_tier_requests, limit: 10. Please retry in 36.6s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}`), "wait 37s", "Wait so long"},
	{"Gemini's day", answered(wire.Gemini, 429, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`), "day's limit", "next day"},
	{"Codex's plan", answered(wire.Responses, 429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":5400}}`), "opens again in 1h30m", "Wait so long"},
	{"new-api under load", answered(wire.Chat, 429, `{"error":{"message":"当前分组上游负载已饱和，请稍后再试","type":"new_api_error"}}`), "upstream is busy", "Try again"},
	{"Anthropic is overloaded", answered(wire.Messages, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "is overloaded", "Try again"},
	{"Gemini is overloaded", answered(wire.Gemini, 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, "Retry-After", "5"), "is overloaded", "in 5s"},
	{"llama.cpp loads", answered(wire.Chat, 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`), "still loading", "Wait"},
	{"a gateway without servers", answered(wire.Chat, 503, "no healthy upstream", "Content-Type", "text/plain"), "no server behind it", "gateway's own log"},
	{"nginx without its server", page(502, "502 Bad Gateway"), "behind it did not (status 502)", "runs"},
	{"nginx waited too long", page(504, "504 Gateway Time-out"), "waited too long", "proxy_read_timeout"},
	{"Cloudflare waited too long", answered(wire.Chat, 524, "error code: 524"), "waited too long", "Stream"},
	{"any 500", answered(wire.Messages, 500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), "failed by itself (status 500): Internal server error.", "status page"},
	{"weir's shaper, in a time", with(&Call{Outcome: Refused}, func(c *Call) { c.RetryAfter = 3 * time.Second }), "weir itself refused", "in 3s"},
	{"weir's shaper", &Call{Outcome: Refused}, "weir itself refused", "Raise"},
}

var streamCalls = []told{
	{"overloaded inside a 200", ended(script{api: wire.Messages, request: streamed, reads: []read{{10, messageStart + event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)}}}), "Inside the stream: api.example.com is overloaded", "Try again"},
	{"no credit inside a 200", ended(script{api: wire.Responses, request: streamed, reads: []read{{10, event("response.failed", `{"type":"response.failed","response":{"id":"r","error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}}`)}}}), "no credit left", "Add credit"},
	{"any error inside a 200", ended(script{request: streamed, reads: []read{{10, data(`{"error":{"message":"CUDA out of memory","type":"server_error"}}`)}}}), "status 200, and then reported an error in it: CUDA out of memory", "log"},
	{"no choices", ended(script{header: document, request: wire.Head{Model: "m"}, reads: []read{{10, `{"id":"x","object":"chat.completion"}`}}}), `lacks the "choices"`, "gateway's own log"},
	{"no content", ended(script{api: wire.Messages, header: document, request: wire.Head{Model: "m"}, reads: []read{{10, `{"id":"x","type":"message"}`}}}), `lacks the "content"`, "gateway's own log"},
	{"an empty 200", ended(script{header: document, request: wire.Head{Model: "m"}}), "the answer is empty", "gateway's own log"},
	{"a web page as a 200", ended(script{header: http.Header{"Content-Type": {"text/html"}}, request: streamed, reads: []read{{10, htmlPage}}}), "a web page, not the API's JSON", "base URL"},
	{"a redirect", ended(script{status: 301, header: http.Header{"Location": {"https://x"}}, request: streamed}), "elsewhere (status 301)", "https://"},
	{"events of nobody", ended(script{request: streamed, reads: []read{{10, "data: oops\n\ndata: oops\n\n"}}}), "none of its events belong to OpenAI's chat completions", "weir doctor"},
	{"broken compression", ended(script{header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}, request: streamed, reads: []read{{10, "no gzip at all, none"}}}), "compression is broken", "compresses"},
	{"a document for a stream", ended(script{header: document, request: streamed, reads: []read{{10, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`}}}), "came whole", "gathers"},
	{"cut before a token", ended(script{request: streamed, reads: []read{{10, data(chatRole)}}, end: EndBroken}), "broke off before any output", "log"},
	{"cut after tokens", ended(script{request: streamed, reads: []read{{10, data(chatRole, chatHel, chatLo)}}, end: EndBroken}), "broke off after 2 events with output", "log"},
	{"cut by an idle limit", ended(script{request: streamed, reads: []read{{10, data(chatHel)}, {60_010, ": ping\n\n"}}, end: EndBroken}), "after 1m in which nothing came", "proxy_read_timeout"},
	{"cut answer that was no stream", ended(script{header: document, request: wire.Head{Model: "m"}, reads: []read{{10, `{"choices":[`}}, end: EndBroken}), "answer broke off", "log"},
	{"[DONE] over a broken stream", ended(script{request: streamed, reads: []read{{10, data(chatHel, done)}}}), "no finish reason", "gateway's log"},
	{"closed before the headers", with(&Call{Outcome: Truncated, ErrorMessage: "read: connection reset by peer"}, func(c *Call) { c.Host, c.Port = "h", 1 }), "h:1 took the request and closed", "log"},
	{"gone before the headers", &Call{Outcome: ClientGone}, "before the answer had begun.", "timeout"},
	{"gone before the first token", ended(script{request: streamed, reads: []read{{30_000, data(chatRole)}}, end: EndClientGone}), "before a first token came, after 30s", "timeout"},
	{"gone in the answer", ended(script{request: streamed, reads: []read{{10, data(chatHel)}}, end: EndClientGone}), "in the midst", "timeout"},
	{"no headers in time", &Call{Outcome: Timeout}, "did not begin to answer", "raise the timeout"},
	{"no token in time", ended(script{request: streamed, reads: []read{{10, data(chatRole)}}, end: EndTimeout}), "no token came in time", "Raise the timeout"},
	{"no end in time", ended(script{request: streamed, reads: []read{{10, data(chatHel)}}, end: EndTimeout}), "still coming", "shorter answer"},
}

var fullStream = data(chatRole, chatHel, chatLo, chatStop, chatUsage, done)

// crowd is a stream whose tokens come in one read, two seconds late.
func crowd(n int) string {
	return data(chatRole) + strings.Repeat(data(chatHel), n) + data(chatStop, `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":12}}`, done)
}

var oddCalls = []told{
	{"a healthy call has none", ended(script{request: streamed, reads: []read{{10, fullStream}}}), "", ""},
	{"nor has one that goes on", &Call{}, "", ""},
	{"nor a list of models", &Call{Outcome: OK, Operation: wire.OpModels, UsageSource: UsageMissing}, "", ""},
	{"usage that nobody asked for", ended(script{request: streamed, reads: []read{{10, data(chatRole, chatHel, chatStop, done)}}}), "did not ask for it", "include_usage"},
	{"usage that was asked for and did not come", ended(script{request: wire.Head{Stream: true, IncludeUsage: &yes}, reads: []read{{10, data(chatRole, chatHel, chatStop, done)}}}), "ended without it", "stream_options"},
	{"usage that Anthropic's API always has", ended(script{api: wire.Messages, request: streamed, reads: []read{{10, event("message_start", `{"type":"message_start","message":{"id":"m"}}`) + textDelta("a") +
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`) + messageStop}}}), "reported no token usage", "operator"},
	{"usage that contradicts", ended(script{request: streamed, reads: []read{{10, data(chatHel, chatStop, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, done)}}}), "contradicts", "bill"},
	{"buffered on the way", ended(script{request: streamed, reads: []read{{2000, crowd(12)}}}), "buffers it", "proxy_buffering"},
	{"hidden reasoning ate the limit", ended(script{request: streamed, reads: []read{{10, data(chatRole, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, chatUsage, done)}}}), "hidden reasoning", "Raise the limit"},
	{"nothing said", ended(script{request: streamed, reads: []read{{10, data(chatRole, `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, chatUsage, done)}}}), "held no output", `"content_filter"`},
	{"a coding of nobody", ended(script{header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"lz4"}}, request: streamed, reads: []read{{10, "xxx"}}}), "compressed in a way", "gzip"},
}

func TestExplain(t *testing.T) {
	for group, rows := range map[string][]told{
		"unreachable": unreachableCalls, "key": keyCalls, "request": requestCalls, "limit": limitCalls, "stream": streamCalls, "odd": oddCalls,
	} {
		for _, row := range rows {
			t.Run(group+"/"+row.sentence, func(t *testing.T) {
				what, next := row.call.Explain()
				if !strings.Contains(what, row.what) || !strings.Contains(next, row.next) || (row.what == "") != (what == "") || (row.next == "") != (next == "") {
					t.Errorf("%s, status %d:\n%s\n→ %s\nwant %q and %q in it", row.call.Outcome, row.call.Status, what, next, row.what, row.next)
				}
				for _, s := range []string{what, next} {
					if s != "" && (!strings.HasSuffix(s, ".") || strings.ContainsAny(s, "\n\r\t") || len(s) > 320 || strings.ToUpper(s[:1]) != s[:1] && !strings.HasPrefix(s, row.call.endpoint()) && !strings.HasPrefix(s, "weir")) {
						t.Errorf("not one sentence: %q", s)
					}
				}
			})
		}
	}
}

// What a provider says back of a key does not come into an explanation.
func TestExplainHoldsNoKey(t *testing.T) {
	const key = "sk-proj-0123456789abcdef0123456789"
	for _, status := range []int{400, 401, 403, 404, 429, 500} {
		what, next := answered(wire.Chat, status, `{"error":{"message":"Something with `+key+` went wrong"}}`).Explain()
		if strings.Contains(what+next, key[8:]) {
			t.Errorf("status %d: %s → %s", status, what, next)
		}
	}
}

// Every outcome that there is has an explanation, whatever else is known.
func TestEveryOutcomeIsExplained(t *testing.T) {
	for _, o := range []Outcome{Refused, RateLimited, Auth, Overloaded, ClientError, ServerError, StreamError, Truncated, Malformed, Unreachable, Timeout, ClientGone} {
		if what, next := (&Call{Outcome: o}).Explain(); what == "" || next == "" {
			t.Errorf("%s: %q, %q", o, what, next)
		}
	}
}
