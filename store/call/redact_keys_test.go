package call

import (
	"fmt"
	"strings"
	"testing"
)

func TestKnownKeysAreTakenOutHoweverTheyAreWritten(t *testing.T) {
	k := NewKeys("plainkey-1111", `ab/cd+ef"gh=`, "short", "")
	for given, want := range map[string]string{
		`no quota for plainkey-1111.`:                  `no quota for [redacted].`,
		`{"m":"key plainkey-1111"}`:                    `{"m":"key [redacted]"}`,
		`{"m":"key ab\/cd+ef\"gh="}`:                   `{"m":"key [redacted]"}`,
		`{"m":"key ab/cd\u002Bef\u0022gh\u003d"}`:      `{"m":"key [redacted]"}`,
		`{"m":"{\"k\":\"ab\\\/cd+ef\\\"gh=\"}"}`:       `{"m":"{\"k\":\"[redacted]\"}"}`,
		`see /x?k=ab%2Fcd%2bef%22gh%3D&b=1`:            `see /x?k=[redacted]&b=1`,
		`plainkey-1112 plainkey is short, ab/cd+ef"g.`: `plainkey-1112 plainkey is short, ab/cd+ef"g.`,
		`cut in its midst: plainkey-1`:                 `cut in its midst: [redacted]`,
		`cut too early to tell: plain`:                 `cut too early to tell: plain`,
	} {
		if got := k.Redact(given); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
	// One that Redact knows by its beginning, and takes to end earlier.
	known := NewKeys("sk-proj-aaaa1111/bbbb2222")
	c := &Call{ErrorBody: Redact(`{"m":"no quota for sk-proj-aaaa1111\/bbbb2222"}`)}
	if known.Scrub(c); c.ErrorBody != `{"m":"no quota for [redacted]"}` {
		t.Errorf("after Redact: %s", c.ErrorBody)
	}
	if got := NewKeys("short").Redact("short"); got != "short" {
		t.Errorf("of no keys: %q", got)
	}
}

func TestKnownKeysAreTakenOutOfAStreamInPieces(t *testing.T) {
	k := NewKeys("plain/key-1111")
	stream := data(`{"choices":[{"index":0,"delta":{"content":"it is plain"}}]}`, `{"choices":[{"index":0,"delta":{"content":"\/key-"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"1111, yours"}}]}`, `{"error":"whole: plain/key-1111"}`)
	got := k.RedactStream(stream)
	want := data(`{"choices":[{"index":0,"delta":{"content":"it is [redacted]"}}]}`, `{"choices":[{"index":0,"delta":{"content":""}}]}`,
		`{"choices":[{"index":0,"delta":{"content":", yours"}}]}`, `{"error":"whole: [redacted]"}`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKnownKeysNeverPrint(t *testing.T) {
	k := NewKeys("plainkey-1111")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		for _, text := range []string{fmt.Sprintf(verb, k), fmt.Sprintf(verb, struct{ K *Keys }{k}), fmt.Sprintf(verb, struct{ k *Keys }{k})} {
			if strings.Contains(text, "plainkey") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}
