package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
)

func foresee(t testing.TB, p *Plan, o OutlookOptions) *Outlook {
	t.Helper()
	f := Foresee(t.Context(), p, o)
	if f.Problem != nil {
		t.Fatal(f.Problem)
	}
	return f
}

func TestOutlookOfTheQuickstart(t *testing.T) {
	m := quickstart(t)
	o := foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{})
	if o.Requests < 4500 || o.Requests > 6000 || o.Sessions >= o.Requests || len(o.Tokenizers) != 1 || o.Tokenizers[0].Name != "o200k_base" || !o.Estimated() {
		t.Errorf("%+v", o)
	}
	starts := 0
	for _, moment := range o.Moments {
		starts += moment.Starts
	}
	if starts != o.Requests {
		t.Errorf("the moments hold %d of %d starts", starts, o.Requests)
	}
	var shares float64
	for i, s := range o.Scenarios {
		shares += s.Share
		sc := m.Scenarios[i]
		if s.Scenario != sc.ID || float64(s.Input.Min) < sc.InputTokens.Min || s.Input.P50 > s.Input.P95 || s.Input.P95 > s.Input.P99 || s.Input.P99 > s.Input.Max {
			t.Errorf("%s: %+v", sc.ID, s)
		}
		if s.Turns.Max == 1 && float64(s.Input.Max) > sc.InputTokens.Max {
			t.Errorf("%s: prompts up to %d", sc.ID, s.Input.Max)
		}
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("the shares sum to %g", shares)
	}
	if turns := o.Scenarios[2].Turns; turns.Min != 3 || turns.Max != 8 {
		t.Errorf("turns of a session: %+v, want 3 to 8", turns)
	}
}

// Little's law: a rate of starts times how long a call takes is how many calls
// are in flight.
func TestCallsInFlight(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "arrivals": {"process": "constant"}, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 10, "output_tokens": 101}], "target_qps": 10, "duration_seconds": 100}}`)
	o := foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Latency: Latency{TTFT: 490 * time.Millisecond, TPOT: 20 * time.Millisecond, Known: true}})
	if o.Most != 25 || math.Abs(o.InFlight-1000*2.49/102.44) > 1e-6 || o.PeakRate != 10 {
		t.Errorf("10/s of 2.49 s each: %d at most, %g on average, %g starts in a second; want 25, 24.3, 10", o.Most, o.InFlight, o.PeakRate)
	}
	if busy := o.Moments[len(o.Moments)/2].Busy / o.Every.Seconds(); math.Abs(busy-24.9) > 1e-6 {
		t.Errorf("in the midst of the plan %g calls are in flight, want 24.9", busy)
	}

	// A turn starts when the one before it has ended and its think time is over.
	m = decode(t, `{"load_model": {"name": "m", "arrivals": {"process": "constant"}, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 10, "max": 5000}, "output_tokens": 1, "turns": 3, "think_seconds": 9}], "target_qps": 0.03, "duration_seconds": 100}}`)
	o = foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Latency: Latency{TTFT: time.Second, Known: true}})
	var at []int
	for i, moment := range o.Moments {
		if moment.Starts > 0 {
			at = append(at, i)
		}
	}
	if diff := cmp.Diff([]int{50, 60, 70}, at); diff != "" || o.Most != 1 {
		t.Errorf("seconds in which turns start: %s, at most %d in flight", diff, o.Most)
	}
}

// An answer without a limit is not one of no tokens: how long it takes is unknown.
func TestCallsInFlightOfAnswersWithoutALimit(t *testing.T) {
	const limited, open = `{"scenario_id": "a", "at_ms": %d, "model": "m", "max_tokens": 101, "messages": [{"role": "user", "content": "one two"}]}`,
		`{"scenario_id": "a", "at_ms": %d, "model": "m", "messages": [{"role": "user", "content": "one two"}]}`
	for _, row := range []struct {
		name    string
		lines   []string
		tpot    time.Duration
		atLeast bool
		most    int
		mean    float64 // 0: unknown
	}{
		{"all have one", []string{limited, limited}, 20 * time.Millisecond, false, 2, 5.0 / 3.5},
		{"one has none", []string{limited, open}, 20 * time.Millisecond, true, 2, 0},
		{"none has one", []string{open, open}, 20 * time.Millisecond, true, 1, 0},
		{"how long they are says nothing", []string{limited, open}, 0, false, 1, 2 * 0.5 / 1.5},
	} {
		var text strings.Builder
		for i, line := range row.lines {
			fmt.Fprintf(&text, line+"\n", 1000*i)
		}
		d := opened(t, file(t, "set.jsonl", text.String()), DatasetOptions{})
		o := foresee(t, &Plan{Dataset: d, Model: &loadmodel.Model{}, Seed: 1}, OutlookOptions{Latency: Latency{TTFT: 500 * time.Millisecond, TPOT: row.tpot, Known: true}})
		if o.MostAtLeast != row.atLeast || o.Most != row.most || math.Abs(o.InFlight-row.mean) > 1e-6 {
			t.Errorf("%s: at least %t, %d at once, %g on average; want %t, %d, %g", row.name, o.MostAtLeast, o.Most, o.InFlight, row.atLeast, row.most, row.mean)
		}
		var b strings.Builder
		if err := o.JSON(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), `"mean_calls": null`); got != row.atLeast {
			t.Errorf("%s: the mean is null: %t, in %s", row.name, got, &b)
		}
	}
}

func TestAClosedLoopGoesAsFastAsItIsAnswered(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "concurrency": 4, "duration_seconds": 100, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 10, "output_tokens": 101}]}}`)
	p := &Plan{Model: m, Seed: 1}
	o := foresee(t, p, OutlookOptions{Latency: Latency{TTFT: 500 * time.Millisecond, TPOT: 15 * time.Millisecond, Known: true}})
	if o.Requests != 200 || o.Most != 4 { // 4 users, each call 2 s
		t.Errorf("%d requests, %d at once; want 200 and 4", o.Requests, o.Most)
	}
	if o := Foresee(t.Context(), p, OutlookOptions{}); o.Problem == nil || !strings.Contains(o.Problem.Error(), "--latency") {
		t.Errorf("without a latency: %v", o.Problem)
	}
	if err := WriteDataset(t.Context(), io.Discard, p); err == nil || !strings.Contains(err.Error(), "target_qps") {
		t.Errorf("as a dataset: %v", err)
	}
}

