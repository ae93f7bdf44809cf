package generator

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// shaped is a model of which every scenario shapes its sessions in another way.
const shaped = `{"load_model": {"target_qps": 1000, "duration_seconds": 120, "seed": 3,
  "models": [{"name": "claude", "share": 0.25, "api": "messages"}, {"name": "gpt", "share": 0.75}], "api": "responses",
  "scenarios": [
  {"id": "sessions", "weight": 0.4, "joint": [[900, 9, 3, 1.5], [100, 1, 1, 0], [200, 2, 1, 0], [500, 5, 3, 2.5], [700, 7, 3, 0.001], [800, 8, 2, 60]]},
  {"id": "rows", "weight": 0.2, "joint": [[500, 5], [100, 100]], "turns": {"min": 1, "max": 3}, "think_seconds": 4, "prefix": {"tokens": 64, "pool": 5}},
  {"id": "flat", "weight": 0.2, "joint": [[500, 5, 4], [300, 3, 2]], "session": "flattened", "model": "own", "prefix": {"tokens": 32, "pool": 3}},
  {"id": "plain", "weight": 0.2, "input_tokens": {"min": 50, "max": 90}, "output_tokens": 5}]}}`

func TestRowsStayTogetherAndAreEquallyFrequent(t *testing.T) {
	type row struct{ input, output, turns int }
	counts := map[string]map[row]int{"sessions": {}, "rows": {}, "flat": {}, "plain": {}}
	requests := map[string]int{}
	think := map[int]time.Duration{900: 1500 * time.Millisecond, 500: 2500 * time.Millisecond, 700: leastThink, 800: time.Minute}
	all := 0
	for _, s := range collect(t, &Plan{Model: decode(t, shaped), Seed: 4}) {
		for i, turn := range s.Turns {
			turns := len(s.Turns)
			switch s.Scenario {
			case "flat":
				turns = s.Flattened
			case "rows":
				turns = 0
			}
			if s.Scenario != "plain" {
				counts[s.Scenario][row{turn.Input, turn.Output, turns}]++
			}
			requests[s.Scenario]++
			all++
			if i > 0 && turn.Input < s.Turns[i-1].Input {
				t.Fatalf("session %d: contexts fall: %+v", s.Index, s.Turns)
			}
			want := time.Duration(0)
			if i > 0 && s.Scenario == "sessions" {
				want = think[turn.Input]
			} else if i > 0 {
				want = 4 * time.Second
			}
			if turn.Think != want {
				t.Fatalf("session %d of %s, turn %d: thinks %s, want %s: %+v", s.Index, s.Scenario, i+1, turn.Think, want, s.Turns)
			}
		}
	}
	if all < 100_000 {
		t.Fatalf("only %d requests", all)
	}
	for _, sc := range decode(t, shaped).Scenarios {
		if share := float64(requests[sc.ID]) / float64(all); math.Abs(share-sc.Weight) > 0.005 {
			t.Errorf("%s has %.4f of the requests, want %g", sc.ID, share, sc.Weight)
		}
	}
	want := map[string][]row{
		"sessions": {{100, 1, 1}, {200, 2, 1}, {500, 5, 3}, {700, 7, 3}, {800, 8, 2}, {900, 9, 3}},
		"rows":     {{100, 100, 0}, {500, 5, 0}},
		"flat":     {{300, 3, 2}, {500, 5, 4}},
	}
	for scenario, rows := range want {
		for _, r := range rows {
			p := 1 / float64(len(rows))
			n := float64(requests[scenario])
			// Requests of a session come together: at most three by three.
			if share := float64(counts[scenario][r]) / n; math.Abs(share-p) > 5*math.Sqrt(3*p*(1-p)/n) {
				t.Errorf("%s: row %+v is %.4f of its %.0f requests, want %.4f", scenario, r, share, n, p)
			}
			delete(counts[scenario], r)
		}
		if len(counts[scenario]) > 0 {
			t.Errorf("%s: requests that are no row: %v", scenario, counts[scenario])
		}
	}
}

