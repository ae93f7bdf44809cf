package loadmodel

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/proxy/wire"
	"weir/shaper"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden compares with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

const quickstartFile = "../../examples/quickstart/load_model.json"

func quickstart(t testing.TB) *Model {
	t.Helper()
	m, err := Read(quickstartFile)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var ofModel = cmp.Options{cmpopts.IgnoreUnexported(Scenario{}), cmpopts.IgnoreFields(Model{}, "Source")}

func TestQuickstartModelIsReadAsItStands(t *testing.T) {
	rag := within(4000, 16000, Dist{Kind: "lognormal", Median: 8000, Sigma: math.Log(2) / z99})
	agent := within(1000, 8000, Dist{Kind: "lognormal", Median: math.Sqrt(8e6), Sigma: math.Log(8000/math.Sqrt(8e6)) / z99})
	scenario := func(s Scenario) Scenario {
		if s.Turns.Kind == "" {
			s.Turns = Constant(1)
		}
		s.ThinkSeconds, s.Language, s.Stream = Constant(0), "en", true
		return s
	}
	want := &Model{
		Name: "llm_pressure_test_v1", TargetQPS: 20, Duration: 300 * time.Second, RampUp: time.Minute,
		Scenarios: []Scenario{
			scenario(Scenario{ID: "short_chat", Description: "短对话，单轮问答", Weight: 0.3, InputTokens: Range(50, 200), OutputTokens: Range(100, 300), Corpus: "prose"}),
			scenario(Scenario{ID: "long_context_rag", Description: "长上下文RAG检索增强", Weight: 0.25, InputTokens: rag, OutputTokens: Range(200, 800), Corpus: "rag"}),
			scenario(Scenario{ID: "multi_turn_agent", Description: "多轮Agent工具调用", Weight: 0.25, InputTokens: agent, OutputTokens: Range(300, 1500), Turns: Range(3, 8), Corpus: "agent"}),
			scenario(Scenario{ID: "long_output", Description: "长输出生成任务", Weight: 0.2, InputTokens: Range(200, 1000), OutputTokens: Range(2000, 6000), Corpus: "prose"}),
		},
	}
	got := quickstart(t)
	if diff := cmp.Diff(want, got, ofModel, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	source, err := os.ReadFile(quickstartFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(source, got.Source) {
		t.Error("Source is not the file")
	}
	// Before it is cut, max is its 99th percentile, and the median √(min·max).
	uncut := got.Scenarios[1].InputTokens
	uncut.HasMax, uncut.HasMin = false, false
	if p50, p99 := uncut.Quantile(0.5), uncut.Quantile(0.99); math.Abs(p50-8000) > 0.01 || math.Abs(p99-16000) > 0.01 {
		t.Errorf("the uncut lognormal has median %g and p99 %g", p50, p99)
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	got := decoded(t, `{"load_model": {
		"name": "all", "description": "every field", "seed": 18446744073709551615, "api": "messages",
		"models": [{"name": "a", "share": 0.75}, {"name": "b", "share": 0.25}],
		"arrivals": {"process": "gamma", "cv": 2.5},
		"phases": [{"name": "warm", "from_qps": 0, "to_qps": 10, "seconds": 30}, {"qps": 10, "seconds": 0.5}],
		"limits": ["model=a* tpm=90000", "key=each rps=1"], "limit": {"rpm": 90, "queue": "none"},
		"warm_up_seconds": 5, "max_in_flight": 100, "timeout_seconds": 90.5,
		"extra_body": {"temperature": 0.70, "stop": ["x", null], "o": {"k": true}},
		"scenarios": [
			{"id": "full", "description": "d", "weight": 0.333, "input_tokens": {"distribution": "normal", "mean": 500, "stddev": 100},
			 "output_tokens": {"distribution": "lognormal", "median": 100, "p99": 1000, "max": 4000},
			 "turns": {"quantiles": [[0, 1], [0.9, 4], [1, 20]]}, "think_seconds": {"distribution": "exponential", "mean": 8, "max": 60},
			 "api": "chat", "model": "c", "session": "flattened", "corpus": "code", "language": "mixed", "tools": 12, "stream": false,
			 "match": "tools > 3", "limit": {"rps": 2, "concurrency": "adaptive:9", "wait": "30s", "cached_weight": "0", "burst_tokens": 1e3, "hold": "off"}},
			{"id": "tool-calls", "weight": 0.333, "input_tokens": {"distribution": "constant", "value": 9}, "output_tokens": {"distribution": "zipf", "max": 50}},
			{"id": "rest", "weight": 0.333, "input_tokens": {"distribution": "lognormal", "median": 5, "sigma": 0.5}, "output_tokens": 1, "think_seconds": 0.25, "session": "live"}]}}`)
	want := &Model{
		Name: "all", Description: "every field", Seed: math.MaxUint64, HasSeed: true, API: wire.Messages,
		Models: []Share{{"a", 0.75}, {"b", 0.25}}, Arrivals: Arrivals{"gamma", 2.5},
		Phases: []Phase{{"warm", 0, 10, 30 * time.Second}, {"", 10, 10, 500 * time.Millisecond}},
		WarmUp: 5 * time.Second, MaxInFlight: 100, Timeout: 90500 * time.Millisecond,
		ExtraBody: map[string]json.RawMessage{"temperature": json.RawMessage("0.70"), "stop": json.RawMessage(`["x", null]`), "o": json.RawMessage(`{"k": true}`)},
		Limit:     shaper.Limit{Requests: 1.5, Queue: -1},
		Limits: []shaper.Rule{
			{Select: shaper.Selector{Model: "a*"}, Limit: shaper.Limit{Tokens: 90000}},
			{Select: shaper.Selector{Key: "each"}, Limit: shaper.Limit{Requests: 1}},
		},
		Scenarios: []Scenario{
			{
				Limit: shaper.Limit{Requests: 2, Adaptive: true, InFlight: 9, Wait: 30 * time.Second, CachedWeight: new(float64), BurstTokens: 1000, NoHold: true},
				ID:    "full", Description: "d", Weight: 0.333, InputTokens: within(1, 1e7, Dist{Kind: "normal", Average: 500, StdDev: 100}),
				OutputTokens: within(1, 4000, Dist{Kind: "lognormal", Median: 100, Sigma: math.Log(10) / z99}),
				Turns:        within(1, 1e4, Dist{Kind: "quantiles", Points: [][2]float64{{0, 1}, {0.9, 4}, {1, 20}}}),
				ThinkSeconds: within(0, 60, Dist{Kind: "exponential", Average: 8}),
				API:          wire.Chat, Model: "c", Flattened: true, Corpus: "code", Language: "mixed", Tools: 12, Match: "tools > 3",
			},
			{ID: "tool-calls", Weight: 0.333, InputTokens: Constant(9), OutputTokens: within(1, 50, Dist{Kind: "zipf", Exponent: 1}), Turns: Constant(1), ThinkSeconds: Constant(0), Corpus: "agent", Language: "en", Stream: true},
			{ID: "rest", Weight: 0.333, InputTokens: within(1, 1e7, Dist{Kind: "lognormal", Median: 5, Sigma: 0.5}), OutputTokens: Constant(1), Turns: Constant(1), ThinkSeconds: Constant(0.25), Corpus: "prose", Language: "en", Stream: true},
		},
	}
	if diff := cmp.Diff(want, got, ofModel, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	var rules []string
	for _, r := range got.Rules() {
		rules = append(rules, r.String())
	}
	if diff := cmp.Diff([]string{
		"all rps=1.5 queue=none",
		"scenario=full rps=2 burst_tokens=1000 cached_weight=0 concurrency=adaptive:9 wait=30s hold=off",
		"model=a* tpm=90000", "key=each rps=1",
	}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if rules := quickstart(t).Rules(); len(rules) > 0 {
		t.Errorf("a model without limits has the rules %v", rules)
	}
}

// Each file in testdata/bad is wrong in one way; its golden is the error.
func TestErrorsNamePlaceAndNextStep(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("only %d bad models found, %v", len(files), err)
	}
	for _, file := range files {
		_, err := Read(file)
		if err == nil {
			t.Errorf("%s was accepted", file)
			continue
		}
		got := filepath.ToSlash(err.Error()) + "\n"
		golden(t, strings.TrimSuffix(file, ".json")+".golden", got)
		if strings.Count(got, "\n") != 1 {
			t.Errorf("%s: the error has several lines:\n%s", file, got)
		}
	}
}

// changed is a good model with one thing in it replaced.
func changed(old, new string) string {
	const good = `{"load_model": {"target_qps": 5, "duration_seconds": 60, "scenarios": [
  {"id": "chat", "weight": 1, "input_tokens": {"min": 50, "max": 200}, "output_tokens": 9}]}}`
	return strings.Replace(good, old, new, 1)
}

// The golden holds the errors of many small faults, one a line.
func TestSmallFaults(t *testing.T) {
	if _, err := Decode("good.json", []byte(changed("", ""))); err != nil {
		t.Fatal(err)
	}
	const dist = `{"min": 50, "max": 200}`
	var got strings.Builder
	for _, row := range []struct{ name, text string }{
		{"a comment", changed(`"target_qps"`, "// the rate\n\"target_qps\"")},
		{"a comma too many", changed(`"output_tokens": 9}`, `"output_tokens": 9,}`)},
		{"a comma too few", changed(`"id": "chat",`, `"id": "chat"`)},
		{"single quotes", changed(`"chat"`, `'chat'`)},
		{"NaN", changed("9}", "NaN}")},
		{"a number too large", changed("9}", "1e999}")},
		{"UTF-16", "\xff\xfe{\x00"},
		{"Latin-1", changed("chat", "caf\xe9")},
		{"brackets without end", strings.Repeat("[", 200_000)},
		{"nested deep in extra_body", changed(`"target_qps"`, `"extra_body": {"a": `+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}, "target_qps"`)},
		{"null", "null"},
		{"another document behind", changed("", "") + "{}"},
		{"no wrapper", `{"scenarios": []}`},
		{"load_model is null", `{"load_model": null}`},
		{"rate 0", changed("5", "0")},
		{"a negative rate", changed("5", "-5")},
		{"an enormous rate", changed("5", "1e12")},
		{"a duration of 0", changed("60", "0")},
		{"a duration of ages", changed("60", "1e12")},
		{"a duration in words", changed("60", `"1m"`)},
		{"half a token", changed("9}", "9.5}")},
		{"no tokens", changed("9}", "0}")},
		{"too many tokens", changed("9}", "1e9}")},
		{"half a turn", changed("9}", `9, "turns": 1.5}`)},
		{"a million turns", changed("9}", `9, "turns": {"min": 1, "max": 1000000}}`)},
		{"negative thinking", changed("9}", `9, "think_seconds": -1}`)},
		{"thinking by zipf", changed("9}", `9, "think_seconds": {"distribution": "zipf", "max": 5}}`)},
		{"thinking by lognormal from 0", changed("9}", `9, "think_seconds": {"distribution": "lognormal", "min": 0, "max": 5}}`)},
		{"uniform without min", changed(dist, `{"max": 200}`)},
		{"uniform without max", changed(dist, `{"min": 200}`)},
		{"a constant of two values", changed(dist, `{"distribution": "constant", "min": 1, "max": 2}`)},
		{"a constant of none", changed(dist, `{"distribution": "constant"}`)},
		{"a negative constant", changed(dist, `{"distribution": "constant", "value": -5}`)},
		{"normal without spread", changed(dist, `{"distribution": "normal", "mean": 5, "stddev": 0}`)},
		{"exponential without mean", changed(dist, `{"distribution": "exponential", "max": 9}`)},
		{"zipf without max", changed(dist, `{"distribution": "zipf"}`)},
		{"zipf too steep", changed(dist, `{"distribution": "zipf", "max": 9, "exponent": 1e9}`)},
		{"lognormal with p99 and sigma", changed(dist, `{"distribution": "lognormal", "median": 5, "sigma": 1, "p99": 9}`)},
		{"lognormal with p99 below its median", changed(dist, `{"distribution": "lognormal", "median": 5, "p99": 5}`)},
		{"quantiles of one", changed(dist, `{"quantiles": [[0, 1]]}`)},
		{"quantiles without pairs", changed(dist, `{"quantiles": [1, 2]}`)},
		{"quantiles of percents", changed(dist, `{"quantiles": [[0, 1], [50, 2]]}`)},
		{"quantiles that begin late", changed(dist, `{"quantiles": [[0.1, 1], [1, 2]]}`)},
		{"quantiles below 0", changed(dist, `{"quantiles": [[0, -1], [1, 2]]}`)},
		{"quantiles out of reach", changed(dist, `{"quantiles": [[0, 1], [1, 20]], "min": 50}`)},
		{"a list for a distribution", changed(dist, `[50, 200]`)},
		{"weight above 1", changed(`"weight": 1`, `"weight": 1.5`)},
		{"weights just off", changed(`"weight": 1`, `"weight": 0.9989`)},
		{"a scenario that is text", changed(`"scenarios": [`, `"scenarios": ["chat", `)},
		{"id missing", changed(`"id": "chat", `, "")},
		{"an unknown session", changed("9}", `9, "session": "flat"}`)},
		{"an unknown corpus", changed("9}", `9, "corpus": "poems"}`)},
		{"half a tool", changed("9}", `9, "tools": 0.5}`)},
		{"stream as text", changed("9}", `9, "stream": "yes"}`)},
		{"a rule that is a number", changed("9}", `9, "match": "turns + 1"}`)},
		{"a rule about what is not known", changed("9}", `9, "match": "mode == \"x\""}`)},
		{"a rule that ends early", changed("9}", `9, "match": "turns >"}`)},
		{"want", changed("9}", `9, "want": ["ttft p95 < 2s"]}`)},
		{"a limit of nothing", changed("9}", `9, "limit": {}}`)},
		{"a limit taken away", changed("9}", `9, "limit": {"rps": "off"}}`)},
		{"a limit that is a number", changed("9}", `9, "limit": 5}`)},
		{"an unknown limit", changed("9}", `9, "limit": {"concurency": 5}}`)},
		{"an unknown limit far from all", changed("9}", `9, "limit": {"velocity": 5}}`)},
		{"a negative limit", changed("9}", "9,\n   \"limit\": {\"rps\": -1}}")},
		{"half a call in flight", changed("9}", `9, "limit": {"concurrency": 1.5}}`)},
		{"a wait in plain seconds", changed("9}", `9, "limit": {"wait": 30}}`)},
		{"a limit that is true", changed("9}", `9, "limit": {"hold": true}}`)},
		{"a limit that is empty", changed("9}", `9, "limit": {"rps": ""}}`)},
		{"rps and rpm", changed("9}", `9, "limit": {"rps": 1, "rpm": 60}}`)},
		{"a limit of each", changed(`"chat"`, `"each", "limit": {"rps": 1}`)},
		{"a bad limit of all", changed(`"target_qps"`, `"limit": {"priority": "urgent"}, "target_qps"`)},
		{"limits that are no list", changed(`"target_qps"`, `"limits": "rps=2", "target_qps"`)},
		{"no limits", changed(`"target_qps"`, `"limits": [], "target_qps"`)},
		{"a limit among limits that is an object", changed(`"target_qps"`, `"limits": [{"rps": 2}], "target_qps"`)},
		{"a mistyped name among limits", changed(`"target_qps"`, `"limits": ["model=x rps=2", "modell=y rps=2"], "target_qps"`)},
		{"a strange name among limits", changed(`"target_qps"`, `"limits": ["velocity=3"], "target_qps"`)},
		{"a bad value among limits", changed(`"target_qps"`, `"limits": ["model=x rps=fast"], "target_qps"`)},
		{"limits of nothing", changed(`"target_qps"`, `"limits": ["model=x"], "target_qps"`)},
		{"a selector twice", changed(`"target_qps"`, `"limits": ["model=x rps=2", "rpm=3 model=x"], "target_qps"`)},
		{"a scenario limited twice", strings.Replace(changed("9}", `9, "limit": {"rps": 2}}`), `"target_qps"`, `"limits": ["scenario=chat rps=3"], "target_qps"`, 1)},
		{"all calls limited twice", changed(`"target_qps"`, `"limits": ["rps=3"], "limit": {"rps": 2}, "target_qps"`)},
		{"joint", changed("9}", `9, "joint": []}`)},
		{"rates", changed(`"target_qps"`, `"rates": [], "target_qps"`)},
		{"concurrency", changed(`"target_qps"`, `"concurrency": 5, "target_qps"`)},
		{"budget", changed(`"target_qps"`, `"budget": {"tokens": 5}, "target_qps"`)},
		{"trace", changed(`"target_qps"`, `"trace": {"file": "x"}, "target_qps"`)},
		{"cv without gamma", changed(`"target_qps"`, `"arrivals": {"cv": 2}, "target_qps"`)},
		{"cv out of range", changed(`"target_qps"`, `"arrivals": {"process": "gamma", "cv": 500}, "target_qps"`)},
		{"phases without a rate", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"seconds": 5}]`)},
		{"phases of rate 0", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"qps": 0, "seconds": 5}]`)},
		{"a phase of two rates", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": [{"qps": 1, "to_qps": 5, "seconds": 5}]`)},
		{"no phases", changed(`"target_qps": 5, "duration_seconds": 60`, `"phases": []`)},
		{"model and models", changed(`"target_qps"`, `"model": "a", "models": ["b"], "target_qps"`)},
		{"shares off", changed(`"target_qps"`, `"models": [{"name": "a", "share": 0.2}], "target_qps"`)},
		{"models without names", changed(`"target_qps"`, `"models": [{"share": 1}], "target_qps"`)},
		{"a negative seed", changed(`"target_qps"`, `"seed": -1, "target_qps"`)},
		{"a seed that is text", changed(`"target_qps"`, `"seed": "1", "target_qps"`)},
		{"extra_body is a list", changed(`"target_qps"`, `"extra_body": [], "target_qps"`)},
		{"no calls in flight", changed(`"target_qps"`, `"max_in_flight": 0, "target_qps"`)},
	} {
		_, err := Decode("m.json", []byte(row.text))
		if err == nil {
			t.Errorf("%s was accepted", row.name)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has several lines:\n%v", row.name, err)
		}
		fmt.Fprintf(&got, "%s: %v\n", row.name, err)
	}
	golden(t, "testdata/small_faults.golden", got.String())
}

