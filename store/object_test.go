package store

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
)

// What the object writes by hand reads back as what json.Marshal would write.
func TestObjectHoldsWhatWasPutIn(t *testing.T) {
	for name, members := range map[string]map[string]any{
		"nothing":                     {},
		"plain text":                  {"a": "gpt-4o", "b": ""},
		"quotes and backslashes":      {`a"b`: `C:\"x"`},
		"controls, DEL and line ends": {"a": "x\ny\x00\x7f\u2028"},
		"other scripts, broken UTF-8": {"名": "一二三 🙂", "b": "a\xffb"},
		"numbers at their ends":       {"least": int64(math.MinInt64), "most": int64(math.MaxInt64), "f": 0.1, "e": 1e300},
		"truths and lists":            {"t": true, "f": false, "l": []string{"a", `"`}, "n": []string{}},
	} {
		var o object
		for key, value := range members {
			var err error
			if o, err = o.with(key, valueOf(t, value)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		marshalled, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal([]byte(o.String()), &got); err != nil {
			t.Errorf("%s: %v in %s", name, err, o)
			continue
		}
		if err := json.Unmarshal(marshalled, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := object(nil).with("a", attribute.Float64Value(math.NaN())); err == nil {
		t.Error("a number that JSON cannot hold was taken")
	}
}

func valueOf(t *testing.T, value any) attribute.Value {
	t.Helper()
	switch v := value.(type) {
	case string:
		return attribute.StringValue(v)
	case int64:
		return attribute.Int64Value(v)
	case float64:
		return attribute.Float64Value(v)
	case bool:
		return attribute.BoolValue(v)
	case []string:
		return attribute.StringSliceValue(v)
	}
	t.Fatalf("no attribute has a %T", value)
	return attribute.Value{}
}
