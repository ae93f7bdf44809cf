//go:build linux

package main

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/generator/sim"
)

// screen is what a terminal shows, as it comes.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// await waits until the screen has shown something.
func (s *screen) await(t *testing.T, what string) {
	t.Helper()
	for range 1500 {
		s.mu.Lock()
		shown := strings.Contains(s.text.String(), what)
		s.mu.Unlock()
		if shown {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the terminal does not show %q but %q", what, s.text.String())
}

// onTerminal starts weir on a terminal of its own, and gives what it shows.
func onTerminal(t *testing.T, dir string, words ...string) (*exec.Cmd, *os.File, *screen) {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	c := exec.Command("weir", words...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, terminal, terminal, terminal
	c.Env = append(os.Environ(), "TMPDIR="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir, "XDG_DATA_HOME="+dir, "GORACE=atexit_sleep_ms=0")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // it has mostly ended

	terminal.Close() // weir alone holds it
	shown := &screen{}
	go func() { _, _ = io.Copy(shown, keyboard) }() // ends with the terminal
	return c, keyboard, shown
}

// A SIGHUP reads the load model again, but for the one that says that weir's
// terminal was closed: that ends it, as it would have without a load model.
func TestAClosedTerminalEndsTheProxy(t *testing.T) {
	skipWhereIgnored(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.json"), modelText("turns > 1", `{"rps": 2}`))
	l, err := loopbackListener()
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := startSim(l, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer endpoint.stop()
	at, err := url.Parse(endpoint.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy, keyboard, shown := onTerminal(t, dir, "proxy", "--upstream", at.String(), "--listen", "127.0.0.1:0", "--db", "w.db", "--load-model", "m.json")
	shown.await(t, "next: weir calls --follow")
	if err := proxy.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	shown.await(t, "load model m.json was read again: scenario=s rps=2")

	// On another terminal the lanes are drawn again and again.
	follow, keys, lanes := onTerminal(t, dir, "lanes", "--follow")
	lanes.await(t, "scenario=s  rps=2")
	lanes.await(t, "\x1b[3A\r\x1b[J")
	if _, err := keys.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("weir lanes ended with %v", err)
	}

	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- proxy.Wait() }()
	select {
	case <-ended: // with what code, nobody is there to see
	case <-time.After(time.Minute):
		t.Error("the proxy outlives its terminal")
	}
}
