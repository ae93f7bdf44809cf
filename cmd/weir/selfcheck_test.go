package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/generator"
	"weir/generator/loadmodel"
)

func TestASelfCheckComparesWithTheEndpointsOwnRecord(t *testing.T) {
	m, err := loadmodel.Decode("m.json", []byte(`{"load_model": {"name": "m", "scenarios": [
	  {"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 60}, "output_tokens": {"min": 10, "max": 30}}],
	  "target_qps": 80, "duration_seconds": 60}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, proxied := range []bool{false, true} {
		a := &app{stdio: stdio{strings.NewReader(""), &strings.Builder{}, &strings.Builder{}}, hard: context.Background()}
		began := time.Now()
		c, err := a.checkSelf(context.Background(), &generator.Plan{Model: m, Seed: 1}, proxied)
		if err != nil {
			t.Fatal(err)
		}
		if c.rate != 80 || c.n < 20 || c.n != c.result.Sent || c.off <= 0 {
			t.Errorf("proxied %v: %d of %d calls compared at %g/s, off by %s", proxied, c.n, c.result.Sent, c.rate, c.off)
		}
		t.Logf("proxied %v: %s, in %s", proxied, c.note(), time.Since(began))
	}
}

func TestASelfCheckWarnsAndRefuses(t *testing.T) {
	result := func(sent float64, reasons ...string) *generator.Result {
		return &generator.Result{Sent: 100, PlannedRate: 100, SentRate: sent, Reasons: reasons}
	}
	for _, row := range []struct {
		name     string
		check    selfCheck
		warnings int
		refused  bool
	}{
		{"all is well → nothing", selfCheck{100, result(100), 100, time.Millisecond}, 0, false},
		{"late sends → warned", selfCheck{100, result(99, "lag p99 20ms is above 10ms"), 100, time.Millisecond}, 1, false},
		{"wrong TTFTs → warned", selfCheck{100, result(100), 100, 3 * time.Millisecond}, 1, false},
		{"half of the rate is not reached → refused", selfCheck{100, result(40, "lag"), 100, time.Second}, 2, true},
	} {
		warnings, err := row.check.judge()
		if len(warnings) != row.warnings || (err != nil) != row.refused {
			t.Errorf("%s: %q, %v", row.name, warnings, err)
		}
		if err != nil && (exitCode(err) != exitThreshold || !strings.Contains(err.Error(), "nothing was sent")) {
			t.Errorf("%s: exit code %d, %v", row.name, exitCode(err), err)
		}
	}
}

func TestPeakRate(t *testing.T) {
	closed, err := loadmodel.Decode("m.json", []byte(`{"load_model": {"name": "m", "scenarios": [
	  {"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 60}, "output_tokens": {"min": 10, "max": 30}}],
	  "concurrency": 100, "duration_seconds": 60}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := (&generator.Plan{Model: closed}).PeakRate(context.Background()); got != 20 {
		t.Errorf("100 users are taken to send %g/s, want 20", got)
	}
	file := filepath.Join(t.TempDir(), "trace.csv")
	rows := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for i := range 30 {
		rows += fmt.Sprintf("2023-11-16 18:17:%02d.%d00,374,44\n", i/10*5, i%10)
	}
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	trace, err := loadmodel.OpenTrace(file, loadmodel.TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := (&generator.Plan{Trace: trace}).PeakRate(context.Background()); got != 10 {
		t.Errorf("the busiest second of the trace has %g requests, want 10", got)
	}
}
