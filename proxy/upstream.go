package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
)

// Upstream is an endpoint that calls are sent on to.
type Upstream struct {
	Name   string   // weir's name for it; the host when empty
	URL    *url.URL // http or https, with any base path
	Prefix string   // requests below this path are its own, and lose it; empty: none
	Models []string // requests for models that match one of these globs are its own
	Hosts  []string // a forward proxy's calls to hosts that match one of these globs are its own
	CAFile string   // PEM certificates to trust beside the system's; empty: none
	Proxy  *url.URL // a proxy on the way to it; nil: none, whatever the environment says

	// Keys are sent in the place of the clients' own, which may then be
	// anything; calls are spread over them. None: the clients' keys pass.
	Keys []Secret

	// Verbatim joins paths to URL as they come: the base URL that the client was
	// given stands for this very one, and nothing needs to be mended.
	Verbatim bool

	transport *http.Transport
	keyring   *keyring
}

// open prepares the upstream's transport, whose connections dial makes.
func (u *Upstream) open(dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	if u.Name == "" {
		u.Name = u.URL.Hostname()
	}
	t := &http.Transport{
		// The sidecar must not find itself behind a proxy variable, and a body
		// passes as it is.
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second,
		DialContext:         dial,
		// As long as clients wait who ask before they send a body. Of one that
		// weir has to read to know where it goes, the caller was told to go on.
		ExpectContinueTimeout: time.Second,
		// Less than net/http's own: an open stream holds one of each, and longer
		// reads and writes go past them. Most requests' heads fit.
		ReadBufferSize:  2 << 10,
		WriteBufferSize: 1 << 10,
		// A connection on which nothing comes back is found dead by a ping,
		// while a model may think in silence for as long as it likes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if u.Proxy != nil {
		t.Proxy = http.ProxyURL(u.Proxy)
	}
	if u.CAFile != "" {
		roots, err := trust(u.CAFile)
		if err != nil {
			return fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	u.transport, u.keyring = t, newKeyring(u.Keys)
	return nil
}

func trust(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the CA file: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s: holds no PEM certificate", file)
	}
	return roots, nil
}

// host and port of the endpoint, as telemetry names them.
func (u *Upstream) address() (host string, port int) {
	port, _ = strconv.Atoi(u.URL.Port())
	if port == 0 {
		if port = 443; u.URL.Scheme == "http" {
			port = 80
		}
	}
	return u.URL.Hostname(), port
}

// choose finds the upstream of a request: by path prefix first, which is
// taken off, then by model, else the first one that wants no particular model. It
// is nil when there is no upstream at all.
func choose(all []*Upstream, escaped, model string) (u *Upstream, rest string) {
	for _, u := range all {
		if u.Prefix != "" && below(escaped, u.Prefix) {
			return u, strings.TrimPrefix(escaped, u.Prefix)
		}
	}
	var general *Upstream
	for _, u := range all {
		if u.Prefix != "" {
			continue
		}
		for _, glob := range u.Models {
			if ok, err := path.Match(glob, model); ok && err == nil {
				return u, escaped
			}
		}
		if general == nil && len(u.Models) == 0 {
			general = u
		}
	}
	if general == nil && len(all) > 0 {
		general = all[0]
	}
	return general, escaped
}

// errModelUnseen is why a request goes nowhere: its model decides where it may
// go, and with it the caller's key.
var errModelUnseen = errors.New(`no "model" stands in what weir reads of this request, each --upstream is for particular models, and none may be sent another one's key; put "model" before "messages" in the body, or raise --hold-body`)

// astray says whether choose fell back on an upstream for other models, for a
// request of whose model nobody knows.
func astray(u *Upstream, model string) bool {
	return u != nil && model == "" && u.Prefix == "" && len(u.Models) > 0
}

// below says whether a path lies at or under a prefix.
func below(escaped, prefix string) bool {
	rest, ok := strings.CutPrefix(escaped, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// isVersion says whether a segment of a path is an API's version: v1, v1beta,
// v2alpha3.
func isVersion(segment string) bool {
	digits, ok := strings.CutPrefix(segment, "v")
	rest := strings.TrimLeft(digits, "0123456789")
	if !ok || rest == digits {
		return false
	}
	for _, stage := range []string{"alpha", "beta"} {
		if after, ok := strings.CutPrefix(rest, stage); ok {
			rest = strings.TrimLeft(after, "0123456789")
			break
		}
	}
	return rest == ""
}

// target joins the upstream's base path and a request's.
func (u *Upstream) target(escaped string, route wire.Route) (joined, note string) {
	if u.Verbatim {
		return strings.TrimRight(u.URL.EscapedPath(), "/") + escaped, ""
	}
	return JoinPath(u.URL, escaped, route)
}

// JoinPath puts a request's path, which is escaped as the result is, behind a
// base URL's, as the proxy does. Base URLs come with and without the API's
// version, and people mix them up: for the paths that weir knows, the version
// stands there once, whoever gave it. Of a path that it does not know, only what
// is surely said twice is taken off. note says what was mended; empty when
// nothing was.
func JoinPath(to *url.URL, escaped string, route wire.Route) (joined, note string) {
	base := strings.TrimRight(to.EscapedPath(), "/")
	trimmed := strings.TrimLeft(escaped, "/")
	if len(escaped)-len(trimmed) > 1 {
		note = "the path begins with more than one slash"
	}
	segments := strings.Split(trimmed, "/")
	if route.Operation == wire.OpOther && route.API == "" {
		if last := path.Base(base); isVersion(last) && segments[0] == last {
			segments = segments[1:]
		}
		return base + "/" + strings.Join(segments, "/"), note
	}
	leading := 0
	for leading < len(segments) && isVersion(segments[leading]) {
		leading++
	}
	baseVersioned := isVersion(path.Base(base))
	switch {
	case baseVersioned && leading > 0 && route.API == wire.Gemini && segments[leading-1] != path.Base(base):
		// One gateway, several APIs: the client knows the version of its own.
		base = path.Dir(base)
		segments = segments[leading-1:]
		note = "the path names another version of the API than --upstream"
	case baseVersioned && leading > 0:
		segments = segments[leading:]
		if leading > 1 {
			note = "the path names the API's version more than once"
		}
	case leading > 1:
		segments = segments[leading-1:]
		note = "the path names the API's version more than once"
	case !baseVersioned && leading == 0 && bare(segments):
		segments = append([]string{defaultVersion(route.API)}, segments...)
		note = "the path does not name the API's version"
	}
	return strings.TrimRight(base, "/") + "/" + strings.Join(segments, "/"), note
}

// bare says whether a path is an API's own and nothing more: one behind a
// gateway's prefix is left as it is.
func bare(segments []string) bool {
	switch segments[0] {
	case "chat", "completions", "responses", "messages", "embeddings", "models":
		return true
	}
	return false
}

func defaultVersion(api wire.API) string {
	if api == wire.Gemini {
		return "v1beta"
	}
	return "v1"
}