func TestALongPlanHasFewMoments(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 10, "output_tokens": 1000}], "target_qps": 1, "duration_seconds": 7200}}`)
	o := foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Latency: Latency{TTFT: 10 * time.Second, Known: true}})
	starts, busy := 0, 0.0
	for _, moment := range o.Moments {
		starts += moment.Starts
		busy += moment.Busy
	}
	if len(o.Moments) > mostMoments || len(o.Moments) < mostMoments/3 || starts != o.Requests || math.Abs(busy-10*float64(o.Requests)) > 1e-3 {
		t.Errorf("%d moments of %s with %d of %d starts and %g s", len(o.Moments), o.Every, starts, o.Requests, busy)
	}
}

func TestPrefixReuseAndCost(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "model": "x", "arrivals": {"process": "constant"}, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 1000, "max": 4000}, "output_tokens": 500, "turns": 2}], "target_qps": 1, "duration_seconds": 400}}`)
	o := foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Prices: []Price{{Model: "*", Input: 9, Output: 9}, {Model: "x", Input: 2, Output: 10, Cached: 0.5, HasCached: true}}})
	// Of a second turn, the first one's prompt and answer are held.
	var held, input, output int64
	for _, s := range collect(t, &Plan{Model: m, Seed: 1}) {
		a, b := s.Turns[0], s.Turns[1]
		held += int64(a.Input + a.Output)
		input += int64(a.Input + max(b.Input, a.Input+a.Output+leastNewText))
		output += int64(a.Output + b.Output)
	}
	if o.Held != held || o.Input != input || o.Output != output {
		t.Errorf("held %d of %d, %d answered; want %d of %d, %d", o.Held, o.Input, o.Output, held, input, output)
	}
	plain := (2*float64(input) + 10*float64(output)) / 1e6
	cached := plain - 1.5*float64(held)/1e6
	if math.Abs(o.Cost.Uncached-plain) > 1e-9 || math.Abs(o.Cost.Held-cached) > 1e-9 || !o.Cost.HeldKnown() {
		t.Errorf("cost %+v, want %g and %g", o.Cost, plain, cached)
	}
	// Without a price for cached tokens nothing is said of them.
	o = foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Prices: []Price{{Model: "x", Input: 2, Output: 10}}})
	if o.Cost.HeldKnown() {
		t.Error("a cost with a cache is told without its price")
	}
}

