package proxy

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"
)

const dialTimeout = 30 * time.Second

// errLoop is why weir does not connect to itself: each request would be sent
// again and again, until nothing is left to send it with.
var errLoop = errors.New("that is weir's own address")

// dial makes every connection of the proxy's, and none to itself.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err == nil && p.isOwn(conn) {
		conn.Close()
		return nil, errLoop
	}
	return conn, err
}

// isOwn says whether a connection leads to where the proxy listens.
func (p *Proxy) isOwn(conn net.Conn) bool {
	at := p.listening.Load()
	to, ok := conn.RemoteAddr().(*net.TCPAddr)
	from, local := conn.LocalAddr().(*net.TCPAddr)
	if at == nil || !ok || !local || to.Port != at.Port {
		return false
	}
	// Whoever listens everywhere is reached at each address of the machine's.
	return at.IP.Equal(to.IP) || at.IP.IsUnspecified() && (to.IP.IsLoopback() || to.IP.Equal(from.IP))
}

var errWebPage = errors.New("weir holds the key here, and does not lend it to web pages: let the program send requests to 127.0.0.1 itself, or give weir a client token")

// fromAWebPage says whether a request may come from a page of somebody else's
// in a browser on this machine: under a foreign name that leads here, or across
// sites. With a client token it does not matter, since no page knows it.
func (x *exchange) fromAWebPage() bool {
	if x.origin != nil || x.p.ClientToken != "" {
		return false
	}
	if host, _ := splitAddress(x.r.Host, ""); !loopbackName(host) {
		return true
	}
	if x.r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return true
	}
	from := x.r.Header.Get("Origin")
	if from == "" {
		return false
	}
	u, err := url.Parse(from)
	return err != nil || !loopbackName(u.Hostname())
}

func loopbackName(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
