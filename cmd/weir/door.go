package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"weir/proxy"
	"weir/proxy/client"
	"weir/store"
	"weir/store/call"
)

// door is a proxy through which a command's calls go.
type door struct {
	base     string // "http://127.0.0.1:8484"
	database string

	// bases are the base URLs of each family behind base and the tags.
	bases map[client.Family]string

	settle func(run string, since time.Time) // waits until the calls of a command that ended are written
	close  func() error
}

// way is how a command finds the door, with the tags of its calls.
func (d *door) way(scenario, run string) client.Way {
	tags := "/r/" + run
	if scenario != "" {
		tags = "/s/" + url.PathEscape(scenario) + tags
	}
	w := client.Way{Base: map[client.Family]string{}}
	for family, rest := range d.bases {
		w.Base[family] = d.base + tags + rest
	}
	return w
}

// findDoor uses a running proxy that records in the wanted database and serves
// what the command speaks, or else serves one itself.
func (a *app) findDoor(ctx context.Context, command []string, f execFlags) (*door, error) {
	var asked []upstreamFlag
	if f.upstream != "" {
		var err error
		if asked, err = parseUpstreams([]string{f.upstream}); err != nil {
			return nil, err
		}
	}
	database := f.db
	if database == "" {
		var err error
		if database, err = store.DefaultPath(a.env); err != nil {
			return nil, usage(err)
		}
	}
	for _, r := range a.runningProxies(ctx) {
		if r.ClientToken || !sameFile(database, r.Database) {
			continue
		}
		if bases, ok := r.bases(command, os.Environ(), asked); ok {
			return &door{
				base: r.Listen, database: r.Database, bases: bases,
				settle: r.settle, close: func() error { return nil },
			}, nil
		}
	}
	return a.ownDoor(ctx, command, f.db, asked)
}

// bases are the families that a running proxy serves for a command; ok says
// that all are among them which the command speaks.
func (r *running) bases(command, env []string, asked []upstreamFlag) (served map[client.Family]string, ok bool) {
	served = map[client.Family]string{}
	for _, e := range client.Endpoints(command, env) {
		if len(asked) > 0 {
			e = client.Endpoint{Family: e.Family, URL: asked[0].URL.String(), Variable: "--upstream"}
		}
		if prefix, ok := r.prefixFor(e); ok {
			served[e.Family] = client.At(prefix, command).Base[e.Family]
		}
	}
	for _, family := range client.Speaks(command) {
		if _, there := served[family]; !there {
			return nil, false
		}
	}
	return served, true
}

// prefixFor finds below which prefix a running proxy takes the requests for an
// endpoint. What the user named must be among its upstreams, or be the proxy
// itself. What nobody named is also served by a gateway: an upstream that is
// not another provider's own, to which the keys would not belong.
func (r *running) prefixFor(e client.Endpoint) (prefix string, ok bool) {
	var general, sameHost *upstreamSaid
	for i := range r.Upstreams {
		u := &r.Upstreams[i]
		switch {
		case u.Prefix == "" && len(u.Models) > 0: // takes some models alone
			continue
		case sameEndpoint(u.URL, e.URL):
			return u.Prefix, true
		case u.Prefix == "":
			general = u
		}
		if hostOf(u.URL) == hostOf(e.URL) && !e.Verbatim {
			sameHost = u
		}
	}
	switch {
	case e.Variable != "":
		if hostOf(e.URL) != hostOf(r.Listen) {
			return "", false
		}
		for _, u := range r.Upstreams {
			if u.Prefix != "" && strings.Contains(e.URL+"/", u.Prefix+"/") {
				return u.Prefix, true
			}
		}
		return "", true
	case sameHost != nil:
		return sameHost.Prefix, true
	}
	return "", general != nil && !client.ProvidersOwn(hostnameOf(general.URL))
}

