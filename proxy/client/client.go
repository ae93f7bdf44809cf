// Package client knows who calls: the agents and SDKs that people point at
// weir, what they say of their sessions, and the lines that point each of them
// at a proxy.
package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"weir/proxy/wire"
)

// known are the products of User-Agent headers, by their lower-case beginning.
var known = []struct{ prefix, name string }{
	{"claude-cli", "claude-code"},
	{"claude-code", "claude-code"},
	{"codex", "codex"},
	{"opencode", "opencode"},
	{"geminicli", "gemini-cli"},
	{"cline", "cline"},
	{"openai/js", "openai-node"},
	{"openai/python", "openai-python"},
	{"asyncopenai/python", "openai-python"},
	{"anthropic/js", "anthropic-node"},
	{"anthropic/python", "anthropic-python"},
	{"asyncanthropic/python", "anthropic-python"},
	{"google-genai-sdk", "google-genai"},
	{"ai-sdk", "ai-sdk"},
	{"ai/", "ai-sdk"},
	{"weir", "weir"},
}

// Identify names the calling program and its version from its User-Agent: the
// product of an agent or SDK that weir knows, else the header's first product.
// Both are empty without the header.
func Identify(h http.Header) (name, version string) {
	agent := strings.TrimSpace(h.Get("User-Agent"))
	lower := strings.ToLower(agent)
	for _, k := range known {
		if strings.HasPrefix(lower, k.prefix) {
			return k.name, versionAfter(agent[len(k.prefix):])
		}
	}
	product, _, _ := strings.Cut(agent, " ")
	name, version, _ = strings.Cut(product, "/")
	return strings.ToLower(name), version
}

// versionAfter finds the first thing that looks like a version.
func versionAfter(s string) string {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return ""
	}
	s = s[i:]
	if end := strings.IndexAny(s, " ();/,"); end >= 0 {
		s = s[:end]
	}
	return s
}

// sessionHeaders are those in which clients name their conversation.
var sessionHeaders = []string{
	"X-Claude-Code-Session-Id", // Claude Code
	"Session-Id",               // Codex
	"Session_id",               // Codex before it spelled headers with dashes
	"X-Session-Id",             // opencode
}

// Session is the conversation that a request says it belongs to, and where it
// says so: "header" or "body". Both are empty when it says none. A prompt's cache
// key is none: several sessions may share it.
func Session(h http.Header, head *wire.Head) (id, from string) {
	for _, name := range sessionHeaders {
		if v := h.Get(name); v != "" {
			return v, fromHeader
		}
	}
	// Claude Code puts a JSON object into metadata.user_id.
	var user struct {
		Session string `json:"session_id"`
	}
	if strings.HasPrefix(head.User, "{") && json.Unmarshal([]byte(head.User), &user) == nil && user.Session != "" {
		return user.Session, fromBody
	}
	if _, id, ok := strings.Cut(head.User, "_session_"); ok && id != "" {
		return id, fromBody
	}
	return "", ""
}

// Lines are what to paste to point a client at the proxy.
type Lines struct {
	Client string
	Text   []string
}

// Token gives what each client wants beside its line of Point, to send a header
// whose value stands in one of its environment's variables.
func Token(header, variable string) []Lines {
	custom := `_CUSTOM_HEADERS="` + header + `: $` + variable + `"`
	return []Lines{
		{"Claude Code", []string{"ANTHROPIC" + custom}},
		{"Codex", []string{`-c 'model_providers.weir.env_http_headers={"` + header + `"="` + variable + `"}'`}},
		{"opencode, in the provider's options in opencode.json", []string{`"headers": {"` + header + `": "{env:` + variable + `}"}`}},
		{"Gemini CLI", []string{"GEMINI_CLI" + custom}},
		{"SDKs in Python", []string{`default_headers={"` + header + `": os.environ["` + variable + `"]}`}},
		{"SDKs in Node", []string{`defaultHeaders: {"` + header + `": process.env.` + variable + `}`}},
	}
}

// Point gives the lines for each client that weir knows. base is the proxy's
// address with a scenario's prefix, "http://127.0.0.1:8484/s/refactor", and has
// no slash at its end.
func Point(base string) []Lines {
	v1 := base + "/v1"
	provider := `model_providers.weir={name="weir",base_url=` + strconv.Quote(v1) + `,env_key="OPENAI_API_KEY",wire_api="responses"}`
	return []Lines{
		{"Claude Code", []string{"ANTHROPIC_BASE_URL=" + base + " claude"}},
		{"Codex", []string{"codex -c model_provider=weir -c '" + provider + "'"}},
		{"opencode", []string{"OPENAI_BASE_URL=" + v1 + " ANTHROPIC_BASE_URL=" + v1 + " opencode"}},
		{"Cline", []string{"cline auth openai-compatible -k KEY -m MODEL -b " + v1}},
		{"OpenAI SDKs", []string{"OPENAI_BASE_URL=" + v1}},
		{"Anthropic SDKs", []string{"ANTHROPIC_BASE_URL=" + base}},
		{"Gemini CLI", []string{"GOOGLE_GEMINI_BASE_URL=" + base + " gemini"}},
	}
}
