package call

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimits(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		sentence string
		header   map[string]string
		want     []string
	}{
		{"none", map[string]string{"Content-Type": "application/json", "X-Ratelimit-Policy": "x", "Anthropic-Ratelimit-Status": "allowed"}, []string{}},
		{"OpenAI's", map[string]string{
			"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m30s",
			"X-Ratelimit-Limit-Tokens": "150000", "X-Ratelimit-Remaining-Tokens": "149984", "X-Ratelimit-Reset-Tokens": "6ms"},
			[]string{"requests: 0 of 60 left, resets in 1m30s", "tokens: 149984 of 150000 left, resets in 6ms"}},
		{"Anthropic's", map[string]string{
			"Anthropic-Ratelimit-Input-Tokens-Limit": "40000", "Anthropic-Ratelimit-Input-Tokens-Remaining": "0", "Anthropic-Ratelimit-Input-Tokens-Reset": "2026-12-01T10:00:42Z"},
			[]string{"input-tokens: 0 of 40000 left, resets in 42s"}},
		{"a subscription's, of which only the reset is told", map[string]string{"Anthropic-Ratelimit-Unified-5h-Reset": "1796126400"}, []string{"unified-5h: resets in 2h"}},
		{"the only limit, in milliseconds since 1970", map[string]string{"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1796119245000"},
			[]string{"limit: 0 of 20 left, resets in 45s"}},
		{"a subscription's that is used up", map[string]string{"Anthropic-Ratelimit-Unified-Status": "rejected", "Anthropic-Ratelimit-Unified-Reset": "1796126400"}, []string{"unified: used up, resets in 2h"}},
		{"the IETF's", map[string]string{"Ratelimit": `"minute";r=3;t=30, "day";r=77`, "Ratelimit-Policy": `"minute";q=100;w=60, "day";q=1000;w=86400`},
			[]string{"day: 77 of 1000 left", "minute: 3 of 100 left, resets in 30s"}},
		{"the IETF's older ones, with their policies", map[string]string{"Ratelimit-Limit": "100, 100;w=60", "Ratelimit-Remaining": "3", "Ratelimit-Reset": "30"}, []string{"limit: 3 of 100 left, resets in 30s"}},
		{"a limit alone", map[string]string{"X-Ratelimit-Limit-Requests": "20"}, []string{"requests: 20"}},
		{"what is left alone", map[string]string{"X-Ratelimit-Remaining-Requests": "7"}, []string{"requests: 7 left"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			h := http.Header{}
			for k, v := range row.header {
				h.Set(k, v)
			}
			got := []string{}
			for _, l := range Limits(h, now) {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
