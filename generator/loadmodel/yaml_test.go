package loadmodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const inYAML = `# What our users do.
load_model:
  name: 压力测试
  target_qps: 1e1
  duration_seconds: 60
  extra_body: {temperature: 0.70, stop: [x, null, "on"], deep: {k: true, n: 0x10}}
  scenarios:
    - &chat
      id: chat
      weight: 0.75
      input_tokens: {min: 50, max: 200}
      output_tokens: &short
        distribution: lognormal
        median: 100
        p99: 1000
      stream: no-stream # replaced below
      match: input_tokens < 4000
    - <<: *chat
      id: "2"
      weight: 0.25
      description: |
        of several
        lines
      output_tokens: *short
      stream: false
      want:
      - ttft p95 < 2s
`

func TestYAMLIsReadAsJSONIs(t *testing.T) {
	text := strings.Replace(inYAML, "no-stream", "true", 1)
	got, err := Decode("model.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Decode("model.json", []byte(`{"load_model": {"name": "压力测试", "target_qps": 10, "duration_seconds": 60,
		"extra_body": {"temperature": 0.7, "stop": ["x", null, "on"], "deep": {"k": true, "n": 16}},
		"scenarios": [
		  {"id": "chat", "weight": 0.75, "input_tokens": {"min": 50, "max": 200}, "match": "input_tokens < 4000",
		   "output_tokens": {"distribution": "lognormal", "median": 100, "p99": 1000}},
		  {"id": "2", "weight": 0.25, "description": "of several\nlines\n", "input_tokens": {"min": 50, "max": 200}, "match": "input_tokens < 4000",
		   "output_tokens": {"distribution": "lognormal", "median": 100, "p99": 1000}, "stream": false, "want": ["ttft p95 < 2s"]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, ofModel, sameJSON); diff != "" {
		t.Errorf("from JSON and from YAML:\n%s", diff)
	}
	if string(got.Source) != text {
		t.Error("Source is not the file")
	}
}

var sameJSON = cmp.Comparer(func(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
})

// What JSON says, YAML can say, with the same meaning and the same errors.
func TestEveryDocumentMeansTheSameInYAML(t *testing.T) {
	var texts []string
	for _, row := range smallFaults {
		texts = append(texts, row.text)
	}
	for _, text := range append(texts, goodModels...) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) || strings.Contains(text, "1e999") || strings.Contains(text, "[[[[[[") {
			continue // what stands there is of JSON's syntax, or no number
		}
		block, err := yaml.JSONToYAML([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		a, wrong := Decode("m.json", []byte(text))
		b, alsoWrong := Decode("m.yaml", block)
		if got, want := problem(alsoWrong), problem(wrong); got != want {
			t.Errorf("in JSON: %s\nin YAML: %s\n%s", want, got, block)
		}
		if diff := cmp.Diff(a, b, ofModel, sameJSON, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%s\n%s", block, diff)
		}
	}
}

// problem is an error without its place.
func problem(err error) string {
	if e, ok := err.(*Error); ok { //nolint:errorlint // Decode's own, unwrapped
		return e.Problem
	}
	return fmt.Sprint(err)
}

func TestFaultsInYAMLNamePlaceAndNextStep(t *testing.T) {
	good := strings.Replace(inYAML, "no-stream", "true", 1)
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the good model has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	var got strings.Builder
	for _, row := range []struct{ name, text string }{
		{"a field mistyped", with("duration_seconds", "duration_secs")},
		{"a value behind Chinese", with("target_qps: 1e1", `description: "压力": 5`)},
		{"a text for a number", with("target_qps: 1e1", "target_qps: fast")},
		{"a text for a boolean", inYAML},
		{"a number for a text", with(`"2"`, "2")},
		{"a field twice", with("target_qps: 1e1", "target_qps: 5\n  target_qps: 6")},
		{"a fault in an alias", with("median: 100", "median: -100")},
		{"an alias of nothing", with("*short", "*shrot")},
		{"an alias of itself", with("&short", "&short\n        min: *short")},
		{"a merge of a number", with("<<: *chat", "<<: 5")},
		{"a tab", with("  target_qps", "\ttarget_qps")},
		{"wrong indentation", with("  target_qps", "   target_qps")},
		{"an open quote", with(`"2"`, `"2`)},
		{"an open bracket", with("null, \"on\"]", "null, \"on\"")},
		{"a tag", with("id: chat", "id: !!str 5")},
		{"leading zeros", with("1e1", "030")},
		{"underscores", with("1e1", "1_000")},
		{"infinity", with("1e1", ".inf")},
		{"not a number", with("1e1", ".nan")},
		{"a list for a name", with("  target_qps: 1e1", "  ? [a, b]\n  : 1")},
		{"nothing", with("target_qps: 1e1", "target_qps:")},
		{"another document behind", good + "---\nload_model: {}\n"},
		{"only a comment", "# load_model:\n"},
		{"no wrapper", "scenarios: []\n"},
		{"a list", "- a\n- b\n"},
		{"a text", "load_model\n"},
		{"deep lists", strings.Repeat("- ", 300) + "a\n"},
		{"deep brackets", "a: " + strings.Repeat("[", 1_000_000)},
		{"deep maps", deepMaps(150)},
		{"too long", "# " + strings.Repeat("x", longestYAML)},
		{"aliases of aliases", laughs()},
		{"text after a text", "load_model: 'a' b\n"},
	} {
		_, err := Decode("m.yaml", []byte(row.text))
		if err == nil {
			t.Errorf("%s was accepted", row.name)
			continue
		}
		fmt.Fprintf(&got, "%s: %v\n", row.name, err)
	}
	golden(t, "testdata/yaml_faults.golden", got.String())
}

// deepMaps is n maps, each in the one before.
func deepMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

// laughs is a document of a few lines that grows to a billion.
func laughs() string {
	b := strings.Builder{}
	b.WriteString("load_model:\n  extra_body:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "    a%d: &a%[1]d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return b.String()
}

func TestTheFormIsFoundByNameOrElseByContent(t *testing.T) {
	asJSON, asYAML := changed("", ""), strings.Replace(inYAML, "no-stream", "true", 1)
	for _, row := range []struct {
		name, text, want string
	}{
		{"m.json", asJSON, ""},
		{"m.yaml", asYAML, ""},
		{"m.YML", asYAML, ""},
		{"model", asJSON, ""},
		{"model", asYAML, ""},
		{"", "\ufeff" + asYAML, ""},
		{"m.yaml", "\t" + asJSON, ""}, // tabs, which only JSON allows
		{"m.json", asYAML, "not JSON here"},
		{"model", asJSON[1:], "not YAML here"},
		{"model", asJSON[:len(asJSON)-2], "ends too early"},
	} {
		_, err := Decode(row.name, []byte(row.text))
		if row.want == "" && err != nil || row.want != "" && !strings.Contains(fmt.Sprint(err), row.want) {
			t.Errorf("%q as %.20q…: %v, want %q", row.name, row.text, err, row.want)
		}
	}
}

func FuzzDecodeYAML(f *testing.F) {
	f.Add([]byte(inYAML))
	f.Add([]byte(laughs()))
	f.Add([]byte("a: &a {<<: *a}\n? [b]\n: |\n  c\n"))
	f.Add([]byte("a: * b\n   \n c"))
	for _, text := range goodModels {
		block, err := yaml.JSONToYAML([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(block)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		m, err := Decode("fuzz.yaml", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		if _, err := Decode("again.yaml", m.Source); err != nil {
			t.Fatalf("its source is refused: %v", err)
		}
	})
}
