package proxy

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/elazarl/goproxy"
)

// The doors by which calls come.
const (
	doorReverse = "reverse" // weir was named as the endpoint
	doorForward = "forward" // as a proxy, with the whole URL
	doorConnect = "connect" // as a proxy, through a tunnel that weir opened
)

// Forward makes weir a forward proxy too, on the same port: calls to the hosts
// that are measured go through the same core as those of the reverse door, and
// everything else passes unseen.
type Forward struct {
	// Hosts are globs of the names of hosts whose calls are measured, beside
	// the upstreams' own; those of KnownHosts when nil.
	Hosts []string
	// Authority gives the certificates that weir shows in place of a measured
	// host's, and is asked for when the first one is needed.
	Authority func() (Certifier, error)
	// CAFile and Proxy are for the way to hosts that are no upstream's, as in
	// Upstream.
	CAFile string
	Proxy  *url.URL
}

// Certifier gives a certificate for a host.
type Certifier interface {
	Certificate(host string) (*tls.Certificate, error)
}

// KnownHosts are globs of the hosts on which providers serve their models.
func KnownHosts() []string {
	return []string{
		"api.anthropic.com", "api.openai.com", "chatgpt.com", "*.openai.azure.com", "*.services.ai.azure.com",
		"generativelanguage.googleapis.com", "*aiplatform.googleapis.com", "cloudcode-pa.googleapis.com",
		"openrouter.ai", "api.mistral.ai", "api.groq.com", "api.x.ai", "api.deepseek.com", "api.together.xyz",
		"api.fireworks.ai", "api.perplexity.ai", "api.cohere.com", "api.moonshot.cn", "api.moonshot.ai",
		"open.bigmodel.cn", "api.z.ai", "api.minimax.chat", "api.siliconflow.cn", "dashscope*.aliyuncs.com",
		"ark.*.volces.com",
	}
}

// forwardDoor is the forward proxy at work.
type forwardDoor struct {
	p        *Proxy
	hosts    []string
	direct   Upstream // the way to hosts that are no upstream's
	goproxy  *goproxy.ProxyHttpServer
	tunnels  *http.Server // serves what comes through tunnels that weir opened
	conns    handedOver
	serving  sync.Once
	refusals sync.Map // hosts for which a client did not accept weir's certificate
}

var errNoForward = errors.New("weir does not carry requests as a forward proxy here: point the tool's base URL at weir, and take weir out of HTTP_PROXY and HTTPS_PROXY")

func (p *Proxy) openForward() (*forwardDoor, error) {
	d := &forwardDoor{p: p, conns: handedOver{conns: make(chan net.Conn), closed: make(chan struct{})}}
	if p.Forward == nil {
		return d, nil
	}
	if d.hosts = p.Forward.Hosts; d.hosts == nil {
		d.hosts = KnownHosts()
	}
	for _, glob := range d.hosts {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("measured host %q: not a pattern of host names; want one as *.example.com", glob)
		}
	}
	d.direct = Upstream{Name: "elsewhere", URL: &url.URL{}, CAFile: p.Forward.CAFile, Proxy: p.Forward.Proxy}
	if err := d.direct.open(p.dial); err != nil {
		return nil, err
	}
	d.goproxy = goproxy.NewProxyHttpServer()
	d.goproxy.Logger = log.New(logWriter{p.Log}, "", 0)
	d.goproxy.ConnectDial = nil // goproxy would read HTTPS_PROXY, where weir itself may stand
	d.goproxy.ConnectDialWithReq = d.dialUnseen
	d.goproxy.OnRequest().HandleConnectFunc(d.connect)
	d.tunnels = p.newServer(http.HandlerFunc(d.serveTunnelled))
	d.tunnels.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		return context.WithValue(ctx, tunnelKey{}, c.(*opened).to)
	}
	return d, nil
}

