package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
)

func TestImpairmentsOfTheModelFollowItsFile(t *testing.T) {
	model := func(text string) *loadmodel.Model {
		t.Helper()
		m, err := loadmodel.Decode("m.json", []byte(`{"load_model": {"name": "m", "target_qps": 1, "duration_seconds": 1, "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 9, "output_tokens": 9`+text+`}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	flags := &impairFlags{seed: 4}
	if err := flags.texts.Set("scenario=b: cut; 500:1%"); err != nil {
		t.Fatal(err)
	}
	b, err := openRulebook("m.json", model(`, "impair": "stall+1s"`), &laneFlags{}, flags)
	if err != nil {
		t.Fatal(err)
	}
	said := func() []string {
		var w bytes.Buffer
		tellImpairments(&w, b.impair)
		return strings.Split(strings.TrimSpace(w.String()), "\n")[1:]
	}
	if diff := cmp.Diff([]string{"    scenario=b: cut@2", "    500:1%", "    scenario=a: stall@2+1s"}, said()); diff != "" {
		t.Error(diff)
	}
	if _, err := b.replace(model(`, "impair": "first_token+1s"`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"    scenario=b: cut@2", "    500:1%", "    scenario=a: first_token+1s"}, said()); diff != "" {
		t.Error(diff)
	}
	if b.impair.Seed() != 4 {
		t.Errorf("seed %d", b.impair.Seed())
	}
}

func TestNothingIsSaidWhereNothingIsImpaired(t *testing.T) {
	var w bytes.Buffer
	tellImpairments(&w, nil)
	b, err := openRulebook("", nil, &laneFlags{}, &impairFlags{seed: 1})
	if err != nil || b.impair != nil || w.Len() > 0 {
		t.Errorf("%v, %v, %q", err, b.impair, w.String())
	}
}
