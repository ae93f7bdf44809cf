package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"weir/proxy/wire"
	"weir/store/call"
	"weir/store/report"
)

// visit is an examination of one endpoint, step by step.
type visit struct {
	a         *app
	f         doctorFlags
	target    *url.URL // the base URL, mended where the API was found elsewhere
	asked     bool     // --api says which must work
	roots     *x509.CertPool
	transport *http.Transport
	keys      wallet

	models []string // that the endpoint lists, in its order
	works  bool     // at least one API does, and all that must
}

// connectFor is the longest time of each step before the first request.
const connectFor = 10 * time.Second

func (a *app) newVisit(target *url.URL, f doctorFlags) (*visit, error) {
	v := &visit{a: a, f: f, target: target, asked: len(f.apis) > 0, keys: wallet{env: a.env, keyEnv: f.keyEnv, target: target}}
	if f.caFile != "" {
		pem, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, usagef("--ca-file: %w", err)
		}
		if v.roots, err = x509.SystemCertPool(); err != nil {
			v.roots = x509.NewCertPool()
		}
		if !v.roots.AppendCertsFromPEM(pem) {
			return nil, usagef("--ca-file %s: holds no PEM certificate", f.caFile)
		}
	}
	v.transport = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectFor}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: v.roots},
		TLSHandshakeTimeout: connectFor,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
	}
	if f.upstreamProxy != "" {
		way, err := url.Parse(f.upstreamProxy)
		if err != nil || way.Host == "" {
			return nil, usagef("--upstream-proxy: not a URL; want http://HOST:PORT")
		}
		v.transport.Proxy = http.ProxyURL(way)
	}
	return v, nil
}

// apis are those that are looked for.
func (v *visit) apis() []wire.API {
	if v.asked {
		var apis []wire.API
		for _, name := range v.f.apis {
			apis = append(apis, wire.API(name))
		}
		return apis
	}
	for _, p := range vendors {
		if p.name == hostOwner(v.target.Hostname()) {
			return p.apis
		}
	}
	return examined
}

