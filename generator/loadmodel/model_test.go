package loadmodel

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func quickstart(t testing.TB) *Model {
	t.Helper()
	m, err := Read("../../examples/quickstart/load_model.json")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestQuickstartModelIsReadAsItStands(t *testing.T) {
	m := quickstart(t)
	if m.Name != "llm_pressure_test_v1" || m.TargetQPS != 20 || m.Duration != 300*time.Second || m.RampUp != time.Minute || len(m.Scenarios) != 4 {
		t.Fatalf("read as %+v", m)
	}
	rag := m.Scenarios[1]
	if rag.Description != "长上下文RAG检索增强" || rag.Corpus != "rag" {
		t.Errorf("scenario read as %+v", rag)
	}
	if got, want := rag.InputTokens.Median, math.Sqrt(4000*16000); got != want {
		t.Errorf("lognormal median %g, want √(min·max) = %g", got, want)
	}
	// Before it is cut, max is its 99th percentile.
	uncut := rag.InputTokens
	uncut.HasMax, uncut.HasMin = false, false
	if got := uncut.Quantile(0.99); math.Abs(got-16000) > 1 {
		t.Errorf("p99 of the uncut lognormal is %g, want max", got)
	}
}

func TestDrawsFollowTheirDistribution(t *testing.T) {
	for name, d := range map[string]Dist{
		"uniform":            Range(50, 200),
		"lognormal, cut":     {Kind: "lognormal", Median: 8000, Sigma: 0.3, Min: 4000, Max: 16000, HasMin: true, HasMax: true},
		"lognormal, not cut": {Kind: "lognormal", Median: 300, Sigma: 1},
		"normal, cut":        {Kind: "normal", Average: 500, StdDev: 300, Min: 100, Max: 900, HasMin: true, HasMax: true},
		"exponential, cut":   {Kind: "exponential", Average: 400, Min: 10, Max: 1500, HasMin: true, HasMax: true},
		"quantiles":          {Kind: "quantiles", Points: [][2]float64{{0, 39}, {0.5, 1020}, {0.99, 4142}, {1, 14050}}},
		"quantiles, cut":     {Kind: "quantiles", Points: [][2]float64{{0, 39}, {0.5, 1020}, {0.99, 4142}, {1, 14050}}, Min: 100, Max: 4000, HasMin: true, HasMax: true},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			draws := make([]float64, 100_000)
			for i := range draws {
				draws[i] = d.Draw(rng)
			}
			slices.Sort(draws)
			if d.HasMin && draws[0] < d.Min || d.HasMax && draws[len(draws)-1] > d.Max {
				t.Errorf("drew from %g to %g", draws[0], draws[len(draws)-1])
			}
			for _, p := range []float64{0.05, 0.25, 0.5, 0.75, 0.9, 0.95} {
				got, want := draws[int(p*float64(len(draws)))], d.Quantile(p)
				if math.Abs(got-want) > 0.015*want {
					t.Errorf("p%g of the draws is %.1f, of the distribution %.1f", 100*p, got, want)
				}
			}
			// Redrawn, not clamped: the ends hold no more than their neighbourhood.
			if d.HasMax {
				at := 0
				for _, v := range draws {
					if v == d.Max {
						at++
					}
				}
				if at > 10 {
					t.Errorf("%d draws lie on max", at)
				}
			}
		})
	}
}

func TestCutQuantilesAreThoseOfRedrawing(t *testing.T) {
	d := Dist{Kind: "lognormal", Median: 8000, Sigma: 0.5}
	cut := d
	cut.Min, cut.Max, cut.HasMin, cut.HasMax = 4000, 16000, true, true
	rng := rand.New(rand.NewPCG(3, 4))
	var kept []float64
	for len(kept) < 100_000 {
		if v := d.Draw(rng); v >= 4000 && v <= 16000 {
			kept = append(kept, v)
		}
	}
	slices.Sort(kept)
	for _, p := range []float64{0.1, 0.5, 0.9} {
		if got, want := cut.Quantile(p), kept[int(p*1e5)]; math.Abs(got-want) > 0.01*want {
			t.Errorf("p%g is %.0f; redrawing gives %.0f", 100*p, got, want)
		}
	}
}