// sameEndpoint says whether two base URLs mean the same, with the API's version
// or without.
func sameEndpoint(a, b string) bool {
	bare := func(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "/"), "/v1") }
	return bare(a) == bare(b)
}

// hostOf is a URL's host and port; empty for what is no URL.
func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Host
}

func hostnameOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// ownDoor serves a proxy in this process, on a port of its own.
func (a *app) ownDoor(ctx context.Context, command []string, database string, asked []upstreamFlag) (*door, error) {
	d := &door{bases: map[client.Family]string{}}
	var upstreams []proxy.Upstream
	for _, u := range asked {
		up, err := u.upstream(a.env)
		if err != nil {
			return nil, err
		}
		upstreams = append(upstreams, up)
		d.bases = client.At(u.Prefix, command).Base
	}
	if len(asked) == 0 {
		for _, e := range client.Endpoints(command, os.Environ()) {
			u, err := url.Parse(e.URL)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
				return nil, usagef("%s: weir cannot stand before that: want http://HOST/PATH or https://HOST/PATH, without user or query; or say --upstream", e.Variable)
			}
			prefix := "/" + string(e.Family)
			upstreams = append(upstreams, proxy.Upstream{Name: string(e.Family), URL: u, Prefix: prefix, Verbatim: e.Verbatim})
			d.bases[e.Family] = prefix + e.Suffix
		}
	}
	for i := range upstreams {
		// The command itself would go that way.
		way, err := http.ProxyFromEnvironment(&http.Request{URL: upstreams[i].URL})
		if err != nil {
			return nil, usagef("the proxy on the way to %s: %w", upstreams[i].Name, err)
		}
		upstreams[i].Proxy = way
	}
	s, err := a.openStack(ctx, database)
	if err != nil {
		return nil, err
	}
	p := s.proxy(upstreams)
	p.Log = a.logger(false)
	base, stop, err := serveInside(p)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	d.base, d.database = base, s.path()
	d.settle = func(string, time.Time) {
		stop()
		_ = s.tracing.Provider.ForceFlush(context.Background()) // told by close
	}
	d.close = func() error {
		stop()
		return s.close()
	}
	return d, nil
}

// settleWithin is how long a running proxy may take to write the calls of a
// command that has ended, and settledAfter for how long no more must have come.
const (
	settleWithin = 2 * time.Second
	settledAfter = 300 * time.Millisecond
)

// settle has a running proxy write the calls of a run, and waits until none is
// under way and no more come.
func (r *running) settle(run string, since time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	db, err := store.Open(ctx, r.Database, store.Options{ReadOnly: true})
	if err != nil {
		return // it is told when the calls are read
	}
	defer db.Close()
	calls, changed := -1, time.Now()
	for ctx.Err() == nil && r.ask(ctx, http.MethodPost, "/flush", nil, nil) == nil {
		n := 0
		for _, err := range callsOf(ctx, db, run, since) {
			if err != nil {
				return
			}
			n++
		}
		under, err := db.InFlight(ctx)
		if err != nil {
			return
		}
		busy := slices.ContainsFunc(under, func(u store.Unfinished) bool { return u.Call.Run == run && !u.Interrupted })
		if busy || n != calls {
			calls, changed = n, time.Now()
		}
		if time.Since(changed) >= settledAfter {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(settledAfter / 6):
		}
	}
}

// callsOf gives the calls of a run that began at since or later; none where
// none was seen.
func callsOf(ctx context.Context, db *store.DB, run string, since time.Time) iter.Seq2[*call.Call, error] {
	return func(yield func(*call.Call, error) bool) {
		// A minute for a clock that was put right meanwhile.
		selection, err := store.ParseSelection([]string{fmt.Sprint("since:", time.Since(since)+time.Minute)})
		if err != nil {
			yield(nil, err)
			return
		}
		for c, err := range db.Calls(ctx, selection, store.Order{}) {
			if err != nil || c.Run == run {
				if !yield(c, err) {
					return
				}
			}
		}
	}
}
