package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/proxy"
	"weir/shaper"
)

// status is what a running proxy says of itself.
type status struct {
	Pid       int            `json:"pid"`
	Version   string         `json:"version"`
	Listen    string         `json:"listen"` // "http://127.0.0.1:8484"
	Database  string         `json:"db"`     // absolute
	Upstreams []upstreamSaid `json:"upstreams"`
	Scenario  string         `json:"scenario"` // of requests that nothing names
	Started   time.Time      `json:"started"`

	// Ways are the addresses that requests are sent to.
	Ways []string `json:"ways"`
	// ClientToken says that requests must bring a token.
	ClientToken bool `json:"client_token"`
	// InjectUsage says that it asks for usage in the clients' place.
	InjectUsage bool `json:"inject_usage"`

	// Lost are calls that it could not record; Waiting those that have ended
	// and are not written yet.
	Lost    int64 `json:"lost"`
	Waiting int64 `json:"waiting"`
}

// writing is how a proxy's calls come into the database.
type writing struct {
	flush func(context.Context) error // writes all calls that have ended
	left  func() (lost, waiting int64)
}

// writing is how calls are written here.
func (s *stack) writing() writing {
	return writing{s.tracing.Provider.ForceFlush, func() (lost, waiting int64) {
		return s.tracing.Recorder.Lost(), s.tracing.Recorder.Waiting()
	}}
}

// upstreamSaid is an upstream of a running proxy.
type upstreamSaid struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Prefix string   `json:"prefix"`
	Models []string `json:"models"`
	Hosts  []string `json:"hosts"` // that it stands for in the forward door
}

// tagChange is what is sent to set the default scenario, and tagChanged what
// comes back.
type (
	tagChange struct {
		Scenario string `json:"scenario"`
	}
	tagChanged struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
)

// status is what a proxy that records here and listens at an address says of
// itself.
func (s *stack) status(at net.Addr, p *proxy.Proxy) status {
	release, _ := buildVersion()
	database, err := filepath.Abs(s.path())
	if err != nil {
		database = s.path()
	}
	said := status{
		Pid: os.Getpid(), Version: release, Listen: "http://" + reachable(at), Database: database,
		Upstreams: []upstreamSaid{}, Started: time.Now(), ClientToken: p.ClientToken != "", InjectUsage: p.InjectUsage,
		Ways: waysOf(p.Upstreams),
	}
	for _, u := range p.Upstreams {
		said.Upstreams = append(said.Upstreams, upstreamSaid{
			Name: u.Name, URL: u.URL.String(), Prefix: u.Prefix, Models: append([]string{}, u.Models...), Hosts: append([]string{}, u.Hosts...),
		})
	}
	return said
}

// reachable is where this machine's programs find what listens at an address:
// one that listens everywhere is here, too.
func reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return at.String()
}

// control serves a running proxy's status to the user's other commands, on a
// socket that is the user's alone.
type control struct {
	server *http.Server
	served chan struct{}
}

// serveControl begins to serve what is said of a proxy; its scenario the proxy
// is asked itself, its limits the rulebook, and calls how they are written.
func (a *app) serveControl(said status, p *proxy.Proxy, book *rulebook, calls writing) (*control, error) {
	folder, err := controlFolder(a.env)
	if err != nil {
		return nil, err
	}
	sweep(folder)
	path := filepath.Join(folder, strconv.Itoa(said.Pid)+socketEnding)
	_ = os.Remove(path) // of an earlier process with this number
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	c := &control{server: &http.Server{Handler: controlHandler(said, p, book, calls), ReadHeaderTimeout: controlPatience}, served: make(chan struct{})}
	go func() {
		defer close(c.served)
		_ = c.server.Serve(l) // until it is closed
	}()
	return c, nil
}

// close ends it and takes its socket away.
func (c *control) close() {
	if c == nil {
		return
	}
	c.server.Close()
	<-c.served
}