func TestWholeNumbersOfAUniformAreEquallyLikely(t *testing.T) {
	counts := map[int]int{}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60_000 {
		counts[Range(3, 8).DrawInt(rng)]++
	}
	for k := 3; k <= 8; k++ {
		if counts[k] < 9_500 || counts[k] > 10_500 {
			t.Errorf("%d came %d times of 60000, want about 10000", k, counts[k])
		}
	}
	if len(counts) != 6 {
		t.Errorf("drew %v", counts)
	}
}

func TestWeightsAreSharesOfRequests(t *testing.T) {
	m := quickstart(t)
	shares, perStart := m.SessionShares()
	rng := rand.New(rand.NewPCG(7, 8))
	requests := make([]float64, len(shares))
	var all, starts float64
	for range 100_000 {
		u, i := rng.Float64(), 0
		for ; i < len(shares)-1 && u >= shares[i]; i++ {
			u -= shares[i]
		}
		n := float64(m.Scenarios[i].Turns.DrawInt(rng))
		requests[i] += n
		all += n
		starts++
	}
	for i, s := range m.Scenarios {
		if got := requests[i] / all; math.Abs(got-s.Weight) > 0.005 {
			t.Errorf("%s has %.4f of the requests, want %g", s.ID, got, s.Weight)
		}
	}
	if got := all / starts; math.Abs(got-perStart) > 0.02 {
		t.Errorf("a start brings %.3f requests, SessionShares says %.3f", got, perStart)
	}
}

func TestStartsFollowTheRate(t *testing.T) {
	count := func(m *Model, from, to time.Duration) (n int) {
		for at := range m.Starts(rand.New(rand.NewPCG(9, 9)), 1) {
			if at >= from && at < to {
				n++
			}
		}
		return n
	}
	m := &Model{TargetQPS: 200, Duration: 100 * time.Second, RampUp: 40 * time.Second, Arrivals: Arrivals{Process: "constant"}}
	for _, row := range []struct {
		name     string
		from, to time.Duration
		want     int
	}{
		{"all of it → ramp's half and the rest", 0, 100 * time.Second, 16_000},
		{"first half of the ramp → a quarter of its starts", 0, 20 * time.Second, 1000},
		{"after the ramp → the target", 50 * time.Second, 60 * time.Second, 2000},
	} {
		if got := count(m, row.from, row.to); got < row.want-1 || got > row.want+1 {
			t.Errorf("%s: %d starts, want %d", row.name, got, row.want)
		}
	}
	phased := &Model{Arrivals: Arrivals{Process: "constant"}, Phases: []Phase{{FromQPS: 10, ToQPS: 10, Length: 10 * time.Second}, {FromQPS: 10, ToQPS: 100, Length: 10 * time.Second}, {FromQPS: 0, ToQPS: 0, Length: 5 * time.Second}, {FromQPS: 100, ToQPS: 0, Length: 10 * time.Second}}}
	if got := count(phased, 0, time.Hour); got != 1150 {
		t.Errorf("phases: %d starts, want 100+550+0+500", got)
	}
	if got := count(phased, 20*time.Second, 25*time.Second); got != 0 {
		t.Errorf("a phase of rate 0 has %d starts", got)
	}
}

