package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/store"
)

// A run that is broken off while it waits for its start has nothing to report on,
// and names no command that would find nothing.
func TestARunThatIsBrokenOffBeforeItsStartSaysThatNothingWasSent(t *testing.T) {
	const model = `{"load_model": {"name": "chat", "model": "m", "scenarios": [
  {"id": "chat", "weight": 1, "input_tokens": {"min": 20, "max": 60}, "output_tokens": {"min": 10, "max": 30}}],
  "target_qps": 20, "duration_seconds": 3}}`
	for _, loop := range [][]string{{"--qps", "10"}, {"--users", "3"}} {
		dir := t.TempDir()
		file, path := filepath.Join(dir, "chat.json"), filepath.Join(dir, "w.db")
		if err := os.WriteFile(file, []byte(model), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, drain := context.WithCancelCause(context.Background())
		var out, said bytes.Buffer
		code := make(chan int)
		go func() {
			args := append([]string{"load", file, "--upstream", "http://127.0.0.1:9", "--db", path, "--seed", "1",
				"--start-at", "+1h", "--no-preflight", "--no-self-check"}, loop...)
			code <- run(ctx, context.Background(), args, stdio{strings.NewReader(""), &out, &said}, func(string) (string, bool) { return "", false })
		}()
		waitBegun(t, path)
		drain(errInterrupted)
		if got := <-code; got != exitInterrupted {
			t.Errorf("%v: exit code %d, want %d", loop, got, exitInterrupted)
		}
		want := regexp.MustCompile(`^starts at \S+, in 1h0m0s\nweir: interrupted: nothing of the plan was sent\n$`)
		if out.Len() > 0 || !want.MatchString(said.String()) {
			t.Errorf("%v: printed %q and said %q, want only %s", loop, &out, &said, want)
		}
	}
}

// waitBegun waits until a run has put its name into a database.
func waitBegun(t *testing.T, path string) {
	t.Helper()
	for range 400 {
		if db, err := store.Open(t.Context(), path, store.Options{ReadOnly: true}); err == nil {
			runs, err := db.Runs(t.Context(), "")
			db.Close()
			if err == nil && len(runs) == 1 {
				return
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("no run has begun in %s", path)
}
