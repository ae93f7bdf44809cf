package main

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"weir/generator"
	"weir/proxy/wire"
)

// vendor is a provider whose clients read variables of their own.
type vendor struct {
	name string
	apis []wire.API // that its own endpoint speaks
	base string     // variable of the base URL
	keys []string   // variables of keys, the first one in use counts
}

var vendors = []vendor{
	{"Anthropic", []wire.API{wire.Messages}, "ANTHROPIC_BASE_URL", []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}},
	{"OpenAI", []wire.API{wire.Chat, wire.Responses}, "OPENAI_BASE_URL", []string{"OPENAI_API_KEY"}},
	{"Google", []wire.API{wire.Gemini}, "GOOGLE_GEMINI_BASE_URL", []string{"GEMINI_API_KEY"}},
}

// examined are the APIs that an endpoint of nobody in particular may speak.
var examined = []wire.API{wire.Chat, wire.Responses, wire.Messages, wire.Gemini}

// owners are who gives out keys that begin so, and who serves hosts that end so.
var owners = []struct {
	name     string
	prefixes []string
	host     string
}{
	{"Anthropic", []string{"sk-ant-"}, "anthropic.com"},
	{"OpenRouter", []string{"sk-or-"}, "openrouter.ai"},
	{"OpenAI", []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, "openai.com"},
	{"Google", []string{"AIza", "AQ.", "ya29."}, "googleapis.com"},
	{"Groq", []string{"gsk_"}, "groq.com"},
	{"xAI", []string{"xai-"}, "x.ai"},
	{"Hugging Face", []string{"hf_"}, "huggingface.co"},
}

// keyOwner is whose key it plainly is; empty where its form does not say.
func keyOwner(key string) string {
	key = strings.TrimPrefix(strings.Trim(key, "\"' \t\r\n"), "Bearer ")
	for _, o := range owners {
		for _, p := range o.prefixes {
			if strings.HasPrefix(key, p) {
				return o.name
			}
		}
	}
	return ""
}

// hostOwner is who serves a host; empty for hosts of others.
func hostOwner(host string) string {
	host = strings.ToLower(host)
	for _, o := range owners {
		if host == o.host || strings.HasSuffix(host, "."+o.host) {
			return o.name
		}
	}
	return ""
}

// credential is a key and how it is sent.
type credential struct {
	key      generator.Secret
	variable string // where it stands
	header   string // "Authorization", "X-Api-Key", "X-Goog-Api-Key"
}

// put writes it on a request.
func (c credential) put(h http.Header) {
	switch {
	case c.key == "":
	case c.header == "Authorization":
		h.Set(c.header, "Bearer "+string(c.key))
		if strings.HasPrefix(string(c.key), "sk-ant-oat") { // the token of a login
			h.Set("Anthropic-Beta", "oauth-2025-04-20")
		}
	default:
		h.Set(c.header, string(c.key))
	}
}

// shown is how people write the header.
func (c credential) shown() string {
	if c.header == "Authorization" {
		return "Authorization: Bearer"
	}
	return strings.ToLower(c.header)
}

// otherwise is the same key in the other header that endpoints of this API are
// known to want.
func (c credential) otherwise() credential {
	if c.header == "Authorization" {
		c.header = "X-Api-Key"
	} else {
		c.header = "Authorization"
	}
	return c
}

// headerOf is where a dialect has its key.
func headerOf(api wire.API) string {
	switch api {
	case wire.Messages:
		return "X-Api-Key"
	case wire.Gemini:
		return "X-Goog-Api-Key"
	}
	return "Authorization"
}

// cleanKey is a key as it was meant: what surrounds it is reported elsewhere
// and would only hide what else is wrong.
func cleanKey(v string) generator.Secret {
	v = strings.Trim(v, "\"' \t\r\n")
	return generator.Secret(strings.TrimSpace(strings.TrimPrefix(v, "Bearer ")))
}

// wallet gives the keys that may be sent to an endpoint.
type wallet struct {
	env    environment
	keyEnv string
	target *url.URL

	held []string // variables whose key was not sent, since it is another provider's
}

