package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/proxy"
	"weir/proxy/client"
	"weir/shaper"
)

// surroundings is an app whose sockets are in folders of its own.
func surroundings(t *testing.T) (a *app, runtime, temporary string) {
	t.Helper()
	runtime, temporary = t.TempDir(), t.TempDir()
	set := map[string]string{"XDG_RUNTIME_DIR": runtime, "TMPDIR": temporary, "HOME": runtime}
	a = &app{env: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
	return a, filepath.Join(runtime, "weir"), filepath.Join(temporary, "weir-"+strconv.Itoa(os.Getuid()))
}

func noFlush(context.Context) error { return nil }

func noneLeft() (lost, waiting int64) { return 0, 0 }

// serving serves the control of a proxy with that process id.
func serving(t *testing.T, a *app, said status, flush func(context.Context) error) *proxy.Proxy {
	t.Helper()
	at, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy.Proxy{Upstreams: []proxy.Upstream{{URL: at}}, Scenario: "first"}
	c, err := a.serveControl(said, p, &rulebook{shaper: &shaper.Shaper{}}, writing{flush, noneLeft})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return p
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestARunningProxySaysWhatItIs(t *testing.T) {
	a, folder, _ := surroundings(t)
	said := status{
		Pid: os.Getpid(), Version: "v1", Listen: "http://127.0.0.1:8484", Database: "/data/w.db", Started: time.Now(),
		Upstreams: []upstreamSaid{{Name: "up", URL: "http://127.0.0.1:1", Prefix: "/p", Models: []string{"gpt-*"}}},
	}
	p := serving(t, a, said, noFlush)
	p.Tag("now")
	all := a.runningProxies(t.Context())
	if len(all) != 1 {
		t.Fatalf("%d proxies run", len(all))
	}
	said.Scenario = "now"
	if diff := cmp.Diff(said, all[0].status, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	socket := filepath.Join(folder, strconv.Itoa(os.Getpid())+".sock")
	if got := mode(t, socket); got != os.ModeSocket|0o600 {
		t.Errorf("the socket is %v", got)
	}
	if got := mode(t, folder); got != os.ModeDir|0o700 {
		t.Errorf("its folder is %v", got)
	}
}

func TestTheDefaultScenarioIsSetOverTheSocket(t *testing.T) {
	a, _, _ := surroundings(t)
	p := serving(t, a, status{Pid: os.Getpid()}, noFlush)
	r := a.runningProxies(t.Context())[0]
	var got tagChanged
	if err := r.ask(t.Context(), http.MethodPut, "/tag", tagChange{"Fix Bug"}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tagChanged{"first", "fix-bug"}, got); diff != "" || p.Tagged() != "fix-bug" {
		t.Errorf("now %s (-want +got):\n%s", p.Tagged(), diff)
	}
	for _, bad := range []any{"x", map[string]any{"scenario": 7}, map[string]any{"scenario": strings.Repeat("x", 1<<20)}} {
		if err := r.ask(t.Context(), http.MethodPut, "/tag", bad, nil); err == nil || !strings.Contains(err.Error(), `want {"scenario": "NAME"}`) {
			t.Errorf("got %v", err)
		}
	}
	if err := r.ask(t.Context(), http.MethodGet, "/tag", nil, nil); err == nil {
		t.Error("a look changed the scenario")
	}
	if p.Tagged() != "fix-bug" {
		t.Errorf("a bad request made it %s", p.Tagged())
	}
	// Changes from many sides are told as a chain.
	var all sync.WaitGroup
	olds := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			var c tagChanged
			if err := r.ask(t.Context(), http.MethodPut, "/tag", tagChange{strconv.Itoa(i)}, &c); err != nil || c.New != strconv.Itoa(i) {
				t.Errorf("change %d: %+v, %v", i, c, err)
			}
			olds <- c.Old
		})
	}
	all.Wait()
	close(olds)
	seen := map[string]bool{p.Tagged(): true}
	for old := range olds {
		if seen[old] {
			t.Errorf("%s was replaced twice", old)
		}
		seen[old] = true
	}
}

func TestAFailedFlushIsTold(t *testing.T) {
	a, _, _ := surroundings(t)
	serving(t, a, status{Pid: os.Getpid()}, func(context.Context) error { return errors.New("the disk is full") })
	r := a.runningProxies(t.Context())[0]
	if err := r.ask(t.Context(), http.MethodPost, "/flush", nil, nil); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
}

