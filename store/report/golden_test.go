package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

var dates = regexp.MustCompile(`((\d{4}-)?\d\d-\d\d[T ])?\d\d:\d\d:\d\d\.\d+Z?`)

// onsetAt is the one time of a report that depends on when the test runs.
var onsetAt = regexp.MustCompile(`"at": "[^"]+"`)

var update = flag.Bool("update", false, "rewrite the goldens")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// example is a run with everything in it: two sides, Chinese names, failures
// of several kinds, stalls, and few calls.
func example(t *testing.T) *Report {
	t.Helper()
	var calls []*call.Call
	span := byte(0)
	both := func(p *call.Call, apart int) {
		span += 2
		p = spans(p, span, span-1)
		p.Run = "7f3a"
		calls = append(calls, p, clientOf(p, span-1, apart))
	}
	for i := range 12 {
		both(seen("short_chat", 380+9*i), 0)
		both(seen("长上下文RAG", 1800+70*i), 1)
	}
	both(seen("short_chat", 400), 60)
	stalled := seen("长上下文RAG", 2000)
	stalled.Gaps = call.Gaps{N: 10, Stalls: 1, Stalled: 1500 * time.Millisecond, Longest: 1500 * time.Millisecond}
	both(stalled, 0)
	missing := seen("short_chat", 410)
	missing.Usage.Output.Known, missing.UsageSource = false, call.UsageMissing
	both(missing, 0)
	both(failedCall("short_chat", call.RateLimited, 429, "Rate limit reached for sim-small: 20 requests a second"), 0)
	both(failedCall("short_chat", call.RateLimited, 429, "请求过于频繁，请稍后再试"), 0)
	both(failedCall("长上下文RAG", call.Unreachable, 0, "dial tcp 127.0.0.1:9: connect: connection refused"), 0)
	run := Run{
		ID: "7f3a", Model: "llm_pressure_test_v1", Target: "127.0.0.1:8484", Seed: "1", Started: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC),
		Duration: N(30), Verdict: "valid", Reasons: []string{}, Planned: N(20), Achieved: N(19.97),
		LagP50: N(0.08), LagP99: N(0.9), LagMax: N(2.25), Scenarios: []string{"short_chat", "长上下文RAG"}, Notes: []string{"4 connections were set up"},
	}
	run.wants = wanted([]byte(`{"load_model": {"target_qps": 20, "duration_seconds": 30, "scenarios": [
	  {"id": "short_chat", "weight": 1, "input_tokens": 100, "output_tokens": 11, "want": ["ttft p95 < 2s", "ttft response p50 <= 400ms", "error rate < 1%"]}]}}`))
	r, err := Summarise(each(calls...), Options{
		Selection: "last",
		Runs: func(ids []string) ([]Run, error) {
			if !slices.Equal(ids, []string{"7f3a"}) {
				t.Errorf("looked up the runs %v", ids)
			}
			return []Run{run}, nil
		},
		Lost: func(time.Time) (int64, error) { return 0, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsWritten(t *testing.T) {
	r := example(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.txt":  func(b *bytes.Buffer) error { r.Text(b, Style{Width: 120}); return nil },
		"narrow.txt":  func(b *bytes.Buffer) error { r.Text(b, Style{Width: 80}); return nil },
		"colour.txt":  func(b *bytes.Buffer) error { r.Text(b, Style{Width: 120, Color: true}); return nil },
		"report.json": func(b *bytes.Buffer) error { return r.JSON(b) },
		"report.csv":  func(b *bytes.Buffer) error { return r.CSV(b) },
		"report.md":   func(b *bytes.Buffer) error { r.Markdown(b); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, onsetAt.ReplaceAll(b.Bytes(), []byte(`"at": "DATE"`)))
		})
	}
}

func TestNothingMeasuredIsWrittenAsAbsent(t *testing.T) {
	r, err := Summarise(each(failedCall("chat", call.Unreachable, 0, "connection refused")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r.Text(&b, Style{})
	golden(t, "absent.txt", b.Bytes())
	b.Reset()
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"p50_ms": null`) {
		t.Error("an absent percentile is not null in the JSON")
	}
}

// Every key that the JSON holds is explained in REPORT.md, and a version of
// the schema is never lost.
func TestTheContractNamesEveryKey(t *testing.T) {
	for _, r := range []*Report{example(t), shaped(t)} {
		explainsItsKeys(t, r)
	}
}

func explainsItsKeys(t *testing.T, r *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile("REPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(b.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	keys := jsonKeys(value, nil)
	if len(keys) < 40 {
		t.Fatalf("the example has only the keys %v: it shows too little", keys)
	}
	for _, key := range keys {
		if !strings.Contains(string(contract), "`"+key+"`") {
			t.Errorf("REPORT.md does not explain %q", key)
		}
	}
	if !strings.Contains(string(contract), "`"+Schema+"`") {
		t.Errorf("REPORT.md does not name the schema %q", Schema)
	}
}

func TestJSONComesBackAsItWas(t *testing.T) {
	want := example(t)
	var b bytes.Buffer
	if err := want.JSON(&b); err != nil {
		t.Fatal(err)
	}
	got := &Report{}
	if err := json.Unmarshal(b.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := got.JSON(&again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), again.String()); diff != "" {
		t.Error(diff)
	}
}

// jsonKeys collects the keys of all objects.
func jsonKeys(v any, keys []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
			keys = jsonKeys(below, keys)
		}
	case []any:
		for _, below := range v {
			keys = jsonKeys(below, keys)
		}
	}
	return keys
}
