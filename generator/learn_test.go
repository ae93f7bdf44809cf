package generator

import (
	"strings"
	"testing"

	"weir/generator/corpus"
	"weir/store/call"
)

const strange = `{"load_model": {"target_qps": 100, "duration_seconds": 1, "api": "messages", "model": "strange-1", "scenarios": [
	{"id": "a", "weight": 0.5, "input_tokens": {"min": 200, "max": 2000}, "output_tokens": 6, "turns": 2, "corpus": "prose"},
	{"id": "b", "weight": 0.5, "input_tokens": {"min": 300, "max": 2000}, "output_tokens": 6, "language": "zh", "corpus": "rag", "tools": 1}]}}`

// A run learns from the endpoint's usage what a token is of, says how far its
// prompts were from their plan, and a run that counts so comes closer.
func TestTheTokensOfAModelAreLearnedFromItsUsage(t *testing.T) {
	e := newEndpoint(t) // counts as o200k_base does, which the first run shall not know
	plan := &Plan{Model: decode(t, strange), Seed: 1}
	plan.Rates = map[string]*corpus.Rates{"strange-1": {Word: 1.5, Letter: 0.2, Digit: 1, Ideograph: 1.5, Other: 1}}
	r, rec := newRun(e, plan)
	first := do(t, r)
	if len(first.Learned) != 1 || first.Learned[0].Model != "strange-1" || first.Learned[0].Off < 0.3 {
		t.Fatalf("want prompts far from their tokens, got %+v", first.Learned)
	}
	learned := first.Learned[0]
	if learned.Rates.Residual > 0.08 {
		t.Errorf("what was learned is off by %.1f%%", 100*learned.Rates.Residual)
	}
	if notes := strings.Join(first.Notes(), "\n"); !strings.Contains(notes, `weir lacks the tokenizer of "strange-1"`) || !strings.Contains(notes, "--tokens-of run:"+r.ID) {
		t.Errorf("the notes do not tell of it:\n%s", notes)
	}
	told := 0
	for _, c := range rec.calls(t) {
		if _, ok := SampleOf(c); ok {
			told++
			if c.Turn > 1 {
				t.Error("a later turn tells of its text, of which a part is the model's own")
			}
		}
	}
	if told != learned.Rates.Samples {
		t.Errorf("%d samples were learned from, and calls tell of %d", learned.Rates.Samples, told)
	}

	plan.Rates = map[string]*corpus.Rates{"strange-1": learned.Rates}
	r, _ = newRun(e, plan)
	second := do(t, r)
	if len(second.Learned) != 1 || second.Learned[0].Off > 0.1 {
		t.Errorf("counted as was learned, prompts are still off: %+v", second.Learned)
	}
}

func TestOfPublicTokenizersNothingIsLearned(t *testing.T) {
	e := newEndpoint(t)
	r, rec := newRun(e, &Plan{Model: decode(t, strings.ReplaceAll(strange, "strange-1", "gpt-4o")), Seed: 1})
	if result := do(t, r); len(result.Learned) > 0 {
		t.Errorf("learned %+v", result.Learned)
	}
	for _, c := range rec.calls(t) {
		if c.Text != (call.Text{}) {
			t.Errorf("a call tells of its text: %+v", c.Text)
		}
	}
}
