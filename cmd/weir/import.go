package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/generator/loadmodel"
	"weir/store"
	"weir/store/call"
	"weir/store/report"
)

func (a *app) importCommand() *cobra.Command {
	var db string
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in the OpenTelemetry spans of traffic that weir did not carry",
		Long: `Reads OpenTelemetry spans as JSON, as weir export and collectors' file exporters
write them and SDKs print them, and stores those with gen_ai.* attributes that
tell of a call to a model, so that reports and load models can be made of them.
weir's own spans come back as they were. Of another program's, the side is
"import" and only that is known which the span says: its length, tokens, model,
error, but hardly ever its first token. Prompts and answers in attributes are
not stored. Calls that are there already, by their ids, are passed over, and so
are spans that tell of no call, for reasons that are counted. FILE - is standard
input.`,
		Example: `  weir import spans.json
  weir export all --db laptop.db | weir import - --db team.db
  weir report label:import=spans.json`,
		Args: wantArgs(1, 1, "FILE"),
		RunE: func(c *cobra.Command, args []string) error { return a.runImport(c.Context(), args[0], db) },
	}
	c.Flags().StringVar(&db, "db", "", "database file (default: weir.db in the user's data folder)")
	return c
}

func (a *app) runImport(ctx context.Context, path, dbPath string) error {
	flag := dbFlag(dbPath)
	in, name := a.in, "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return usagef("import %w", err)
		}
		defer f.Close()
		in, name = f, filepath.Base(path)
	}
	if dbPath == "" {
		var err error
		if dbPath, err = store.DefaultPath(a.env); err != nil {
			return usage(err)
		}
	}
	db, err := store.Open(ctx, dbPath, store.Options{})
	if err != nil {
		return usage(err)
	}
	r := spanImport{label: name, because: map[call.NoCall]int{}}
	release, _ := buildVersion()
	stored, known, err := store.Import(ctx, db, release, r.calls(ctx, in))
	fmt.Fprintf(a.out, "%s stored, %d %s there already, %s passed over\n", counted(stored, "call"), known, verb(int64(known), "was", "were"), counted(r.others, "span"))
	r.warn(a.err)
	if err = errors.Join(err, r.saveRuns(ctx, db), db.Close()); err == nil && stored+known+r.others == 0 {
		err = errors.New(`no spans in it; want {"spans": […]} or {"resourceSpans": […]}, as weir export and collectors write them`)
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", name, err)
	}
	switch {
	case r.foreign > 0:
		fmt.Fprintf(a.err, "next: weir report %s%s\n", shellWords("label:import="+name), flag)
	case stored+known > 0:
		fmt.Fprintf(a.err, "next: weir report all%s\n", flag)
	default:
		fmt.Fprintln(a.err, "! no span in it is a call that could be stored; it needs ids, both times, and attributes as gen_ai.operation.name")
	}
	return nil
}

// spanImport makes calls of spans.
type spanImport struct {
	label   string // of calls that other programs made
	foreign int    // calls that other programs made
	others  int    // spans that are no calls
	because map[call.NoCall]int
	utc     int // calls of which a time names no zone
	runs    []store.Run
}

// shownReasons is how many of the reasons are told, the most frequent first.
const shownReasons = 8

// warn tells what was passed over, and what was taken for granted.
func (r *spanImport) warn(w io.Writer) {
	reasons := slices.SortedFunc(maps.Keys(r.because), func(a, b call.NoCall) int {
		return cmp.Or(r.because[b]-r.because[a], strings.Compare(string(a), string(b)))
	})
	for i, reason := range reasons {
		if i == shownReasons {
			fmt.Fprintf(w, "! spans passed over for %s\n", counted(len(reasons)-i, "more reason"))
			break
		}
		fmt.Fprintf(w, "! %s passed over: %s\n", counted(r.because[reason], "span"), reason)
	}
	if r.utc > 0 {
		fmt.Fprintf(w, "! times of %s name no zone, and were taken for UTC\n", counted(r.utc, "call"))
	}
}

// beside takes the runs that weir export wrote beside their spans.
func (r *spanImport) beside(key string, value json.RawMessage) {
	var runs []store.Run
	if key == report.RunsKey && json.Unmarshal(value, &runs) == nil { // else they are another program's
		r.runs = append(r.runs, runs...)
	}
}

// saveRuns writes the runs that are not there yet.
func (r *spanImport) saveRuns(ctx context.Context, db *store.DB) error {
	for _, run := range r.runs {
		there, err := db.Runs(ctx, run.ID)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(there, func(of store.Run) bool { return of.ID == run.ID }) {
			if err := db.SaveRun(ctx, run); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *spanImport) calls(ctx context.Context, in io.Reader) iter.Seq2[*call.Call, error] {
	return func(yield func(*call.Call, error) bool) {
		for s, err := range loadmodel.ReadSpans(in, r.beside) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			c, err := r.call(s)
			if reason := call.NoCall(""); errors.As(err, &reason) {
				r.others++
				r.because[reason]++
				continue
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// call is the call that a span tells of; the error is a call.NoCall.
func (r *spanImport) call(s *loadmodel.Span) (*call.Call, error) {
	c, err := call.Foreign{Start: s.Start, End: s.End, Failed: s.Failed, Message: s.Message, Attributes: s.Attributes}.Call()
	if err != nil {
		return nil, err
	}
	if !hexID(c.TraceID[:], s.Trace) || !hexID(c.SpanID[:], s.ID) {
		return nil, call.NoIDs
	}
	hexID(c.ParentSpan[:], s.Parent) // there may be none
	c.TraceState = s.TraceState
	if s.Zoneless {
		r.utc++
	}
	if c.Side == call.Imported {
		r.foreign++
		c.Labels = map[string]string{"import": r.label}
	}
	return c, nil
}

// hexID reads an id; false when it is none.
func hexID(into []byte, digits string) bool {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(into) {
		return false
	}
	copy(into, b)
	return true
}
