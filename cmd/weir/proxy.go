package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/proxy"
	"weir/proxy/client"
	"weir/shaper"
)

// proxyFlags are the flags of weir proxy.
type proxyFlags struct {
	upstreams      []string
	listen         string
	db             string
	loadModel      string
	scenario       string
	keyEnvs        []string
	forward        bool
	measure        []string
	caFile         string
	upstreamProxy  string
	grace          time.Duration
	allowRemote    bool
	clientTokenEnv string
	holdBody       int // MiB
	maxHeader      int // KiB
	keep           keepFlags
	limits         laneFlags
	usage          usageMode
	propagate      propagateFlags
	impair         impairFlags
	verbose        bool
}

func (a *app) proxyCommand() *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use:   "proxy --upstream URL",
		Short: "Stand in front of an LLM API and measure what passes",
		Long: `Listens for requests to an LLM API, sends them on as they are, passes the answers
back as they come, and records each call. Stop it with Ctrl-C: it takes no more
requests and lets the streams under way end; a second Ctrl-C ends them.

--impair makes calls worse on purpose, to see how a client copes: whose, as
scenario=agent: (any of scenario, upstream, model, key and session; all, if
nothing is said), and what befalls a share of them, each by itself. K is an event
with output, from 1, or a range 3..40. TIME is 800ms, 200ms..2s, or
lognormal(500ms,2s) by its median and 99th percentile.
` + indent(shaper.ImpairmentHelp()),
		Example: `  weir proxy --upstream https://api.anthropic.com
  weir proxy --upstream openai=https://api.openai.com,models=gpt-* \
             --upstream local=http://127.0.0.1:8000,prefix=/local
  weir proxy --upstream https://host/api --ca-file ca.pem --load-model rules.json
  weir proxy --upstream https://api.openai.com --usage inject
  weir proxy --upstream https://api.anthropic.com --keep shape
  weir proxy --upstream https://api.anthropic.com --impair 'scenario=agent: first_token+200ms..2s, 529:5%'`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runProxy(c.Context(), f) },
	}
	fl := c.Flags()
	fl.StringArrayVarP(&f.upstreams, "upstream", "u", nil, "where requests go: URL, or NAME=URL with ,prefix=/PATH, ,models=GLOB or ,key-env=NAME behind it; may be repeated")
	fl.StringVarP(&f.listen, "listen", "l", "127.0.0.1:8484", "address to listen on")
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.StringVar(&f.loadModel, "load-model", "", "load model whose match rules give requests their scenario, and whose limits and impairments hold; it is read again when it changes")
	fl.StringVar(&f.scenario, "scenario", "", "scenario of requests that nothing names; weir tag switches it (default: untagged)")
	fl.StringArrayVar(&f.keyEnvs, "key-env", nil, "variable that holds a key to send in the place of the clients' own; may be repeated, and calls are spread over them")
	fl.BoolVar(&f.forward, "forward", true, "be a forward proxy too, for tools without a base URL: see weir ca")
	fl.StringArrayVar(&f.measure, "measure", nil, "host whose calls are measured too when weir is the forward proxy, as *.example.com, beside the known providers and the upstreams' own; =HOST in the place of the known providers; may be repeated")
	fl.StringVar(&f.caFile, "ca-file", "", "PEM certificates to trust for upstreams, beside the system's")
	fl.StringVar(&f.upstreamProxy, "upstream-proxy", "", "proxy on the way to the upstreams; HTTPS_PROXY is not read")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "how long streams under way may take to end after a first Ctrl-C")
	fl.BoolVar(&f.allowRemote, "allow-remote", false, "listen on an address that others can reach; wants a client token")
	fl.StringVar(&f.clientTokenEnv, "client-token-env", "WEIR_CLIENT_TOKEN", "variable that holds the token which clients must send in X-Weir-Token")
	fl.IntVar(&f.holdBody, "hold-body", 64, "MiB of a request's body that are held to be sent again if its connection fails; a longer body passes without being held")
	fl.IntVar(&f.maxHeader, "max-header", 1024, "KiB of headers that a request may have")
	f.limits.add(fl)
	f.impair.add(fl)
	f.keep.add(fl)
	f.usage.add(fl)
	f.propagate.add(fl)
	a.telemetry.add(fl)
	fl.StringVar(&a.telemetry.admin, "admin", "", "address of a port for Prometheus, as 127.0.0.1:9484: /metrics and /healthz (default: none); where others can reach it, they need the client token")
	fl.BoolVar(&a.telemetry.native, "native-histograms", false, "have Prometheus's native histograms in /metrics, which only a Prometheus that was started with them reads")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say more of what happens")
	return c
}

