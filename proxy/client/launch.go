package client

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Family is a provider's own API, with a variable by which its clients are told
// where it is.
type Family string

// The families. Codex speaks OpenAI's API, but does not read its variable.
const (
	Anthropic Family = "anthropic"
	OpenAI    Family = "openai"
	Gemini    Family = "gemini"
	Codex     Family = "codex"
)

// baseVariables name a family's endpoint for its clients: the first is the one
// to set, the others are older names, which are set where they stand.
var baseVariables = map[Family][]string{
	Anthropic: {"ANTHROPIC_BASE_URL"},
	OpenAI:    {"OPENAI_BASE_URL", "OPENAI_API_BASE"},
	Gemini:    {"GOOGLE_GEMINI_BASE_URL"},
}

// Way is how a program finds the proxy.
type Way struct {
	// Base is the base URL of each family, as the family's clients want it. One
	// that is missing is left as it is.
	Base map[Family]string

	// WebSocket says that Codex may open WebSockets to what stands behind: its
	// provider takes them, and where nobody does Codex asks in vain first.
	WebSocket bool

	// Proxy is the URL by which programs use weir as their proxy, and then no
	// base URL is set. CAFile holds the certificate of weir's authority, Bundle
	// that and all others that programs trust: some take another file in the
	// place of all, others beside.
	Proxy, CAFile, Bundle string

	// Beside is a file with weir's certificate and those of the user's own
	// NODE_EXTRA_CA_CERTS, which it replaces; empty: CAFile does.
	Beside string
}

// At is the way to a proxy that takes every family's requests below one base
// URL, which has no slash at its end.
func At(base string, command []string) Way {
	w := Way{Base: map[Family]string{}}
	for _, f := range families(command) {
		w.Base[f] = base + suffix(f, command)
	}
	return w
}

// families are those that a command, and what it starts, may speak.
func families(command []string) []Family {
	all := []Family{Anthropic, OpenAI, Gemini}
	if name, _ := program(command); name == "codex" {
		all = append(all, Codex)
	}
	return all
}

// Speaks gives the families that a command is known to speak; all of them for
// one that is not known, and none for one that takes no base URL.
func Speaks(command []string) []Family {
	switch name, _ := program(command); name {
	case "claude-code":
		return []Family{Anthropic}
	case "codex":
		return []Family{Codex}
	case "opencode":
		return []Family{Anthropic, OpenAI}
	case "gemini-cli":
		return []Family{Gemini}
	case "cline":
		return nil
	}
	return families(command)
}

// suffix is what a base URL ends in for a family's clients.
func suffix(f Family, command []string) string {
	name, _ := program(command)
	if f == OpenAI || f == Codex || f == Anthropic && name == "opencode" {
		return "/v1"
	}
	return ""
}

// programs are the commands and packages that start a known client.
var programs = map[string]string{
	"claude": "claude-code", "claude-code": "claude-code",
	"codex": "codex", "opencode": "opencode", "opencode-ai": "opencode",
	"gemini": "gemini-cli", "gemini-cli": "gemini-cli", "cline": "cline",
}

// program finds the known client that a command starts, itself or through a
// runner of packages and scripts, and the argument that names it. name is empty
// for others.
func program(command []string) (name string, at int) {
	if len(command) == 0 {
		return "", 0
	}
	first := baseName(command[0])
	if name = programs[first]; name != "" {
		return name, 0
	}
	switch first {
	case "npx", "bunx", "pnpx", "node", "bun":
	default:
		return "", 0
	}
	for at = 1; at < len(command); at++ {
		switch arg := command[at]; {
		case arg == "-p" || arg == "--package":
			at++
		case !strings.HasPrefix(arg, "-"):
			return programs[baseName(arg)], at
		}
	}
	return "", 0
}

