package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"weir/store"
)

// running is a proxy that runs, of the same user.
type running struct {
	status
	socket string
}

// runningProxies are those that answer, the oldest first.
func (a *app) runningProxies(ctx context.Context) []running {
	var all []running
	for _, folder := range controlFolders(a.env) {
		if private(folder) != nil {
			continue // what stands there is not the user's
		}
		sweep(folder)
		for _, path := range sockets(folder) {
			r := running{socket: path}
			if r.ask(ctx, http.MethodGet, "/status", nil, &r.status) == nil {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(x, y running) int { return x.Started.Compare(y.Started) })
	return all
}

// ask sends one request to a running proxy. in and out are JSON; nil is none.
func (r *running) ask(ctx context.Context, method, path string, in, out any) error {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}}
	defer t.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, body)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("the weir proxy with pid %d does not answer: %w", r.Pid, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("the weir proxy with pid %d: %w", r.Pid, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the weir proxy with pid %d: %s", r.Pid, strings.TrimSpace(string(b)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// which says which running proxy is meant; what is empty is any.
type which struct {
	db, listen string
	pid        int
}

// add adds the flags that say which.
func (w *which) add(fl *pflag.FlagSet) {
	fl.StringVar(&w.db, "db", "", "the proxy that records in this database")
	fl.IntVar(&w.pid, "pid", 0, "the proxy with this process id")
	fl.StringVarP(&w.listen, "listen", "l", "", "the proxy that listens on this address")
}

// flags are what a next command needs to find the same proxy.
func (w which) flags() string {
	text := dbFlag(w.db)
	if w.pid != 0 {
		text += fmt.Sprint(" --pid ", w.pid)
	}
	if w.listen != "" {
		text += " --listen " + w.listen
	}
	return text
}

func (w which) fits(r running) bool {
	return (w.pid == 0 || w.pid == r.Pid) && (w.db == "" || sameFile(w.db, r.Database)) && (w.listen == "" || sameAddress(w.listen, r.Listen))
}

// pick finds the one running proxy that is meant.
func (a *app) pick(ctx context.Context, w which) (running, error) {
	all := a.runningProxies(ctx)
	fit := slices.DeleteFunc(slices.Clone(all), func(r running) bool { return !w.fits(r) })
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return running{}, usagef("several proxies run: %s; say which with --pid, --listen or --db", list(fit))
	case len(all) > 0:
		return running{}, usagef("no such proxy runs; there is %s", list(all))
	}
	return running{}, &hinted{errors.New("no weir proxy of yours runs"), "weir proxy --upstream https://api.anthropic.com"}
}

// list names proxies in one line.
func list(all []running) string {
	var each []string
	for _, r := range all {
		each = append(each, fmt.Sprintf("pid %d on %s with %s", r.Pid, r.Listen, r.Database))
	}
	return strings.Join(each, ", and ")
}

// sameFile says whether two paths name one file, be it there or not.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	a, errX = filepath.Abs(a)
	b, errY = filepath.Abs(b)
	return errX == nil && errY == nil && a == b
}

// sameAddress says whether an address, as a user writes it, is that of a URL: in
// full, without its scheme, or the port alone.
func sameAddress(said, listen string) bool {
	u, err := url.Parse(listen)
	if err != nil {
		return false
	}
	said = strings.TrimSuffix(strings.TrimPrefix(said, "http://"), "/")
	return said == u.Host || strings.TrimPrefix(said, ":") == u.Port()
}

// dbFlagOf is what a next command needs to find a database: nothing where it
// is the one that commands look at anyway.
func (a *app) dbFlagOf(path string) string {
	if usual, err := store.DefaultPath(a.env); err == nil && sameFile(usual, path) {
		return ""
	}
	return dbFlag(path)
}
