package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// listen opens the address that a command serves on. Anything but loopback
// needs allowRemote: what weir forwards carries the caller's keys. flag is the one
// that says where.
func listen(flag, addr string, allowRemote bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--%s %s: want HOST:PORT, as 127.0.0.1:8484", flag, addr)
	}
	if !allowRemote && !loopback(host) {
		return nil, usagef("--%s %s: others could reach it there; listen on 127.0.0.1, or say --allow-remote", flag, addr)
	}
	network := "tcp"
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
		network = "tcp4" // 0.0.0.0 alone would be IPv6's addresses too
	}
	l, err := net.Listen(network, addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is taken; choose another with --%s, or end what holds it (ss -ltnp shows it)", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not allowed; choose a port above 1023 with --%s", addr, flag)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, fmt.Errorf("listen on %s: %w; choose another address with --%s", addr, err, flag)
}

// loopback says whether a host is this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
