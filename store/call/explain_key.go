package call

import (
	"fmt"
	"strings"

	"weir/proxy/wire"
)

// credentials is how a dialect wants its key.
type credentials struct {
	header   string // as it is sent
	variable string // from which clients read it
}

func (c *Call) credentials() credentials {
	switch c.API {
	case wire.Messages:
		return credentials{"x-api-key", "ANTHROPIC_API_KEY"}
	case wire.Gemini:
		return credentials{"x-goog-api-key", "GEMINI_API_KEY"}
	}
	return credentials{"Authorization: Bearer", "OPENAI_API_KEY"}
}

// ofKey explains keys: none, one in the wrong header, one that is no key, one
// that was refused. Gemini and some gateways answer 400 to a wrong key.
func ofKey(c *Call, said string) (advice, bool) {
	if c.Status != 400 && c.Outcome != Auth && !(c.Outcome == StreamError && says(said, "authentication_error")) {
		return advice{}, false
	}
	want := c.credentials()
	missing := says(said, "x-api-key header is required", "didn't provide an api key", "missing bearer", "missing authentication", "no auth credentials", "unregistered callers",
		"api key is missing", "no api key", "api key required", "missing api key", "missing or invalid api key", "authorization header is missing", "missing authorization",
		"no authorization", "api key not found", "未提供令牌", "no credentials", "could not resolve authentication")
	switch {
	case says(said, "oauth authentication is currently not supported", "access_token_type_unsupported", "expected oauth 2 access token"):
		return advice{"The key came as a login's token (Authorization: Bearer), which this endpoint does not take it for.",
			want.send()}, true
	case says(said, "api keys are not supported by this api"):
		return advice{"The endpoint takes no API keys, only the token of a login.", "Log in with the provider's own client, or use the endpoint that takes keys."}, true
	case missing && says(said, "missing or "): // which of the two it does not say
		return c.missingOrWrong(), true
	case missing && c.KeyFingerprint != "":
		return advice{"A key came, but not in the header where this endpoint looks for it.", want.send()}, true
	case missing:
		return c.noKey(), true
	case says(said, "invalid bearer token") && c.API == wire.Messages:
		return advice{"The token that came as Authorization: Bearer was refused; an API key is not taken there.",
			"Send an API key as x-api-key (for Claude Code: ANTHROPIC_API_KEY, not ANTHROPIC_AUTH_TOKEN), or log in again."}, true
	case says(said, "expected to start with", "malformed api key", "malformed key", "invalid header", "not a valid token format", "malformed token"):
		return advice{"What came is not in the form of a key.", "Look for quotes, white space, a second \"Bearer \" or a cut end in " + want.variable + "."}, true
	case says(said, "api key expired", "key has expired", "key is expired"):
		return advice{"The key has expired.", "Make a new one at the provider and put it into " + want.variable + "."}, true
	case says(said, "has not been used in project", "service_disabled", "it is disabled"):
		return advice{"The key's project has not turned this API on.", "Turn it on in the provider's console; the error's text has the link."}, true
	case says(said, "missing scopes", "insufficient permissions", "permission_error", "permission_denied", "does not have permission"):
		return c.notAllowed(said), true
	case says(said, "invalid_api_key", "incorrect api key", "invalid x-api-key", "invalid api key", "invalid api-key", "api key not valid", "api_key_invalid",
		"invalid subscription key", "无效的令牌", "key is missing or wrong"),
		c.Outcome != ClientError && says(said, "invalid token", "is invalid", "invalid authentication", "authentication fails", "身份验证失败", "user not found"):
		return c.wrongKey(), true
	}
	return advice{}, false
}

func (c *Call) noKey() advice {
	want := c.credentials()
	return advice{"The endpoint wants a key, and none came.", fmt.Sprintf("Set %s for the client; it is sent as %s.", want.variable, want.header)}
}

func (c *Call) wrongKey() advice {
	return advice{"The key was refused: it is not one of this endpoint's.",
		fmt.Sprintf("See whether %s holds a key of %s, whole and without quotes or white space.", c.credentials().variable, c.issuer())}
}

// missingOrWrong goes by whether weir saw a key, which it notes as a proxy.
func (c *Call) missingOrWrong() advice {
	switch {
	case c.KeyFingerprint != "":
		return c.wrongKey()
	case c.Side == Proxy:
		return c.noKey()
	}
	return advice{"The key is missing, or it was refused.", c.wrongKey().next}
}

// send says how a key is to be sent.
func (w credentials) send() string {
	next := "Send it as " + w.header
	switch w.header {
	case "x-api-key":
		next += " (for Claude Code: ANTHROPIC_API_KEY, not ANTHROPIC_AUTH_TOKEN)"
	case "x-goog-api-key":
		next += " (GEMINI_API_KEY for Gemini's own clients)"
	default:
		next += " KEY, as OpenAI's clients do"
	}
	return next + "."
}

// issuer is who gives out the keys of the endpoint.
func (c *Call) issuer() string {
	if c.Host == "" || strings.HasPrefix(c.Host, "127.") || c.Host == "localhost" {
		return anEndpoint
	}
	return c.Host
}

// notAllowed is what is left of 401 and 403.
func (c *Call) notAllowed(said string) advice {
	want := c.credentials()
	if c.Status == 401 || says(said, "unauthorized", "authentication_error", "unauthenticated") {
		if c.KeyFingerprint == "" && c.Side == Proxy {
			return c.noKey()
		}
		return advice{"The endpoint did not accept the key" + c.quoteSaid() + ".",
			fmt.Sprintf("See whether %s holds a key of %s, and whether the client sends it as %s.", want.variable, c.issuer(), want.header)}
	}
	return advice{"The key is known, but may not do this" + c.quoteSaid() + ".",
		"Give the key that right at the provider, or use another; a firewall can answer so too."}
}
