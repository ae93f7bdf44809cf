//go:build linux

package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

// A plan without end in sight says how far it is, and ends when it is told to.
func TestALongPlanShowsHowFarItIsAndEndsAtOnce(t *testing.T) {
	skipWhereIgnored(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.json"), `{"load_model": {"name": "m", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 60}, "output_tokens": 9}], "target_qps": 900000, "duration_seconds": 86400}}`)
	plan, keys, shown := onTerminal(t, dir, "plan", "m.json")
	shown.await(t, "planning  ")
	shown.await(t, " of 24h0m0s, ")
	if _, err := keys.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	err := plan.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("weir plan ended with %v, want exit code %d", err, exitInterrupted)
	}
	shown.await(t, "\x1b[1A\r\x1b[J"+"weir: interrupted") // the line is gone

	// So does writing one down.
	write(t, filepath.Join(dir, "few.json"), `{"load_model": {"name": "m", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": 20000, "output_tokens": 9}], "target_qps": 100, "duration_seconds": 1000}}`)
	plan, keys, shown = onTerminal(t, dir, "plan", "few.json", "--dataset", "out.jsonl")
	shown.await(t, "writing out.jsonl, ")
	if _, err := keys.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	err = plan.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("weir plan --dataset ended with %v, want exit code %d", err, exitInterrupted)
	}
	shown.await(t, "\x1b[1A\r\x1b[J"+"weir: ")
	if left, _ := filepath.Glob(filepath.Join(dir, ".out*")); left != nil {
		t.Errorf("it left %v", left)
	}
}