// orphan makes a socket that nobody listens on.
func orphan(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestSocketsOfTheDeadAreRemoved(t *testing.T) {
	a, folder, _ := surroundings(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	serving(t, a, status{Pid: os.Getpid()}, noFlush)
	stale := filepath.Join(folder, strconv.Itoa(dead.Process.Pid)+".sock")
	hung := filepath.Join(folder, strconv.Itoa(os.Getppid())+".sock")
	orphan(t, stale)
	orphan(t, hung)
	other := filepath.Join(folder, "notes.sock")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if all := a.runningProxies(t.Context()); len(all) != 1 || all[0].Pid != os.Getpid() {
		t.Errorf("run: %v", all)
	}
	if _, err := os.Lstat(stale); !os.IsNotExist(err) {
		t.Errorf("the socket of a dead process is there: %v", err)
	}
	mode(t, hung) // its process lives
	mode(t, other)
}

// Containers may share a folder: their processes are not seen from here.
func TestASocketThatAnswersIsNotTheDeads(t *testing.T) {
	a, _, _ := surroundings(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	serving(t, a, status{Pid: dead.Process.Pid}, noFlush)
	for range 2 {
		if all := a.runningProxies(t.Context()); len(all) != 1 {
			t.Fatalf("%d run", len(all))
		}
	}
}

func TestSocketsArePutWhereNobodyElseCanReach(t *testing.T) {
	for _, row := range []struct {
		sentence string
		prepare  func(folder string) error
	}{
		{"open to others", func(folder string) error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o755)) }},
		{"a link", func(folder string) error { return os.Symlink(filepath.Dir(folder), folder) }},
		{"a file", func(folder string) error { return os.WriteFile(folder, nil, 0o600) }},
	} {
		a, runtime, temporary := surroundings(t)
		if err := row.prepare(runtime); err != nil {
			t.Fatal(err)
		}
		serving(t, a, status{Pid: os.Getpid()}, noFlush)
		mode(t, filepath.Join(temporary, strconv.Itoa(os.Getpid())+".sock"))
		if all := a.runningProxies(t.Context()); len(all) != 1 {
			t.Errorf("%s: %d are found", row.sentence, len(all))
		}
	}
	// Nor is one believed that stands where others could have put it.
	a, runtime, _ := surroundings(t)
	serving(t, a, status{Pid: os.Getpid()}, noFlush)
	if err := os.Chmod(runtime, 0o777); err != nil {
		t.Fatal(err)
	}
	if all := a.runningProxies(t.Context()); len(all) != 0 {
		t.Errorf("%d are believed", len(all))
	}
}

func TestAPathThatIsTooLongForASocketIsNotTaken(t *testing.T) {
	a, _, temporary := surroundings(t)
	inner := a.env
	a.env = func(name string) (string, bool) {
		if name == "XDG_RUNTIME_DIR" {
			return "/" + strings.Repeat("x", 90), true
		}
		return inner(name)
	}
	serving(t, a, status{Pid: os.Getpid()}, noFlush)
	mode(t, filepath.Join(temporary, strconv.Itoa(os.Getpid())+".sock"))
}

func TestAClosedProxyIsGone(t *testing.T) {
	a, folder, _ := surroundings(t)
	c, err := a.serveControl(status{Pid: os.Getpid()}, &proxy.Proxy{}, &rulebook{shaper: &shaper.Shaper{}}, writing{noFlush, noneLeft})
	if err != nil {
		t.Fatal(err)
	}
	c.close()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAddressesAreUnderstoodAsTheyAreWritten(t *testing.T) {
	for said, want := range map[string]bool{
		"127.0.0.1:8484": true, "http://127.0.0.1:8484": true, "http://127.0.0.1:8484/": true, ":8484": true, "8484": true,
		"127.0.0.1:8485": false, "localhost:8484": false, "484": false,
	} {
		if got := sameAddress(said, "http://127.0.0.1:8484"); got != want {
			t.Errorf("%s: %v", said, got)
		}
	}
	for at, want := range map[string]string{"[::]:1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "127.0.0.1:1": "127.0.0.1:1", "10.0.0.7:1": "10.0.0.7:1", "[::1]:1": "[::1]:1"} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(addr); got != want {
			t.Errorf("%s: %s", at, got)
		}
	}
}

