package generator

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"weir/proxy/wire"
)

// Secret is a key. However it is printed, it prints [redacted]; only
// string(secret) gives it away.
type Secret string

const redacted = "[redacted]"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText hides the secret from JSON and its kin.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Format hides the secret from every verb, %x too.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') || verb == 'q' {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// Keys are the keys for each family of APIs. An empty one sends no header.
type Keys struct {
	OpenAI    Secret // chat, completions, responses: Authorization: Bearer
	Anthropic Secret // messages: x-api-key
	Gemini    Secret // gemini: x-goog-api-key
	Weir      Secret // of a weir that wants a client token: x-weir-token, whatever the API
}

// authorize puts the key of a dialect on a request.
func (k Keys) authorize(h http.Header, api wire.API) {
	if k.Weir != "" {
		h.Set("X-Weir-Token", string(k.Weir))
	}
	switch api {
	case wire.Messages:
		h.Set("Anthropic-Version", "2023-06-01")
		if k.Anthropic != "" {
			h.Set("X-Api-Key", string(k.Anthropic))
		}
	case wire.Gemini:
		if k.Gemini != "" {
			h.Set("X-Goog-Api-Key", string(k.Gemini))
		}
	default:
		if k.OpenAI != "" {
			h.Set("Authorization", "Bearer "+string(k.OpenAI))
		}
	}
}

// given says whether there is a key for a dialect.
func (k Keys) given(api wire.API) bool {
	h := http.Header{}
	k.authorize(h, api)
	h.Del("Anthropic-Version")
	h.Del("X-Weir-Token")
	return len(h) > 0
}

// Target is where a run's requests go.
type Target struct {
	// BaseURL is what the paths of the APIs are put behind: a host, or one with
	// a path ("https://host/api"). A version segment at its end (/v1) stands
	// for the API's own.
	BaseURL string
	Shown   string // how messages name the endpoint; BaseURL when empty
	Keys    Keys
	RootCAs *x509.CertPool // nil: the system's
}

// parse reads the base URL.
func (t *Target) parse() (*url.URL, error) {
	u, err := url.Parse(t.BaseURL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = fmt.Errorf("want http:// or https:// and a host")
	}
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", t.BaseURL, err)
	}
	return u, nil
}

// join puts an API's path, which may have a query, behind the base.
func join(base *url.URL, path string) *url.URL {
	u := *base
	path, u.RawQuery, _ = strings.Cut(path, "?")
	prefix := strings.TrimRight(base.Path, "/")
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 && isVersion(prefix[i+1:]) {
		if first, rest, ok := strings.Cut(path[1:], "/"); ok && isVersion(first) {
			path = "/" + rest
		}
	}
	u.Path, u.RawPath = prefix+path, ""
	return &u
}

// isVersion says whether a path's segment is v1, v1beta or the like.
func isVersion(s string) bool {
	return len(s) >= 2 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9'
}

// port is the port that a URL means.
func port(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}