// proxyUpstreams turns the flags that speak of upstreams into the proxy's own.
func (f *proxyFlags) proxyUpstreams(env environment) ([]proxy.Upstream, error) {
	if len(f.upstreams) == 0 && len(f.measure) == 0 {
		return nil, usage(&hinted{errors.New("proxy: no --upstream: where should requests go?"), "weir proxy --upstream https://api.anthropic.com"})
	}
	parsed, err := parseUpstreams(f.upstreams)
	if err != nil {
		return nil, err
	}
	way, err := f.way()
	if err != nil {
		return nil, err
	}
	if f.caFile != "" {
		if err := readable(f.caFile); err != nil {
			return nil, usagef("--ca-file: %w", err)
		}
	}
	var all []proxy.Upstream
	if len(f.keyEnvs) > 0 && len(parsed) != 1 {
		return nil, usagef("--key-env: say whose key it is: --upstream NAME=URL,key-env=%s", f.keyEnvs[0])
	}
	for _, u := range parsed {
		u.KeyEnvs = append(u.KeyEnvs, f.keyEnvs...)
		up, err := u.upstream(env)
		if err != nil {
			return nil, err
		}
		up.CAFile, up.Proxy = f.caFile, way
		all = append(all, up)
	}
	// A proxy that serves nobody finds what is wrong before anything is opened.
	if _, err := (&proxy.Proxy{Upstreams: slices.Clone(all), Forward: &proxy.Forward{Hosts: measuredHosts(f.measure)}}).Handler(); err != nil {
		return nil, usage(err)
	}
	return all, nil
}

// way is the proxy on the way to the upstreams; nil when there is none.
func (f *proxyFlags) way() (*url.URL, error) {
	if f.upstreamProxy == "" {
		return nil, nil
	}
	way, err := url.Parse(f.upstreamProxy)
	if err != nil || way.Host == "" {
		return nil, usagef("--upstream-proxy: not a URL; want http://HOST:PORT")
	}
	return way, nil
}

// checkLoop refuses ways that plainly lead back to where weir listens; others
// are found out when they are taken.
func (f *proxyFlags) checkLoop(at net.Addr, upstreams []proxy.Upstream) error {
	way, err := f.way()
	if err != nil {
		return err
	}
	if way != nil && leadsTo(way, at) {
		return usagef("--upstream-proxy %s is where weir itself listens: name the proxy beyond it, or leave it out", f.upstreamProxy)
	}
	for _, u := range upstreams {
		if leadsTo(u.URL, at) {
			return usagef("--upstream %s is where weir itself listens: name the endpoint that requests shall go on to", u.URL)
		}
	}
	return nil
}

// leadsTo says whether a URL names an address of this machine's loopback.
func leadsTo(u *url.URL, at net.Addr) bool {
	_, port, err := net.SplitHostPort(at.String())
	return err == nil && loopback(u.Hostname()) && u.Port() == port
}

// forwardDoor makes the proxy a forward proxy too, unless that is not wanted.
func (f *proxyFlags) forwardDoor(a *app) (*proxy.Forward, error) {
	if !f.forward {
		if len(f.measure) > 0 {
			return nil, usagef("--measure is for the forward proxy, which --forward=false leaves out")
		}
		return nil, nil
	}
	folder, err := caFolder(a.env)
	if err != nil {
		return nil, err
	}
	way, err := f.way()
	return forwardDoor(folder, measuredHosts(f.measure), f.caFile, way), err
}

// clientToken reads what remote clients must send; empty when there is none.
func (a *app) clientToken(f proxyFlags) (string, error) {
	token, _ := a.env(f.clientTokenEnv)
	if f.allowRemote && token == "" {
		return "", usagef("--allow-remote: others could then use weir; put a token that they must send in X-Weir-Token into $%s", f.clientTokenEnv)
	}
	return token, nil
}

