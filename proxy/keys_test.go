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
