package main

import (
	"context"
	"net"
	"net/url"
	"slices"

	"weir/proxy"
)

// checkRing refuses to start where requests would come back through other
// proxies of the user's, which then send them round for ever: requests pass
// unchanged, so that none of them could tell. Whoever starts last closes a ring,
// and finds the others running.
func (a *app) checkRing(ctx context.Context, at net.Addr, upstreams []proxy.Upstream) error {
	own := "http://" + reachable(at)
	all := a.runningProxies(ctx)
	for _, next := range waysOf(upstreams) {
		if r := ringFrom(all, next, own); r != nil {
			return usagef("%s is a weir (pid %d) whose requests come back here: name the endpoint that they shall go on to", next, r.Pid)
		}
	}
	return nil
}

// waysOf are the addresses that requests are sent to, without what may be
// secret in a proxy's.
func waysOf(upstreams []proxy.Upstream) []string {
	var ways []string
	for _, u := range upstreams {
		to := u.URL
		if u.Proxy != nil {
			to = u.Proxy
		}
		ways = append(ways, (&url.URL{Scheme: to.Scheme, Host: to.Host}).String())
	}
	return ways
}

// ringFrom follows an address through running proxies. It gives the proxy that
// listens there if one of its ways, or of those behind it, leads to own.
func ringFrom(all []running, address, own string) *running {
	for i := range all {
		r := &all[i]
		if !samePlace(address, r.Listen) {
			continue
		}
		others := slices.Delete(slices.Clone(all), i, i+1) // each is passed once
		for _, next := range r.Ways {
			if samePlace(next, own) || ringFrom(others, next, own) != nil {
				return r
			}
		}
	}
	return nil
}

// samePlace says whether two URLs lead to one address of this machine.
func samePlace(x, y string) bool {
	a, errA := url.Parse(x)
	b, errB := url.Parse(y)
	if errA != nil || errB != nil || a.Port() != b.Port() {
		return false
	}
	return a.Hostname() == b.Hostname() || loopback(a.Hostname()) && loopback(b.Hostname())
}
