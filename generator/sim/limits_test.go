package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// limited asks for an answer of n tokens to a prompt of so many words; 0 leaves
// max_tokens out.
func limited(s *Sim, api wire.API, words, n int) *httptest.ResponseRecorder {
	r := request(api, true)
	r.Messages[0].Parts[0].Text = strings.Repeat("weir ", words)
	r.MaxTokens = wire.Count{}
	if n > 0 {
		r.MaxTokens = wire.N(int64(n))
	}
	w := httptest.NewRecorder()
	ask(s, w, api, r)
	return w
}

// stated are the headers that tell of limits.
func stated(h http.Header) []string {
	var said []string
	for name, values := range h {
		if strings.Contains(name, "Ratelimit") {
			said = append(said, strings.ToLower(name)+": "+values[0])
		}
	}
	slices.Sort(said)
	return said
}

func TestRetryAfterIsTheTimeUntilOneMoreIsAdmitted(t *testing.T) {
	for _, row := range []struct {
		name          string
		api           wire.API
		limits        Limits
		words, tokens int
		by            Limit
	}{
		{"requests, OpenAI", wire.Chat, Limits{Requests: 7}, 3, 5, LimitRequests},
		{"requests, Anthropic", wire.Messages, Limits{Requests: 7}, 3, 5, LimitRequests},
		{"requests, Gemini", wire.Gemini, Limits{Requests: 7}, 3, 5, LimitRequests},
		{"a burst of two requests", wire.Responses, Limits{Requests: 60, Burst: 2 * time.Second}, 3, 5, LimitRequests},
		{"less than one request of burst", wire.Responses, Limits{Requests: 60, Burst: time.Millisecond}, 3, 5, LimitRequests},
		{"tokens, OpenAI", wire.Chat, Limits{Tokens: 700}, 50, 150, LimitTokens},
		{"input tokens, OpenAI", wire.Completions, Limits{InputTokens: 300}, 90, 5, LimitInputTokens},
		{"output tokens, OpenAI", wire.Responses, Limits{OutputTokens: 300}, 3, 70, LimitOutputTokens},
		{"output tokens, OpenAI, unlimited answers", wire.Chat, Limits{OutputTokens: 300}, 3, 0, LimitOutputTokens},
		{"input tokens, Anthropic", wire.Messages, Limits{InputTokens: 300}, 40, 5, LimitInputTokens},
		{"output tokens, Anthropic", wire.Messages, Limits{OutputTokens: 300}, 3, 400, LimitOutputTokens},
		{"tokens, Gemini", wire.Gemini, Limits{Tokens: 300}, 3, 400, LimitTokens},
		{"the limit that takes longest", wire.Chat, Limits{Requests: 30, Tokens: 700, Burst: time.Minute}, 50, 150, LimitTokens},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.limits.Milliseconds = true
			inBubble(t, Config{Engine: quick, Limits: row.limits}, func(t *testing.T, s *Sim, records *[]*Record) {
				ask := func() (*httptest.ResponseRecorder, *Record) {
					w := limited(s, row.api, row.words, row.tokens)
					return w, (*records)[len(*records)-1]
				}
				for range 3 { // a refusal takes nothing, so it can be met again and again
					w, rec := ask()
					for n := 0; w.Code == http.StatusOK; n++ {
						if rec.Refused != "" || n > 100 {
							t.Fatalf("request %d: refused by %q, and answered", n, rec.Refused)
						}
						w, rec = ask()
					}
					if w.Code != http.StatusTooManyRequests || rec.Refused != row.by || rec.Status != w.Code || len(rec.Events) > 0 {
						t.Fatalf("status %d, record %+v; want 429 by %s", w.Code, rec, row.by)
					}
					wait, err := strconv.Atoi(w.Header().Get("Retry-After-Ms"))
					if seconds := (wait + 999) / 1000; err != nil || w.Header().Get("Retry-After") != strconv.Itoa(seconds) || wait == 0 {
						t.Fatalf("Retry-After %q, Retry-After-Ms %q", w.Header().Get("Retry-After"), w.Header().Get("Retry-After-Ms"))
					}
					time.Sleep(ms(float64(wait) - 1.5)) // milliseconds are rounded up
					if w, _ := ask(); w.Code != http.StatusTooManyRequests {
						t.Fatalf("1.5 ms before its time: status %d", w.Code)
					}
					time.Sleep(ms(1.5))
					if w, _ := ask(); w.Code != http.StatusOK {
						t.Fatalf("at its time: status %d, %s", w.Code, w.Body)
					}
				}
			})
		})
	}
}

