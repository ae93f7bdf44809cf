package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"weir/proxy"
	"weir/shaper"
	"weir/store"
)

// The subjects, in the order of the table.
const (
	direct       = "direct"
	reverse      = "ReverseProxy"
	weirSubject  = "weir"
	forward      = "weir-forward" // the same, asked as a forward proxy
	nginxSubject = "nginx"
	unrecorded   = "weir-unrecorded" // it measures, and forgets
	exporting    = "weir-exporting"  // and sends spans, metrics and its log to a collector
)

// isWeir says whether a subject is weir as it is used, by whichever door.
func isWeir(name string) bool { return name == weirSubject || name == forward || name == exporting }

// subjects are those to measure, in the order of the table; all when none is
// wanted in particular.
func subjects(want []string) ([]string, error) {
	all := []string{direct, reverse, weirSubject, forward, unrecorded, exporting, nginxSubject}
	for _, name := range want {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("no subject %q: want some of %s", name, strings.Join(all, ", "))
		}
	}
	if len(want) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return name != direct && name != reverse && !slices.Contains(want, name)
	}), nil
}

// subject is what stands between the load client and the origin.
type subject struct {
	name string
	url  string
	via  bool // as a proxy: requests name the origin
	*process
}

func (b *bench) startSubject(name string) (subject, error) {
	s := subject{name: name, url: b.origin.url}
	var err error
	switch name {
	case direct:
		return s, nil
	case reverse:
		s.process, err = startRole("reverseproxy", b.origin.url)
	case weirSubject, forward:
		s.via = name == forward
		s.process, err = b.startWeir()
	case unrecorded:
		s.process, err = startRole("unrecorded", b.origin.url)
	case exporting:
		s.process, err = b.startWeir("OTEL_EXPORTER_OTLP_ENDPOINT=" + b.collector.url)
	case nginxSubject:
		return b.startNginx()
	}
	if err != nil {
		return s, err
	}
	s.url, err = s.address()
	if err == nil {
		s.process.drain()
	}
	return s, err
}

// startWeir starts weir as a user does, recording into a database of its own.
func (b *bench) startWeir(env ...string) (*process, error) {
	db := filepath.Join(b.dir, fmt.Sprintf("weir-%d.db", len(b.databases)))
	b.databases = append(b.databases, db)
	if b.profile != "" {
		profile := b.profile
		if len(b.databases) > 1 {
			profile = os.DevNull // that of the rounds is written
		}
		return startRole("weir", b.origin.url, db, profile)
	}
	cmd := exec.Command(b.weir, "proxy", "--upstream", b.origin.url, "--listen", "127.0.0.1:0", "--db", db)
	cmd.Env = append(os.Environ(), env...)
	return startProcess(cmd)
}

// seldom is about how seldom weir proxy has the garbage of some hundred streams
// collected, in percent of what is in use.
const seldom = 300

// serveUnrecorded assembles a weir that measures each call and writes nothing
// down: what recording costs is told from it.
func serveUnrecorded(target string, in io.Reader, out io.Writer) error {
	upstream, err := url.Parse(target)
	if err != nil {
		return err
	}
	debug.SetGCPercent(seldom)
	p := &proxy.Proxy{
		Upstreams: []proxy.Upstream{{Name: "origin", URL: upstream}}, Forward: &proxy.Forward{}, Shaper: &shaper.Shaper{},
		Fingerprint: func(key string) string { sum := sha256.Sum256([]byte(key)); return hex.EncodeToString(sum[:4]) },
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	fmt.Fprintf(out, "%shttp://%s\n", listening, l.Addr())
	_, _ = io.Copy(io.Discard, in) // ends with the benchmark
	p.Close()
	return <-served
}

// serveWeir assembles what weir proxy does, under the CPU profiler.
func serveWeir(args []string, in io.Reader, out io.Writer) error {
	upstream, err := url.Parse(args[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, args[1], store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	tracing, err := store.NewTracing(ctx, db, store.TracingOptions{Env: os.LookupEnv})
	if err != nil {
		return err
	}
	p := &proxy.Proxy{
		Upstreams: []proxy.Upstream{{Name: "origin", URL: upstream}}, Forward: &proxy.Forward{},
		Tracer: tracing.Provider.Tracer("weir"),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	profile, err := os.Create(args[2])
	if err != nil {
		return err
	}
	defer profile.Close()
	if err := pprof.StartCPUProfile(profile); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	fmt.Fprintf(out, "%shttp://%s\n", listening, l.Addr())
	_, _ = io.Copy(io.Discard, in) // ends with the benchmark
	p.Close()
	pprof.StopCPUProfile()
	return errors.Join(<-served, tracing.Shutdown(ctx))
}

// nginxConf passes streams on without holding them back, and keeps its
// connections to the origin.
const nginxConf = `
daemon off;
worker_processes auto;
worker_rlimit_nofile 20000;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 9000; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi; scgi_temp_path %[1]s/scgi; uwsgi_temp_path %[1]s/uwsgi;
  upstream origin { server %[2]s; keepalive 4096; }
  server {
    listen %[3]s;
    keepalive_requests 1000000;
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`

// startNginx starts nginx on a port that was free a moment ago.
func (b *bench) startNginx() (subject, error) {
	s := subject{name: nginxSubject}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	at := l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp(b.dir, "nginx")
	if err != nil {
		return s, err
	}
	// The workers may run as a user of their own.
	if err := errors.Join(os.Chmod(b.dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return s, err
	}
	origin, err := url.Parse(b.origin.url)
	if err != nil {
		return s, err
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, origin.Host, at), 0o644); err != nil {
		return s, err
	}
	if s.process, err = startProcess(exec.Command(b.nginx, "-c", conf, "-p", dir)); err != nil {
		return s, err
	}
	s.process.drain()
	s.url = "http://" + at
	for range 100 {
		resp, err := http.Post(s.url, "", nil)
		if err == nil {
			resp.Body.Close()
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return s, fmt.Errorf("nginx does not listen: %s", s.err)
}
