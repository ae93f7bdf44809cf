package shaper

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// limitOf sets parts one after the other.
func limitOf(t *testing.T, parts ...string) Limit {
	t.Helper()
	var l Limit
	for _, part := range parts {
		name, text, _ := strings.Cut(part, "=")
		if err := l.Set(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestEveryPartIsSetAndWritten(t *testing.T) {
	half := 0.5
	l := limitOf(t, "hold=off", "retry=3", "share=2.5", "priority=low", "wait=90s", "queue=7", "concurrency=adaptive:8",
		"cached_weight=0.5", "burst_tokens=400", "output_tpm=300", "input_tpm=200", "tpm=100", "burst=5", "rps=2")
	want := Limit{
		Requests: 2, Burst: 5, Tokens: 100, InputTokens: 200, OutputTokens: 300, BurstTokens: 400, CachedWeight: &half,
		InFlight: 8, Adaptive: true, Queue: 7, Wait: 90 * time.Second, Priority: Low, Share: 2.5, Retries: 3, NoHold: true,
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const text = "rps=2 burst=5 tpm=100 input_tpm=200 output_tpm=300 burst_tokens=400 cached_weight=0.5 " +
		"concurrency=adaptive:8 queue=7 wait=1m30s priority=low share=2.5 retry=3 hold=off"
	if got := l.String(); got != text {
		t.Errorf("written as\n%s\nwant\n%s", got, text)
	}
	for _, name := range LimitNames() {
		if !strings.Contains(LimitHelp(), "\n"+name+" ") && !strings.HasPrefix(LimitHelp(), name+" ") {
			t.Errorf("the help does not speak of %s", name)
		}
		if err := l.Set(name, "off"); err != nil {
			t.Errorf("%s=off: %v", name, err)
		}
		if err := l.Set(name, ""); err != nil {
			t.Errorf("%s without a value: %v", name, err)
		}
	}
	// What "off" says of holding is off itself; no value takes it away.
	if diff := cmp.Diff(Limit{}, l); diff != "" {
		t.Errorf("something is left (-want +got):\n%s", diff)
	}
}

func TestOnePartIsChangedAndTheOthersStay(t *testing.T) {
	for _, row := range []struct{ sentence, before, set, want string }{
		{"a rate by the minute replaces one by the second", "rps=2 burst=3", "rpm=90", "rps=1.5 burst=3"},
		{"a rate is taken away by its other name", "rpm=100 queue=4", "rps=off", "queue=4"},
		{"… and the other way", "rps=2 queue=4", "rpm=off", "queue=4"},
		{"adaptive forgets the fixed number", "concurrency=8", "concurrency=adaptive", "concurrency=adaptive"},
		{"a fixed number ends adaptive", "concurrency=adaptive:9", "concurrency=4", "concurrency=4"},
		{"no queue", "queue=5", "queue=none", "queue=none"},
		{"the usual queue again", "queue=none", "queue=off", ""},
		{"a cached token that counts nothing", "", "cached_weight=0", "cached_weight=0"},
		{"hold is on unless it is said", "hold=off rps=1", "hold=on", "rps=1"},
		{"off is a value of hold", "", "hold=off", "hold=off"},
		{"an hour is written short", "", "wait=60m", "wait=1h"},
		{"a time with seconds", "", "wait=61s", "wait=1m1s"},
		{"a rate that is no round number of seconds", "", "rpm=100", "rpm=100"},
		{"a rate that is one", "", "rpm=120", "rps=2"},
		{"a rate that is round in neither", "", "rps=0.123456789", "rps=0.123456789"},
		{"once in ten days", "", "rpm=0.0000694", "rps=0.0000011566666666666667"},
	} {
		l := limitOf(t, strings.Fields(row.before)...)
		name, text, _ := strings.Cut(row.set, "=")
		if err := l.Set(name, text); err != nil {
			t.Errorf("%s: %v", row.sentence, err)
		}
		if got := l.String(); got != row.want {
			t.Errorf("%s: %s, want %s", row.sentence, got, row.want)
		}
		// What is written reads as the same.
		if diff := cmp.Diff(l, limitOf(t, strings.Fields(l.String())...)); diff != "" {
			t.Errorf("%s: %s reads differently (-set +read):\n%s", row.sentence, l, diff)
		}
	}
}

func TestWhatIsNoLimitIsRefusedAndChangesNothing(t *testing.T) {
	const concurrency = `: want a whole number above 0, "adaptive" or "adaptive:N"`
	for set, want := range map[string]string{
		"rps=0":                  `rps: "0": want a number above 0`,
		"rps=-1":                 `rps: "-1": want a number above 0`,
		"rps=NaN":                `rps: "NaN": want a number above 0`,
		"rps=fast":               `rps: "fast": want a number above 0`,
		"rps=Inf":                `rps: "Inf": want a number from 1e-06 to 1e+12`,
		"rps=1e-9":               `rps: "1e-9": want a number from 1e-06 to 1e+12`,
		"rpm=0.00001":            `rpm: "0.00001": want a number from 6e-05 to 1e+12`,
		"rpm=0":                  `rpm: "0": want a number above 0`,
		"burst=1.5":              `burst: "1.5": want a whole number above 0`,
		"burst=0":                `burst: "0": want a whole number above 0`,
		"burst=1000001":          `burst: "1000001": want 1000000 at most`,
		"concurrency=10000000":   `concurrency: "10000000": want 1000000 at most`,
		"wait=2562047h":          `wait: "2562047h": want 10000h at most`,
		"tpm=1e13":               `tpm: "1e13": want a number from 1e-06 to 1e+12`,
		"input_tpm=x":            `input_tpm: "x": want a number above 0`,
		"output_tpm=x":           `output_tpm: "x": want a number above 0`,
		"burst_tokens=x":         `burst_tokens: "x": want a number above 0`,
		"cached_weight=1.1":      `cached_weight: "1.1": want a number from 0 to 1`,
		"cached_weight=-0.1":     `cached_weight: "-0.1": want a number from 0 to 1`,
		"cached_weight=NaN":      `cached_weight: "NaN": want a number from 0 to 1`,
		"concurrency=0":          `concurrency: "0"` + concurrency,
		"concurrency=many":       `concurrency: "many"` + concurrency,
		"concurrency=adaptive8":  `concurrency: "adaptive8"` + concurrency,
		"concurrency=adaptive:":  `concurrency: ""` + concurrency,
		"concurrency=adaptive:0": `concurrency: "0"` + concurrency,
		"queue=0":                `queue: "0": want a whole number above 0, or none`,
		"queue=-1":               `queue: "-1": want a whole number above 0, or none`,
		"wait=30":                `wait: "30": want a time such as 30s`,
		"wait=0s":                `wait: "0s": want a time such as 30s`,
		"priority=urgent":        `priority: "urgent": want high, normal or low`,
		"share=0":                `share: "0": want a number above 0`,
		"retry=0":                `retry: "0": want a whole number above 0`,
		"hold=maybe":             `hold: "maybe": want on or off`,
		"qps=2": `"qps" is no limit; want one of rps, rpm, burst, tpm, input_tpm, output_tpm, burst_tokens, cached_weight, ` +
			`concurrency, queue, wait, priority, share, retry, hold`,
	} {
		before := limitOf(t, "rps=2", "concurrency=adaptive:4", "wait=5s")
		l := before
		name, text, _ := strings.Cut(set, "=")
		err := l.Set(name, text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
		if diff := cmp.Diff(before, l); diff != "" {
			t.Errorf("%s changed the limit (-before +after):\n%s", set, diff)
		}
	}
	var unknown *UnknownName
	if err := new(Limit).Set("qps", "2"); !errors.As(err, &unknown) || unknown.Name != "qps" {
		t.Errorf("got %v", err)
	}
}

func TestTheGreatestValuesAreReckonedWithoutOverflow(t *testing.T) {
	for _, rule := range []string{"rps=0.000001 burst=1000000", "rps=1000000000000 burst=1000000", "rps=1 wait=10000h", "tpm=1000000000000 burst_tokens=1000000000000", "rps=10 share=0.000001"} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, rule)
			admit(t, s, Ask{}).Release(Settlement{})
			time.Sleep(time.Second)
			admit(t, s, Ask{}).Release(Settlement{})
		})
	}
}

func TestAPriorityThatIsNotSaidHasNoName(t *testing.T) {
	for p, want := range map[Priority]string{0: "", High: "high", Normal: "normal", Low: "low", Low + 1: "", -1: ""} {
		if got := p.String(); got != want {
			t.Errorf("%d is %q, want %q", p, got, want)
		}
	}
}
