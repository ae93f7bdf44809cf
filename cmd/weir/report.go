package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weir/store"
	"weir/store/report"
)

// reportFlags are the flags of weir report.
type reportFlags struct {
	db       string
	by       []string
	json     bool
	csv      bool
	markdown bool
}

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [SELECTION…]",
		Short: "Print TTFT by scenario, or by what you ask for",
		Long: `Prints calls, success, TTFT and tokens of the calls that a selection names, last
unless it is given. Several words narrow one another:
` + store.SelectionHelp(),
		Example: `  weir report
  weir report run:7f3a --by model
  weir report since:1h scenario:short_chat --by key,model
  weir report label:try --by label:try,scenario --json`,
		Args: wantArgs(0, -1, ""),
		RunE: func(c *cobra.Command, args []string) error { return a.runReport(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.db, "db", "", "database file (default: weir.db in the user's data folder)")
	fl.StringSliceVar(&f.by, "by", nil, "what a row is: scenario, model, api, key, session, label, label:KEY, upstream, client, outcome, run; several with commas (default scenario)")
	fl.BoolVar(&f.json, "json", false, "as JSON, the contract of store/report/REPORT.md")
	fl.BoolVar(&f.csv, "csv", false, "as CSV, a line a row")
	fl.BoolVar(&f.markdown, "markdown", false, "as Markdown")
	return c
}

// openToRead opens a database that exists.
func (a *app) openToRead(ctx context.Context, path string) (*store.DB, error) {
	var err error
	if path == "" {
		if path, err = store.DefaultPath(a.env); err != nil {
			return nil, usage(err)
		}
	}
	db, err := store.Open(ctx, path, store.Options{ReadOnly: true})
	return db, usage(err)
}

func (a *app) runReport(ctx context.Context, words []string, f reportFlags) error {
	formats := 0
	for _, on := range []bool{f.json, f.csv, f.markdown} {
		if on {
			formats++
		}
	}
	if formats > 1 {
		return usagef("report: --json, --csv and --markdown exclude each other")
	}
	if err := report.CheckGroupKeys(f.by); err != nil {
		return usage(err)
	}
	if _, err := parseSelection(words); err != nil {
		return err
	}
	db, err := a.openToRead(ctx, f.db)
	if err != nil {
		return err
	}
	r, err := summarise(ctx, db, words, f.by)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	switch {
	case f.json:
		return r.JSON(a.out)
	case f.csv:
		return r.CSV(a.out)
	case f.markdown:
		return a.print(a.out, func(w io.Writer, _ report.Style) { r.Markdown(w) })
	}
	if r.Total.Calls == 0 && r.Impaired == 0 {
		a.warn(r.Warnings)
		fmt.Fprintf(a.err, "no calls in %s for %s\n", db.Path, r.Selection)
		fmt.Fprintf(a.err, "next: weir report all%s, or weir demo to make some\n", dbFlag(f.db))
		return nil
	}
	if err := a.print(a.out, r.Text); err != nil {
		return err
	}
	next := r.Selection // what it is without words
	if len(words) > 0 {
		next = shellWords(words...)
	}
	fmt.Fprintf(a.err, "next: weir calls %s --slowest%s\n", next, dbFlag(f.db))
	return nil
}
