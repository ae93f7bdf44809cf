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

var ofModel = cmp.Options{cmpopts.IgnoreUnexported(Scenario{}, Joint{}), cmpopts.IgnoreFields(Model{}, "Source")}

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
	got := decoded(t, everyField)
	want := &Model{
		Name: "all", Description: "every field", Seed: math.MaxUint64, HasSeed: true, API: wire.Messages,
		Models: []Share{{"a", 0.75, ""}, {"b", 0.25, wire.Responses}}, Arrivals: Arrivals{"gamma", 2.5},
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

func TestSmallFaults(t *testing.T) {
	if _, err := Decode("good.json", []byte(changed("", ""))); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, row := range smallFaults {
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
	for _, text := range goodModels {
		f.Add([]byte(text))
	}
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
			drawn := map[string]Dist{"input": s.InputTokens, "output": s.OutputTokens, "turns": s.Turns}
			if s.Joint != nil || m.Trace != nil {
				delete(drawn, "input")
				delete(drawn, "output")
			}
			if s.Joint != nil {
				for _, row := range s.Joint.DrawSession(rng, 3) {
					if row.Input < 1 || row.Output < 1 || s.Joint.HasTurns && row.Turns < 1 || row.Think < 0 {
						t.Fatalf("drew %+v", row)
					}
				}
				if s.Joint.HasTurns {
					delete(drawn, "turns")
				}
			}
			for what, d := range drawn {
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

// YAML reads a number that no integer holds as text.
func TestASeedHas64Bits(t *testing.T) {
	_, err := Decode("m.json", []byte(changed(`"target_qps"`, `"seed": 18446744073709551616, "target_qps"`)))
	if err == nil || !strings.HasSuffix(err.Error(), "seed 18446744073709551616: want at most 18446744073709551615") {
		t.Error(err)
	}
}
