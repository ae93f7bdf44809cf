package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

func TestTheMostFrequentExplanationOfAFailureIsShown(t *testing.T) {
	limited, broke := "Please try again in 2s.", "You exceeded your current quota (insufficient_quota)."
	var calls []*call.Call
	for i, said := range []string{limited, broke, broke} {
		calls = append(calls, spans(failedCall("chat", call.RateLimited, 429, said), byte(i+1), 0))
	}
	f := summary(t, Options{}, calls...).Failures[0]
	if !strings.Contains(f.What, "no credit left") || !strings.Contains(f.Next, "Add credit") || f.Calls != 3 {
		t.Errorf("%d calls: %s → %s", f.Calls, f.What, f.Next)
	}
}

func TestKindsOfFailuresAreExplainedOnceTheMostFrequentFirst(t *testing.T) {
	r := &Report{Failures: []Failure{
		{Group: []string{"a"}, Outcome: call.Auth, Status: 401, Calls: 2, What: "A", Next: "a"},
		{Group: []string{"a"}, Outcome: call.RateLimited, Status: 429, Calls: 2, What: "B", Next: "b"},
		{Group: []string{"b"}, Outcome: call.RateLimited, Status: 429, Calls: 3, What: "C", Next: "c"},
		{Group: []string{"b"}, Outcome: call.Timeout, Calls: 9},
	}}
	var b bytes.Buffer
	r.explanations(&b, Style{Width: 80})
	want := "✗ rate_limited 429  C\n                    → c\n✗ auth 401          A\n                    → a\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAdviceIsWrappedBetweenWords(t *testing.T) {
	var b bytes.Buffer
	advise(&b, "✗ ", "one two three four five six seven eight nine", strings.Repeat("长", 20)+" end\x1b[31m", 2, Style{Width: 36})
	want := "✗ one two three four five six\n  seven eight nine\n  → 长长长长长长长长长长长长长长长长\n    长长长长 end[31m\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAnOddCallIsExplained(t *testing.T) {
	c := seen("chat", 400)
	c.UsageSource = call.UsageMissing
	var b bytes.Buffer
	Explain(&b, c, nil, Style{})
	if !strings.Contains(b.String(), "\n! The stream has no token usage, because the request did not ask for it.\n  → Let the client send") {
		t.Error(b.String())
	}
	b.Reset()
	Explain(&b, seen("chat", 400), nil, Style{})
	if strings.Contains(b.String(), "\n! ") {
		t.Errorf("a healthy call is explained:\n%s", b.String())
	}
}
