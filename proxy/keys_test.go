package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/shaper"
	"weir/store/call"
)

func TestClientMayUseAnyDummyWhereWeirHoldsTheKey(t *testing.T) {
	for _, row := range []struct {
		api      wire.API
		key      string
		provider string
		want     map[string]string
	}{
		{wire.Chat, "sk-1", "openai", map[string]string{"Authorization": "Bearer sk-1"}},
		{wire.Responses, "sk-1", "openai", map[string]string{"Authorization": "Bearer sk-1"}},
		{wire.Messages, "sk-ant-1", "anthropic", map[string]string{"X-Api-Key": "sk-ant-1"}},
		{wire.Messages, "sk-ant-oat01-1", "anthropic", map[string]string{"Authorization": "Bearer sk-ant-oat01-1"}},
		{wire.Messages, "sk-gw", "deepseek", map[string]string{"X-Api-Key": "sk-gw", "Authorization": "Bearer sk-gw"}},
		{wire.Gemini, "AIza1", "gcp.gemini", map[string]string{"X-Goog-Api-Key": "AIza1"}},
		{wire.Chat, "az", "azure.ai.openai", map[string]string{"Api-Key": "az"}},
		{"", "sk-1", "openai", map[string]string{"Authorization": "Bearer sk-1"}},
	} {
		h := http.Header{"X-Api-Key": {"dummy"}, "Authorization": {"Bearer dummy"}, "X-Goog-Api-Key": {"dummy"}, "Api-Key": {"dummy"}}
		query := (&heldKey{secret: NewSecret(row.key)}).put(h, "alt=sse&key=dummy&b=%2F", row.api, row.provider)
		got := map[string]string{}
		for name := range h {
			got[name] = h.Get(name)
		}
		if diff := cmp.Diff(row.want, got); diff != "" || query != "alt=sse&b=%2F" {
			t.Errorf("%s at %s: query %q, headers (-want +got):\n%s", row.api, row.provider, query, diff)
		}
	}
}

func TestCallsAreSpreadOverHeldKeysLeastLoadedFirst(t *testing.T) {
	k := newKeyring(secrets("a", "b", "c"))
	var taken []*heldKey
	for range 6 {
		taken = append(taken, k.take())
	}
	count := map[string]int{}
	for _, key := range taken {
		count[key.secret.reveal()]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2, "c": 2}, count); diff != "" {
		t.Errorf("6 calls at once (-want +got):\n%s", diff)
	}
	k.give(taken[1], &call.Call{Outcome: call.OK})
	if next := k.take(); next != taken[1] {
		t.Error("the key with the fewest calls was not next")
	}
	if newKeyring(nil).take() != nil {
		t.Error("an empty keyring gave a key")
	}
}

func TestKeyThatWasTurnedAwayRests(t *testing.T) {
	for _, row := range []struct {
		c    call.Call
		rest time.Duration
	}{
		{call.Call{Outcome: call.RateLimited, RetryAfter: 20 * time.Second}, 20 * time.Second},
		{call.Call{Outcome: call.RateLimited}, limitedKeyFor},
		{call.Call{Outcome: call.Auth}, refusedKeyFor},
		{call.Call{Outcome: call.Overloaded, RetryAfter: 20 * time.Second}, 0}, // which is not about the key
		{call.Call{Outcome: call.OK}, 0},
	} {
		k := newKeyring(secrets("a", "b"))
		first := k.take()
		row.c.Done = call.Now()
		k.give(first, &row.c)
		if want := call.Instant(0); row.rest > 0 {
			want = row.c.Done + call.Instant(row.rest)
			if first.held != want {
				t.Errorf("%s: held until %v, want %v", row.c.Outcome, first.held, want)
			}
			for range 3 {
				if k.take() == first {
					t.Errorf("%s: the key was taken while it rests", row.c.Outcome)
				}
			}
		} else if first.held != want {
			t.Errorf("%s: the key rests until %v", row.c.Outcome, first.held)
		}
	}
	// When all rest, the first to be wanted again is tried.
	k := newKeyring(secrets("a", "b"))
	a, b := k.take(), k.take()
	k.give(a, &call.Call{Outcome: call.RateLimited, RetryAfter: time.Hour, Instants: call.Instants{Done: call.Now()}})
	k.give(b, &call.Call{Outcome: call.RateLimited, RetryAfter: time.Minute, Instants: call.Instants{Done: call.Now()}})
	if k.take() != b {
		t.Error("of two keys that rest the one that rests longer was taken")
	}
}