func controlHandler(said status, p *proxy.Proxy, book *rulebook, calls writing) http.Handler {
	var tagging sync.Mutex // so that old and new are of one change
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a reader that left needs no answer
	}
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		now := said
		now.Scenario = p.Tagged()
		now.Lost, now.Waiting = calls.left()
		answer(w, now)
	})
	mux.HandleFunc("GET /forward", func(w http.ResponseWriter, _ *http.Request) {
		forward, err := sayForward(p)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		answer(w, forward)
	})
	mux.HandleFunc("PUT /tag", func(w http.ResponseWriter, r *http.Request) {
		var change tagChange
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&change); err != nil {
			http.Error(w, `want {"scenario": "NAME"}: `+err.Error(), http.StatusBadRequest)
			return
		}
		tagging.Lock()
		changed := tagChanged{Old: p.Tag(change.Scenario), New: p.Tagged()}
		tagging.Unlock()
		answer(w, changed)
	})
	limits := func() limitsSaid { return limitsSaid{ruleLines(book.shaper.Rules())} }
	mux.HandleFunc("GET /limits", func(w http.ResponseWriter, _ *http.Request) { answer(w, limits()) })
	mux.HandleFunc("PUT /limits", func(w http.ResponseWriter, r *http.Request) {
		var change limitChange
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&change); err != nil {
			http.Error(w, `want {"change": "scenario=rag rps=2"} or {"reset": true}: `+err.Error(), http.StatusBadRequest)
			return
		}
		if change.Reset {
			if err := book.reset(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answer(w, limits())
			return
		}
		old, now, err := book.change(change.Change)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, limitChanged{Who: now.Select.String(), Old: old.Limit.String(), New: now.Limit.String()})
	})
	mux.HandleFunc("GET /lanes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, lanesSaid{Schema: lanesSchema, At: time.Now(), Listen: said.Listen, Limits: limits().Limits, Lanes: append([]shaper.LaneState{}, book.shaper.Lanes()...)})
	})
	mux.HandleFunc("POST /flush", func(w http.ResponseWriter, r *http.Request) {
		if err := calls.flush(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

const (
	socketEnding    = ".sock"
	controlPatience = 2 * time.Second

	// A socket's path has room for about a hundred bytes on every system.
	longestSocket = 100
	longestName   = len("/4194304" + socketEnding)
)

// controlFolders are where sockets may be, the best place first: the same for
// everyone who asks with the same environment.
func controlFolders(env environment) []string {
	var all []string
	if dir, _ := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "weir"))
	}
	temporary, _ := env("TMPDIR")
	if !filepath.IsAbs(temporary) {
		temporary = "/tmp"
	}
	return append(all, filepath.Join(temporary, fmt.Sprint("weir-", os.Getuid())))
}

// controlFolder makes the folder of a proxy's socket: the first place whose path
// is short enough and that is the user's alone.
func controlFolder(env environment) (string, error) {
	var errs []error
	for _, folder := range controlFolders(env) {
		if len(folder)+longestName >= longestSocket {
			errs = append(errs, fmt.Errorf("%s is too long for a socket's path", folder))
			continue
		}
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			err = private(folder)
		}
		if err == nil {
			return folder, nil
		}
		errs = append(errs, err)
	}
	return "", errs[0] // of the place where it belongs
}

// private says what keeps a folder from being the user's alone.
func private(folder string) error {
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder; remove it", folder)
	case !ownedByUser(info):
		return fmt.Errorf("%s belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own", folder)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others; chmod 700 %s", folder, folder)
	}
	return nil
}

// sweep removes the sockets of processes that have ended.
func sweep(folder string) {
	for pid, path := range sockets(folder) {
		if !alive(pid) && !answers(path) {
			_ = os.Remove(path) // one that stays is passed over
		}
	}
}

// answers says whether somebody listens on a socket: a process of another
// container may share the folder, and not the numbers.
func answers(path string) bool {
	c, err := net.DialTimeout("unix", path, controlPatience)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// sockets are the user's sockets in a folder, by the process in their names.
func sockets(folder string) map[int]string {
	all := map[int]string{}
	entries, _ := os.ReadDir(folder) // a folder that is not there has none
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), socketEnding)
		pid, err := strconv.Atoi(name)
		if !ok || err != nil || pid <= 0 {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode()&os.ModeSocket != 0 && ownedByUser(info) {
			all[pid] = filepath.Join(folder, e.Name())
		}
	}
	return all
}
