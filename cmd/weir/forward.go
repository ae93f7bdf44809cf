package main

import (
	"net/url"
	"path/filepath"
	"sync"

	"weir/proxy"
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

// caFolder is where weir's certificate authority is.
func caFolder(env environment) (string, error) {
	path, err := store.DefaultPath(env)
	if err != nil {
		return "", usage(err)
	}
	return filepath.Join(filepath.Dir(path), "ca"), nil
}
