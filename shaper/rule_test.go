package shaper

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARuleIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"rps=2":                       "all rps=2",
		"all rps=2":                   "all rps=2",
		"all":                         "all",
		"rps=2 scenario=rag":          "scenario=rag rps=2",
		"  scenario=rag\trps=2 ":      "scenario=rag rps=2",
		"session=each concurrency=1":  "session=each concurrency=1",
		"model=openai/gpt-4o tpm=1e3": "model=openai/gpt-4o tpm=1000",
		"key=each upstream=a* scenario=x model=[a-c]? session=s rpm=100": "scenario=x upstream=a* model=[a-c]? key=each session=s rpm=100",
		"scenario=rag":            "scenario=rag",
		"scenario=rag rps=off":    "scenario=rag",
		"scenario=长文本 rps=2":      "scenario=长文本 rps=2",
		"model=a=b concurrency=1": "model=a=b concurrency=1",
	} {
		r, err := ParseRule(text)
		if err != nil || r.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, r, err, want)
		}
	}
}

func TestWhatIsNoRuleIsRefused(t *testing.T) {
	const names = "; want one of scenario, upstream, model, key, session, rps, rpm, burst, tpm, input_tpm, output_tpm, burst_tokens, " +
		"cached_weight, concurrency, queue, wait, priority, share, retry, hold"
	for text, want := range map[string]string{
		"":                          `want something like scenario=rag rps=2`,
		" \t":                       `want something like scenario=rag rps=2`,
		"rag rps=2":                 `"rag": want NAME=VALUE, as in rps=2`,
		"rps=2 rps=3":               `rps stands twice`,
		"scenario=a scenario=b":     `scenario stands twice`,
		"all all rps=1":             `all stands twice`,
		"all scenario=rag rps=2":    `all is every call, and scenario=rag is some; keep one`,
		"rps=1 rpm=60":              `rps and rpm are one limit; keep one`,
		"scenario= rps=2":           `scenario: "" is no name or pattern`,
		"model=[a rps=2":            `model: "[a" is no name or pattern`,
		"scenario=rag rps=fast":     `rps: "fast": want a number above 0`,
		"scenario=rag concurency=2": `"concurency" is no limit` + names,
		"=2":                        `"" is no limit` + names,
	} {
		r, err := ParseRule(text)
		if err == nil || err.Error() != "limit "+quoted(text)+": "+want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
		if r != (Rule{}) {
			t.Errorf("%q gives %v beside its error", text, r)
		}
	}
	var unknown *UnknownName
	if _, err := ParseRule("scenaro=rag rps=2"); !errors.As(err, &unknown) || unknown.Name != "scenaro" {
		t.Errorf("got %v", err)
	}
}

func quoted(text string) string {
	if text == " \t" {
		return `" \t"`
	}
	return `"` + text + `"`
}

