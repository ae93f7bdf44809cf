package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
)

// Secret is a key. It prints as "[redacted]", however it is printed: the text
// is behind a pointer, since fmt looks into fields without asking their types.
// The zero Secret is no key.
type Secret struct{ text *string }

// NewSecret makes a secret of a key; of "" the zero Secret.
func NewSecret(key string) Secret {
	if key == "" {
		return Secret{}
	}
	return Secret{&key}
}

func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format keeps a secret out of every text.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[redacted]") }

// MarshalText keeps a secret out of JSON and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// keyring are the keys that weir holds for an upstream, in the place of those
// that clients send. Calls are spread over them: the one with the fewest calls
// under way is next, among those that the endpoint has not turned away for now.
// The zero keyring holds none.
type keyring struct {
	mu    sync.Mutex
	keys  []*heldKey
	taken uint64 // keys so far
}

type heldKey struct {
	secret Secret
	active int
	last   uint64       // when it was taken last, by keyring.taken
	held   call.Instant // until when the endpoint does not want it
}

func newKeyring(secrets []Secret) *keyring {
	k := &keyring{}
	for _, s := range secrets {
		k.keys = append(k.keys, &heldKey{secret: s})
	}
	return k
}

// take gives the key of the next call; nil where weir holds none. When all are
// turned away it gives the one whose time comes first: the endpoint then says
// itself what it thinks of it.
func (k *keyring) take() *heldKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := call.Now()
	var best *heldKey
	for _, key := range k.keys {
		if best == nil || key.before(best, now) {
			best = key
		}
	}
	if best != nil {
		k.taken++
		best.active++
		best.last = k.taken
	}
	return best
}

// before says whether a key is the better one for a call now.
func (key *heldKey) before(other *heldKey, now call.Instant) bool {
	held, otherHeld := max(key.held, now), max(other.held, now)
	if held != otherHeld {
		return held < otherHeld
	}
	if key.active != other.active {
		return key.active < other.active
	}
	return key.last < other.last // calls that follow each other take turns
}

// rest leaves a key alone that a limit's use turned away, and says whether
// another one is free meanwhile.
func (k *keyring) rest(key *heldKey, wait time.Duration) (other bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := call.Now()
	key.held = max(key.held, now+call.Instant(wait))
	for _, o := range k.keys {
		other = other || o != key && o.held <= now
	}
	return other
}

// change gives a call that is sent again another key in the place of one that
// rests, where one is free.
func (k *keyring) change(key *heldKey) *heldKey {
	other := k.take()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := call.Now()
	if key.held <= now || other.held > now {
		key, other = other, key
	}
	key.active--
	return other
}

// refusedKeyFor is how long a key rests that the endpoint does not accept. Its
// calls fail so quickly that it would be the least loaded one for ever.
const refusedKeyFor = time.Minute

// limitedKeyFor is how long a key rests whose limit was reached when the
// endpoint does not say how long.
const limitedKeyFor = time.Second

// give takes a key back from a call that has ended.
func (k *keyring) give(key *heldKey, c *call.Call) {
	var rest time.Duration
	switch c.Outcome {
	case call.RateLimited:
		if rest = c.RetryAfter; rest <= 0 {
			rest = limitedKeyFor
		}
	case call.Auth:
		rest = refusedKeyFor
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key.active--
	if rest > 0 {
		key.held = max(key.held, c.Done+call.Instant(rest))
	}
}

// keyHeaders are those in which clients send their keys.
var keyHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

// put replaces the client's keys by this one, where the endpoint looks for it.
func (key *heldKey) put(h http.Header, query string, api wire.API, provider string) (newQuery string) {
	for _, name := range keyHeaders {
		h.Del(name)
	}
	secret := key.secret.reveal()
	const oauth = "sk-ant-oat" // a token of Anthropic's that is no API key
	switch {
	case provider == "azure.ai.openai":
		h.Set("Api-Key", secret)
	case api == wire.Gemini:
		h.Set("X-Goog-Api-Key", secret)
	case api == wire.Messages && !strings.HasPrefix(secret, oauth):
		h.Set("X-Api-Key", secret)
		if provider != "anthropic" { // gateways want it here or there
			h.Set("Authorization", "Bearer "+secret)
		}
	default:
		h.Set("Authorization", "Bearer "+secret)
	}
	return withoutKey(query)
}

// withoutKey takes Google's key out of a query, and leaves the rest as it came.
func withoutKey(query string) string {
	if !strings.Contains(query, "key=") {
		return query
	}
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		if !strings.HasPrefix(pair, "key=") {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// keyOf is the key that a request carries, to be told apart from others.
func keyOf(r *http.Request) string {
	for _, name := range keyHeaders[1:] {
		if v := r.Header.Get(name); v != "" {
			return v
		}
	}
	if v := r.Header.Get("Authorization"); v != "" {
		if _, token, ok := strings.Cut(v, " "); ok {
			return token
		}
		return v
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	query, _ := url.ParseQuery(r.URL.RawQuery)
	return query.Get("key")
}

// scrub takes the call's keys out of what is recorded of it.
func (x *exchange) scrub() {
	keys := x.secrets()
	keys.Scrub(x.c)
	x.kept.keys(keys)
}

// secrets are all keys that go with a call: those that the client sent, in
// whatever header, cookie or query, and those that weir holds for the upstream.
func (x *exchange) secrets() *call.Keys {
	list := []string{x.secret.reveal()}
	if x.up != nil {
		list = append(list, x.up.keyring.reveal()...)
	}
	if x.r != nil {
		list = append(list, carried(x.r)...)
	}
	return call.NewKeys(list...)
}

func (k *keyring) reveal() []string {
	var all []string
	for _, key := range k.keys { // which never change
		all = append(all, key.secret.reveal())
	}
	return all
}

// shortestCookie is below which a cookie is a setting, and no secret.
const shortestCookie = 16

// carried are the keys in a request. A credential behind a scheme is one both
// with it and without, and Basic's has a password in it.
func carried(r *http.Request) (all []string) {
	for name, values := range r.Header {
		if !namesKey(name) {
			continue
		}
		for _, v := range values {
			_, token, ok := strings.Cut(v, " ")
			if !ok {
				token = v
			}
			all = append(all, strings.TrimSpace(token))
		}
	}
	for _, cookie := range r.Cookies() {
		if len(cookie.Value) >= shortestCookie {
			all = append(all, cookie.Value)
		}
	}
	if _, password, ok := r.BasicAuth(); ok {
		all = append(all, password)
	}
	if r.URL.RawQuery != "" {
		query, _ := url.ParseQuery(r.URL.RawQuery) // what can be read of it
		for name, values := range query {
			if namesKey(name) {
				all = append(all, values...)
			}
		}
	}
	return all
}

// namesKey says whether a header or a parameter of that name carries a key.
func namesKey(name string) bool {
	name = strings.ToLower(name)
	for _, ending := range []string{"key", "token", "secret", "auth", "authorization", "password"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}
