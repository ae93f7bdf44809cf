package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/proxy"
	"weir/proxy/client"
	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

// door is a proxy through which a command's calls go.
type door struct {
	base     string // "http://127.0.0.1:8484"
	database string

	// bases are the base URLs of each family behind base and the tags.
	bases map[client.Family]string

	webSocket bool // Codex's provider stands behind it

	// Of a forward proxy, which has no bases.
	caFile, bundle, beside string

	settle func(run string, since time.Time) // waits until the calls of a command that ended are written
	close  func() error
	lost   func() report.Num // once closed: the calls that could not be recorded; absent where its weir has ended
}

// way is how a command finds the door, with the tags of its calls.
func (d *door) way(scenario, run string) client.Way {
	tags := "/r/" + run
	if scenario != "" {
		tags = "/s/" + url.PathEscape(scenario) + tags
	}
	if d.caFile != "" {
		u, err := url.Parse(d.base)
		if err != nil {
			panic(err) // it is weir's own
		}
		user, _ := url.PathUnescape(tags[1:])
		u.User = url.UserPassword(user, "weir")
		return client.Way{Proxy: u.String(), CAFile: d.caFile, Bundle: d.bundle, Beside: d.beside}
	}
	w := client.Way{Base: map[client.Family]string{}, WebSocket: d.webSocket}
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
	forward := f.door == "forward"
	var trusted *trust
	if forward {
		var err error
		if trusted, err = openTrust(a.env); err != nil {
			return nil, err
		}
	}
	own := func() (*door, error) {
		if forward {
			return a.ownForwardDoor(f, asked, trusted)
		}
		return a.ownDoor(command, f, asked)
	}
	var passedBy, unasking []string
	for _, r := range a.runningProxies(ctx) {
		if r.ClientToken || !sameFile(database, r.Database) {
			continue
		}
		if f.usage == usageInject && !r.InjectUsage {
			unasking = append(unasking, r.Listen)
			continue
		}
		var d *door
		if forward {
			d = r.forwardDoor(ctx, command, os.Environ(), asked, trusted)
		} else {
			d = r.door(command, os.Environ(), asked)
		}
		switch {
		case d != nil && a.impair != nil:
			a.warn([]string{fmt.Sprintf("the weir at %s makes no calls worse for one command, so another one did, without its tag, rules and keys", r.Listen)})
			return own()
		case d != nil && !f.limits.given():
			return d, nil
		case d != nil:
			a.warn([]string{fmt.Sprintf("the weir at %s has its own limits, so another one did serve, without its tag, rules and keys; weir limit changes those limits", r.Listen)})
			return own()
		}
		passedBy = append(passedBy, r.Listen)
	}
	if len(unasking) > 0 {
		a.warn([]string{fmt.Sprintf("the weir at %s was started without --usage inject, so another one serves, without its tag, rules and keys", strings.Join(unasking, ", "))})
	}
	if len(passedBy) > 0 {
		a.warn([]string{fmt.Sprintf("the weir at %s does not serve all that %s may speak by the %s door, so another one did, without its tag, rules and keys; --upstream says which endpoint is meant",
			strings.Join(passedBy, ", "), filepath.Base(command[0]), f.door)})
	}
	return own()
}

// door is a running proxy's, with the families that it serves for a command;
// nil when one is not among them that the command speaks.
func (r *running) door(command, env []string, asked []upstreamFlag) *door {
	d := &door{
		base: r.Listen, database: r.Database, bases: map[client.Family]string{},
		settle: r.settle, close: func() error { return nil }, lost: r.lostSince(),
	}
	for _, e := range client.Endpoints(command, env) {
		if len(asked) > 0 {
			e = client.Endpoint{Family: e.Family, URL: asked[0].URL.String(), Variable: "--upstream"}
		}
		u := r.upstreamFor(e)
		if u == nil {
			continue
		}
		d.bases[e.Family] = client.At(u.Prefix, command).Base[e.Family]
		if e.Family == client.Codex {
			d.webSocket = client.ProvidersOwn(hostnameOf(u.URL))
		}
	}
	for _, family := range client.Speaks(command) {
		if _, served := d.bases[family]; !served {
			return nil
		}
	}
	return d
}