func (a *app) runProxy(ctx context.Context, f proxyFlags) error {
	if f.holdBody < 1 || f.maxHeader < 1 {
		return usagef("--hold-body and --max-header: want 1 or more")
	}
	if f.grace < 0 {
		return usagef("--grace %s: want 0 or more", f.grace)
	}
	if err := f.keep.check(); err != nil {
		return err
	}
	if err := f.propagate.check(); err != nil {
		return err
	}
	if err := f.usage.check(); err != nil {
		return err
	}
	upstreams, err := f.proxyUpstreams(a.env)
	if err != nil {
		return err
	}
	forward, err := f.forwardDoor(a)
	if err != nil {
		return err
	}
	token, err := a.clientToken(f)
	if err != nil {
		return err
	}
	read := stampOf(f.loadModel)
	book, err := f.rulebook()
	if err != nil {
		return err
	}
	l, err := listen("listen", f.listen, f.allowRemote)
	if err != nil {
		return err
	}
	admin, err := a.openAdmin(f.allowRemote)
	if err != nil {
		l.Close()
		return err
	}
	defer admin.close()
	if err := errors.Join(f.checkLoop(l.Addr(), upstreams), a.checkRing(ctx, l.Addr(), upstreams)); err != nil {
		l.Close()
		return err
	}
	a.impair = book.impair
	s, err := a.openStack(f.db, book.shaper)
	if err != nil {
		l.Close()
		return err
	}
	kept, err := s.keep(f.keep)
	if err != nil {
		l.Close()
		return errors.Join(err, s.close())
	}
	p := s.proxy(upstreams)
	p.Keep = kept.seam
	p.InjectUsage = f.usage == usageInject
	p.Propagate, p.BaggageLabels = f.propagate.propagation, f.propagate.baggage
	p.Forward = forward
	p.ClientToken, p.Log, p.Scenario = token, a.logger(f.verbose), f.scenario
	p.HoldBody, p.MaxHeaderBytes = int64(f.holdBody)<<20, f.maxHeader<<10
	if book.file != "" {
		p.Match = book.match
	}
	admin.serve(s.metrics, token)
	hangUps := make(chan os.Signal, 1)
	if f.loadModel != "" {
		signal.Notify(hangUps, syscall.SIGHUP) // before anybody is told that weir runs
		defer signal.Stop(hangUps)
	}
	a.banner(s, l.Addr(), p, f.clientTokenEnv, book, admin)
	control, err := a.serveControl(s.status(l.Addr(), p), p, book, s.writing())
	if err != nil {
		fmt.Fprintf(a.err, "! weir tag, limit, lanes and exec will not find this proxy: %v\n", err)
	}
	defer control.close()
	ctx, hangUp := context.WithCancelCause(ctx)
	var reading sync.WaitGroup
	if f.loadModel != "" {
		reading.Go(func() { a.keepReading(ctx, book, read, hangUps, func() { hangUp(errInterrupted) }) })
	}
	defer reading.Wait()
	defer hangUp(nil)
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	for _, u := range upstreams {
		a.tryUpstream(ctx, u)
	}
	var failed error
	cut := false
	select {
	case failed = <-served:
	case <-ctx.Done():
		cut = !a.drain(p, f.grace) && a.hard.Err() != nil
		failed = <-served
	}
	err = errors.Join(failed, kept.close(), s.close())
	if err == nil && ctx.Err() != nil {
		fmt.Fprintln(a.err, "next: weir report last"+s.dbFlag())
	}
	if err == nil && cut {
		return coded{exitInterrupted, errors.New("interrupted: the streams under way were ended")}
	}
	return err
}

// rulebook reads what the load model and the flags say of scenarios and limits.
func (f *proxyFlags) rulebook() (*rulebook, error) {
	if f.loadModel == "" {
		return openRulebook("", nil, &f.limits, &f.impair)
	}
	m, err := readModel(f.loadModel)
	if err != nil {
		return nil, err
	}
	if !m.HasRules() && len(m.Rules())+len(m.Impairments()) == 0 {
		return nil, usagef(`load model %s: no scenario has a match rule, a limit or an impairment, so it says nothing to a proxy; add one, as "match": "input_tokens > 4000" or "limit": {"rps": 2}`, f.loadModel)
	}
	return openRulebook(f.loadModel, m, &f.limits, &f.impair)
}

