package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
)

// reset breaks the client's connection with a TCP reset. Over HTTP/2, where it
// carries other calls too, it does nothing: the abort that ends the request
// resets the stream.
func (x *exchange) reset() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if tcp := tcpOf(conn); tcp != nil {
		_ = tcp.SetLinger(0) // the client may have left
		tcp.Close()          // first: TLS would say goodbye
	}
}

// tcpOf is the connection below all others; nil where it is no TCP.
func tcpOf(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *net.TCPConn:
			return c
		case *tls.Conn:
			conn = c.NetConn()
		case *opened:
			conn = c.Conn
		default:
			return nil
		}
	}
}
