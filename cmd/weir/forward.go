package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"weir/proxy"
	"weir/proxy/client"
	"weir/store"
)

// forwardDoor makes the proxy a forward proxy too. The authority in folder is
// made when a measured host is first asked for over TLS.
func forwardDoor(folder string, hosts []string, caFile string, way *url.URL) *proxy.Forward {
	return &proxy.Forward{
		Hosts: hosts, CAFile: caFile, Proxy: way,
		Authority: sync.OnceValues(func() (proxy.Certifier, error) { return proxy.OpenAuthority(folder) }),
	}
}

// measuredHosts are the hosts that --measure adds to the known providers', or
// stand in their place where one is written =HOST; nil when none is given.
func measuredHosts(given []string) []string {
	var hosts []string
	alone := false
	for _, glob := range given {
		host, only := strings.CutPrefix(glob, "=")
		hosts, alone = append(hosts, host), alone || only
	}
	if len(hosts) == 0 || alone {
		return hosts
	}
	return append(hosts, proxy.KnownHosts()...)
}

// caFolder is where weir's certificate authority is.
func caFolder(env environment) (string, error) {
	path, err := store.DefaultPath(env)
	if err != nil {
		return "", usage(err)
	}
	return filepath.Join(filepath.Dir(path), "ca"), nil
}

// trust is what a command needs to trust weir's certificates.
type trust struct {
	folder      string
	file        string // the authority's certificate alone
	bundle      string // with all others that programs trust
	beside      string // with those that the user has Node trust; empty: none that can be read
	fingerprint string
}

// openTrust opens the authority, which is made on first use.
func openTrust(env environment) (*trust, error) {
	folder, err := caFolder(env)
	if err != nil {
		return nil, err
	}
	authority, err := proxy.OpenAuthority(folder)
	if err != nil {
		return nil, err
	}
	bundle, err := proxy.Bundle(folder)
	if err != nil {
		return nil, err
	}
	t := &trust{folder: folder, file: authority.Path(), bundle: bundle, fingerprint: authority.Fingerprint()}
	if extra, _ := env("NODE_EXTRA_CA_CERTS"); extra != "" {
		t.beside, _ = proxy.Beside(folder, extra) // weir exec says it where nothing can be read
	}
	return t, nil
}

// forwardSaid is what a running proxy says of itself as a forward proxy.
type forwardSaid struct {
	Fingerprint string   `json:"fingerprint"` // of the authority that it signs with
	Hosts       []string `json:"hosts"`       // globs of those that it measures beside its upstreams'
}

// sayForward fails where a proxy is none, or has no authority.
func sayForward(p *proxy.Proxy) (forwardSaid, error) {
	if p.Forward == nil {
		return forwardSaid{}, errors.New("it is no forward proxy")
	}
	said := forwardSaid{Hosts: p.Forward.Hosts}
	if said.Hosts == nil {
		said.Hosts = proxy.KnownHosts()
	}
	signs, err := p.Forward.Authority()
	if err != nil {
		return said, err
	}
	if a, ok := signs.(*proxy.Authority); ok {
		said.Fingerprint = a.Fingerprint()
	}
	return said, nil
}

// forwardDoor is a running proxy's, as the forward proxy of a command; nil when
// it signs with another authority than the command will trust, or does not
// serve what the command calls.
func (r *running) forwardDoor(ctx context.Context, command, env []string, asked []upstreamFlag, trusted *trust) *door {
	var said forwardSaid
	if r.ask(ctx, http.MethodGet, "/forward", nil, &said) != nil || said.Fingerprint != trusted.fingerprint {
		return nil
	}
	if !r.forwards(said.Hosts, command, env, asked) {
		return nil
	}
	return &door{
		base: r.Listen, database: r.Database, caFile: trusted.file, bundle: trusted.bundle, beside: trusted.beside,
		settle: r.settle, close: func() error { return nil }, lost: r.lostSince(),
	}
}

// forwards says whether the requests to every host that a command is known to
// call are measured, and go to what was asked for. hosts are measured beside
// those that an upstream stands for.
func (r *running) forwards(hosts, command, env []string, asked []upstreamFlag) bool {
	speaks := client.Speaks(command)
	for _, e := range client.Endpoints(command, env) {
		if !slices.Contains(speaks, e.Family) {
			continue
		}
		u := r.upstreamOfHost(e.URL)
		switch {
		case len(asked) > 0 && (u == nil || !sameEndpoint(u.URL, asked[0].URL.String())):
			return false
		case u == nil && !matchesHost(hosts, hostnameOf(e.URL)):
			return false
		}
	}
	return true
}

// upstreamOfHost finds which upstream stands for an endpoint's host in the
// forward door; nil when its requests go to the host itself.
func (r *running) upstreamOfHost(endpoint string) *upstreamSaid {
	for i := range r.Upstreams {
		if u := &r.Upstreams[i]; hostOf(u.URL) == hostOf(endpoint) || matchesHost(u.Hosts, hostnameOf(endpoint)) {
			return u
		}
	}
	return nil
}

func matchesHost(globs []string, host string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, strings.ToLower(host))
		return ok && err == nil
	})
}

// ownForwardDoor serves a forward proxy in this process. What is asked for
// stands in the place of all hosts that are measured.
func (a *app) ownForwardDoor(f execFlags, asked []upstreamFlag, trusted *trust) (*door, error) {
	var upstreams []proxy.Upstream
	for _, u := range asked {
		up, err := u.upstream(a.env)
		if err != nil {
			return nil, err
		}
		up.Hosts = append(up.Hosts, proxy.KnownHosts()...)
		upstreams = append(upstreams, up)
	}
	direct := []proxy.Upstream{{Name: "elsewhere", URL: &url.URL{Scheme: "https", Host: "api.example"}}}
	if err := errors.Join(asTheCommandWould(upstreams), asTheCommandWould(direct)); err != nil {
		return nil, err
	}
	d := &door{caFile: trusted.file, bundle: trusted.bundle, beside: trusted.beside}
	return d, a.serveDoor(d, f, upstreams, forwardDoor(trusted.folder, nil, "", direct[0].Proxy))
}
