package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
	"weir/store"
	"weir/store/call"
)

// wantedOf is the report of calls of one run, whose load model wants something.
func wantedOf(t *testing.T, document string, by []string, runs int, calls ...*call.Call) *Report {
	t.Helper()
	for _, c := range calls {
		c.Run = "7f3a"
	}
	r, err := Summarise(each(calls...), Options{By: by, Runs: func([]string) ([]Run, error) {
		stored := RunOf(store.Run{ID: "7f3a", Model: []byte(document), Scenarios: []string{"chat", "rag"}})
		all := []Run{stored, stored}
		return all[:runs], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const wanting = `
load_model:
  target_qps: 1
  duration_seconds: 1
  scenarios:
  - {id: chat, weight: 0.5, input_tokens: 9, output_tokens: 9, want: [ttft p50 < 400ms, ttft p50 <= 400ms, ttft max < 1.5s, ttft felt mean < 1s,
     ttft service p99 < 1s, tpot p90 < 10ms, tpot p90 <= 10ms, e2e p95 < 10s, e2e done max < 500ms, queued p95 < 1ms, error rate < 25%, error rate <= 25%]}
  - {id: rag, weight: 0.5, input_tokens: 9, output_tokens: 9, want: [ttft upstream p95 < 2s, error rate < 1%]}
`

func TestWantsAreHeldAgainstTheirScenario(t *testing.T) {
	r := wantedOf(t, wanting, nil, 1, seen("chat", 300), seen("chat", 400), seen("chat", 2000), failedCall("chat", call.RateLimited, 429, "slow down"))
	want := []Want{
		{"chat", "ttft p50 < 400ms", WantFailed, N(400), Num{}, 3, true},
		{"chat", "ttft p50 <= 400ms", WantHeld, N(400), Num{}, 3, true},
		{"chat", "ttft max < 1.5s", WantFailed, N(2000), Num{}, 3, false},
		{"chat", "ttft felt mean < 1s", WantHeld, N(900), Num{}, 3, false},
		{"chat", "ttft service p99 < 1s", WantUnknown, Num{}, Num{}, 0, false},
		{"chat", "tpot p90 < 10ms", WantFailed, N(10), Num{}, 3, true},
		{"chat", "tpot p90 <= 10ms", WantHeld, N(10), Num{}, 3, true},
		{"chat", "e2e p95 < 10s", WantHeld, N(2100), Num{}, 3, true},
		{"chat", "e2e done max < 500ms", WantFailed, N(2100), Num{}, 3, false},
		{"chat", "queued p95 < 1ms", WantHeld, N(0), Num{}, 3, true},
		{"chat", "error rate < 25%", WantFailed, Num{}, N(0.25), 4, false},
		{"chat", "error rate <= 25%", WantHeld, Num{}, N(0.25), 4, false},
		{"rag", "ttft upstream p95 < 2s", WantUnknown, Num{}, Num{}, 0, false},
		{"rag", "error rate < 1%", WantUnknown, Num{}, Num{}, 0, false},
	}
	if diff := cmp.Diff(want, r.Wants); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTTFTWithoutAProxyIsTheGenerators(t *testing.T) {
	alone := clientOf(seen("chat", 300), 9, 0)
	alone.ParentSpan = [8]byte{}
	r := wantedOf(t, wanting, nil, 1, alone)
	if w := r.Wants[0]; w.Result != WantHeld || !w.Value.Known {
		t.Errorf("%+v", w)
	}
	if w := r.Wants[3]; w.Result != WantUnknown {
		t.Errorf("felt by the proxy, which was not there: %+v", w)
	}
}

func TestNothingIsWantedOfOtherRows(t *testing.T) {
	for name, r := range map[string]*Report{
		"by model":         wantedOf(t, wanting, []string{"model"}, 1, seen("chat", 300)),
		"of two runs":      wantedOf(t, wanting, nil, 2, seen("chat", 300)),
		"of no run":        wantedOf(t, wanting, nil, 0, seen("chat", 300)),
		"of a bad model":   wantedOf(t, "load_model: {", nil, 1, seen("chat", 300)),
		"of a trace alone": wantedOf(t, "", nil, 1, seen("chat", 300)),
	} {
		if r.Wants == nil || len(r.Wants) > 0 {
			t.Errorf("%s: %+v", name, r.Wants)
		}
	}
}

// Each figure and rank that a load model can want has a value here.
func TestEveryFigureThatCanBeWantedIsKnown(t *testing.T) {
	full := &Percentiles{N: 1, Mean: N(1), P50: N(1), P90: N(1), P95: N(1), P99: N(1), Max: N(1)}
	row := Row{Calls: 4, OK: 3, Share: N(0.75), TTFTFelt: *full, TTFTUpstream: *full, TTFTResponse: *full, TTFTService: *full, TPOT: *full, Queued: *full, ToLastToken: *full, ToDone: *full}
	for _, figure := range loadmodel.WantFigures {
		for _, rank := range loadmodel.WantRanks {
			if w := row.judge("chat", loadmodel.Want{Figure: figure, Rank: rank, Limit: 2}); w.Result != WantHeld {
				t.Errorf("%s %s: %+v", figure, rank, w)
			}
		}
	}
}