// People round shares: a sum may be off by a thousandth, and not by more.
func TestWeightsMayBeRounded(t *testing.T) {
	for second, want := range map[string]bool{"0.5": true, "0.499": true, "0.501": true, "0.4989": false, "0.5011": false} {
		text := strings.NewReplacer(`"weight": 0.4`, `"weight": `+second, `"weight": 0.1`, `"weight": 0`).Replace(ruled)
		if _, err := Decode("weights.json", []byte(text)); (err == nil) != want {
			t.Errorf("0.5 and %s: %v", second, err)
		}
	}
}

func TestFilesThatAreNoLoadModel(t *testing.T) {
	dir := t.TempDir()
	// A sparse file: all of it is holes, and reading it would take long.
	huge := filepath.Join(dir, "huge.json")
	f, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(2 << 30); err != nil {
		t.Skipf("no sparse file of 2 GiB here: %v", err)
	}
	f.Close()
	for _, row := range []struct{ path, want string }{
		{huge, "is longer than 64 MiB, which no load model is; is it a trace or a dataset?"},
		{dir, "is a directory; name the file in it"},
		{filepath.Join(dir, "none.json"), "no such file; check the path"},
		{"/dev/zero", "is longer than 64 MiB"},
	} {
		if _, err := Read(row.path); err == nil || !strings.HasPrefix(err.Error(), "load model "+row.path+": "+row.want) {
			t.Errorf("%s: error %v, want …%s", row.path, err, row.want)
		}
	}
}

