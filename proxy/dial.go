package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dialUnseen connects a tunnel that weir does not look into. It ends with the
// proxy at the latest.
func (d *forwardDoor) dialUnseen(_ *http.Request, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.p.stopping, dialTimeout)
	defer cancel()
	conn, err := d.p.dialThrough(ctx, d.p.Forward.Proxy, address)
	if err != nil {
		return nil, fmt.Errorf("weir could not reach %s: %w", address, err)
	}
	context.AfterFunc(d.p.stopping, func() { conn.Close() })
	return conn, nil
}

// dialThrough connects to an address, by way of a proxy if there is one.
func (p *Proxy) dialThrough(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	if via == nil {
		return p.dial(ctx, "tcp", address)
	}
	host, port := splitAddress(via.Host, defaultPort(via.Scheme))
	conn, err := p.dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: host})
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		req.SetBasicAuth(via.User.Username(), password)
		req.Header["Proxy-Authorization"] = req.Header["Authorization"]
		delete(req.Header, "Authorization")
	}
	// Nothing comes behind the answer's head before the tunnel is used, so no
	// byte of the tunnel is in the reader.
	answer, err := askProxy(conn, req)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy %s answered %s", via.Host, answer.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

func askProxy(conn net.Conn, req *http.Request) (*http.Response, error) {
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(conn), req)
}
