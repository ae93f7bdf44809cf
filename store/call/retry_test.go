package call

import (
	"maps"
	"net/http"
	"testing"
	"time"
)

func TestAskedToComeAgainAtOnceIsNotUnsaid(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		sentence, name, value string
		status                int
		atOnce                bool
	}{
		{"nothing said", "X-Other", "0", 429, false},
		{"0", "Retry-After", "0", 429, true},
		{"0.0 of an overloaded one", "Retry-After", "0.0", 529, true},
		{"no milliseconds", "Retry-After-Ms", "0", 429, true},
		{"a date that has passed", "Retry-After", "Tue, 01 Dec 2026 09:00:00 GMT", 503, true},
		{"a second", "Retry-After", "1", 429, false},
		{"nonsense", "Retry-After", "soon", 429, false},
		{"no refusal", "Retry-After", "0", 500, false},
	} {
		if _, atOnce, _ := Asked(row.status, http.Header{row.name: {row.value}}, now, Use{}); atOnce != row.atOnce {
			t.Errorf("%s: at once %v, want %v", row.sentence, atOnce, row.atOnce)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		sentence string
		status   int
		header   map[string]string
		want     time.Duration
	}{
		{"nothing said", 429, nil, 0},
		{"seconds", 429, map[string]string{"Retry-After": "20"}, 20 * time.Second},
		{"seconds on a 500", 500, map[string]string{"Retry-After": "20"}, 20 * time.Second},
		{"parts of a second", 503, map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		{"a date", 503, map[string]string{"Retry-After": "Tue, 01 Dec 2026 10:01:00 GMT"}, time.Minute},
		{"a date, by the server's own clock", 503, map[string]string{"Retry-After": "Tue, 01 Dec 2026 11:01:00 GMT", "Date": "Tue, 01 Dec 2026 11:00:30 GMT"}, 30 * time.Second},
		{"a date that has passed", 503, map[string]string{"Retry-After": "Tue, 01 Dec 2026 09:00:00 GMT"}, 0},
		{"milliseconds go before seconds", 429, map[string]string{"Retry-After-Ms": "1250", "Retry-After": "2"}, 1250 * time.Millisecond},
		{"OpenAI's reset of the limit that is used up", 429, map[string]string{
			"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1s",
			"X-Ratelimit-Remaining-Tokens": "900", "X-Ratelimit-Reset-Tokens": "6m0s"}, time.Second},
		{"no limit used up → the longest reset", 429, map[string]string{"X-Ratelimit-Reset-Requests": "20ms", "X-Ratelimit-Reset-Tokens": "1.5s"}, 1500 * time.Millisecond},
		{"seconds since 1970", 429, map[string]string{"X-Ratelimit-Reset": "1796119245"}, 45 * time.Second},
		{"milliseconds since 1970", 429, map[string]string{"X-Ratelimit-Reset": "1796119245000"}, 45 * time.Second},
		{"Anthropic's reset", 429, map[string]string{
			"Anthropic-Ratelimit-Input-Tokens-Remaining": "0", "Anthropic-Ratelimit-Input-Tokens-Reset": "2026-12-01T10:00:07Z",
			"Anthropic-Ratelimit-Requests-Remaining": "40", "Anthropic-Ratelimit-Requests-Reset": "2026-12-01T10:00:59Z"}, 7 * time.Second},
		{"resets stand on a 400 too, and ask for nothing", 400, map[string]string{"X-Ratelimit-Reset-Requests": "1s"}, 0},
		{"nonsense", 429, map[string]string{"Retry-After": "soon", "Retry-After-Ms": "NaN", "X-Ratelimit-Reset": "-5"}, 0},
		{"a month", 429, map[string]string{"Retry-After": "2678400"}, 31 * 24 * time.Hour},
		{"a second more than a month is a slip", 429, map[string]string{"Retry-After": "2678401"}, 0},
		{"so are twenty nines", 429, map[string]string{"Retry-After": "99999999999999999999"}, 0},
		{"and a date years away", 429, map[string]string{"Retry-After": "Wed, 01 Dec 2032 09:00:00 GMT"}, 0},
		{"and milliseconds without end, but not the seconds beside them", 429, map[string]string{"Retry-After-Ms": "99999999999999999999", "Retry-After": "2"}, 2 * time.Second},
		{"a power of ten is no number of seconds", 429, map[string]string{"Retry-After": "1e9"}, 0},
		{"nor is one below 0", 429, map[string]string{"Retry-After": "-5", "Retry-After-Ms": "-5"}, 0},
		{"nor infinity", 429, map[string]string{"Retry-After": "Inf"}, 0},
		{"a slip → what the limits say", 429, map[string]string{"Retry-After": "1e9", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "9"}, 9 * time.Second},
		{"a reset years away", 429, map[string]string{"X-Ratelimit-Reset": "1996119245"}, 0},
		{"a reset before its limit", 429, map[string]string{"X-Ratelimit-Reset": "-5s"}, 0},
		{"the IETF's older fields", 429, map[string]string{"Ratelimit-Limit": "100, 100;w=60", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "30"}, 30 * time.Second},
		{"the IETF's field, of two limits the one that is used up", 429, map[string]string{"Ratelimit": `"minute";r=0;t=30, "day";r=77;t=9000`}, 30 * time.Second},
		{"a subscription's window, not the longest of them", 429, map[string]string{
			"Anthropic-Ratelimit-Unified-Status": "rejected", "Anthropic-Ratelimit-Unified-Reset": "1796119260",
			"Anthropic-Ratelimit-Unified-7d-Reset": "1796419260"}, time.Minute},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			h := http.Header{}
			for k, v := range row.header {
				h.Set(k, v)
			}
			if got := retryAfter(row.status, h, now); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestALimitThatFillsEvenlyIsWaitedForOnlyUntilTheNextCallFits(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	openai := func(what, limit, left, reset string) map[string]string {
		return map[string]string{"X-Ratelimit-Limit-" + what: limit, "X-Ratelimit-Remaining-" + what: left, "X-Ratelimit-Reset-" + what: reset}
	}
	anthropic := func(what, limit, left, reset string) map[string]string {
		return map[string]string{"Anthropic-Ratelimit-" + what + "-Limit": limit, "Anthropic-Ratelimit-" + what + "-Remaining": left, "Anthropic-Ratelimit-" + what + "-Reset": reset}
	}
	next := Use{InputTokens: 900, OutputTokens: 100}
	for _, row := range []struct {
		sentence string
		status   int
		header   map[string]string
		wait     time.Duration
		why      string
	}{
		{"one of 60 requests a minute comes back in a second", 200, openai("Requests", "60", "0", "1m0s"), time.Second, "requests used up"},
		{"tokens: as many as the next call uses", 200, openai("Tokens", "60000", "0", "1m0s"), time.Second, "tokens used up"},
		{"more than there can be → until all are back", 200, openai("Tokens", "500", "0", "1m0s"), time.Minute, "tokens used up"},
		{"a rate beyond counting → a little all the same", 200, openai("Requests", "600000", "0", "1m0s"), 50 * time.Millisecond, "requests used up"},
		{"and never longer than the reset", 200, openai("Requests", "600000", "0", "6ms"), 6 * time.Millisecond, "requests used up"},
		{"some are left → no wait", 200, openai("Tokens", "60000", "500", "1m0s"), 0, ""},
		{"how many there can be is not said → the whole reset", 200, map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m0s"}, time.Minute, "requests used up"},
		{"a number is the end of a window", 200, openai("Requests", "60", "0", "60"), time.Minute, "requests used up"},
		{"so is a point in time", 200, openai("Requests", "60", "0", "1796119260"), time.Minute, "requests used up"},
		{"Anthropic's input tokens", 200, anthropic("Input-Tokens", "54000", "0", "2026-12-01T10:01:00Z"), time.Second, "input-tokens used up"},
		{"Anthropic's output tokens", 200, anthropic("Output-Tokens", "6000", "0", "2026-12-01T10:01:00Z"), time.Second, "output-tokens used up"},
		{"a subscription's window", 200, anthropic("Unified-5h", "100", "0", "1796119260"), time.Minute, "unified-5h used up"},
		{"the IETF's older fields", 200, map[string]string{"Ratelimit-Limit": "100", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "30"}, 30 * time.Second, "used up"},
		{"some left of them", 200, map[string]string{"Ratelimit-Limit": "100", "Ratelimit-Remaining": "1", "Ratelimit-Reset": "30"}, 0, ""},
		{"the IETF's field", 200, map[string]string{"Ratelimit": `"default";r=0;t=30`, "Ratelimit-Policy": `"default";q=100;w=60`}, 30 * time.Second, "default used up"},
		{"some left of it", 200, map[string]string{"Ratelimit": `"default";r=50;t=30`}, 0, ""},
		{"of two limits the one that is used up", 200, map[string]string{"Ratelimit": `"day; all, \"of\" it";r=77;t=9000;pk=:cHs=:, minute;r=0;t=12`}, 12 * time.Second, "minute used up"},
		{"as it was before its 8th version", 200, map[string]string{"Ratelimit": "limit=100, remaining=0, reset=30", "Ratelimit-Policy": "100;w=60"}, 30 * time.Second, "used up"},
		{"one that breaks off says nothing", 200, map[string]string{"Ratelimit": `"default";r=0;t=30, "other`}, 0, ""},
		{"nor does one whose time is none", 200, map[string]string{"Ratelimit": `"default";r=0;t=-30`}, 0, ""},
		{"a subscription says with an answer that it was the last", 200, map[string]string{"Anthropic-Ratelimit-Unified-Status": "rejected", "Anthropic-Ratelimit-Unified-Reset": "1796119260"}, time.Minute, "unified used up"},
		{"unless overage is paid for", 200, map[string]string{"Anthropic-Ratelimit-Unified-Status": "rejected", "Anthropic-Ratelimit-Unified-Overage-Status": "allowed", "Anthropic-Ratelimit-Unified-Reset": "1796119260"}, 0, ""},
		{"or it lets calls pass", 200, map[string]string{"Anthropic-Ratelimit-Unified-Status": "allowed_warning", "Anthropic-Ratelimit-Unified-Reset": "1796119260"}, 0, ""},
		{"the longer of two", 200, both(openai("Requests", "60", "0", "1m0s"), openai("Tokens", "30000", "0", "1m0s")), 2 * time.Second, "tokens used up"},
		{"a refusal with a word of its own → that", 429, both(openai("Requests", "60", "0", "1m0s"), map[string]string{"Retry-After": "40"}), 40 * time.Second, "429"},
		{"a refusal without one → until the next fits", 429, openai("Tokens", "20000", "0", "1m0s"), 3 * time.Second, "429"},
		{"by what is missing", 429, openai("Tokens", "20000", "500", "1m18s"), 2 * time.Second, "429"},
		{"and a second at least", 429, openai("Requests", "6000", "0", "1m0s"), time.Second, "429"},
		{"a refusal with enough left of all → until all is back", 429, openai("Requests", "60", "30", "30s"), 30 * time.Second, "429"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			h := http.Header{}
			for k, v := range row.header {
				h.Set(k, v)
			}
			wait, _, why := Asked(row.status, h, now, next)
			if wait != row.wait || why != row.why {
				t.Errorf("asked for %v because of %q, want %v and %q", wait, why, row.wait, row.why)
			}
		})
	}
}

func both(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
