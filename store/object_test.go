package store

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"truths and lists":            {"t": true, "f": false, "l": []string{"a", `"`}, "n": []string(nil)},
	} {
		var o object
		for key, value := range members {
			var err error
			if o, err = o.with(key, value); err != nil {
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
	if _, err := object(nil).with("a", math.NaN()); err == nil {
		t.Error("a number that JSON cannot hold was taken")
	}
}
