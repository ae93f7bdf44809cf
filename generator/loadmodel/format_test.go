package loadmodel

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What FORMAT.md shows is accepted, and what the schema has is explained there.
func TestTheFormatIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(json|yaml)\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(blocks) < 3 {
		t.Fatalf("FORMAT.md shows only %d examples", len(blocks))
	}
	for _, b := range blocks {
		text := string(b[2])
		if !strings.Contains(text, "load_model") { // a field alone
			text = changed(sizes, text)
		}
		if _, err := Decode("FORMAT."+string(b[1]), []byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	var schema any
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.(map[string]any)["$defs"].(map[string]any), "limit") // the command's help has its names
	names := properties(schema, nil)
	if len(names) < 50 {
		t.Fatalf("the schema has only %v", names)
	}
	for _, name := range slices.Concat(names, WantFigures, WantRanks, TraceFormats()) {
		if !strings.Contains(string(doc), "`"+name) && !strings.Contains(string(doc), `"`+name+`"`) {
			t.Errorf("FORMAT.md does not explain %s", name)
		}
	}
}

// properties collects the names of all fields that a schema allows.
func properties(v any, names []string) []string {
	switch v := v.(type) {
	case map[string]any:
		fields, _ := v["properties"].(map[string]any)
		for name, allowed := range fields {
			if allowed != false && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, below := range v {
			names = properties(below, names)
		}
	case []any:
		for _, below := range v {
			names = properties(below, names)
		}
	}
	return names
}