// ServeHTTP takes a request whose sender sees a forward proxy in weir.
func (d *forwardDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodConnect && d.own(r, r.URL.Host):
		d.p.serve(w, r) // a proxy variable caught what was meant for the reverse door
		return
	case d.goproxy == nil:
		http.Error(w, errNoForward.Error(), http.StatusNotImplemented)
		return
	case !d.admitted(r):
		w.Header().Set("Proxy-Authenticate", `Basic realm="weir"`)
		http.Error(w, "weir wants its client token as the password of the proxy: http://weir:TOKEN@HOST:PORT", http.StatusProxyAuthRequired)
		return
	case r.Method != http.MethodConnect && (r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Hostname() == ""):
		http.Error(w, "weir carries requests to http://HOST and https://HOST", http.StatusBadRequest)
		return
	case r.Method != http.MethodConnect:
		user, _ := credentials(r)
		d.p.carry(w, r, doorForward, &url.URL{Scheme: r.URL.Scheme, User: url.User(user), Host: r.URL.Host})
		return
	case r.ProtoMajor != 1: // the connection is shared with other requests
		http.Error(w, "weir opens tunnels over HTTP/1.1 only", http.StatusNotImplemented)
		return
	}
	d.goproxy.ServeHTTP(wholeHijack{w}, r)
}

// admitted says whether a request may use the forward proxy: the client token
// comes as any proxy's password does, or as it comes in the reverse door.
func (d *forwardDoor) admitted(r *http.Request) bool {
	_, password := credentials(r)
	return d.p.admitted(r) || subtle.ConstantTimeCompare([]byte(password), []byte(d.p.ClientToken)) == 1
}

// credentials are the user and password in the proxy's URL as the client has
// it. The password is the client token; the user may name what calls belong
// to, as the beginning of a path does in the reverse door: s/refactor/r/7f3a.
func credentials(r *http.Request) (user, password string) {
	scheme, value, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	value = strings.TrimSpace(value)
	if !strings.EqualFold(scheme, "basic") {
		return "", value
	}
	plain, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return "", ""
	}
	user, password, _ = strings.Cut(string(plain), ":")
	return user, password
}

// own says whether a host and port are those that a request came to.
func (d *forwardDoor) own(r *http.Request, address string) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host, port := splitAddress(address, "80")
	if port != fmt.Sprint(at.Port) {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.Equal(at.IP) || ip.IsLoopback() && at.IP.IsLoopback())
}

// splitAddress gives the host and port of an address that may lack its port.
func splitAddress(address, port string) (host, p string) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		host, p = strings.Trim(address, "[]"), port
	}
	return strings.ToLower(strings.TrimSuffix(host, ".")), p
}

// measures says whether calls to an origin are measured.
func (d *forwardDoor) measures(origin *url.URL) bool {
	if d.upstream(origin) != nil {
		return true
	}
	host, _ := splitAddress(origin.Host, "")
	return matches(d.hosts, host)
}

func matches(globs []string, name string) bool {
	for _, glob := range globs {
		if ok, err := path.Match(glob, name); ok && err == nil {
			return true
		}
	}
	return false
}

// upstream finds the upstream that stands for an origin; nil when none does.
func (d *forwardDoor) upstream(origin *url.URL) *Upstream {
	host, port := splitAddress(origin.Host, defaultPort(origin.Scheme))
	for _, u := range d.p.upstreams {
		at, itsPort := splitAddress(u.URL.Host, defaultPort(u.URL.Scheme))
		if host == at && port == itsPort || matches(u.Hosts, host) {
			return u
		}
	}
	return nil
}

func defaultPort(scheme string) string {
	if scheme == "https" || scheme == "wss" {
		return "443"
	}
	return "80"
}

// route gives the upstream of a call to an origin, and whether it is another
// endpoint in the origin's place, whose base path the call's is joined to.
func (d *forwardDoor) route(origin *url.URL) (u *Upstream, elsewhere bool) {
	if u := d.upstream(origin); u != nil {
		host, _ := splitAddress(origin.Host, "")
		return u, matches(u.Hosts, host)
	}
	host, _ := splitAddress(origin.Host, "")
	direct := d.direct
	direct.Name, direct.URL = host, origin
	return &direct, false
}
