package loadmodel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func impaired(value string) []byte {
	return fmt.Appendf(nil, `{"load_model": {"name": "m", "target_qps": 1, "duration_seconds": 1, "scenarios": [
  {"id": "chat", "weight": 0.5, "input_tokens": 9, "output_tokens": 9},
  {"id": "agent", "weight": 0.5, "input_tokens": 9, "output_tokens": 9,
   "impair": %s}]}}`, value)
}

func TestImpairmentsAreTheScenariosThatTheyStandIn(t *testing.T) {
	for value, want := range map[string][]string{
		`"first_token+800ms, cut:1%"`:         {"scenario=agent: first_token+800ms", "scenario=agent: cut@2:1%"},
		`["429:5%", "model=gpt-*: stall+2s"]`: {"scenario=agent: 429+1s:5%", "scenario=agent model=gpt-*: stall@2+2s"},
	} {
		m, err := Decode("m.json", impaired(value))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range m.Impairments() {
			got = append(got, i.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

func TestWrongImpairmentsAreToldWithTheirPlace(t *testing.T) {
	for value, want := range map[string]string{
		`"slow"`:               `m.json:4:14: scenario "agent": impair: impairment "slow": unknown kind "slow"; want one of first_token`,
		`["cut", "cut:200%"]`:  `m.json:4:22: scenario "agent": impair: impairment "cut:200%": cut:200%: share "200%": want 0% to 100%`,
		`[]`:                   `m.json:4:14: scenario "agent": impair is empty`,
		`7`:                    `impair is a number; want text in quotes`,
		`"scenario=chat: cut"`: `take scenario=chat out`,
	} {
		if _, err := Decode("m.json", impaired(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}