func TestWhatOneRequestTakes(t *testing.T) {
	// 1 a minute: in the time of a test nothing flows in.
	inBubble(t, Config{Engine: plainEngine}, func(t *testing.T, s *Sim, records *[]*Record) {
		takes := func(api wire.API, words, n int) charge {
			s.limits = newBuckets(Limits{InputTokens: 1, OutputTokens: 1, Burst: time.Minute * 100_000})
			limited(s, api, words, n)
			var c charge
			for _, b := range s.limits.look() {
				n := b.holds(b.lacks(time.Now()) + 30*time.Second)
				if b.limit == LimitInputTokens {
					c.input = n
				} else {
					c.output = n
				}
			}
			return c
		}
		usage := func() wire.Usage { return (*records)[len(*records)-1].Usage }
		first := takes(wire.Chat, 2000, 5)
		read := usage()
		if want := (charge{input: read.Input.N, output: 5}); first != want || read.CacheRead.N != 0 {
			t.Errorf("OpenAI took %+v, want %+v", first, want)
		}
		again := takes(wire.Chat, 2000, 5)
		if usage().CacheRead.N == 0 || again != first {
			t.Errorf("OpenAI took %+v of a prompt in the cache, want the same: %+v", again, first)
		}
		cached := takes(wire.Messages, 2000, 5)
		read = usage()
		if want := (charge{input: read.Input.N - read.CacheRead.N, output: 5}); cached != want || read.CacheRead.N == 0 {
			t.Errorf("Anthropic took %+v of a prompt in the cache, want %+v", cached, want)
		}
		s.c.StopShare = 1 // most of what is asked for is not used
		for _, row := range []struct {
			api      wire.API
			reserved bool
		}{{wire.Chat, true}, {wire.Completions, true}, {wire.Responses, true}, {wire.Messages, false}, {wire.Gemini, false}} {
			got := takes(row.api, 3, 500)
			want := usage().Output.N
			if want == 500 {
				t.Fatalf("%s: the answer used all that was asked for", row.api)
			}
			if row.reserved {
				want = 500
			}
			if got.output != want {
				t.Errorf("%s took %d output tokens, want %d", row.api, got.output, want)
			}
		}
	})
}

