package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
)

// tunnelKey is where a request's context has the origin of its tunnel; nil for
// weir itself.
type tunnelKey struct{}

// connect decides about a tunnel.
func (d *forwardDoor) connect(address string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
	r := ctx.Req
	if d.own(r, address) {
		return d.hijack(nil), address
	}
	host, port := splitAddress(address, "443")
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" || address != r.RequestURI {
		ctx.Resp = goproxy.NewResponse(r, "text/plain; charset=utf-8", http.StatusBadRequest, "CONNECT wants HOST:PORT\n")
		return goproxy.RejectConnect, address
	}
	user, _ := credentials(r)
	origin := &url.URL{Scheme: "https", User: url.User(user), Host: net.JoinHostPort(host, port)}
	if port == "443" {
		origin.Host = strings.TrimSuffix(origin.Host, ":443")
	}
	if !d.measures(origin) || d.p.Forward.Authority == nil {
		return goproxy.OkConnect, net.JoinHostPort(host, port)
	}
	return d.hijack(origin), address
}

// hijack opens a tunnel at weir: what comes through it is served as if it had
// come to the origin, or, where that is nil, to weir itself.
func (d *forwardDoor) hijack(origin *url.URL) *goproxy.ConnectAction {
	return &goproxy.ConnectAction{Action: goproxy.ConnectHijack, Hijack: func(_ *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
		if err := d.open(client, origin); err != nil {
			client.Close()
			d.p.Log.Debug("a tunnel ended before it was open", "host", origin, "error", err)
		}
	}}
}

const handshakeTimeout = 15 * time.Second

// open answers a CONNECT and hands the connection over to the server.
func (d *forwardDoor) open(client net.Conn, origin *url.URL) error {
	unhook := context.AfterFunc(d.p.stopping, func() { client.Close() })
	defer unhook()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	in := bufio.NewReaderSize(client, 1<<10)
	_ = client.SetDeadline(time.Now().Add(handshakeTimeout))
	first, err := in.Peek(1)
	if err != nil {
		return err
	}
	conn := net.Conn(&opened{Conn: client, in: in, to: origin})
	const tlsHandshake = 0x16
	if first[0] == tlsHandshake && origin != nil {
		if conn, err = d.handshake(conn, origin); err != nil {
			return err
		}
	} else if origin != nil {
		plain := *origin
		plain.Scheme = "http"
		conn.(*opened).to = &plain
	}
	_ = client.SetDeadline(time.Time{})
	d.serving.Do(func() { go d.tunnels.Serve(&d.conns) }) //nolint:errcheck // it ends when the proxy does
	return d.conns.add(conn)
}

// handshake shows the client weir's own certificate of a host.
func (d *forwardDoor) handshake(conn net.Conn, origin *url.URL) (net.Conn, error) {
	authority, err := d.p.Forward.Authority()
	if err != nil {
		d.p.note("weir has no certificates to measure with, so nothing that comes through HTTPS_PROXY is: "+err.Error(), "host", origin.Host)
		return nil, err
	}
	secure := tls.Server(conn, &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name := hello.ServerName
			if name == "" || !d.measures(&url.URL{Scheme: "https", Host: name}) {
				name, _ = splitAddress(origin.Host, "")
			}
			return authority.Certificate(name)
		},
	})
	if err := secure.HandshakeContext(d.p.stopping); err != nil {
		if _, told := d.refusals.LoadOrStore(origin.Host, true); !told {
			d.p.Log.Warn("a client did not accept weir's certificate, so its calls fail: give it weir's CA, as weir ca shows", "host", origin.Host, "error", err)
		}
		return nil, err
	}
	return secure, nil
}

// serveTunnelled takes a request that came through a tunnel.
func (d *forwardDoor) serveTunnelled(w http.ResponseWriter, r *http.Request) {
	origin, _ := r.Context().Value(tunnelKey{}).(*url.URL)
	if origin == nil {
		d.p.serve(w, r)
		return
	}
	d.p.carry(w, r, doorConnect, origin)
}

// opened is a connection that a CONNECT opened at weir.
type opened struct {
	net.Conn
	in *bufio.Reader
	to *url.URL // nil: weir itself
}

func (c *opened) Read(b []byte) (int, error) { return c.in.Read(b) }

// CloseWrite and CloseRead close one direction, for tunnels whose ends do so.
func (c *opened) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

func (c *opened) CloseRead() error {
	if half, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return half.CloseRead()
	}
	return c.Close()
}

// handedOver is a listener of connections that came another way.
type handedOver struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *handedOver) add(c net.Conn) error {
	select {
	case l.conns <- c:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

func (l *handedOver) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *handedOver) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *handedOver) Addr() net.Addr { return &net.TCPAddr{} }

// wholeHijack hands a connection over with the bytes that came behind its
// CONNECT, which goproxy would leave behind.
type wholeHijack struct{ http.ResponseWriter }

func (w wholeHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || rw.Reader.Buffered() == 0 {
		return conn, rw, err
	}
	return &opened{Conn: conn, in: rw.Reader}, bufio.NewReadWriter(bufio.NewReader(conn), rw.Writer), nil
}
