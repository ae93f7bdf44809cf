package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"

	"weir/store"
)

// telemetry is how a command tells others of calls and of itself. The zero
// telemetry is the default.
type telemetry struct {
	profiles profiles
	log      logFormat
	admin    string // address of the admin port; empty: there is none
	native   bool   // Prometheus's own histograms there

	sent slog.Handler // takes the log to a collector; nil: to none
}

// add adds the flags of all commands that record.
func (t *telemetry) add(fl *pflag.FlagSet) {
	fl.Var(&t.profiles, "genai-profile", "GenAI conventions that name the metrics of calls: "+strings.Join(store.GenAIProfiles, ", ")+", or both with a comma between (default "+store.GenAIProfiles[0]+")")
	fl.Var(&t.log, "log-format", "how weir's own log is written to stderr: text or json (default text)")
}

// profiles are the --genai-profile of a command.
type profiles []string

func (p *profiles) Type() string   { return "string" }
func (p *profiles) String() string { return strings.Join(*p, ",") }
func (p *profiles) Set(text string) (err error) {
	*p, err = store.ParseGenAIProfiles(text)
	return err
}

// logFormat is text, which the empty one is, or json.
type logFormat string

func (f *logFormat) Type() string   { return "string" }
func (f *logFormat) String() string { return string(*f) }
func (f *logFormat) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("want text or json")
	}
	*f = logFormat(text)
	return nil
}

// logger writes what the operator should know to stderr.
func (a *app) logger(verbose bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if verbose {
		options.Level = slog.LevelDebug
	}
	var h slog.Handler = slog.NewTextHandler(a.err, options)
	if a.telemetry.log == "json" {
		h = slog.NewJSONHandler(a.err, options)
	}
	h = traced{h}
	if a.telemetry.sent != nil {
		h = both{h, a.telemetry.sent}
	}
	return slog.New(h)
}

// both hands on to a second handler what the first one takes.
type both struct {
	slog.Handler
	second slog.Handler
}

func (h both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.Handler.Handle(ctx, r), h.second.Handle(ctx, r))
}

func (h both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{h.Handler.WithAttrs(attrs), h.second.WithAttrs(attrs)}
}
func (h both) WithGroup(name string) slog.Handler {
	return both{h.Handler.WithGroup(name), h.second.WithGroup(name)}
}

// traced is a handler that names the call which is meant, as spans do.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }
func (h traced) WithGroup(name string) slog.Handler       { return traced{h.Handler.WithGroup(name)} }
