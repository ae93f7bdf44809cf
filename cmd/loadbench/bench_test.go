package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/generator"
)

func TestParseLoads(t *testing.T) {
	got, err := parseLoads("50/300, 0.5/1")
	if err != nil || len(got) != 2 || got[0] != (load{50, 300}) || got[1] != (load{0.5, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "50", "0/10", "50/0", "x/y", "50/10,"} {
		if _, err := parseLoads(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Whether the machine can do it is not asked; what is measured is there.
func TestARowIsMeasuredAgainstTheEndpointsOwnRecord(t *testing.T) {
	for _, args := range [][]string{nil, {"-proxy"}} {
		var out, errOut bytes.Buffer
		code := run(context.Background(), append([]string{"-loads", "40/20", "-hold", "1s", "-gap", "20ms", "-endpoints", "3"}, args...), &out, &errOut)
		if code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
		}
		row := regexp.MustCompile(`(?m)^40 +[0-9.]+ +([0-9]+) +([0-9]+) +[0-9.]+ms .* (valid|invalid: .*)$`).FindStringSubmatch(out.String())
		if row == nil || row[2] == "0" || len(row[1]) < 2 {
			t.Errorf("%v: no row of calls that were compared:\n%s", args, out.String())
		}
	}
}

func TestARowSaysWhyItIsInvalid(t *testing.T) {
	r := row{load: load{300, 2000}, result: &generator.Result{Lag: generator.Quantiles{N: 1000, P99: 7 * time.Millisecond},
		PerScenario: []generator.ScenarioResult{{Sent: 5, OK: 4}}}}
	for range 100 {
		r.off = append(r.off, 3*time.Millisecond)
	}
	r.judge()
	for _, want := range []string{"lag p99 7.00ms is above 5ms", "TTFT is off by 3.00ms at p99, above 2ms", "failed calls: 1"} {
		if !strings.Contains(strings.Join(r.reasons, "\n"), want) {
			t.Errorf("%q does not say %q", r.reasons, want)
		}
	}
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	for _, args := range [][]string{{"-loads", "x"}, {"extra"}, {"-hold", "1ms"}, {"-endpoints", "0"}, {"-nonsense"}} {
		var out, errOut bytes.Buffer
		if code := run(context.Background(), args, &out, &errOut); code != exitUsage || errOut.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errOut.String())
		}
	}
}