func TestBOMIsSkippedAndColumnsCountLetters(t *testing.T) {
	m, err := Decode("bom.json", []byte("\xef\xbb\xbf"+changed("", "")))
	if err != nil || len(m.Scenarios) != 1 || !bytes.HasPrefix(m.Source, []byte("\xef\xbb\xbf")) {
		t.Errorf("with a BOM: %v", err)
	}
	_, err = Decode("zh.json", []byte(`{"load_model": {"name": "压力测试", "wieght": 1}}`))
	if err == nil || !strings.HasPrefix(err.Error(), "load model zh.json:1:33: ") {
		t.Errorf("behind four Chinese letters: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile(quickstartFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(ruled))
	f.Add([]byte(changed(`{"min": 50, "max": 200}`, `{"distribution": "zipf", "max": 5000, "exponent": 20}`)))
	f.Add([]byte(changed(`{"min": 50, "max": 200}`, `{"distribution": "normal", "mean": 1e200, "stddev": 1e300, "max": 9}`)))
	f.Add([]byte(changed(`{"min": 50, "max": 200}`, `{"quantiles": [[0, 0], [0.5, 7], [0.6, 7], [1, 900]], "min": 7}`)))
	files, _ := filepath.Glob("testdata/bad/*.json")
	for _, file := range files {
		bad, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode("fuzz.json", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		if _, err := Decode("again.json", m.Source); err != nil {
			t.Fatalf("its source is refused: %v", err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for _, s := range m.Scenarios {
			for what, d := range map[string]Dist{"input": s.InputTokens, "output": s.OutputTokens, "turns": s.Turns} {
				for range 20 {
					if v := d.DrawInt(rng); v < 1 || d.HasMin && float64(v) < d.Min || d.HasMax && float64(v) > d.Max {
						t.Fatalf("%s: drew %d from %+v", what, v, d)
					}
				}
				if mean := d.MeanInt(); !(mean >= 1 && mean <= 1e7*(1+1e-9)) {
					t.Fatalf("%s: mean %g of %+v", what, mean, d)
				}
			}
			if v := s.ThinkSeconds.Draw(rng); !(v >= 0 && v <= 86_400) {
				t.Fatalf("drew %g s of thinking from %+v", v, s.ThinkSeconds)
			}
		}
		_, perStart := m.SessionShares()
		var last time.Duration
		n := 0
		for at := range m.Starts(rng, perStart) {
			if at < last || at > m.Length() {
				t.Fatalf("a start at %v after %v in a run of %v", at, last, m.Length())
			}
			last = at
			if n++; n == 1000 {
				break
			}
		}
	})
}
