//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// behind is an agent that runs behind weir, in a session of its own, and writes
// down its signals.
type behind struct {
	*exec.Cmd
	out, err bytes.Buffer
	log      string
}

// launch starts an agent that goes on until it gets a signal; terminal, when
// set, is what both are run on.
func launch(t *testing.T, until string, terminal *os.File, words ...string) *behind {
	t.Helper()
	dir := t.TempDir()
	b := &behind{log: filepath.Join(dir, "signals")}
	args := append([]string{"exec", "--db", filepath.Join(dir, "w.db"), "--", "agent"}, words...)
	b.Cmd = exec.Command("weir", append(args, "until", until, b.log)...)
	b.Stdout, b.Stderr = &b.out, &b.err
	b.Env = append(os.Environ(), "TMPDIR="+dir, "XDG_RUNTIME_DIR=", "HOME="+dir, "GORACE=atexit_sleep_ms=0")
	b.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if terminal != nil {
		b.Stdin, b.SysProcAttr.Setctty = terminal, true
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-b.Process.Pid, syscall.SIGKILL) }) // it has mostly ended
	b.await(t, "ready")
	return b
}

// await waits until the agent has written a line.
func (b *behind) await(t *testing.T, line string) {
	t.Helper()
	for range 1500 {
		if text, err := os.ReadFile(b.log); err == nil && strings.Contains(string(text), line+"\n") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the agent does not come to %s; weir said %q", line, b.err.String())
}

// ended wants the agent's exit code from weir, what it saw, and that weir told
// what it cost.
func (b *behind) ended(t *testing.T, saw string) {
	t.Helper()
	var exit *exec.ExitError
	if err := b.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("weir ended with %v, want the command's 7", err)
	}
	if got := b.out.String(); got != saw {
		t.Errorf("the agent saw %q, want %q", got, saw)
	}
	if !strings.Contains(b.err.String(), "weir: agent ran ") || !strings.Contains(b.err.String(), ", exit 7, ") {
		t.Errorf("weir said %q, which is not what it cost", b.err.String())
	}
}

func TestSignalsToWeirAreTheCommands(t *testing.T) {
	skipWhereIgnored(t)
	for name, s := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH} {
		t.Run(name, func(t *testing.T) {
			b := launch(t, name, nil)
			if err := b.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			b.ended(t, "ready\n"+name+"\n")
		})
	}
}

// skipWhereIgnored leaves out what cannot be seen behind nohup: who ignores a
// signal has its children ignore it.
func skipWhereIgnored(t *testing.T) {
	t.Helper()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, so nobody gets it")
	}
}

func TestWeirOutlivesSignalsThatItsCommandTakes(t *testing.T) {
	skipWhereIgnored(t)
	b := launch(t, "TERM", nil)
	for _, line := range []string{"ready\nHUP", "ready\nHUP\nHUP", "ready\nHUP\nHUP\nHUP"} {
		if err := b.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		b.await(t, line)
	}
	if err := b.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.ended(t, "ready\nHUP\nHUP\nHUP\nTERM\n")
}

// Ctrl-C in a terminal reaches both: the command must get it once, and weir
// must not end of it.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	keyboard, terminal := openTerminal(t)
	b := launch(t, "TERM", terminal)
	go func() { _, _ = io.Copy(io.Discard, keyboard) }() // what the terminal echoes; ends with it
	for _, line := range []string{"ready\nINT", "ready\nINT\nINT"} {
		if _, err := keyboard.Write([]byte{3}); err != nil {
			t.Fatal(err)
		}
		b.await(t, line)
	}
	if err := b.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.ended(t, "ready\nINT\nINT\nTERM\n")
}

// openTerminal makes a terminal: what is written to keyboard is typed.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	var number, locked int32
	control := func(request uintptr, value *int32) {
		raw, err := keyboard.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(raw.Control(func(fd uintptr) {
			if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value))); errno != 0 {
				err = errno
			}
		}), err)
		if err != nil {
			t.Skip("no terminals here: ", err)
		}
	}
	control(syscall.TIOCSPTLCK, &locked)
	control(syscall.TIOCGPTN, &number)
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
