package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// BenchmarkHandshakeThroughTheForwardDoor is what a client waits before its
// first request: the CONNECT and the TLS handshake with weir's own certificate,
// which is signed at the first one of a host and used again at the others.
func BenchmarkHandshakeThroughTheForwardDoor(b *testing.B) {
	authority, err := OpenAuthority(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	u, _ := url.Parse("http://127.0.0.1:1")
	p := &Proxy{Upstreams: []Upstream{{URL: u, Hosts: []string{"*.provider.test"}}},
		Forward: &Forward{Authority: func() (Certifier, error) { return authority, nil }}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	defer func() { p.Close(); <-served }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	shake := func(b *testing.B, host string) {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
		if resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, 39)), &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
			b.Fatal(resp, err)
		}
		if err := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: roots}).Handshake(); err != nil {
			b.Fatal(err)
		}
	}
	hosts := 0
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			hosts++
			shake(b, fmt.Sprintf("host-%d.provider.test", hosts))
		}
	})
	b.Run("later", func(b *testing.B) {
		for b.Loop() {
			shake(b, "host-1.provider.test")
		}
	})
}
