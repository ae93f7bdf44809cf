package main

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"weir/store"
)

// admin serves a running proxy's metrics to Prometheus. It changes nothing, and
// answers no page of a browser.
type admin struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when it has ended; nil before it began
}

// openAdmin listens where --admin says; nil where it says nothing.
func (a *app) openAdmin(allowRemote bool) (*admin, error) {
	if a.telemetry.admin == "" {
		return nil, nil
	}
	l, err := listen("admin", a.telemetry.admin, allowRemote)
	if err != nil {
		return nil, err
	}
	return &admin{listener: l}, nil
}

// serve begins to serve. With a token, each reader must bring it.
func (d *admin) serve(m *store.Metrics, token string) {
	if d == nil {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", withToken(token, m.Handler()))
	d.server = &http.Server{Handler: ownReaders(token != "", mux), ReadHeaderTimeout: controlPatience}
	d.served = make(chan struct{})
	go func() {
		defer close(d.served)
		_ = d.server.Serve(d.listener) // until it is closed
	}()
}

// close ends it.
func (d *admin) close() {
	if d == nil {
		return
	}
	d.listener.Close()
	if d.served != nil {
		d.server.Close()
		<-d.served
	}
}

// line says where the metrics are.
func (d *admin) line() string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("  metrics on http://%s/metrics\n", reachable(d.listener.Addr()))
}

// withToken lets those in who bring the token, as Prometheus does with
// authorization.credentials; all, where there is none.
func withToken(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, "weir wants its client token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ownReaders keeps pages in a browser out: those that come from elsewhere, and,
// unless the port is for other machines too, those for which a foreign name was
// made to lead here (DNS rebinding).
func ownReaders(remote bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		switch {
		case r.Header.Get("Origin") != "", r.Header.Get("Sec-Fetch-Site") == "cross-site":
			http.Error(w, "not for pages in a browser", http.StatusForbidden)
		case !remote && !loopback(host):
			http.Error(w, "ask for it by 127.0.0.1 or localhost", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
