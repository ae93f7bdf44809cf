package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// listen opens the address that a command serves on. Anything but loopback
// needs allowRemote: what weir forwards carries the caller's keys.
func listen(addr string, allowRemote bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--listen %s: want HOST:PORT, as 127.0.0.1:8484", addr)
	}
	if !allowRemote && !loopback(host) {
		return nil, usagef("--listen %s: others could reach it there; listen on 127.0.0.1, or say --allow-remote", addr)
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is taken; choose another with --listen, or end what holds it (ss -ltnp shows it)", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not allowed; choose a port above 1023 with --listen", addr)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", addr, err)
}

// loopback says whether a host is this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