// Two requests with the same prompt are admitted before either is read: the
// second is taken for a new one, and finds the prompt in the cache.
func TestGuessOfCachedTokensIsPutRight(t *testing.T) {
	one := plainEngine
	one.Slots = 1
	inBubble(t, Config{Engine: one, Limits: Limits{InputTokens: 1, Burst: time.Minute * 100_000}}, func(t *testing.T, s *Sim, records *[]*Record) {
		done := make(chan struct{})
		for range 2 {
			go func() {
				limited(s, wire.Messages, 2000, 5)
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		var want int64
		for _, r := range *records {
			want += r.Usage.Input.N - r.Usage.CacheRead.N
		}
		b := s.limits.look()[0]
		if got := b.holds(b.lacks(time.Now()) + 30*time.Second); got != want {
			t.Errorf("%d input tokens were taken, want %d", got, want)
		}
	})
}

func TestWhatCanNeverBeAdmittedHasNoRetryAfter(t *testing.T) {
	inBubble(t, Config{Engine: quick, Limits: Limits{Requests: 1, Tokens: 100}}, func(t *testing.T, s *Sim, records *[]*Record) {
		limited(s, wire.Chat, 3, 5) // the only request of this minute: the worse reason is told
		w := limited(s, wire.Chat, 3, 200)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "Request too large") || (*records)[1].Refused != LimitTokens {
			t.Errorf("status %d, Retry-After %q, refused by %q: %s", w.Code, w.Header().Get("Retry-After"), (*records)[1].Refused, w.Body)
		}
	})
}

func TestLimitsAreStatedInTheDialectsHeaders(t *testing.T) {
	both := Limits{Requests: 60, InputTokens: 6000, OutputTokens: 600}
	for _, row := range []struct {
		name    string
		api     wire.API
		limits  Limits
		refused bool
		want    []string
	}{
		{"OpenAI", wire.Chat, Limits{Requests: 10, Tokens: 1500}, false, []string{
			"x-ratelimit-limit-requests: 10", "x-ratelimit-limit-tokens: 1500",
			"x-ratelimit-remaining-requests: 9", "x-ratelimit-remaining-tokens: 1279",
			"x-ratelimit-reset-requests: 6s", "x-ratelimit-reset-tokens: 8.84s"}},
		{"OpenAI, long and short", wire.Responses, Limits{Requests: 3000, Tokens: 30, Burst: time.Hour}, false, []string{
			"x-ratelimit-limit-requests: 3000", "x-ratelimit-limit-tokens: 30",
			"x-ratelimit-remaining-requests: 179999", "x-ratelimit-remaining-tokens: 1579",
			"x-ratelimit-reset-requests: 20ms", "x-ratelimit-reset-tokens: 7m22s"}},
		{"OpenAI, refused", wire.Chat, Limits{Tokens: 150}, true, []string{
			"x-ratelimit-limit-tokens: 150", "x-ratelimit-remaining-tokens: 150", "x-ratelimit-reset-tokens: 0s"}},
		{"OpenAI, apart", wire.Completions, both, false, []string{
			"x-ratelimit-limit-input-tokens: 6000", "x-ratelimit-limit-output-tokens: 600", "x-ratelimit-limit-requests: 60",
			"x-ratelimit-remaining-input-tokens: 5983", "x-ratelimit-remaining-output-tokens: 400", "x-ratelimit-remaining-requests: 59",
			"x-ratelimit-reset-input-tokens: 170ms", "x-ratelimit-reset-output-tokens: 20s", "x-ratelimit-reset-requests: 1s"}},
		{"Anthropic", wire.Messages, both, false, []string{
			"anthropic-ratelimit-input-tokens-limit: 6000", "anthropic-ratelimit-input-tokens-remaining: 5979", "anthropic-ratelimit-input-tokens-reset: 2000-01-01T00:00:01Z",
			"anthropic-ratelimit-output-tokens-limit: 600", "anthropic-ratelimit-output-tokens-remaining: 600", "anthropic-ratelimit-output-tokens-reset: 2000-01-01T00:00:00Z",
			"anthropic-ratelimit-requests-limit: 60", "anthropic-ratelimit-requests-remaining: 59", "anthropic-ratelimit-requests-reset: 2000-01-01T00:00:01Z",
			"anthropic-ratelimit-tokens-limit: 6600", "anthropic-ratelimit-tokens-remaining: 6579", "anthropic-ratelimit-tokens-reset: 2000-01-01T00:00:01Z"}},
		{"Anthropic, together", wire.Messages, Limits{Tokens: 600}, false, []string{
			"anthropic-ratelimit-tokens-limit: 600", "anthropic-ratelimit-tokens-remaining: 579", "anthropic-ratelimit-tokens-reset: 2000-01-01T00:00:03Z"}},
		{"Gemini", wire.Gemini, both, false, nil},
		{"unstated", wire.Chat, Limits{Requests: 1, Unstated: true}, false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, Config{Engine: quick, Limits: row.limits}, func(t *testing.T, s *Sim, _ *[]*Record) {
				w := limited(s, row.api, 3, 200)
				if (w.Code != http.StatusOK) != row.refused {
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
				if diff := cmp.Diff(row.want, stated(w.Header())); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestRefusalIsInTheDialectsWords(t *testing.T) {
	for _, row := range []struct {
		api  wire.API
		want string
	}{
		{wire.Chat, `{"error":{"message":"Rate limit reached for m on requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 1m0s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		{wire.Messages, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit of 1 requests per min (RPM): 1 used, 1 requested."}}`},
		{wire.Gemini, `{"error":{"code":429,"message":"This request would exceed the rate limit of 1 requests per min (RPM): 1 used, 1 requested.","status":"RESOURCE_EXHAUSTED"}}`},
	} {
		inBubble(t, Config{Engine: quick, Limits: Limits{Requests: 1, Unstated: true}}, func(t *testing.T, s *Sim, records *[]*Record) {
			limited(s, row.api, 3, 5)
			w := limited(s, row.api, 3, 5)
			if got := w.Body.String(); got != row.want || w.Header().Get("Retry-After") != "60" {
				t.Errorf("%s: Retry-After %s and\n%s; want 60 and\n%s", row.api, w.Header().Get("Retry-After"), got, row.want)
			}
			var log bytes.Buffer
			LogTo(&log, time.Now())((*records)[1])
			var line struct{ Refused string }
			if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Refused != "requests" {
				t.Errorf("%v: the log says %s", err, &log)
			}
		})
	}
}

func TestLimitsAreOfWhatGenerates(t *testing.T) {
	inBubble(t, Config{Engine: quick, Limits: Limits{Requests: 1}}, func(t *testing.T, s *Sim, _ *[]*Record) {
		for _, path := range []string{"/v1/models", "/v1/messages/count_tokens", "/v1/messages"} {
			method, body := http.MethodPost, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`
			if path == "/v1/models" {
				method, body = http.MethodGet, ""
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
			if w.Code != http.StatusOK || (len(stated(w.Header())) > 0) != (path == "/v1/messages") {
				t.Errorf("%s: status %d, %q", path, w.Code, stated(w.Header()))
			}
		}
	})
}

func TestHiddenLimitCanBeChangedAndIsStatedNowhere(t *testing.T) {
	inBubble(t, Config{Engine: plainEngine, Limits: Limits{Requests: 60}}, func(t *testing.T, s *Sim, records *[]*Record) {
		done := make(chan struct{})
		go func() {
			limited(s, wire.Chat, 3, 1000) // takes some 10 s
			close(done)
		}()
		time.Sleep(time.Second)
		rows := []struct{ limit, status int }{{1, 429}, {2, 200}, {1, 429}, {0, 200}}
		for _, row := range rows {
			s.SetHiddenLimit(row.limit)
			w := limited(s, wire.Chat, 3, 1)
			if said := stated(w.Header()); w.Code != row.status || len(said) != 3 || said[0] != "x-ratelimit-limit-requests: 60" {
				t.Errorf("hidden limit %d: status %d, %q", row.limit, w.Code, said)
			}
		}
		<-done // the last to end
		for i, row := range rows {
			if rec := (*records)[i]; (rec.Refused == LimitInFlight) != (row.status == 429) {
				t.Errorf("hidden limit %d: refused by %q", row.limit, rec.Refused)
			}
		}
	})
}

func TestLimitsBelow0AreRefused(t *testing.T) {
	for _, l := range []Limits{{Requests: -1}, {InputTokens: -1}, {OutputTokens: -1}, {Tokens: -1}, {Burst: -1}} {
		if _, err := New(Config{Limits: l}); err == nil || !strings.Contains(err.Error(), "below 0") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
