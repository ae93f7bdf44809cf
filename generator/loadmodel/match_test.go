package loadmodel

import (
	"sync"
	"testing"
)

const ruled = `{"load_model": {"target_qps": 1, "duration_seconds": 1, "scenarios": [
	{"id": "big", "weight": 0.5, "input_tokens": 1, "output_tokens": 1, "match": "input_tokens > 4000 && model startsWith \"gpt\""},
	{"id": "agent", "weight": 0.4, "input_tokens": 1, "output_tokens": 1, "match": "tools > 0 or client == \"codex\""},
	{"id": "odd", "weight": 0.1, "input_tokens": 1, "output_tokens": 1, "match": "model[5:6] == \"!\" or [1, 2][turns] == 2 and api == \"chat\" and path == \"/x\" and session == \"\" and stream"},
	{"id": "never", "weight": 0, "input_tokens": 1, "output_tokens": 1}]}}`

func decoded(t testing.TB, text string) *Model {
	t.Helper()
	m, err := Decode("model.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRulesNameAScenario(t *testing.T) {
	m := decoded(t, ruled)
	for _, row := range []struct {
		name string
		f    Facts
		want string
	}{
		{"two hold → the first", Facts{Model: "gpt-5", InputTokens: 5000, Tools: 3}, "big"},
		{"only the second holds → the second", Facts{Model: "claude", InputTokens: 5000, Client: "codex"}, "agent"},
		{"none holds → none", Facts{Model: "gpt-5"}, ""},
		{"all facts can be asked for", Facts{Model: "m", Turns: 1, API: "chat", Path: "/x", Stream: true}, "odd"},
		{"a rule fails on the request → it does not hold", Facts{Model: "m", Turns: 9}, ""},
	} {
		got, ok := m.Match(row.f)
		if got != row.want || ok != (row.want != "") {
			t.Errorf("%s: %q, %v", row.name, got, ok)
		}
	}
	if !m.HasRules() || quickstart(t).HasRules() {
		t.Error("HasRules is wrong about the rules or their absence")
	}
}

func TestRulesAreSafeForConcurrentUse(t *testing.T) {
	m := decoded(t, ruled)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				if got, _ := m.Match(Facts{Model: "gpt-5", InputTokens: 3900 + i}); (got == "big") != (i > 100) {
					t.Errorf("%d input tokens match %q", 3900+i, got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkMatch(b *testing.B) {
	m := decoded(b, ruled)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Match(Facts{Model: "gpt-5", InputTokens: 5000})
		}
	})
}
