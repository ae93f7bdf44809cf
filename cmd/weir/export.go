package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/store"
	"weir/store/report"
)

// exportFlags are the flags of weir export.
type exportFlags struct {
	db     string
	format string
	out    string
	otlp   bool
	since  string
	adopt  string
	status bool
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export [SELECTION…]",
		Short: "Write calls for other tools, or send their spans to a collector",
		Long: `Writes the calls that a selection names, last unless it is given. The formats
are described in store/report/EXPORT.md:
  otel-json  OpenTelemetry spans with all attributes, which weir import reads
  jsonl      a line of JSON a call, as weir calls --json
  csv        a line a call
  vllm       as the result of vLLM's benchmark of a server
  aiperf     as AIPerf's aggregated result
  guidellm   as GuideLLM's benchmarks

With --otlp it sends spans to the collector that OTEL_EXPORTER_OTLP_ENDPOINT
names, by the other OTEL_ variables: those that could not be sent when they were
recorded. With a selection or --since all its spans go, sent before or not: a
collector may have been killed with what it had taken, or have been named by
nobody. They have the ids that they had. Where a collector has moved, --adopt
sends to the one that is named now what waits for the former.
` + store.SelectionHelp(),
		Example: `  weir export run:7f3a --format vllm -o result.json
  weir export since:1h --format otel-json > spans.json
  weir export --otlp
  weir export --otlp --since 1h
  weir export --status`,
		Args: wantArgs(0, -1, ""),
		RunE: func(c *cobra.Command, args []string) error { return a.runExport(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.StringVar(&f.format, "format", "", strings.Join(report.Formats, ", ")+" (default otel-json)")
	fl.StringVarP(&f.out, "out", "o", "", "file to write (default: standard output)")
	fl.BoolVar(&f.otlp, "otlp", false, "send to a collector instead")
	fl.StringVar(&f.since, "since", "", "calls of that time, as 1h; short for since:1h")
	fl.StringVar(&f.adopt, "adopt", "", "with --otlp: the collector, as --status names it, whose waiting spans are sent to this one instead")
	fl.BoolVar(&f.status, "status", false, "how many spans each collector was sent, and how many wait for it")
	onceOnly(fl, "otlp", "since", "out", "adopt", "status")
	return c
}

func (a *app) runExport(ctx context.Context, words []string, f exportFlags) error {
	switch {
	case f.status && (f.otlp || f.since != "" || len(words) > 0 || f.format != "" || f.out != ""):
		return usagef("export: --status is of all that waits; leave out everything but --db")
	case f.adopt != "" && !f.otlp:
		return usagef("export: --adopt says what --otlp sends; add --otlp")
	case f.otlp && (f.format != "" || f.out != ""):
		return usagef("export: --otlp sends spans and writes no file; leave out --format and --out")
	case f.format != "" && !slices.Contains(report.Formats, f.format):
		return usagef("--format %s: want %s", f.format, strings.Join(report.Formats, ", "))
	}
	if f.since != "" {
		words = append(slices.Clone(words), "since:"+f.since)
	}
	selection, err := parseSelection(words)
	if err != nil {
		return err
	}
	if f.otlp {
		var of *store.Selection
		if len(words) > 0 {
			of = &selection
		}
		return a.exportOTLP(ctx, of, f)
	}
	db, err := a.openToRead(ctx, f.db)
	if err != nil {
		return err
	}
	if f.status {
		err = a.exportStatus(ctx, db, f)
	} else {
		err = a.exportFile(ctx, db, selection, f)
	}
	return errors.Join(err, db.Close())
}

// exportFile writes the calls of a selection.
func (a *app) exportFile(ctx context.Context, db *store.DB, selection store.Selection, f exportFlags) (err error) {
	if f.format == "" {
		f.format = report.Formats[0]
	}
	w := a.out
	if f.out != "" {
		// Private, as the database is: labels, sessions and errors are in it.
		file, err := os.OpenFile(f.out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return usagef("--out %s: %w", f.out, err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w = file
	}
	n, err := report.Export(w, f.format, db.Calls(ctx, selection, store.Order{By: "oldest"}),
		func(id string) ([]store.Run, error) { return db.Runs(ctx, id) })
	if err != nil {
		return err
	}
	if n == 0 {
		fmt.Fprintf(a.err, "no calls in %s for %s\n", db.Path, selection)
		fmt.Fprintf(a.err, "next: weir export all%s, or weir demo to make some\n", dbFlag(f.db))
		return nil
	}
	if f.out != "" {
		fmt.Fprintf(a.err, "%s in %s\n", counted(n, "call"), f.out)
		if f.format == "otel-json" {
			fmt.Fprintf(a.err, "next: weir import %s --db other.db\n", shellWords(f.out))
		}
	}
	return nil
}

// exportOTLP sends what waits, and a selection if there is one.
func (a *app) exportOTLP(ctx context.Context, of *store.Selection, f exportFlags) error {
	path := f.db
	if path == "" {
		var err error
		if path, err = store.DefaultPath(a.env); err != nil {
			return usage(err)
		}
	}
	if _, err := os.Stat(path); err != nil { // or it would be made
		_, err = a.openToRead(ctx, f.db)
		return err
	}
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return usage(err)
	}
	release, _ := buildVersion()
	sent, err := store.Resend(ctx, db, of, store.ResendOptions{TracingOptions: store.TracingOptions{Version: release, Env: a.env}, Adopt: f.adopt})
	if err = orUsage(err); errors.Is(err, store.ErrNoCollector) {
		err = usage(err)
	}
	if err != nil && sent.Sent > 0 {
		fmt.Fprintf(a.err, "! %s %s sent before it failed\n", counted(sent.Sent, "span"), verb(sent.Sent, "was", "were"))
	}
	if sent.Rejected > 0 {
		fmt.Fprintf(a.err, "! the collector rejected %s for good (%s)\n", counted(sent.Rejected, "span"), sent.Rejection)
	}
	if err == nil {
		fmt.Fprintf(a.out, "%s sent\n", counted(sent.Sent, "span"))
		err = a.tellOthers(ctx, db, sent, f)
	}
	return errors.Join(err, db.Close())
}

// tellOthers says what waits for collectors that have another name than the one
// that was sent to: it may be the same, which has moved.
func (a *app) tellOthers(ctx context.Context, db *store.DB, sent store.Resent, f exportFlags) error {
	all, err := db.Deliveries(ctx)
	if err != nil {
		return err
	}
	told := false
	for _, d := range all {
		if d.Target != sent.Target && d.Waiting > 0 {
			told = true
			fmt.Fprintf(a.err, "! %s %s for another collector, %s\nnext: weir export --otlp --adopt %s%s   (sends them to %s instead)\n",
				counted(d.Waiting, "span"), verb(d.Waiting, "waits", "wait"), d.Target, d.Target, dbFlag(f.db), sent.Target)
		}
	}
	if !told {
		fmt.Fprintf(a.err, "next: weir export --status%s\n", dbFlag(f.db))
	}
	return nil
}

// exportStatus says how far each collector was sent what was recorded for it.
func (a *app) exportStatus(ctx context.Context, db *store.DB, f exportFlags) error {
	all, err := db.Deliveries(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintf(a.err, "no calls in %s were recorded for a collector\nnext: set OTEL_EXPORTER_OTLP_ENDPOINT for weir proxy, or weir export --otlp --since 1h%s\n", db.Path, dbFlag(f.db))
		return nil
	}
	fmt.Fprintln(a.out, "collector\tsent_spans\twaiting_spans\trejected_spans\tfailed_attempts\tlast_failure_at\tlast_error\tlast_rejection")
	waiting := false
	for _, d := range all {
		at := ""
		if !d.FailedAt.IsZero() {
			at = d.FailedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		fmt.Fprintf(a.out, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", d.Target, d.Sent, d.Waiting, d.Rejected, d.Failed, at, d.Err, d.Rejection)
		waiting = waiting || d.Waiting > 0
	}
	if waiting {
		fmt.Fprintf(a.err, "next: weir export --otlp%s   (sends what waits, with OTEL_EXPORTER_OTLP_ENDPOINT as it was)\n", dbFlag(f.db))
	}
	return nil
}
