package generator

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
)

// decode reads a load model written in a test.
func decode(t testing.TB, text string) *loadmodel.Model {
	t.Helper()
	m, err := loadmodel.Decode("test.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func quickstart(t testing.TB) *loadmodel.Model {
	t.Helper()
	m, err := loadmodel.Read("../examples/quickstart/load_model.json")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(t testing.TB, p *Plan) []Session {
	t.Helper()
	var all []Session
	for s, err := range p.Sessions() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestWeightsAreSharesOfRequests(t *testing.T) {
	m := quickstart(t).Scaled(100_000 * time.Second / 20)
	for seed := range uint64(3) {
		requests := map[string]int{}
		total := 0
		for _, s := range collect(t, &Plan{Model: m, Seed: seed}) {
			requests[s.Scenario] += len(s.Turns)
			total += len(s.Turns)
		}
		if total < 80_000 {
			t.Fatalf("only %d requests", total)
		}
		for _, sc := range m.Scenarios {
			if share := float64(requests[sc.ID]) / float64(total); math.Abs(share-sc.Weight) > 0.005 {
				t.Errorf("seed %d: %s has %.4f of %d requests, want %g within 0.005", seed, sc.ID, share, total, sc.Weight)
			}
		}
	}
}

func TestSharesHoldInShortRunsToo(t *testing.T) {
	p := &Plan{Model: quickstart(t), Seed: 5}
	shares, _ := p.Model.SessionShares()
	counts := make([]int, len(shares))
	const n = 320
	for i := range n {
		counts[p.scenario(shares, i)]++
	}
	for i, share := range shares {
		if got := float64(counts[i]) / n; math.Abs(got-share) > 0.01 {
			t.Errorf("scenario %d: %.3f of the first %d sessions, want %.3f", i, got, n, share)
		}
	}
}

func TestEqualSeedsGiveEqualPlansAndBytes(t *testing.T) {
	m := quickstart(t).Scaled(4 * time.Second)
	hash := func(seed uint64) string {
		h := sha256.New()
		p := &Plan{Model: m, Seed: seed}
		for s, err := range p.Sessions() {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(h, "%+v\n", s)
			_, first, err := p.converse(s)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(first.body)
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	one, again, other := hash(1), hash(1), hash(2)
	if one != again {
		t.Error("the same model and seed gave other bytes")
	}
	if one == other {
		t.Error("two seeds gave the same bytes")
	}
}

func TestASessionsChoicesDoNotDependOnTheOthers(t *testing.T) {
	m := quickstart(t)
	p := &Plan{Model: m, Seed: 9}
	all := collect(t, p)
	shares, _ := m.SessionShares()
	for _, i := range []int{0, 1, 63, 64, 200} {
		alone := p.session(m, i, p.scenario(shares, i))
		alone.Due = all[i].Due
		if diff := cmp.Diff(all[i], alone); diff != "" {
			t.Errorf("session %d:\n%s", i, diff)
		}
	}
}

func TestContextsOfASessionGrow(t *testing.T) {
	multi := 0
	for _, s := range collect(t, &Plan{Model: quickstart(t), Seed: 3}) {
		inputs := make([]int, len(s.Turns))
		for i, turn := range s.Turns {
			inputs[i] = turn.Input
		}
		if !slices.IsSorted(inputs) {
			t.Errorf("session %d: contexts %v do not grow", s.Index, inputs)
		}
		if len(s.Turns) > 1 {
			multi++
			if s.ID == "" || s.Scenario != "multi_turn_agent" || len(s.Turns) < 3 || len(s.Turns) > 8 {
				t.Errorf("session %d of %s: id %q, %d turns", s.Index, s.Scenario, s.ID, len(s.Turns))
			}
		}
	}
	if multi == 0 {
		t.Error("no session has several turns")
	}
}

func TestLongAnswersGoWhereContextsGrow(t *testing.T) {
	got := fitAnswers([]int{100, 200, 900, 1000, 1500}, []int{50, 600, 10, 300, 20})
	if diff := cmp.Diff([]int{10, 300, 20, 50, 600}, got); diff != "" {
		t.Error(diff)
	}
	if got := fitAnswers([]int{7}, []int{3}); len(got) != 1 || got[0] != 3 {
		t.Errorf("one turn: %v", got)
	}
}

const warmModel = `{"load_model": {"name": "warm", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 50, "max": 60}, "output_tokens": {"min": 5, "max": 6}}],
  "target_qps": 50, "duration_seconds": 4, "warm_up_seconds": 2, "arrivals": {"process": "constant"}}}`

func TestWarmUpComesBeforeTheRunAndSharesNoPromptWithIt(t *testing.T) {
	p := &Plan{Model: decode(t, warmModel), Seed: 1}
	warm, run := 0, 0
	seen := map[string]bool{}
	for _, s := range collect(t, p) {
		if s.WarmUp != (s.Due < 2*time.Second) {
			t.Errorf("session %d at %s: warm-up is %v", s.Index, s.Due, s.WarmUp)
		}
		if s.WarmUp {
			warm++
		} else {
			run++
		}
		_, first, err := p.converse(s)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(first.body)] {
			t.Errorf("session %d sends a prompt again", s.Index)
		}
		seen[string(first.body)] = true
	}
	if warm != 100 || run != 200 {
		t.Errorf("%d requests warm up and %d run, want 100 and 200", warm, run)
	}
	if p.Length() != 6*time.Second {
		t.Errorf("the plan takes %s, want 6s", p.Length())
	}
}

func TestATraceIsAPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "My Trace.csv")
	rows := "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.5,374,44\r\n2023-11-16 18:15:48.0,396,109\r\n"
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	trace, err := loadmodel.OpenTrace(file, loadmodel.TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{Trace: trace, Model: &loadmodel.Model{Model: "m"}, Seed: 1}
	want := Session{Scenario: "my-trace", API: wire.Chat, Model: "m", Stream: true, Corpus: "prose", Language: "en"}
	second := want
	want.Turns = []Turn{{Input: 374, Output: 44}}
	second.Index, second.Due, second.Turns = 1, 1500*time.Millisecond, []Turn{{Input: 396, Output: 109}}
	if diff := cmp.Diff([]Session{want, second}, collect(t, p)); diff != "" {
		t.Error(diff)
	}
	if p.Length() != 1500*time.Millisecond {
		t.Errorf("the trace takes %s, want 1.5s", p.Length())
	}
}
