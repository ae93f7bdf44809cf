package generator

import (
	"regexp"
	"strings"
	"testing"
)

// said are an outlook's warnings, by kind.
func said(o *Outlook) map[string]string {
	all := map[string]string{}
	for _, w := range o.Warnings {
		all[w.Kind] += w.Text + "\n"
	}
	return all
}

func TestDistributionsThatAreCutToLittle(t *testing.T) {
	for name, row := range map[string]struct{ prompts, want string }{
		"an exponential of which one value is left": {`{"distribution": "exponential", "mean": 1000, "max": 1}`, "input_tokens: only under 1% of its exponential distribution lies"},
		"a zipf without its beginning":              {`{"distribution": "zipf", "max": 5000, "exponent": 1.5, "min": 100}`, "input_tokens: only 7% of its zipf distribution lies"},
		"a whole zipf":                              {`{"distribution": "zipf", "max": 5000, "exponent": 1.5}`, ""},
		"an exponential that is as good as whole":   {`{"distribution": "exponential", "mean": 1000}`, ""},
		"one value by two equal ends":               {`{"distribution": "uniform", "min": 5, "max": 5}`, ""},
	} {
		m := decode(t, `{"load_model": {"name": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": `+row.prompts+`, "output_tokens": 9}], "target_qps": 10, "duration_seconds": 10}}`)
		got := said(foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{}))["cut_distribution"]
		if !strings.HasPrefix(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestWarningsDoNotSayNothing(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "seed": 1, "scenarios": [{"id": "a", "weight": 1,
  "input_tokens": {"min": 1000, "max": 20000}, "output_tokens": 1000, "turns": 2}], "target_qps": 10, "duration_seconds": 30}}`)
	texts := said(foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{}))
	if !strings.Contains(texts["no_room"], "become under 1% larger than drawn") {
		t.Errorf("%v", texts)
	}
	m = decode(t, `{"load_model": {"name": "m", "seed": 1, "scenarios": [{"id": "a", "weight": 1,
  "input_tokens": 1000, "output_tokens": 50}], "target_qps": 10, "duration_seconds": 30}}`)
	texts = said(foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{}))
	if !strings.Contains(texts["single_turns"], "single turns: no request carries history;") {
		t.Errorf("%v", texts)
	}
	for kind, text := range texts {
		if regexp.MustCompile(`\b0%`).MatchString(text) {
			t.Errorf("%s says nothing: %s", kind, text)
		}
	}
}

func TestAPriceOfNoModelIsTold(t *testing.T) {
	m := decode(t, `{"load_model": {"name": "m", "scenarios": [{"id": "a", "weight": 0.5, "model": "gpt-5", "input_tokens": 10, "output_tokens": 5},
  {"id": "b", "weight": 0.5, "model": "通义千问", "input_tokens": 10, "output_tokens": 5}], "target_qps": 10, "duration_seconds": 10}}`)
	texts := said(foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Prices: []Price{{Model: "gpt*", Input: 1}, {Model: "gpt-5", Input: 1}, {Model: "*", Input: 1}}}))
	if want := "the price of \"gpt*\" is of no model of this plan: it asks for gpt-5, 通义千问; names are compared as they stand\n"; texts["unused_price"] != want {
		t.Errorf("%q, want %q", texts["unused_price"], want)
	}
	m = decode(t, `{"load_model": {"name": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": 10, "output_tokens": 5}], "target_qps": 10, "duration_seconds": 10}}`)
	texts = said(foresee(t, &Plan{Model: m, Seed: 1}, OutlookOptions{Prices: []Price{{Model: "gpt-5", Input: 1}}}))
	if !strings.Contains(texts["unused_price"], "no model is named in it (* is any)") {
		t.Errorf("%q", texts["unused_price"])
	}
}