func TestHeldKeysServeCallsAndAreToldApart(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Api-Key")
		mu.Lock()
		seen = append(seen, key)
		mu.Unlock()
		if key == "held-key-1" {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"rate_limit_error","message":"the key %s is over its limit"}}`, key)
		}
	})
	s := start(t, up, func(p *Proxy) {
		p.Upstreams[0].Keys = secrets("held-key-1", "held-key-2")
		p.Fingerprint = func(key string) string { return "print-of-" + key[len(key)-1:] }
	})
	for range 4 {
		path, body := requestOf(wire.Messages, true)
		req, _ := http.NewRequest("POST", s.url+path, strings.NewReader(string(body)))
		req.Header.Set("X-Api-Key", "dummy")
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	s.call(t, 4)
	if diff := cmp.Diff([]string{"held-key-1", "held-key-2", "held-key-2", "held-key-2"}, seen); diff != "" {
		t.Errorf("keys at the upstream (-want +got):\n%s", diff)
	}
	first, second := s.call(t, 1), s.call(t, 2)
	if first.KeyFingerprint != "print-of-1" || second.KeyFingerprint != "print-of-2" {
		t.Errorf("fingerprints %q and %q", first.KeyFingerprint, second.KeyFingerprint)
	}
	if first.Outcome != call.RateLimited || first.ErrorMessage != "the key [redacted] is over its limit" || strings.Contains(first.ErrorBody, "held-key") {
		t.Errorf("recorded %v with the body %s", first, first.ErrorBody)
	}
}

// A key's limit is reached; which key comes next, and what is heard of a busy
// endpoint that another key does not help with.
func TestARefusedCallIsSentAgainWithAKeyThatIsFree(t *testing.T) {
	for _, row := range []struct {
		sentence string
		keys     []string
		refuses  map[string]int // status, by key
		wait     string
		want     []string // keys at the endpoint
		last     string   // fingerprint
		outcome  call.Outcome
	}{
		{"the other key, and not in an hour", []string{"held-key-1", "held-key-2"}, map[string]int{"held-key-1": 429}, "3600",
			[]string{"held-key-1", "held-key-2"}, "print-of-2", call.OK},
		{"the third where two are at their limits", []string{"held-key-1", "held-key-2", "held-key-3"}, map[string]int{"held-key-1": 429, "held-key-2": 429}, "3600",
			[]string{"held-key-1", "held-key-2", "held-key-3"}, "print-of-3", call.OK},
		{"none is free → the refusal", []string{"held-key-1", "held-key-2"}, map[string]int{"held-key-1": 429, "held-key-2": 429}, "3600",
			[]string{"held-key-1", "held-key-2"}, "print-of-2", call.RateLimited},
		{"an overloaded endpoint is so for all keys", []string{"held-key-1", "held-key-2"}, map[string]int{"held-key-1": 529, "held-key-2": 529}, "3600",
			[]string{"held-key-1"}, "print-of-1", call.Overloaded},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				mu.Lock()
				seen = append(seen, key)
				mu.Unlock()
				if status := row.refuses[key]; status != 0 {
					w.Header().Set("Retry-After", row.wait)
					w.WriteHeader(status)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, answerInOne)
			})
			s := start(t, up, func(p *Proxy) {
				p.Upstreams[0].Keys = secrets(row.keys...)
				p.Fingerprint = func(key string) string { return "print-of-" + key[len(key)-1:] }
				p.Shaper = &shaper.Shaper{}
				if _, _, err := p.Shaper.Change("all concurrency=5 retry=5"); err != nil {
					t.Fatal(err)
				}
			})
			resp, err := s.post(t, t.Context(), wire.Chat)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			c := s.call(t, 1)
			if diff := cmp.Diff(row.want, seen); diff != "" {
				t.Errorf("keys at the upstream (-want +got):\n%s", diff)
			}
			if c.Outcome != row.outcome || c.KeyFingerprint != row.last || c.Refusals != len(row.want)-1 {
				t.Errorf("recorded %v with the key %s and %d refusals", c.Outcome, c.KeyFingerprint, c.Refusals)
			}
			for _, key := range s.upstreams[0].keyring.keys {
				waitUntil(t, func() bool {
					s.upstreams[0].keyring.mu.Lock()
					defer s.upstreams[0].keyring.mu.Unlock()
					return key.active == 0
				})
			}
		})
	}
}

func TestKeyOfAClientThatIsEchoedIsNotStored(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error":{"message":"wrong key: %s","type":"invalid_request_error"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	})
	s := start(t, up, nil)
	path, body := requestOf(wire.Chat, true)
	req, _ := http.NewRequest("POST", s.url+path, strings.NewReader(string(body)))
	req.Header.Set("Authorization", "Bearer oddly_shaped=key")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(answer), "oddly_shaped=key") {
		t.Errorf("the client's answer was changed: %s", answer)
	}
	if c := s.call(t, 1); strings.Contains(c.ErrorMessage+c.ErrorBody, "oddly") || !strings.Contains(c.ErrorMessage, "wrong key") {
		t.Errorf("recorded %q and %q", c.ErrorMessage, c.ErrorBody)
	}
}

func secrets(keys ...string) (all []Secret) {
	for _, key := range keys {
		all = append(all, NewSecret(key))
	}
	return all
}

func TestSecretIsNeverPrinted(t *testing.T) {
	const key = "sk-live-1234567890"
	u := Upstream{Name: "up", Keys: secrets(key), keyring: newKeyring(secrets(key))}
	x := exchange{secret: NewSecret(key), key: u.keyring.keys[0]}
	asJSON, err := json.Marshal(u.Keys)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		all = append(all, fmt.Sprintf(verb, NewSecret(key)), fmt.Sprintf(verb, u), fmt.Sprintf(verb, &u), fmt.Sprintf(verb, *u.keyring.keys[0]), fmt.Sprintf(verb, x.secret), fmt.Sprintf(verb, x.key))
	}
	if i := slices.IndexFunc(all, func(s string) bool {
		return strings.Contains(s, "1234567890") || strings.Contains(s, "736b2d6c697665")
	}); i >= 0 {
		t.Errorf("printed: %s", all[i])
	}
}

// Some gateways want the key in the path as well.
func TestAKeyInThePathIsNotKept(t *testing.T) {
	s := start(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }), nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/unlike-any-other-0123456789/v1/messages", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "unlike-any-other-0123456789")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if c := s.call(t, 1); strings.Contains(c.Path, "unlike") || !strings.HasSuffix(c.Path, "/v1/messages") {
		t.Errorf("path %q", c.Path)
	}
}
