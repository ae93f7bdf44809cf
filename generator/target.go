package generator

import (
	"crypto/x509"
	"fmt"
	"net/http"

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
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// MarshalText hides the secret from JSON and its kin.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Keys are the keys for each family of APIs. An empty one sends no header.
type Keys struct {
	OpenAI    Secret // chat, completions, responses: Authorization: Bearer
	Anthropic Secret // messages: x-api-key
	Gemini    Secret // gemini: x-goog-api-key
}

// authorize puts the key of a dialect on a request.
func (k Keys) authorize(h http.Header, api wire.API) {
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

// Target is where a run's requests go.
type Target struct {
	// BaseURL is what the paths of the APIs are put behind: a host, or one with
	// a path ("https://host/api"). A version segment at its end (/v1) is taken
	// for the API's own.
	BaseURL string
	Keys    Keys
	RootCAs *x509.CertPool // nil: the system's
}