func TestArrivalProcessesKeepTheirCharacter(t *testing.T) {
	for _, row := range []struct {
		process string
		cv      float64
	}{{"poisson", 1}, {"gamma", 2.5}, {"constant", 0}} {
		m := &Model{TargetQPS: 100, Duration: 1000 * time.Second, Arrivals: Arrivals{Process: row.process, CV: row.cv}}
		var last time.Duration
		var n, sum, squares float64
		for at := range m.Starts(rand.New(rand.NewPCG(11, 1)), 1) {
			g := (at - last).Seconds()
			last = at
			n, sum, squares = n+1, sum+g, squares+g*g
		}
		mean := sum / n
		cv := math.Sqrt(math.Max(squares/n-mean*mean, 0)) / mean
		if math.Abs(cv-row.cv) > 0.03*math.Max(row.cv, 1) {
			t.Errorf("%s: gaps have CV %.3f, want %.3f", row.process, cv, row.cv)
		}
		if math.Abs(n-100_000) > 5*math.Max(row.cv, 0.01)*math.Sqrt(100_000) {
			t.Errorf("%s: %.0f starts, want about 100000", row.process, n)
		}
	}
}

func TestScalingKeepsTheRate(t *testing.T) {
	m := quickstart(t).Scaled(20 * time.Second)
	if m.Duration != 20*time.Second || m.RampUp != 4*time.Second || m.TargetQPS != 20 {
		t.Errorf("scaled to %v with a ramp of %v at %g/s", m.Duration, m.RampUp, m.TargetQPS)
	}
	if got := m.Requests(); got != 360 {
		t.Errorf("%g requests, want 20·(20−4/2)", got)
	}
}

// Each file in testdata/bad is wrong in one way; its golden is the error.
func TestErrorsNamePlaceAndNextStep(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.json")
	if len(files) < 20 {
		t.Fatalf("only %d bad models found", len(files))
	}
	for _, file := range files {
		_, err := Read(file)
		if err == nil {
			t.Errorf("%s was accepted", file)
			continue
		}
		golden := strings.TrimSuffix(file, ".json") + ".golden"
		got := err.Error() + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, _ := os.ReadFile(golden)
		if got != string(want) {
			t.Errorf("%s:\n got %swant %s", file, got, want)
		}
		if strings.Count(got, "\n") != 1 {
			t.Errorf("%s: the error has several lines:\n%s", file, got)
		}
	}
}

func TestRulesNameAScenario(t *testing.T) {
	m, err := Decode("rules.json", []byte(`{"load_model": {"target_qps": 1, "duration_seconds": 1, "scenarios": [
		{"id": "big", "weight": 0.5, "input_tokens": 1, "output_tokens": 1, "match": "input_tokens > 4000 && model startsWith \"gpt\""},
		{"id": "agent", "weight": 0.5, "input_tokens": 1, "output_tokens": 1, "match": "tools > 0 or client == \"codex\""}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		f    Facts
		want string
	}{
		{"both hold → the first", Facts{Model: "gpt-5", InputTokens: 5000, Tools: 3}, "big"},
		{"only the second holds → the second", Facts{Model: "claude", InputTokens: 5000, Client: "codex"}, "agent"},
		{"none holds → none", Facts{Model: "gpt-5"}, ""},
	} {
		got, ok := m.Match(row.f)
		if got != row.want || ok != (row.want != "") {
			t.Errorf("%s: %q, %v", row.name, got, ok)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	m, err := Decode("rules.json", []byte(`{"load_model": {"target_qps": 1, "duration_seconds": 1, "scenarios": [
		{"id": "big", "weight": 1, "input_tokens": 1, "output_tokens": 1, "match": "input_tokens > 4000 && model startsWith \"gpt\""}]}}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Match(Facts{Model: "gpt-5", InputTokens: 5000})
	}
}

func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile("../../examples/quickstart/load_model.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	files, _ := filepath.Glob("testdata/bad/*.json")
	for _, file := range files {
		bad, _ := os.ReadFile(file)
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode("fuzz.json", data)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for _, s := range m.Scenarios {
			if v := s.InputTokens.DrawInt(rng); v < 1 {
				t.Errorf("drew %d input tokens", v)
			}
		}
	})
}