func TestPrefixReuseOfPools(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 1000, "output_tokens": 10, "prefix": {"tokens": 600, "pool": 4}}], "target_qps": 10, "duration_seconds": 60}}`)
	o := foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{})
	if want := int64(600 * (o.Requests - 4)); o.Held != want { // the first of each group reads it
		t.Errorf("%d tokens held by %d requests, want %d", o.Held, o.Requests, want)
	}
}

func TestPrefixReuseOfADataset(t *testing.T) {
	line := func(messages ...string) string {
		return fmt.Sprintf(`{"messages": [%s], "max_tokens": 1, "metadata": {"expected_input_tokens": 1000}}`, strings.Join(messages, ","))
	}
	system := `{"role":"system","content":"` + strings.Repeat("be kind ", 100) + `"}` // 800 bytes
	user := func(text string) string { return `{"role":"user","content":"` + strings.Repeat(text, 200) + `"}` }
	path := file(t, "set.jsonl", strings.Join([]string{
		line(system, user("one ")),
		line(system, user("two ")), // 800 of 1,600 bytes
		line(user("two ")),         // begins otherwise
		line(system, user("two "), `{"role":"assistant","content":"x"}`, user("one ")),     // all but the last 801
		line(`{"role":"system","content":"` + strings.Repeat("be kind ", 64) + `or not"}`), // 512 of 518
	}, "\n"))
	o := foresee(t, &Plan{Model: &loadmodel.Model{}, Dataset: opened(t, path, DatasetOptions{QPS: 1})}, OutlookOptions{})
	want := 0
	for _, part := range [][2]int{{800, 1600}, {1600, 2401}, {512, 518}} {
		want += 1000 * part[0] / part[1]
	}
	if o.Held != int64(want) {
		t.Errorf("%d tokens held, want %d", o.Held, want)
	}
}

func TestWarnings(t *testing.T) {
	scenario := func(fields string) string {
		return `{"load_model": {"name": "m", "seed": 1, "scenarios": [{"id": "a", "weight": 1, ` + fields + `}], `
	}
	long := `"target_qps": 10, "duration_seconds": 300}}`
	real := `"input_tokens": {"distribution": "lognormal", "median": 1500, "sigma": 1}, "output_tokens": {"distribution": "lognormal", "median": 300, "sigma": 0.7}, "corpus": "rag"`
	for _, row := range []struct {
		name  string
		model string
		want  []string // kinds
	}{
		{"short, simple, flat and even", scenario(`"input_tokens": {"min": 20, "max": 100}, "output_tokens": {"min": 10, "max": 50}`) + long,
			[]string{"short_prompts", "single_turns", "simple_tasks", "constant_rate", "flat_lengths"}},
		{"documents and long tails", scenario(real) + long, []string{"single_turns", "constant_rate"}},
		{"a rate that drifts", scenario(real) + `"phases": [{"from_qps": 1, "to_qps": 20, "seconds": 300}]}}`, []string{"single_turns"}},
		{"history without time to think, and no room for answers", scenario(real+`, "turns": {"min": 3, "max": 6}`) + long,
			[]string{"constant_rate", "no_think_time", "no_room"}},
		{"history and time to think", scenario(`"input_tokens": {"distribution": "lognormal", "median": 6000, "sigma": 1.5, "max": 200000}, "output_tokens": {"distribution": "lognormal", "median": 60, "sigma": 0.7}, "turns": {"min": 2, "max": 3}, "think_seconds": {"distribution": "exponential", "mean": 5}`) + long,
			[]string{"constant_rate"}},
		{"flattened history is history", scenario(real+`, "turns": 4, "session": "flattened"`) + long, []string{"constant_rate"}},
		{"too few for p95", scenario(real) + `"target_qps": 10, "duration_seconds": 5}}`, []string{"single_turns", "few_for_p95"}},
		{"too few for p99", scenario(real) + `"target_qps": 10, "duration_seconds": 30}}`, []string{"single_turns", "few_for_p99"}},
		{"a distribution cut to what it is not", scenario(`"input_tokens": {"distribution": "normal", "mean": 500, "stddev": 2000, "min": 100, "max": 20000}, "output_tokens": {"distribution": "lognormal", "median": 300, "sigma": 0.7}, "corpus": "rag"`) + long,
			[]string{"single_turns", "constant_rate", "cut_distribution"}},
		{"tools that take more than the prompt", scenario(`"input_tokens": {"min": 1, "max": 3}, "output_tokens": {"distribution": "lognormal", "median": 300, "sigma": 0.7}, "tools": 6`) + long,
			[]string{"short_prompts", "single_turns", "constant_rate", "flat_lengths", "too_small"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := foresee(t, &Plan{Model: decode(t, row.model), Seed: 1}, OutlookOptions{})
			var got []string
			for _, w := range o.Warnings {
				got = append(got, w.Kind)
				if strings.Contains(w.Text, "%!") || !strings.ContainsAny(w.Text, "0123456789") {
					t.Errorf("%s names no number: %s", w.Kind, w.Text)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s\n%+v", diff, o.Warnings)
			}
		})
	}
}

// The limits lie beyond what the recorded traces show, which PLAN.md states.
func TestRecordedTracesShowNoBiasThatTheyDoNotHave(t *testing.T) {
	for name, want := range map[string][]string{
		"AzureLLMInferenceTrace_conv.csv":   {"single_turns"}, // it records no sessions
		"mooncake_conversation_trace.jsonl": {},
	} {
		path := filepath.Join("../../shared/traces", name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the traces are not here: %v", err)
		}
		trace, err := loadmodel.OpenTrace(path, loadmodel.TraceOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		o := foresee(t, &Plan{Trace: trace, Seed: 1}, OutlookOptions{})
		got := []string{}
		for _, w := range o.Warnings {
			got = append(got, w.Kind)
		}
		// 37.4 % of Mooncake's prompt tokens are in blocks that came before.
		if share := float64(o.Held) / float64(o.Input); math.Abs(share-map[bool]float64{true: 0.374}[len(want) == 0]) > 0.001 {
			t.Errorf("%s: %.3f of the prompt tokens held", name, share)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s\n%+v", name, diff, o.Warnings)
		}
	}
}

func TestStatedLatencyAndPrices(t *testing.T) {
	if l, err := ParseLatency("tpot 20ms,ttft 0.5s"); err != nil || l != (Latency{500 * time.Millisecond, 20 * time.Millisecond, true}) {
		t.Errorf("%+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"500ms": "want 'ttft 500ms, tpot 20ms'", "tpot 1s": "says no ttft", "ttft 1s, e2e 3s": "e2e is no latency",
		"ttft 1s, ttft 2s": "says ttft twice", "ttft -1s": "want a time", "ttft 5": "want a time",
	} {
		if _, err := ParseLatency(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if p, err := ParsePrice("a=b/c=0.25,2, 0.025"); err != nil || p != (Price{"a=b/c", 0.25, 2, 0.025, true}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"gpt", "gpt=1", "=1,2", "gpt=1,x", "gpt=1,-2", "gpt=1,2,3,4", "gpt=NaN,1", "gpt=1,Inf"} {
		if _, err := ParsePrice(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Every key and every kind of warning that the JSON holds is explained in
// PLAN.md.
func TestThePlansContract(t *testing.T) {
	contract, err := os.ReadFile("../store/report/PLAN.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	o := foresee(t, &Plan{Model: quickstart(t), Seed: 1}, OutlookOptions{Latency: Latency{TTFT: time.Second, Known: true}, Prices: []Price{{Model: "*", Input: 1, Output: 1}}})
	if err := o.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(b.String(), -1) {
		keys = append(keys, m[1])
	}
	source, err := os.ReadFile("outlook_warn.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`note\("([a-z0-9_]+)"`).FindAllStringSubmatch(string(source), -1) {
		keys = append(keys, m[1])
	}
	if len(keys) < 60 {
		t.Errorf("only %d keys were found", len(keys))
	}
	slices.Sort(keys)
	for _, key := range append(slices.Compact(keys), PlanSchema) {
		if !bytes.Contains(contract, []byte("`"+key+"`")) {
			t.Errorf("PLAN.md does not explain %q", key)
		}
	}
	// What is not known is null.
	b.Reset()
	o = Foresee(context.Background(), &Plan{Model: quickstart(t), Seed: 1}, OutlookOptions{})
	if err := o.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var j map[string]any
	if err := json.Unmarshal(b.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if j["in_flight"] != nil || j["cost"].(map[string]any)["uncached_usd"] != nil || j["moments"].([]any)[0].(map[string]any)["in_flight_calls"] != nil {
		t.Errorf("without latency and prices: %v, %v", j["in_flight"], j["cost"])
	}
}