// upstreamFor finds which upstream of a running proxy takes the requests for an
// endpoint; nil when none does. What the user named must be among them, or be
// the proxy itself. What nobody named is also served by a gateway: an upstream
// that is not another provider's own, to which the keys would not belong.
func (r *running) upstreamFor(e client.Endpoint) *upstreamSaid {
	var general, sameHost *upstreamSaid
	for i := range r.Upstreams {
		u := &r.Upstreams[i]
		switch {
		case u.Prefix == "" && len(u.Models) > 0: // takes some models alone
			continue
		case sameEndpoint(u.URL, e.URL):
			return u
		case u.Prefix == "":
			general = u
		}
		if hostOf(u.URL) == hostOf(e.URL) && !e.Verbatim {
			sameHost = u
		}
	}
	switch {
	case e.Variable != "" && hostOf(e.URL) == hostOf(r.Listen):
		for i, u := range r.Upstreams {
			if u.Prefix != "" && strings.Contains(e.URL+"/", u.Prefix+"/") {
				return &r.Upstreams[i]
			}
		}
		return general
	case e.Variable != "":
		return nil
	case sameHost != nil:
		return sameHost
	case general != nil && !client.ProvidersOwn(hostnameOf(general.URL)):
		return general
	}
	return nil
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
func (a *app) ownDoor(command []string, f execFlags, asked []upstreamFlag) (*door, error) {
	d := &door{bases: map[client.Family]string{}}
	var upstreams []proxy.Upstream
	for _, u := range asked {
		up, err := u.upstream(a.env)
		if err != nil {
			return nil, err
		}
		upstreams = append(upstreams, up)
		d.bases, d.webSocket = client.At(u.Prefix, command).Base, client.ProvidersOwn(u.URL.Hostname())
	}
	if len(asked) == 0 {
		d.webSocket = true
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
	if err := asTheCommandWould(upstreams); err != nil {
		return nil, err
	}
	return d, a.serveDoor(d, f, upstreams, nil)
}

// asTheCommandWould has the upstreams reached by the way that the command
// itself would go.
func asTheCommandWould(upstreams []proxy.Upstream) error {
	for i := range upstreams {
		way, err := http.ProxyFromEnvironment(&http.Request{URL: upstreams[i].URL})
		if err != nil {
			return usagef("the proxy on the way to %s: %w", upstreams[i].Name, err)
		}
		upstreams[i].Proxy = way
	}
	return nil
}

// serveDoor serves a proxy in this process, on a port of its own.
func (a *app) serveDoor(d *door, f execFlags, upstreams []proxy.Upstream, forward *proxy.Forward) error {
	shape, err := f.limits.shaper(nil)
	if err != nil {
		return err
	}
	s, err := a.openStack(f.db, shape)
	var bad store.BadVariable
	if errors.As(err, &bad) { // the variables may be meant for the command alone
		a.warn([]string{fmt.Sprintf("weir sends nothing to a collector: %s", bad)})
		env := a.env
		a.env = func(name string) (string, bool) {
			if strings.HasPrefix(name, "OTEL_") {
				return "", false
			}
			return env(name)
		}
		s, err = a.openStack(f.db, shape)
		a.env = env
	}
	if err != nil {
		return err
	}
	p := s.proxy(upstreams)
	p.Log, p.Forward, p.InjectUsage = a.logger(false), forward, f.usage == usageInject
	base, stop, err := serveInside(p)
	if err != nil {
		return errors.Join(err, s.close())
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
	d.lost = func() report.Num { return report.N(float64(s.tracing.Recorder.Lost())) }
	return nil
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
	for ctx.Err() == nil {
		var now status
		_ = r.ask(ctx, http.MethodPost, "/flush", nil, nil) // what cannot be written is counted
		if r.ask(ctx, http.MethodGet, "/status", nil, &now) != nil {
			return // it has ended
		}
		n := int(now.Lost + now.Waiting)
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

// lostSince counts the calls that a running proxy could not record from now on.
func (r *running) lostSince() func() report.Num {
	before := r.Lost
	return func() report.Num {
		var now status
		if r.ask(context.Background(), http.MethodGet, "/status", nil, &now) != nil {
			return report.Num{}
		}
		return report.N(float64(now.Lost + now.Waiting - before))
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
