package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/proxy/wire"
	"weir/store/report"
)

// doctorFlags are the flags of weir doctor.
type doctorFlags struct {
	upstream      string
	model         string
	apis          []string
	keyEnv        string
	proxy         string
	db            string
	caFile        string
	upstreamProxy string
	timeout       time.Duration
	dryRun        bool
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out why it does not work, and what to do",
		Long: `Looks at what tools read from the environment (base URLs, keys, proxies) and at
the failed calls of the last hour. With --upstream it goes all the way to an
endpoint: name, connection, TLS, clock, base path, key, models, and then one
small streamed request of each API that the endpoint speaks. These cost a few
tokens; --dry-run leaves them out. Beneath all that is not well stands what is
wrong and what to do.

Keys are read from the variable that --key-env names, from $WEIR_API_KEY, or
from the API's own: $OPENAI_API_KEY, $ANTHROPIC_API_KEY or $ANTHROPIC_AUTH_TOKEN,
$GEMINI_API_KEY. They are never shown, and one that is plainly another
provider's is not sent unless --key-env says so.

Exit code 0: what matters works; 1: something does not.`,
		Example: `  weir doctor
  weir doctor --upstream https://api.anthropic.com --dry-run
  weir doctor --upstream https://gateway.example/v1 --key-env GATEWAY_KEY --model gpt-5-mini
  weir doctor --upstream http://127.0.0.1:8000 --proxy http://127.0.0.1:8484`,
		Args: wantArgs(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error { return a.runDoctor(c.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.upstream, "upstream", "u", "", "endpoint to examine, with its base path")
	fl.StringVar(&f.model, "model", "", "model to ask for (default: a small one of those that the endpoint lists)")
	fl.StringSliceVar(&f.apis, "api", nil, "APIs that must work: chat, responses, messages, gemini (default: any that the endpoint speaks)")
	fl.StringVar(&f.keyEnv, "key-env", "", "variable that holds the key, for whatever API")
	fl.StringVar(&f.proxy, "proxy", "", "a weir that runs; alone it is examined like an endpoint, beside --upstream one request goes through it too")
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.StringVar(&f.caFile, "ca-file", "", "PEM certificates to trust beside the system's")
	fl.StringVar(&f.upstreamProxy, "upstream-proxy", "", "proxy on the way to the upstream; HTTPS_PROXY is not read")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "longest time of one request")
	fl.BoolVar(&f.dryRun, "dry-run", false, "do only what is free: send nothing that a model would answer")
	return c
}

// diagnosis is what has been found so far. Findings are printed as they come.
type diagnosis struct {
	a        *app
	again    string // the command that looks again
	bad, odd int
}

// section prints findings under a title.
func (d *diagnosis) section(title string, heads []string, findings []report.Finding) {
	if len(findings) == 0 {
		return
	}
	for _, f := range findings {
		switch f.Mark {
		case report.Bad:
			d.bad++
		case report.Odd:
			d.odd++
		}
	}
	fmt.Fprintln(d.a.out, title)
	report.Findings(d.a.out, heads, findings, d.a.style(d.a.out))
	fmt.Fprintln(d.a.out)
}

func (a *app) runDoctor(ctx context.Context, f doctorFlags) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	past, err := a.recentCalls(ctx, f.db, target == nil && f.db != "")
	if err != nil {
		return err
	}
	d := &diagnosis{a: a, again: "weir doctor"}
	next := "weir doctor --upstream URL   (tries an endpoint)"
	works := false
	if target == nil {
		d.section("environment", nil, a.examineEnvironment(ctx, f))
	} else {
		v, err := a.newVisit(target, f)
		if err != nil {
			return err
		}
		defer v.transport.CloseIdleConnections()
		d.again, next = d.again+" --proxy "+f.proxy, "weir calls --follow"+dbFlag(f.db)
		if f.upstream != "" {
			d.again, next = "weir doctor --upstream "+f.upstream, "weir proxy --upstream "+f.upstream
		}
		d.section("environment", nil, a.examineEnvironment(ctx, f))
		if err := v.examine(ctx, d); err != nil {
			return err
		}
		works = v.works
	}
	d.section("calls of the last hour", nil, past.findings(works))
	return d.end(next)
}

// target is the endpoint to examine; nil for none. It also checks the other
// flags: nothing is looked at before they are right.
func (f *doctorFlags) target() (*url.URL, error) {
	if f.timeout <= 0 {
		return nil, usagef("--timeout %s: want more than 0, as 60s", f.timeout)
	}
	for _, name := range f.apis {
		if api := wire.API(name); wire.For(api) == nil || api == wire.Completions {
			return nil, usagef("--api %s: want chat, responses, messages or gemini", name)
		}
	}
	var target *url.URL
	for _, given := range []struct{ flag, value string }{{"--proxy", f.proxy}, {"--upstream", f.upstream}} {
		if given.value == "" {
			continue
		}
		u, err := parseUpstream(given.value)
		if err != nil {
			return nil, usage(errors.New(strings.ReplaceAll(err.Error(), "--upstream", given.flag)))
		}
		target = u.URL // as weir proxy takes it, with a name and more or without
	}
	if target == nil && (f.model != "" || len(f.apis) > 0 || f.caFile != "" || f.upstreamProxy != "" || f.dryRun) {
		return nil, usage(&hinted{errors.New("doctor: --model, --api, --ca-file, --upstream-proxy and --dry-run are for an endpoint, and none is given"), "weir doctor --upstream URL"})
	}
	return target, nil
}

// end gives the exit code that was found.
func (d *diagnosis) end(next string) error {
	odd := ""
	if d.odd > 0 {
		odd = fmt.Sprintf("; %s with !", counted(d.odd, "thing"))
	}
	if d.bad > 0 {
		return &hinted{fmt.Errorf("doctor: %s %s not work%s", counted(d.bad, "thing"), verb(int64(d.bad), "does", "do"), odd), d.again + "   (again, after what the lines with → say)"}
	}
	s := d.a.style(d.a.out)
	if d.odd > 0 {
		fmt.Fprintf(d.a.out, "%s what matters works%s\n", s.Symbol(report.Odd), odd)
	} else {
		fmt.Fprintf(d.a.out, "%s nothing is wrong with what was looked at\n", s.Symbol(report.Good))
	}
	fmt.Fprintln(d.a.err, "next: "+next)
	return nil
}
