package main

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"weir/proxy"
)

// upstreamFlag is one --upstream: URL, or NAME=URL, with what else it says
// behind commas: prefix=/PATH, and models=GLOB, hosts=GLOB and key-env=NAME
// (several times, or apart by |).
type upstreamFlag struct {
	Name    string
	URL     *url.URL
	Prefix  string
	Models  []string
	Hosts   []string
	KeyEnvs []string
}

// upstream is the proxy's own, with the keys that the environment holds.
func (u *upstreamFlag) upstream(env environment) (proxy.Upstream, error) {
	up := proxy.Upstream{Name: u.Name, URL: u.URL, Prefix: u.Prefix, Models: u.Models, Hosts: u.Hosts}
	for _, name := range u.KeyEnvs {
		key, err := heldKey(env, name)
		if err != nil {
			return up, err
		}
		up.Keys = append(up.Keys, key)
	}
	return up, nil
}

// heldKey reads a key that weir is to hold.
func heldKey(env environment, name string) (proxy.Secret, error) {
	key, _ := env(name)
	switch {
	case key == "":
		return proxy.Secret{}, usagef("key of weir's own: $%s is empty; put the key into it, or leave --key-env out", name)
	case strings.TrimSpace(key) != key || strings.ContainsAny(key, "\"' \r\n\t"):
		return proxy.Secret{}, usagef("key of weir's own: $%s has white space or quotes in it; want the key alone", name)
	case strings.HasPrefix(strings.ToLower(key), "bearer"):
		return proxy.Secret{}, usagef("key of weir's own: $%s begins with Bearer; want the key alone", name)
	}
	return proxy.NewSecret(key), nil
}

var upstreamName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// parseUpstreams understands all --upstream flags together: names are unique,
// and several upstreams need names.
func parseUpstreams(specs []string) ([]upstreamFlag, error) {
	var all []upstreamFlag
	general := "" // the one for everything else
	names := map[string]bool{}
	for _, spec := range specs {
		u, err := parseUpstream(spec)
		if err != nil {
			return nil, err
		}
		if u.Name == "" {
			u.Name = u.URL.Hostname()
		}
		if names[u.Name] {
			return nil, usagef("--upstream %s: the name %q is taken; name it as NAME=URL", spec, u.Name)
		}
		names[u.Name] = true
		if u.Prefix == "" && len(u.Models) == 0 {
			if general != "" {
				return nil, usagef("--upstream %s: all requests would go to %s; say which are its own with ,prefix=/PATH or ,models=GLOB", spec, general)
			}
			general = u.Name
		}
		all = append(all, u)
	}
	return all, nil
}

func parseUpstream(spec string) (upstreamFlag, error) {
	parts := strings.Split(spec, ",")
	u := upstreamFlag{}
	address := parts[0]
	if name, rest, named := strings.Cut(address, "="); named && upstreamName.MatchString(name) {
		u.Name, address = name, rest
	}
	parsed, err := url.Parse(address)
	switch {
	case err != nil || parsed.Host == "" && parsed.Scheme == "":
		return u, usagef("--upstream %s: not a URL; want http://HOST or https://HOST, with the API's base path if it has one", spec)
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return u, usagef("--upstream %s: want http:// or https:// before the host", spec)
	case parsed.Host == "":
		return u, usagef("--upstream %s: the host is missing", spec)
	case parsed.User != nil:
		return u, usagef("--upstream: user and password in the URL are not sent; let the client send its key")
	case parsed.RawQuery != "" || parsed.Fragment != "":
		return u, usagef("--upstream %s://%s: a query or fragment cannot be part of a base URL; leave it out", parsed.Scheme, parsed.Host)
	}
	u.URL = parsed
	for _, option := range parts[1:] {
		key, value, _ := strings.Cut(option, "=")
		switch {
		case key == "prefix" && strings.HasPrefix(value, "/") && len(value) > 1:
			u.Prefix = strings.TrimSuffix(value, "/")
		case key == "prefix":
			return u, usagef("--upstream %s: prefix=%s: want a path that begins with /", spec, value)
		case key == "models" && value != "":
			if u.Models, err = addGlobs(u.Models, value); err != nil {
				return u, usagef("--upstream %s: models=%s: %w of model names; want one as gpt-*", spec, value, err)
			}
		case key == "hosts" && value != "":
			if u.Hosts, err = addGlobs(u.Hosts, strings.ToLower(value)); err != nil {
				return u, usagef("--upstream %s: hosts=%s: %w of host names; want one as *.example.com", spec, value, err)
			}
		case key == "key-env" && value != "":
			u.KeyEnvs = append(u.KeyEnvs, strings.Split(value, "|")...)
		default:
			return u, usagef("--upstream %s: %q is not known; want prefix=/PATH, models=GLOB, hosts=GLOB or key-env=NAME", spec, option)
		}
	}
	return u, nil
}

// addGlobs adds patterns that stand apart by |.
func addGlobs(all []string, value string) ([]string, error) {
	for _, glob := range strings.Split(value, "|") {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return nil, fmt.Errorf("%q is no pattern", glob)
		}
		all = append(all, glob)
	}
	return all, nil
}
