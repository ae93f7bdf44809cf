package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// roleVariable makes a copy of this program play one part of the benchmark.
const roleVariable = "WEIR_PROXYBENCH_ROLE"

// play is one part: it serves, or reads streams on demand, until its standard
// input ends, so that none outlives the benchmark.
func play(role string, args []string, in io.Reader, out io.Writer) error {
	switch role {
	case "origin":
		return serveUntilEOF(http.HandlerFunc(origin), in, out)
	case "reverseproxy":
		h, err := reverseProxy(args[0])
		if err != nil {
			return err
		}
		return serveUntilEOF(h, in, out)
	case "weir":
		return serveWeir(args, in, out)
	case "unrecorded":
		return serveUnrecorded(args[0], in, out)
	case "collector":
		return serveUntilEOF(&collector{}, in, out)
	case "client":
		return serveOrders(in, out)
	}
	return fmt.Errorf("no such role: %s", role)
}

// listening is how a part says where it serves.
const listening = "listening on "

func serveUntilEOF(h http.Handler, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%shttp://%s\n", listening, l.Addr())
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	_, _ = io.Copy(io.Discard, in) // ends with the benchmark, however that ends
	server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// process is a part under way.
type process struct {
	cmd   *exec.Cmd
	role  bool // a copy of this program, which ends with its standard input
	in    io.WriteCloser
	lines *bufio.Scanner
	rest  sync.Once // of the lines: somebody reads them to their end
	err   *tail
}

// startRole starts a copy of this program.
func startRole(role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	p, err := startProcess(cmd)
	if err == nil {
		p.role = true
	}
	return p, err
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, err: &tail{}}
	cmd.Stderr = p.err
	// A process group of its own: Ctrl-C is for the benchmark, which ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	p.lines.Buffer(nil, 64<<20)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// address reads lines until one ends in a URL behind the word "on".
func (p *process) address() (string, error) {
	for p.lines.Scan() {
		if _, url, ok := strings.Cut(p.lines.Text(), " on http"); ok {
			return "http" + strings.TrimSpace(url), nil
		}
	}
	return "", fmt.Errorf("%s ended before it listened: %s", p.cmd.Path, p.err)
}

// ask sends a part one line of JSON and reads its answer.
func (p *process) ask(order, answer any) error {
	line, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %s", err, p.err)
	}
	if !p.lines.Scan() {
		return fmt.Errorf("the part ended: %s", p.err)
	}
	return json.Unmarshal(p.lines.Bytes(), answer)
}

// drain reads what else a part says, or a full pipe would hold it up. Nobody
// else may read its lines from then on.
func (p *process) drain() {
	p.rest.Do(func() {
		go func() {
			for p.lines.Scan() {
			}
		}()
	})
}

// stop ends a part and waits for it.
func (p *process) stop() {
	p.in.Close()
	if !p.role {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	p.drain()
	_ = p.cmd.Wait() // that it was ended by a signal is no news
}

// tail keeps the end of what a part says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