func TestARunningProxyIsUsedForWhatItServes(t *testing.T) {
	one := func(name, url, prefix string, models ...string) upstreamSaid {
		return upstreamSaid{Name: name, URL: url, Prefix: prefix, Models: models}
	}
	gateway := one("gw", "http://gateway:4000", "")
	for _, row := range []struct {
		sentence  string
		upstreams []upstreamSaid
		command   string
		asked     string
		env       []string
		want      map[client.Family]string // nil: it is not used
	}{
		{"a gateway → everything", []upstreamSaid{gateway}, "python", "", nil,
			map[client.Family]string{client.Anthropic: "", client.OpenAI: "/v1", client.Gemini: ""}},
		{"the provider's own, for its client", []upstreamSaid{one("a", "https://api.anthropic.com", "")}, "claude", "", nil,
			map[client.Family]string{client.Anthropic: ""}},
		{"another provider's own", []upstreamSaid{one("a", "https://api.anthropic.com", "")}, "gemini", "", nil, nil},
		{"one provider's for a program of one's own", []upstreamSaid{one("a", "https://api.anthropic.com", "")}, "python", "", nil, nil},
		{"several by prefix", []upstreamSaid{one("a", "https://api.anthropic.com", ""), one("o", "https://api.openai.com", "/o")}, "opencode", "", nil,
			map[client.Family]string{client.Anthropic: "/v1", client.OpenAI: "/o/v1"}},
		{"some models alone", []upstreamSaid{one("o", "https://api.openai.com", "", "gpt-*")}, "codex", "", []string{"OPENAI_API_KEY=k"}, nil},
		{"Codex with a key", []upstreamSaid{one("o", "https://api.openai.com/v1", "")}, "codex", "", []string{"OPENAI_API_KEY=k"},
			map[client.Family]string{client.OpenAI: "/v1", client.Codex: "/v1"}},
		{"Codex with a login wants its own endpoint", []upstreamSaid{one("o", "https://api.openai.com/v1", "")}, "codex", "", []string{"HOME=/none"}, nil},
		{"an endpoint that was asked for", []upstreamSaid{gateway, one("l", "http://local:8000/v1", "/l")}, "claude", "http://local:8000", nil,
			map[client.Family]string{client.Anthropic: "/l", client.OpenAI: "/l/v1", client.Gemini: "/l"}},
		{"another one was asked for", []upstreamSaid{gateway}, "claude", "http://local:8000", nil, nil},
		{"the user's variable names an upstream", []upstreamSaid{gateway}, "claude", "", []string{"ANTHROPIC_BASE_URL=http://gateway:4000/"},
			map[client.Family]string{client.Anthropic: "", client.OpenAI: "/v1", client.Gemini: ""}},
		{"the user's variable names something else", []upstreamSaid{gateway}, "claude", "", []string{"ANTHROPIC_BASE_URL=http://mine"}, nil},
		{"the user's variable names the proxy", []upstreamSaid{gateway, one("l", "http://local:8000", "/l")}, "claude", "", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8484/s/x/l"},
			map[client.Family]string{client.Anthropic: "/l", client.OpenAI: "/v1", client.Gemini: ""}},
		{"a variable that the command does not read", []upstreamSaid{gateway}, "claude", "", []string{"OPENAI_BASE_URL=http://mine/v1"},
			map[client.Family]string{client.Anthropic: "", client.Gemini: ""}},
	} {
		r := running{status: status{Listen: "http://127.0.0.1:8484", Upstreams: row.upstreams}}
		var asked []upstreamFlag
		if row.asked != "" {
			var err error
			if asked, err = parseUpstreams([]string{row.asked}); err != nil {
				t.Fatal(err)
			}
		}
		d := r.door([]string{row.command}, row.env, asked)
		if d == nil || row.want == nil {
			if d != nil || row.want != nil {
				t.Errorf("%s: used: %v", row.sentence, d != nil)
			}
			continue
		}
		if diff := cmp.Diff(row.want, d.bases); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
		if openAIs := strings.Contains(row.upstreams[0].URL, "openai.com"); d.webSocket != openAIs {
			t.Errorf("%s: WebSockets: %v", row.sentence, d.webSocket)
		}
	}
}

func TestARunningForwardProxyIsUsedForWhatItMeasures(t *testing.T) {
	anthropic := upstreamSaid{Name: "a", URL: "https://api.anthropic.com"}
	local := upstreamSaid{Name: "l", URL: "http://local:8000", Hosts: []string{"api.*.com"}}
	for _, row := range []struct {
		sentence  string
		upstreams []upstreamSaid
		hosts     []string // nil: the known providers'
		command   string
		asked     string
		env       []string
		want      bool
	}{
		{"the known hosts → any command", []upstreamSaid{anthropic}, nil, "python", "", nil, true},
		{"no upstream at all", nil, nil, "claude", "", nil, true},
		{"other hosts than the command's", []upstreamSaid{anthropic}, []string{"api.example"}, "gemini", "", nil, false},
		{"other hosts, but the upstream's own", []upstreamSaid{anthropic}, []string{"api.example"}, "claude", "", nil, true},
		{"one of several is passed unseen", []upstreamSaid{anthropic}, []string{"api.example"}, "opencode", "", nil, false},
		{"the user's variable names a host that is passed unseen", nil, nil, "claude", "", []string{"ANTHROPIC_BASE_URL=https://mine.example"}, false},
		{"what was asked for stands for the host", []upstreamSaid{local}, nil, "claude", "http://local:8000/v1", nil, true},
		{"and not for all of the command's", []upstreamSaid{local}, nil, "gemini", "http://local:8000", nil, false},
		{"something else stands for the host", []upstreamSaid{local}, nil, "claude", "http://other:8000", nil, false},
		{"nothing stands for it", nil, nil, "claude", "http://local:8000", nil, false},
	} {
		r := running{status: status{Listen: "http://127.0.0.1:8484", Upstreams: row.upstreams}}
		var asked []upstreamFlag
		if row.asked != "" {
			var err error
			if asked, err = parseUpstreams([]string{row.asked}); err != nil {
				t.Fatal(err)
			}
		}
		if row.hosts == nil {
			row.hosts = proxy.KnownHosts()
		}
		if got := r.forwards(row.hosts, []string{row.command}, row.env, asked); got != row.want {
			t.Errorf("%s: used: %v", row.sentence, got)
		}
	}
}