// credential is the key for an API: the one that the user names, else the
// API's own, else any other that the host may see. It has no key where there is
// none.
func (w *wallet) credential(api wire.API) credential {
	named := []string{w.keyEnv}
	if w.keyEnv == "" {
		named[0] = "WEIR_API_KEY"
		var others []string
		for _, p := range vendors {
			if slices.Contains(p.apis, api) {
				named = append(named, p.keys...)
			} else {
				others = append(others, p.keys...)
			}
		}
		named = append(named, others...)
	}
	c := credential{header: headerOf(api)}
	for _, name := range named {
		v, _ := w.env(name)
		key := cleanKey(v)
		if key == "" || variableOf(name).name != "" && w.keyEnv == "" && !w.may(name, string(key)) {
			continue
		}
		c.key, c.variable = key, name
		if api == wire.Messages && (name == "ANTHROPIC_AUTH_TOKEN" || strings.HasPrefix(string(key), "sk-ant-oat")) {
			c.header = "Authorization"
		}
		break
	}
	return c
}

// may says whether the endpoint may see a key that the user did not name. It
// may if the variable's own base URL leads there: tools send it so already.
// Else a key that is plainly another provider's stays here, and so does every
// other provider's where the host is a known one's.
func (w *wallet) may(name, key string) bool {
	of := variableOf(name)
	if base, _ := w.env(of.base); sameHost(base, w.target) {
		return true
	}
	owner, host := keyOwner(key), hostOwner(w.target.Hostname())
	allowed := owner == host || owner == "" && of.name == host
	if owner == "" && host == "" {
		allowed = true
	}
	if !allowed && !slices.Contains(w.held, name) {
		w.held = append(w.held, name)
	}
	return allowed
}

// sameHost says whether a base URL leads to the host and port of another.
func sameHost(base string, u *url.URL) bool {
	b, err := url.Parse(strings.TrimSpace(base))
	return err == nil && b.Host != "" && hostPort(b) == hostPort(u)
}

// hostPort is the address that a URL leads to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		if port = "443"; u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// variableOf is the provider that a variable is named after.
func variableOf(name string) vendor {
	for _, p := range vendors {
		if slices.Contains(p.keys, name) {
			return p
		}
	}
	return vendor{}
}

// keyFlaw is what is wrong with the form of a key, and how to mend it; both empty
// when nothing is. The sentences hold nothing of the key.
func keyFlaw(name, v string) (what, next string) {
	inner := strings.TrimSpace(v)
	again := "Set it again: export " + name + "=KEY, with nothing before or behind the key."
	switch {
	case inner == "":
		return "It is set, but empty, which some clients take for a key.", "Put the key in, or unset " + name + "."
	case strings.HasSuffix(v, "\n") || strings.HasSuffix(v, "\r"):
		return "It ends in a line break, which cannot stand in a header.", again
	case inner != v:
		return "There is white space before or behind it.", again
	case strings.ContainsAny(inner[:1]+inner[len(inner)-1:], "\"'`"):
		return "There are quotes around it, and they are taken for a part of the key.",
			"Take the quotes off; files for Docker and systemd want values without them."
	case strings.HasPrefix(strings.ToLower(inner), "bearer"):
		return `It begins with "Bearer", which clients put before it themselves.`, "Keep only what stands behind Bearer."
	case strings.ContainsFunc(inner, unicode.IsSpace):
		return "There is white space or a line break inside it: it may be two lines, or more than the key.", again
	case strings.ContainsFunc(inner, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }):
		return "It holds characters that no key has, as a text editor's quotes or dots do.", "Copy the key again from where the provider shows it."
	case placeholder(inner):
		return "It is a placeholder, not a key.", "Put the real key into " + name + "."
	}
	return "", ""
}

// placeholder says whether a value is what documentation writes for a key.
func placeholder(v string) bool {
	v = strings.ToLower(v)
	for _, word := range []string{"your", "xxxx", "...", "<", "changeme", "replace", "insert", "${", "$("} {
		if strings.Contains(v, word) {
			return true
		}
	}
	return false
}
