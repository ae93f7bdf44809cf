package loadmodel

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/shaper"
)

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid says whether the schema accepts a document; asked is false for what is
// not JSON, of which a schema can say nothing.
func valid(s *jsonschema.Schema, text []byte) (accepted, asked bool) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	if err != nil {
		return false, false
	}
	return s.Validate(doc) == nil, true
}

// beyondTheSchema are faults of which a schema cannot tell: sums, orders, what
// compares two fields or stands twice, other languages inside of texts, and the
// bytes of the document itself.
var beyondTheSchema = []string{
	"a bad value among limits",
	"a constant of two values",
	"a prefix longer than a row's prompt",
	"a rule about what is not known",
	"a rule that ends early",
	"a rule that is a number",
	"a scenario limited twice",
	"a selector twice",
	"a want twice",
	"all calls limited twice",
	"an unknown impairment",
	"bad-rule.json",
	"duplicate-field.json",
	"duplicate-id.json",
	"lognormal with p99 below its median",
	"min-above-max.json",
	"nested deep in extra_body",
	"prefix-without-room.json",
	"quantiles out of reach",
	"quantiles-fall.json",
	"ramp-longer.json",
	"shares off",
	"unreachable-range.json",
	"weights just off",
	"weights-sum.json",
}

func TestSchemaAndDecoderAgree(t *testing.T) {
	s := schema(t)
	quick, err := os.ReadFile(quickstartFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(goodModels, string(quick)) {
		if _, err := Decode("m.json", []byte(text)); err != nil {
			t.Errorf("the decoder refuses %s: %v", text, err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("the schema refuses %s: %v", text, err)
		}
	}
	bad := map[string][]byte{}
	for _, row := range smallFaults {
		bad[row.name] = []byte(row.text)
	}
	files, err := filepath.Glob("testdata/bad/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("only %d bad models found, %v", len(files), err)
	}
	for _, file := range files {
		if bad[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	var accepted []string
	asked := 0
	for name, text := range bad {
		yes, isJSON := valid(s, text)
		if isJSON {
			asked++
		}
		if yes {
			accepted = append(accepted, name)
		}
	}
	slices.Sort(accepted)
	if diff := cmp.Diff(beyondTheSchema, accepted); diff != "" {
		t.Errorf("faults that the schema accepts (-known +now):\n%s", diff)
	}
	if asked < 120 {
		t.Errorf("only %d faults are JSON", asked)
	}
}

// Every value of the good models is taken out, and replaced by others. What the
// schema then refuses, the decoder must refuse too.
func TestTheSchemaRefusesNothingThatIsRight(t *testing.T) {
	s := schema(t)
	others := []any{nil, true, -1, 0, 0.5, 1, 2, 2.5, 1e9, "", "x", "off", "2s", "on", "ttft p95 < 2s", []any{}, []any{1, 2}, []any{[]any{0, 1}, []any{1, 5}}, map[string]any{}, map[string]any{"min": 1, "max": 5}}
	refused, accepted := 0, 0
	for _, text := range goodModels {
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		change(doc, others, func() {
			written, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if ok, _ := valid(s, written); ok {
				accepted++
				return
			}
			refused++
			if _, err = Decode("m.json", written); err == nil {
				t.Errorf("only the schema refuses %s", written)
			}
		})
	}
	if refused < 3000 || accepted < 500 {
		t.Errorf("%d changed models refused and %d accepted: too few to tell anything", refused, accepted)
	}
}

// change calls try with each value inside of v replaced by each other one, and
// each field taken out.
func change(v any, others []any, try func()) {
	switch v := v.(type) {
	case map[string]any:
		for name, was := range v {
			change(was, others, try)
			for _, other := range others {
				v[name] = other
				try()
			}
			delete(v, name)
			try()
			v[name] = was
		}
	case []any:
		for i, was := range v {
			change(was, others, try)
			for _, other := range others {
				v[i] = other
				try()
			}
			v[i] = was
		}
	}
}

// The schema lists names that stand elsewhere in the code.
func TestSchemaKnowsAllNames(t *testing.T) {
	var doc struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &doc); err != nil {
		t.Fatal(err)
	}
	var limits []string
	for name := range doc.Defs["limit"].Properties {
		limits = append(limits, name)
	}
	slices.Sort(limits)
	want := shaper.LimitNames()
	slices.Sort(want)
	if diff := cmp.Diff(want, limits); diff != "" {
		t.Errorf("limits (-shaper +schema):\n%s", diff)
	}
	formats := doc.Defs["load_model"].Properties["trace"].Properties["format"].Enum
	if diff := cmp.Diff(TraceFormats(), formats); diff != "" {
		t.Errorf("trace formats (-readers +schema):\n%s", diff)
	}
	s := schema(t)
	for _, figure := range WantFigures {
		texts := []string{figure + " < 1%"}
		if figure != ErrorRate {
			texts = nil
			for _, rank := range WantRanks {
				texts = append(texts, figure+" "+rank+" < 1m30s", figure+" "+rank+"<=0.5 ms")
			}
		}
		for _, text := range texts {
			doc := []byte(changed("9}", `9, "want": ["`+text+`"]}`))
			if _, err := Decode("m.json", doc); err != nil {
				t.Errorf("the decoder refuses %q: %v", text, err)
			}
			if ok, _ := valid(s, doc); !ok {
				t.Errorf("the schema refuses %q", text)
			}
		}
	}
}