func TestPrefixesAreOfGroupsWithinScenarios(t *testing.T) {
	groups := map[string]map[int]int{}
	n := map[string]int{}
	for _, s := range collect(t, &Plan{Model: decode(t, shaped), Seed: 5}) {
		tokens := map[string]int{"rows": 64, "flat": 32}[s.Scenario]
		if s.Prefix.Tokens != tokens {
			t.Fatalf("session %d of %s: prefix %+v, want %d tokens", s.Index, s.Scenario, s.Prefix, tokens)
		}
		if tokens == 0 {
			continue
		}
		if groups[s.Scenario] == nil {
			groups[s.Scenario] = map[int]int{}
		}
		groups[s.Scenario][s.Prefix.Group]++
		n[s.Scenario]++
	}
	for scenario, want := range map[string][]int{"rows": {0, 1, 2, 3, 4}, "flat": {5, 6, 7}} {
		for _, group := range want {
			p := 1 / float64(len(want))
			if share := float64(groups[scenario][group]) / float64(n[scenario]); math.Abs(share-p) > 5*math.Sqrt(p/float64(n[scenario])) {
				t.Errorf("%s: group %d has %.4f of the sessions, want %.4f", scenario, group, share, p)
			}
			delete(groups[scenario], group)
		}
		if len(groups[scenario]) > 0 {
			t.Errorf("%s has groups %v too", scenario, groups[scenario])
		}
	}
}

func TestAPrefixChangesNothingElseOfAPlan(t *testing.T) {
	m := decode(t, shaped).Scaled(5 * time.Second)
	with := collect(t, &Plan{Model: m, Seed: 6})
	for i := range m.Scenarios {
		m.Scenarios[i].Prefix.Tokens = 0
	}
	without := collect(t, &Plan{Model: m, Seed: 6})
	for i := range with {
		with[i].Prefix = Prefix{}
	}
	if diff := cmp.Diff(without, with); diff != "" {
		t.Error(diff)
	}
}

func TestModelsHaveTheirSharesAndAPIs(t *testing.T) {
	type asked struct {
		model string
		api   wire.API
	}
	p := &Plan{Model: decode(t, shaped), Seed: 7}
	counts, flat := map[asked]int{}, map[asked]int{}
	all := 0
	for _, s := range collect(t, p) {
		if s.Scenario == "flat" {
			flat[asked{s.Model, s.API}]++
			continue
		}
		counts[asked{s.Model, s.API}] += len(s.Turns)
		all += len(s.Turns)
	}
	claude := float64(counts[asked{"claude", wire.Messages}]) / float64(all)
	gpt := float64(counts[asked{"gpt", wire.Responses}]) / float64(all)
	if all < 80_000 || len(counts) != 2 || math.Abs(claude-0.25) > 0.005 || math.Abs(gpt-0.75) > 0.005 {
		t.Errorf("of %d requests: %v", all, counts)
	}
	if len(flat) != 1 || flat[asked{"own", wire.Responses}] == 0 {
		t.Errorf("a scenario with a model of its own asked %v", flat)
	}
	var said []string
	for _, d := range p.dialects() {
		said = append(said, d.String())
	}
	slices.Sort(said)
	if diff := cmp.Diff([]string{`messages, model "claude"`, `responses, model "gpt"`, `responses, model "own"`}, said); diff != "" {
		t.Errorf("what is tried before the run:\n%s", diff)
	}
}

func TestEqualSeedsGiveEqualPlansOfEveryShape(t *testing.T) {
	m := decode(t, shaped)
	hash := func(seed uint64) [32]byte {
		h := sha256.New()
		for _, s := range collect(t, &Plan{Model: m, Seed: seed}) {
			fmt.Fprintf(h, "%+v\n", s)
		}
		return [32]byte(h.Sum(nil))
	}
	if one, again := hash(1), hash(1); one != again {
		t.Error("the same model and seed gave other bytes")
	}
	if hash(1) == hash(2) {
		t.Error("two seeds gave the same bytes")
	}
}

func TestAWarmUpOfRatesIsAtTheirPeak(t *testing.T) {
	m := decode(t, `{"load_model": {"rates": [{"qps": 5, "seconds": 2}, {"qps": 40, "seconds": 1}], "warm_up_seconds": 2, "arrivals": {"process": "constant"},
	  "scenarios": [{"id": "a", "weight": 1, "input_tokens": 50, "output_tokens": 5}]}}`)
	warm, run := 0, 0
	for _, s := range collect(t, &Plan{Model: m, Seed: 1}) {
		if s.WarmUp {
			warm++
		} else {
			run++
		}
	}
	if warm != 80 || run != 50 {
		t.Errorf("%d requests warm up and %d run, want 80 and 50", warm, run)
	}
}

func TestAClosedLoopIsNotPlayedAsAnOpenOne(t *testing.T) {
	m := decode(t, `{"load_model": {"concurrency": 5, "duration_seconds": 9, "scenarios": [{"id": "a", "weight": 1, "input_tokens": 50, "output_tokens": 5}]}}`)
	for s, err := range (&Plan{Model: m}).Sessions() {
		if err == nil {
			t.Fatalf("planned %+v", s)
		}
	}
}