// baseName is a program's or a package's name alone: no folder or scope, no
// version, no ending of a script.
func baseName(arg string) string {
	name := filepath.Base(arg)
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	for _, ending := range []string{".exe", ".cmd", ".js", ".mjs", ".cjs"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// Launch is how to start a command so that it finds the proxy: its arguments
// and its environment, in the form of os.Environ, of which both that were given
// are left alone. notes say what may keep its calls from passing the proxy. No
// file is written, nor are settings changed.
func Launch(way Way, command, env []string) (args, environ, notes []string) {
	args, environ = slices.Clone(command), slices.Clone(env)
	for _, family := range []Family{Anthropic, OpenAI, Gemini} {
		base := way.Base[family]
		if base == "" {
			continue
		}
		for i, name := range baseVariables[family] {
			if _, stands := lookup(environ, name); stands || i == 0 {
				environ = set(environ, name, base)
			}
		}
	}
	environ = pastProxies(environ, way)
	name, at := program(command)
	switch name {
	case "claude-code":
		if _, stands := lookup(environ, "CLAUDE_CODE_GATEWAY_HINT_HEADERS"); !stands {
			environ = set(environ, "CLAUDE_CODE_GATEWAY_HINT_HEADERS", "1")
		}
	case "codex":
		if base := way.Base[Codex]; base != "" {
			args = slices.Insert(args, at+1, codexOverrides(base, way.WebSocket, environ)...)
		}
	}
	notes = cautions(name, environ, way)
	if way.Proxy != "" {
		environ = throughProxy(environ, way)
	}
	return args, environ, notes
}

// codexOverrides tell Codex where to go. With a key in its variable weir is a
// provider of its own; otherwise the built-in one, which knows the user's login,
// is sent to weir.
func codexOverrides(base string, webSocket bool, env []string) []string {
	if key, _ := lookup(env, "OPENAI_API_KEY"); key == "" {
		return []string{"-c", "openai_base_url=" + strconv.Quote(base)}
	}
	return []string{
		"-c", "model_provider=weir",
		"-c", `model_providers.weir={name="weir",base_url=` + strconv.Quote(base) +
			`,env_key="OPENAI_API_KEY",wire_api="responses",supports_websockets=` + strconv.FormatBool(webSocket) + `}`,
	}
}

// throughProxy has programs use weir as their proxy, and trust it.
func throughProxy(env []string, way Way) []string {
	extra := way.Beside
	if extra == "" {
		extra = way.CAFile
	}
	for _, v := range [][2]string{
		{"HTTPS_PROXY", way.Proxy}, {"https_proxy", way.Proxy},
		{"NODE_USE_ENV_PROXY", "1"},    // Node's own client heeds the proxy only then
		{"NODE_EXTRA_CA_CERTS", extra}, // beside Node's own
		{"CODEX_CA_CERTIFICATE", way.CAFile},
		{"SSL_CERT_FILE", way.Bundle}, // OpenSSL, Go, rustls, Bun, httpx
		{"REQUESTS_CA_BUNDLE", way.Bundle}, {"CURL_CA_BUNDLE", way.Bundle},
	} {
		env = set(env, v[0], v[1])
	}
	return env
}

// pastProxies keeps clients from looking for weir behind a proxy. Programs read
// the variable in either spelling.
func pastProxies(env []string, way Way) []string {
	hosts := []string{"127.0.0.1", "localhost"}
	for _, base := range way.Base {
		if u, err := url.Parse(base); err == nil && u.Hostname() != "" && !slices.Contains(hosts, u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	upper, lower := value(env, "NO_PROXY"), value(env, "no_proxy")
	if upper == "" {
		upper = lower
	}
	if lower == "" {
		lower = upper
	}
	env = set(env, "NO_PROXY", without(upper, hosts))
	return set(env, "no_proxy", without(lower, hosts))
}

// without adds hosts to a list of those that no proxy is used for.
func without(list string, hosts []string) string {
	var all []string
	for _, host := range strings.Split(list, ",") {
		if host = strings.TrimSpace(host); host != "" {
			all = append(all, host)
		}
	}
	if slices.Contains(all, "*") {
		return list
	}
	for _, host := range hosts {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return strings.Join(all, ",")
}

// cautions say what in a client's surroundings sends its calls past the proxy.
func cautions(name string, env []string, way Way) (notes []string) {
	if extra := value(env, "NODE_EXTRA_CA_CERTS"); way.Proxy != "" && way.Beside == "" && extra != "" {
		notes = append(notes, "NODE_EXTRA_CA_CERTS is "+extra+", which holds no certificate that weir can read: Node is given weir's alone")
	}
	switch name {
	case "claude-code":
		for _, cloud := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
			if on := value(env, cloud); on != "" && on != "0" && on != "false" {
				notes = append(notes, cloud+" is set: Claude Code then goes to that cloud, past weir")
			}
		}
	case "gemini-cli":
		if way.Proxy != "" {
			break // whose host is known, whichever login
		}
		notes = append(notes, `Gemini CLI takes a base URL only with "security": {"auth": {"selectedType": "gemini-api-key"}} in its settings.json; --door forward wants no setting`)
		if on := value(env, "GOOGLE_GENAI_USE_VERTEXAI"); on != "" && on != "0" && on != "false" {
			notes = append(notes, "GOOGLE_GENAI_USE_VERTEXAI is set: Gemini CLI then goes to Vertex, past weir")
		} else if value(env, "GEMINI_API_KEY") == "" {
			notes = append(notes, "GEMINI_API_KEY is not set: with a Google login Gemini CLI goes past weir")
		}
	case "cline":
		if way.Proxy != "" {
			break
		}
		notes = append(notes, "Cline takes its base URL from its settings alone; while a weir proxy runs: cline auth openai-compatible -k KEY -m MODEL -b "+way.Base[OpenAI])
	}
	return notes
}

// lookup finds a variable in an environment of the form of os.Environ, in which
// the last of several counts.
func lookup(env []string, name string) (value string, set bool) {
	for _, pair := range slices.Backward(env) {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

func value(env []string, name string) string {
	v, _ := lookup(env, name)
	return v
}

// set puts a variable into an environment in place of any that stands there.
func set(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	return append(env, name+"="+value)
}
