package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/generator/sim"
	"weir/store"
	"weir/store/call"
)

// rightKey is the key that the endpoint wants.
const rightKey = "sk-right-0123456789"

// patience is how long a client may take; the slowest, Codex against a key that
// is refused, takes some 15 s on an idle machine.
const patience = 3 * time.Minute

// endpoint is a simulated endpoint, with all that it was asked.
type endpoint struct {
	url   string
	plain bool // its WebSockets do not compress; set before use
	deaf  bool // it has no WebSockets; set before use

	mu      sync.Mutex
	asked   []request // over HTTP
	records []*sim.Record
}

// request is what a client sent.
type request struct {
	method, target string
	header         http.Header
	body           string
}

// newEndpoint starts one. Two of them give the same answers to the same
// requests, byte for byte.
func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	s, err := sim.New(sim.Config{Script: true, Seed: 1, Key: rightKey, Log: func(r *sim.Record) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.records = append(e.records, r)
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.plain {
			r.Header.Del("Sec-WebSocket-Extensions")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		e.mu.Lock()
		e.asked = append(e.asked, request{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		e.mu.Unlock()
		if e.deaf && r.Header.Get("Upgrade") != "" {
			http.NotFound(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		s.Close()
	})
	e.url = server.URL
	return e
}

// send sends a request as it was sent before, and writes down all that comes
// back but the time of day.
func (r *request) send(t *testing.T, base string) string {
	t.Helper()
	again, err := http.NewRequest(r.method, base+r.target, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	again.Header = r.header
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	resp, err := plain.RoundTrip(again)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	resp.Header.Del("Date")
	all, err := httputil.DumpResponse(resp, true)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// record is the endpoint's own account of the response with an id.
func (e *endpoint) record(id string) *sim.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.records {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// weir is a weir proxy in front of an endpoint: the real program.
type weir struct {
	url string
	db  string
	cmd *exec.Cmd
}

var listensOn = regexp.MustCompile(`listens on (http://\S+)`)

func newWeir(t *testing.T, upstream string) *weir {
	t.Helper()
	w := &weir{db: filepath.Join(t.TempDir(), "weir.db")}
	w.cmd = exec.Command(os.Getenv("WEIR"), "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--db", w.db)
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	w.cmd.Stderr = &errors
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	var said []byte
	for buf := make([]byte, 4096); w.url == ""; {
		n, err := out.Read(buf)
		said = append(said, buf[:n]...)
		if m := listensOn.FindSubmatch(said); m != nil {
			w.url = string(m[1])
		} else if err != nil {
			_ = w.cmd.Wait()
			t.Fatalf("weir proxy does not listen: %s%s", said, &errors)
		}
	}
	go io.Copy(io.Discard, out) // ends with the process
	return w
}

// calls stops weir, so that all is written, and gives what it has recorded, in
// the order in which the calls began.
func (w *weir) calls(t *testing.T) []*call.Call {
	t.Helper()
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Fatalf("weir proxy: %v: %s", err, w.cmd.Stderr)
	}
	return recorded(t, w.db)
}

// recorded are the calls in a database, in the order in which they began.
func recorded(t *testing.T, path string) []*call.Call {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := store.ParseSelection([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	var calls []*call.Call
	for c, err := range db.Calls(ctx, all, store.Order{By: "oldest"}) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

// relay carries bytes between clients and weir, and closes seen when word has
// gone by on its way to a client.
func relay(t *testing.T, to, word string) (url string, seen <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	found := make(chan struct{})
	var once sync.Once
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go func() {
				io.Copy(server, client)
				server.Close()
			}()
			go func() {
				defer client.Close()
				var past []byte
				for buf := make([]byte, 32<<10); ; {
					n, err := server.Read(buf)
					past = append(past, buf[:n]...)
					if bytes.Contains(past, []byte(word)) {
						once.Do(func() { close(found) })
					}
					if n > 0 {
						if _, err := client.Write(buf[:n]); err != nil {
							return
						}
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), found
}

// ended is how a client ended.
type ended struct {
	out, err string
	failed   bool
}

// run starts a client and waits until it ends by itself or, unless stop is nil,
// until stop is closed: then it is killed.
func (a *agent) run(t *testing.T, p place, stop <-chan struct{}) ended {
	t.Helper()
	p.cache, p.home = os.Getenv("AGENTS"), t.TempDir()
	work := filepath.Join(p.home, "work")
	if err := os.CopyFS(work, os.DirFS(filepath.Join(source, "sdk"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(p.cache, "sdk", "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	s := a.start(p)
	for name, text := range s.files {
		path := filepath.Join(p.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	program, err := exec.LookPath(s.argv[0])
	if s.argv[0] == "node" {
		program, err = filepath.Join(os.Getenv("AGENTS_NODE"), "node"), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, s.argv[1:]...)
	cmd.Dir = work
	cmd.Env = append(s.env, "HOME="+p.home, "PATH="+os.Getenv("AGENTS_NODE")+":/usr/local/bin:/usr/bin:/bin", "NO_PROXY=127.0.0.1,localhost")
	cmd.Stdin = bytes.NewReader([]byte(s.stdin))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	// Agents start further processes, which are killed with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	if p.behind {
		cmd.Cancel = func() error { return killMembers(cmd.Process.Pid) }
	}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-stop:
		cancel()
		err = <-done
	}
	_ = kill() // what it left behind
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatalf("%s does not end: %s%s", a.name, &out, &errs)
	}
	return ended{out.String(), errs.String(), err != nil}
}

// killMembers kills all processes of a group but its leader, as weir exec is of
// the client that it has started.
func killMembers(group int) error {
	all, err := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if of, err := syscall.Getpgid(pid); err == nil && of == group && pid != group {
			_ = syscall.Kill(pid, syscall.SIGKILL) // unless it has gone by itself
		}
	}
	return err
}

func (e ended) String() string { return fmt.Sprintf("it said:\n%s\n%s", e.out, e.err) }
