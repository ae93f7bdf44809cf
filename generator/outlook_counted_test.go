package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/generator/loadmodel"
)

const severalModels = `{"load_model": {"name": "s", "models": [{"name": "gpt-4o", "share": 0.9}, {"name": "claude-x", "share": 0.0001}, {"name": "gpt-4", "share": 0.0999}],
  "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}}],
  "target_qps": 10, "duration_seconds": 10}}`

// Which tokenizers count is of the plan, not of what the seed drew first.
func TestAllTokenizersOfAPlanAreNamedWhateverTheSeed(t *testing.T) {
	for seed := range uint64(5) {
		o := Foresee(context.Background(), &Plan{Model: decode(t, severalModels), Seed: seed}, OutlookOptions{})
		want := []TokenizerShare{{Name: "cl100k_base"}, {Name: "o200k_base"}, {Name: "o200k_base", Estimated: true}}
		if diff := cmp.Diff(want, o.Tokenizers, cmpopts.IgnoreFields(TokenizerShare{}, "Input")); diff != "" || !o.Estimated() {
			t.Errorf("seed %d (-want +got):\n%s", seed, diff)
		}
		sum := int64(0)
		for _, s := range o.Tokenizers {
			sum += s.Input
		}
		if sum != o.Input || o.Tokenizers[1].Input < o.Tokenizers[0].Input {
			t.Errorf("seed %d: %d tokens in all, counted %+v", seed, o.Input, o.Tokenizers)
		}
	}
}

func TestACachedPriceAboveTheInputsIsNoUpperBound(t *testing.T) {
	for _, row := range []struct {
		price string
		warns bool
	}{{"*=1,2,3", true}, {"*=1,2,0.1", false}, {"*=1,2", false}} {
		p, err := ParsePrice(row.price)
		if err != nil {
			t.Fatal(err)
		}
		o := Foresee(context.Background(), &Plan{Model: decode(t, severalModels), Seed: 1}, OutlookOptions{Prices: []Price{p}})
		warned := false
		for _, w := range o.Warnings {
			warned = warned || w.Kind == "dear_cache" && w.Value == 3 && w.Limit == 1
		}
		if warned != row.warns || o.Cost.DearCache != row.warns {
			t.Errorf("%s: %+v, %+v", row.price, o.Cost, o.Warnings)
		}
	}
}

// A trace without hash ids says nothing of what its prompts share: that is
// unknown, not nothing.
func TestWhatATraceDoesNotRecordOfSharingIsUnknown(t *testing.T) {
	for _, row := range []struct{ file, text, want string }{
		{"azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n", `"prefix_reuse_share":null`},
		{"mooncake.jsonl", `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n" +
			`{"timestamp": 100, "input_length": 700, "output_length": 5, "hash_ids": [3, 4]}` + "\n", `"prefix_reuse_share":0`},
	} {
		path := filepath.Join(t.TempDir(), row.file)
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := loadmodel.OpenTrace(path, loadmodel.TraceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o := Foresee(context.Background(), &Plan{Trace: trace, Model: &loadmodel.Model{}, Seed: 1}, OutlookOptions{})
		var b, all bytes.Buffer
		if err := o.JSON(&b); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&all, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(all.String(), row.want); n != 2 { // of the plan and of its scenario
			t.Errorf("%s: %s %d times in %s", row.file, row.want, n, all.String())
		}
	}
}