// drain lets the streams under way end, for so long as grace and patience allow,
// and says whether they did.
func (a *app) drain(p *proxy.Proxy, grace time.Duration) bool {
	fmt.Fprintf(a.err, "finishing the streams under way, for up to %s; Ctrl-C again ends them\n", grace)
	wait, cancel := context.WithTimeout(a.hard, grace)
	defer cancel()
	if p.Shutdown(wait) != nil {
		p.Close()
		return false
	}
	return true
}

// tryUpstream warns of an upstream that cannot be reached; it may come up yet.
func (a *app) tryUpstream(ctx context.Context, u proxy.Upstream) {
	target := u.URL
	if u.Proxy != nil {
		target = u.Proxy
	}
	port := target.Port()
	if port == "" {
		if port = "443"; target.Scheme == "http" {
			port = "80"
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), port))
	if err != nil {
		fmt.Fprintf(a.err, "! upstream %s cannot be reached now: %v; weir tries again with each request\n", u.Name, short(err))
		return
	}
	c.Close()
}

// short is the cause of a network error without the addresses before it.
func short(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// banner says where weir listens, and how to point tools at it.
func (a *app) banner(s *stack, at net.Addr, p *proxy.Proxy, tokenEnv string, book *rulebook, admin *admin) {
	upstreams, host := p.Upstreams, at.String()
	fmt.Fprintf(a.out, "weir listens on http://%s\n", host)
	if reachable(at) != host { // everywhere, which is no address to send to
		_, port, _ := net.SplitHostPort(host)
		host = net.JoinHostPort("HOST", port)
	}
	base := "http://" + host
	for _, u := range upstreams {
		var when []string
		if u.Prefix != "" {
			when = append(when, "paths below "+u.Prefix)
		}
		if len(u.Models) > 0 {
			when = append(when, "models "+strings.Join(u.Models, ", "))
		}
		if len(when) == 0 && len(upstreams) > 1 {
			when = append(when, "everything else")
		}
		line := "  → " + u.URL.String()
		if len(upstreams) > 1 {
			line = "  → " + u.Name + "  " + u.URL.String()
		}
		if len(when) > 0 {
			line += "  (" + strings.Join(when, "; ") + ")"
		}
		fmt.Fprintln(a.out, line)
	}
	fmt.Fprintf(a.out, "  records in %s\n%s", s.path(), admin.line())
	for _, limit := range ruleLines(book.shaper.Rules()) {
		fmt.Fprintf(a.out, "  lane %s\n", limit)
	}
	tellImpairments(a.out, book.impair)
	fmt.Fprintln(a.out)
	fmt.Fprintln(a.out, "Point a tool at it; my-work is the name of a scenario, and yours to choose:")
	a.lines(client.Point(base + "/s/my-work"))
	user := ""
	if p.ClientToken != "" {
		user = "weir:$" + tokenEnv + "@"
	}
	if p.Forward != nil {
		fmt.Fprintf(a.out, "  # What has no such setting\n  HTTPS_PROXY=http://%s%s, and weir's CA: weir ca\n", user, host)
	}
	if p.ClientToken != "" {
		fmt.Fprintf(a.out, "\nClients must send what $%s holds here, in the header X-Weir-Token; with the same variable in their own environment:\n", tokenEnv)
		a.lines(client.Token("X-Weir-Token", tokenEnv))
	}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if proxied, _ := a.env(name); proxied != "" {
			fmt.Fprintf(a.out, "  # %s is set: keep tools from looking for weir behind it\n  export NO_PROXY=127.0.0.1,localhost\n", name)
			break
		}
	}
	fmt.Fprintln(a.out)
	fmt.Fprintln(a.err, "next: weir calls --follow"+s.dbFlag()+"   (Ctrl-C stops)")
}

// readable says what keeps a file from being read.
func readable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; want a file", path)
	}
	return err
}