// Who puts the key itself where its fingerprint belongs does not find it in an
// error, a log or a lane's name.
func TestAKeyIsNoFingerprintAndIsNotShown(t *testing.T) {
	const want = "limit: key= wants the key's fingerprint, which weir report --by key shows, or each; not the key itself"
	for _, secret := range []string{"sk-ant-0123", "0123456789abcdef0123456789abcdef", "AIza0123", "0123abcg"} {
		for _, text := range []string{"key=" + secret + " rps=2", "rps=fast key=" + secret, "bogus key=" + secret} {
			if _, err := ParseRule(text); err == nil || err.Error() != want {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	for _, fingerprint := range []string{"1a2b3c4d", "1a*", "[0-9a-f]???????", "each", "*"} {
		if r, err := ParseRule("key=" + fingerprint + " rps=2"); err != nil || r.Select.Key != fingerprint {
			t.Errorf("%s: %v", fingerprint, err)
		}
	}
}

// laneOf is the lane that a rule gives a call; "–" when it does not speak of it.
func laneOf(t *testing.T, rule string, a Ask) string {
	t.Helper()
	r, err := ParseRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := r.Select.lane(&a); ok {
		return name
	}
	return "–"
}

func TestACallHasTheLanesThatSpeakOfIt(t *testing.T) {
	for _, row := range []struct {
		sentence, rule string
		call           Ask
		want           string
	}{
		{"every call", "rps=1", Ask{}, "all"},
		{"a call of the scenario", "scenario=rag", Ask{Scenario: "rag"}, "scenario=rag"},
		{"a call of another one", "scenario=rag", Ask{Scenario: "rags"}, "–"},
		{"a call without one", "scenario=rag", Ask{}, "–"},
		{"those that a glob fits share a lane", "model=gpt-*", Ask{Model: "gpt-4o"}, "model=gpt-*"},
		{"a glob that does not fit", "model=gpt-*", Ask{Model: "o3"}, "–"},
		{"a model's whole name with its slash", "model=openai/gpt-4o", Ask{Model: "openai/gpt-4o"}, "model=openai/gpt-4o"},
		{"a star stands for slashes too", "model=*gpt-4o", Ask{Model: "openai/gpt-4o"}, "model=*gpt-4o"},
		{"… for several", "model=accounts/*", Ask{Model: "accounts/fireworks/models/llama"}, "model=accounts/*"},
		{"… and a question mark for one", "model=openai?gpt", Ask{Model: "openai/gpt"}, "model=openai?gpt"},
		{"a slash is still a slash", "model=openai/*", Ask{Model: "openai-gpt"}, "–"},
		{"a set of letters", "model=[a-c]/x", Ask{Model: "b/x"}, "model=[a-c]/x"},
		{"each key has a lane", "key=each", Ask{Key: "1a2b3c4d"}, "key=1a2b3c4d"},
		{"a call without a key has none of these", "key=each", Ask{}, "–"},
		{"a call without a session has no session's", "session=each", Ask{Scenario: "rag"}, "–"},
		{"each session of one scenario", "scenario=rag session=each", Ask{Scenario: "rag", Session: "s1"}, "scenario=rag session=s1"},
		{"each session, of another scenario", "scenario=rag session=each", Ask{Scenario: "chat", Session: "s1"}, "–"},
		{"each model, with its slash", "model=each", Ask{Model: "openai/gpt-4o"}, "model=openai/gpt-4o"},
		{"all that is asked must be so", "scenario=rag upstream=a", Ask{Scenario: "rag", Upstream: "b"}, "–"},
		{"any scenario at all", "scenario=*", Ask{}, "scenario=*"},
	} {
		if got := laneOf(t, row.rule, row.call); got != row.want {
			t.Errorf("%s: %q, want %q", row.sentence, got, row.want)
		}
	}
	// A glob that no ParseRule has read gives no lane.
	if name, ok := (&Selector{Model: "[a"}).lane(&Ask{Model: "[a"}); ok {
		t.Errorf("a broken glob gives %q", name)
	}
}

func TestLanesThatComeWithTheCallsAreToldFromFixedOnes(t *testing.T) {
	for rule, want := range map[string]bool{"all": false, "scenario=rag": false, "session=each": true, "scenario=rag key=each": true, "model=eac[h]": false} {
		r, err := ParseRule(rule)
		if err != nil || r.Select.each() != want {
			t.Errorf("%s: %v, %v", rule, r.Select.each(), err)
		}
	}
}

// What a rule is written as reads as the same rule.
func FuzzRuleIsWhatItIsWrittenAs(f *testing.F) {
	for _, seed := range []string{
		"all", "rps=2", "scenario=rag rps=0.3 concurrency=adaptive:8 wait=1h0m5s", "model=openai/* rpm=100 queue=none hold=off",
		"rpm=0.0000601", "rps=1e-6 share=0.1", "cached_weight=-0 priority=high", "session=each retry=2 burst=9 tpm=1e12", "key= rps=x", "all rps=off",
		"rps=0.12345678901234567", "rpm=7.4074073", "rps=20000000000.01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		again, err := ParseRule(r.String())
		if err != nil {
			t.Fatalf("%q is written %q, which is refused: %v", text, r, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%q is written %q, which reads differently (-first +again):\n%s", text, r, diff)
		}
		// A part that is taken away leaves the others as they are.
		for _, name := range LimitNames() {
			less := r.Limit
			if err := less.Set(name, ""); err != nil {
				t.Fatalf("%s cannot be taken away: %v", name, err)
			}
			want := 0
			for _, other := range settings {
				if other.name != name && !(isRate(other.name) && isRate(name)) && other.text(&r.Limit) != "" {
					want++
				}
			}
			got := 0
			for _, s := range settings {
				if s.text(&less) != "" {
					got++
				}
			}
			if got != want {
				t.Errorf("%q without %s is %q", r, name, less)
			}
		}
	})
}

func TestANameWithASpaceStandsInQuotes(t *testing.T) {
	for text, want := range map[string]string{
		`session="a b" rps=2`:       "a b",
		`session="a, b" rps=2`:      "a, b",
		`session="say \"a\"" rps=2`: `say "a"`,
	} {
		r, err := ParseRule(text)
		if err != nil || r.Select.Session != want || r.String() != text {
			t.Errorf("%s: %v, session %q, written %s", text, err, r.Select.Session, r)
		}
		if name, ok := r.Select.lane(&Ask{Session: want}); !ok || name+" rps=2" != text {
			t.Errorf("%s: the lane is %s", text, name)
		}
	}
	for _, text := range []string{`session="a b rps=2`, `session="a b"c rps=2`} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%s was read as %s", text, r)
		}
	}
}
