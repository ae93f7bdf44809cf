package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the goldens inside the scripts")

// TestMain lets a script run this very program as weir. Scripts wait more than
// they work, so more of them than there are processors run at a time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"weir": main, "agent": agent, "codex": agent})
}

// TestScripts runs one session for each promise.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Nothing of the machine's own: no settings, no keys, no store.
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_RUNTIME_DIR", "") // a proxy that the user runs is none of a script's
			e.Setenv("TZ", "UTC")
			root, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			e.Setenv("ROOT", root)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "mount" {
				return canMount(), nil
			}
			return false, fmt.Errorf("no condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"freeport": freePort, "waitport": waitPort, "shape": shape, "exits": exits, "soon": soon, "samerun": sameRun, "atonce": eachAtOnce,
			"sparse": sparse, "waitrun": waitRun, "waitproxy": waitProxy, "newestcall": newestCall, "waitfor": waitFor, "get": get, "post": post, "scraped": scraped, "smalldisk": smallDisk, "readonlydisk": readOnlyDisk,
		},
	})
}

// freeport VAR: puts a port that nothing listens on into VAR.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv(name, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
		l.Close()
	}
}

// waitport PORT: waits until something listens there.
func waitPort(ts *testscript.TestScript, _ bool, args []string) {
	for range 200 {
		c, err := net.Dial("tcp", "127.0.0.1:"+args[0])
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("nothing listens on port %s", args[0])
}

// waitfor PATTERN FILE: waits until a file that is being written matches.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[0])
	for range 400 {
		if text, err := os.ReadFile(ts.MkAbs(args[1])); err == nil && pattern.Match(text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s does not match %s:\n%s", args[1], args[0], ts.ReadFile(args[1]))
}

// waitrun DB: waits until a run has written some calls into a database.
func waitRun(ts *testscript.TestScript, _ bool, args []string) {
	for range 200 {
		if ts.Exec("weir", "calls", "--db", args[0], "all") == nil && strings.Count(ts.ReadFile("stdout"), "\t200\t") > 5 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("no run has written calls into %s", args[0])
}

// newestcall DB VAR: puts the id of a database's newest call into VAR.
func newestCall(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("weir", "calls", "all", "--limit", "1", "--db", args[0]))
	rows := strings.Split(ts.ReadFile("stdout"), "\n")
	if len(rows) < 2 {
		ts.Fatalf("there is no call in %s", args[0])
	}
	id, _, _ := strings.Cut(rows[1], "\t")
	ts.Setenv(args[1], id)
}

// exits CODE weir …: runs weir and wants that exit code, or one of several
// with commas between.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if !slices.Contains(strings.Split(args[0], ","), fmt.Sprint(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// What differs from run to run, and what it is written as in a golden.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	// Whether a run is valid depends on what else the machine does.
	{regexp.MustCompile(`✓ valid|✗ INVALID: CLIENT`), "VERDICT"},
	{regexp.MustCompile(`(?m)^(  because|! ).*\n`), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "SPAN"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`localhost:\d+`), "localhost:PORT"},
	{regexp.MustCompile(`\brun[ :][0-9a-z]{4,}`), "run ID"},
	{regexp.MustCompile(`-?\d+(\.\d+)?(ms|µs|s)\*?`), "T"},
	{regexp.MustCompile(`\d+(\.\d+)?/s`), "RATE"},
	{regexp.MustCompile(`, T sending`), ""}, // a hundredth of the time, or not
	{regexp.MustCompile(`(\d+(\.\d+)?|–)→(\d+(\.\d+)?|–)`), "IN→OUT"},
	{regexp.MustCompile(`\d+(\.\d+)?%`), "P%"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(` {2,}`), "  "},
}

// shape FROM TO: copies a file or stdout, with what varies replaced.
func shape(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "$WORK")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.as)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// sparse FILE: makes a file of 2 GiB that takes no room.
func sparse(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(2 << 30))
	ts.Check(f.Close())
}

// smalldisk DIR SIZE: makes DIR a disk of its own that holds SIZE bytes.
func smallDisk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(exec.Command("mount", "-t", "tmpfs", "-o", "size="+args[1], "tmpfs", dir).Run())
	ts.Defer(func() { exec.Command("umount", "-l", dir).Run() })
}

// readonlydisk DIR: makes DIR a disk of its own that cannot be written.
func readOnlyDisk(ts *testscript.TestScript, neg bool, args []string) {
	smallDisk(ts, neg, []string{args[0], "64k"})
	ts.Check(exec.Command("mount", "-o", "remount,ro", ts.MkAbs(args[0])).Run())
}

// canMount says whether this test may mount a disk of its own.
func canMount() bool {
	dir, err := os.MkdirTemp("", "weir-mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir).Run() != nil {
		return false
	}
	return exec.Command("umount", dir).Run() == nil
}
