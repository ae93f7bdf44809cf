package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/generator"
	"weir/proxy"
	"weir/proxy/client"
	"weir/store"
	"weir/store/report"
)

// execFlags are the flags of weir exec.
type execFlags struct {
	scenario string
	upstream string
	door     string
	db       string
	json     bool
	summary  string
	quiet    bool
	limits   laneFlags
	usage    usageMode
	impair   impairFlags
}

func (a *app) execCommand() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG…]",
		Short: "Run an agent or a tool behind weir, and say what it cost",
		Long: `Runs a command whose calls pass weir, and says afterwards what they came to. A
running proxy that records in the same database is used; else, or to limit the
command's calls alone, one serves for as long as the command runs. What the
command needs to find it is set in its own environment and arguments alone: no
file of yours is changed. The exit code is the command's.

Without --upstream requests go where they would go anyway: to the endpoint in
ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, else to the
provider's own.`,
		Example: `  weir exec -- claude
  weir exec --scenario refactor -- codex exec "tidy up main.go"
  weir exec --upstream http://127.0.0.1:8000 -- python agent.py
  weir exec --door forward -- my-agent    (which has no setting for a base URL)
  weir exec --impair 'stall+5s:10%' -- claude
  weir exec --quiet --summary cost.json -- npx @google/gemini-cli -p hello`,
		Args: wantArgs(1, -1, "the command to run"),
		RunE: func(c *cobra.Command, args []string) error { return a.runExec(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // what follows the command is the command's
	fl.StringVarP(&f.scenario, "scenario", "s", "", "scenario of its calls (default: the proxy's)")
	fl.StringVarP(&f.upstream, "upstream", "u", "", "endpoint that its requests go to, whichever API they speak")
	fl.StringVar(&f.door, "door", "reverse", "how the command finds weir: reverse, by its base URL, or forward, by HTTPS_PROXY and weir's CA")
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	f.usage.add(fl)
	fl.BoolVar(&f.json, "json", false, "say what it cost as JSON, the contract of store/report/REPORT.md")
	fl.StringVar(&f.summary, "summary", "", "write what it cost to this file, as JSON")
	f.impair.add(fl)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing beside the command")
	f.limits.add(fl)
	a.telemetry.add(fl)
	return c
}

func (a *app) runExec(ctx context.Context, command []string, f execFlags) error {
	scenario := proxy.ScenarioName(f.scenario)
	if scenario == "" && f.scenario != "" {
		return usagef("--scenario %q: want a name, as refactor", f.scenario)
	}
	if f.door != "reverse" && f.door != "forward" {
		return usagef("--door %s: want reverse or forward", f.door)
	}
	if err := f.usage.check(); err != nil {
		return err
	}
	if err := findCommand(command[0]); err != nil {
		return err
	}
	var summary *os.File
	if f.summary != "" {
		var err error
		if summary, err = os.OpenFile(f.summary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
			return usagef("--summary: %w", err)
		}
		defer summary.Close()
	}
	// What weir has to say meanwhile would stand in the midst of the command's
	// own screen.
	said := &heldBack{}
	meanwhile := *a
	meanwhile.err = said
	var err error
	if meanwhile.impair, err = f.impair.impairer(); err != nil {
		return err
	}
	if !f.quiet {
		tellImpairments(a.err, meanwhile.impair)
	}
	d, err := meanwhile.findDoor(ctx, command, f)
	if err != nil {
		return err
	}
	run := generator.NewRunID()
	args, environ, cautions := client.Launch(d.way(scenario, run), command, os.Environ())
	if !f.quiet {
		a.warn(cautions)
	}
	signals := takeSignals()
	if ctx.Err() != nil { // before they were taken
		return errors.Join(errInterrupted, d.close())
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, a.in, a.out, a.err
	e := report.Errand{Run: run, Command: filepath.Base(command[0]), Database: d.database, Started: time.Now()}
	e.Exit, err = runChild(cmd, signals)
	e.Ended = time.Now()
	if err != nil {
		return errors.Join(err, d.close())
	}
	bill, err := a.bill(d, e)
	if !f.quiet {
		said.flush(a.err)
		if err != nil {
			a.warn([]string{err.Error()})
		}
	}
	if bill != nil {
		if err := a.presentBill(bill, f, summary, cautions); err != nil {
			a.warn([]string{err.Error()})
		}
	}
	if e.Exit == 0 {
		return nil
	}
	return coded{e.Exit, errors.New("")} // it said itself why
}

// bill adds up the calls of an errand, and closes what served it. A bill may
// come with an error: of what could not be written.
func (a *app) bill(d *door, e report.Errand) (*report.Bill, error) {
	d.settle(e.Run, e.Started)
	unwritten := d.close() // which tries to the last
	if e.Lost = d.lost(); !e.Lost.Known {
		e.Gone = d.base
	}
	ctx := context.Background()
	db, err := store.Open(ctx, d.database, store.Options{ReadOnly: true})
	if err != nil {
		return nil, errors.Join(err, unwritten)
	}
	bill, err := report.BillFor(e, callsOf(ctx, db, e.Run, e.Started))
	return bill, errors.Join(err, db.Close(), unwritten)
}

// presentBill says what a command cost, where and how it is wanted.
func (a *app) presentBill(b *report.Bill, f execFlags, summary *os.File, cautions []string) error {
	if summary != nil {
		if err := b.JSON(summary); err != nil {
			return fmt.Errorf("--summary: %w", err)
		}
	}
	switch {
	case f.quiet:
		return nil
	case f.json:
		return b.JSON(a.err)
	}
	b.Text(a.err, a.style(a.err))
	if b.Seen() || b.Partial {
		fmt.Fprintf(a.err, "next: weir calls run:%s --slowest%s\n", b.Run, a.dbFlagOf(b.Database))
		return nil
	}
	fmt.Fprintln(a.err, "  no call came to weir: the command made none, or takes its base URL from its own settings")
	a.warn(cautions)
	fmt.Fprintln(a.err, "next: weir doctor")
	return nil
}

// heldBack keeps what is written for later.
type heldBack struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heldBack) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heldBack) flush(to io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.text.WriteTo(to) // a reader that left needs nothing
}