// examine goes all the way to the endpoint. It stops at the first step without
// which none of the others can be taken.
func (v *visit) examine(ctx context.Context, d *diagnosis) error {
	found, reached := v.reach(ctx)
	if reached {
		var more []report.Finding
		more, reached = v.locate(ctx)
		found = append(found, more...)
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	for _, name := range v.keys.held {
		found = append(found, report.Finding{Mark: report.Skipped, Cells: []string{name, "not sent"},
			Notes: []string{fmt.Sprintf("It is plainly not a key for %s; --key-env %s sends it all the same.", v.target.Hostname(), name)}})
	}
	d.section("endpoint "+v.target.String(), nil, found)
	if !reached {
		return nil
	}
	if v.f.dryRun {
		d.section("what it speaks (nothing was asked of a model)", []string{"api", "status", "verdict"}, v.speaks(ctx))
		v.works = d.bad == 0
	} else {
		d.section("requests", probeHeads, v.probe(ctx))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// reach looks the name up, connects, and shakes hands.
func (v *visit) reach(ctx context.Context) (found []report.Finding, ok bool) {
	host, address := v.target.Hostname(), hostPort(v.target)
	if v.f.upstreamProxy != "" {
		return []report.Finding{{Mark: report.Skipped, Cells: []string{"connection", "by " + bareURL(v.f.upstreamProxy) + ", which looks the name up and connects"}}}, true
	}
	good := func(what, format string, a ...any) {
		found = append(found, report.Finding{Cells: []string{what, fmt.Sprintf(format, a...)}})
	}
	stepFor, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	if net.ParseIP(host) == nil {
		began := time.Now()
		addresses, err := net.DefaultResolver.LookupHost(stepFor, host)
		if err != nil {
			return append(found, v.noWay("dns", err)), false
		}
		good("dns", "%s in %s: %s", counted(len(addresses), "address"), tenths(time.Since(began)), strings.Join(addresses, ", "))
	}
	began := time.Now()
	conn, err := (&net.Dialer{}).DialContext(stepFor, "tcp", address)
	if err != nil {
		return append(found, v.noWay("tcp", err)), false
	}
	defer conn.Close()
	good("tcp", "%s in %s", conn.RemoteAddr(), tenths(time.Since(began)))
	if v.target.Scheme == "http" {
		if !loopback(host) {
			found = append(found, report.Finding{Mark: report.Odd, Cells: []string{"tls", "none"}, What: "Keys and prompts can be read by whoever carries them.", Next: "Use https:// if the endpoint has it."})
		}
		return found, true
	}
	began = time.Now()
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: v.roots, NextProtos: []string{"h2", "http/1.1"}})
	if err := secure.HandshakeContext(stepFor); err != nil {
		return append(found, v.noWay("tls", err)), false
	}
	return append(found, certificate(secure.ConnectionState(), time.Since(began))), true
}

// soonExpired is when a certificate's end is worth a word.
const soonExpired = 7 * 24 * time.Hour

// certificate tells of the certificate and how long it holds.
func certificate(s tls.ConnectionState, took time.Duration) report.Finding {
	c := s.PeerCertificates[0]
	by := c.Issuer.CommonName
	if len(c.Issuer.Organization) > 0 {
		by = c.Issuer.Organization[0]
	}
	left := time.Until(c.NotAfter)
	f := report.Finding{Cells: []string{"tls", fmt.Sprintf("%s in %s, certificate by %s, %s left", tls.VersionName(s.Version), tenths(took), by, counted(int(left/(24*time.Hour)), "day"))}}
	if left < soonExpired {
		f.Mark, f.What, f.Next = report.Odd, "The certificate ends soon.", "See that it is renewed before "+c.NotAfter.Format("2006-01-02")+"."
	}
	return f
}

// noWay explains a step before the first request that failed.
func (v *visit) noWay(step string, err error) report.Finding {
	c := v.call("", wire.OpOther, http.MethodGet, v.target)
	call.NewMeter(c, nil).End(call.EndUnreachable, err, call.Now())
	what, next := c.Explain()
	return report.Finding{Mark: report.Bad, Cells: []string{step, c.ErrorType}, Notes: []string{call.Redact(short(err).Error())}, What: what, Next: next}
}

// call begins the record of a request, as the proxy would keep it.
func (v *visit) call(api wire.API, op wire.Operation, method string, u *url.URL) *call.Call {
	_, port, _ := net.SplitHostPort(hostPort(u))
	n, _ := strconv.Atoi(port)
	return &call.Call{Side: call.Client, API: api, Operation: op, Host: u.Hostname(), Port: n, Method: method, Path: u.Path, Instants: call.Instants{Arrived: call.Now()}}
}

// reply is a whole answer to a request that no model answers.
type reply struct {
	call   *call.Call
	header http.Header
	body   []byte
	skew   time.Duration // the endpoint's clock against this one
	dated  bool          // it told its time
}

// askFor is the longest time of a request that no model answers.
const askFor = 15 * time.Second

// mostRead is how much of a list of models is read.
const mostRead = 8 << 20

// ask sends a request that costs nothing and reads its answer whole. Errors of
// the connection are in the call, as its outcome.
func (v *visit) ask(ctx context.Context, method string, u *url.URL, api wire.API, key credential, body string) *reply {
	ctx, cancel := context.WithTimeout(ctx, min(v.f.timeout, askFor))
	defer cancel()
	r := &reply{call: v.call(api, wire.OpModels, method, u)}
	meter := call.NewMeter(r.call, wire.For(api))
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		meter.End(call.EndUnreachable, err, call.Now())
		return r
	}
	v.head(req, r.call, key)
	began := time.Now()
	resp, err := v.transport.RoundTrip(req)
	if err != nil {
		how := call.EndUnreachable
		if ctx.Err() != nil {
			how = call.EndTimeout
		}
		meter.End(how, innermost(err), call.Now())
		return r
	}
	defer resp.Body.Close()
	meter.Begin(resp.StatusCode, resp.Header, call.Now())
	r.header = resp.Header
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && resp.Header.Get("Age") == "" {
		now := began.Add(time.Since(began) / 2)
		r.skew, r.dated = date.Add(500*time.Millisecond).Sub(now), true
	}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, mostRead))
	meter.Observe(r.body, call.Now(), 0)
	how := call.EndClean
	if err != nil {
		how = call.EndBroken
	}
	meter.End(how, err, call.Now())
	return r
}

// head writes what every request has, and its key.
func (v *visit) head(req *http.Request, c *call.Call, key credential) {
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "weir-doctor")
	if token, _ := v.a.env("WEIR_CLIENT_TOKEN"); token != "" && sameHost(v.f.proxy, req.URL) {
		h.Set("X-Weir-Token", token)
	}
	if c.API == wire.Messages {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	key.put(h)
	if key.key != "" {
		c.KeyFingerprint = "sent" // Explain asks whether any was
	}
}

// advised is what a call's explanation says, with the name of the variable
// that the key came from.
func advised(c *call.Call, key credential) (what, next string) {
	what, next = c.Explain()
	if key.variable == "" {
		return what, next
	}
	for _, p := range vendors {
		for _, name := range p.keys {
			next = strings.Replace(next, "whether "+name+" holds", "whether "+key.variable+" holds", 1)
		}
	}
	return what, next
}

// innermost is an error without the URL around it.
func innermost(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
