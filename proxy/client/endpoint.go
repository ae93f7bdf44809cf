package client

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Endpoint is where a family's requests go when weir does not stand between.
type Endpoint struct {
	Family   Family
	URL      string // "https://api.openai.com/v1"
	Variable string // the user's, which names it; empty: it is the provider's own

	// Suffix is what the base URL that stands for URL ends in: "/v1", or nothing.
	Suffix string

	// Verbatim says that the base URL stands for this very URL: paths are joined
	// to it as they are. Else the version of the API is put right.
	Verbatim bool
}

// The providers' own endpoints. Codex with a ChatGPT login has one of its own.
const (
	anthropicURL = "https://api.anthropic.com"
	openAIURL    = "https://api.openai.com/v1"
	geminiURL    = "https://generativelanguage.googleapis.com"
	chatGPTURL   = "https://chatgpt.com/backend-api/codex"
)

// ProvidersOwn says whether a host is one of those providers, which takes the
// requests and the keys of its own family alone.
func ProvidersOwn(host string) bool {
	for _, known := range []string{anthropicURL, openAIURL, geminiURL, chatGPTURL} {
		if u, err := url.Parse(known); err == nil && u.Hostname() == host {
			return true
		}
	}
	return false
}

// Endpoints are where a command, and what it starts, would send the requests of
// each family: to the URL that the user's variable names, else to the provider.
// env has the form of os.Environ.
func Endpoints(command, env []string) []Endpoint {
	var all []Endpoint
	for _, f := range families(command) {
		all = append(all, endpointOf(f, command, env))
	}
	return all
}

func endpointOf(f Family, command, env []string) Endpoint {
	for _, name := range baseVariables[f] {
		if v := strings.TrimRight(value(env, name), "/"); v != "" {
			return Endpoint{Family: f, URL: v, Variable: name, Verbatim: true}
		}
	}
	e := Endpoint{Family: f, Suffix: suffix(f, command)}
	switch f {
	case Anthropic:
		e.URL = anthropicURL
	case Gemini:
		e.URL = geminiURL
	case OpenAI:
		e.URL = openAIURL
	case Codex:
		if e.URL = openAIURL; chatGPTLogin(env) {
			e.URL, e.Suffix, e.Verbatim = chatGPTURL, "", true
		}
	}
	return e
}

// chatGPTLogin says whether Codex uses a ChatGPT login, which is a login without
// a key: neither in its variable nor in its file of credentials.
func chatGPTLogin(env []string) bool {
	if value(env, "OPENAI_API_KEY") != "" {
		return false
	}
	home := value(env, "CODEX_HOME")
	if home == "" {
		home = filepath.Join(value(env, "HOME"), ".codex")
	}
	var kept struct {
		Key string `json:"OPENAI_API_KEY"`
	}
	b, err := os.ReadFile(filepath.Join(home, "auth.json"))
	if err != nil || json.Unmarshal(b, &kept) != nil {
		return true // it may keep them in the system's keyring
	}
	return kept.Key == ""
}
