package store

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"weir/store/call"
)

// Logs send weir's own log to a collector. One that is down misses what was;
// nothing waits for it.
type Logs struct {
	// Handler takes what is logged; a span in its context is named with it.
	Handler  slog.Handler
	provider *sdklog.LoggerProvider
}

// NewLogs begins to send the log to the collector that the OTEL_ variables name;
// it is nil where they name none, or OTEL_LOGS_EXPORTER=none or
// OTEL_SDK_DISABLED says that nothing shall be sent. o.Log is told once when the
// collector takes nothing; it must not be one that writes to the Handler.
func (t *Tracing) NewLogs(ctx context.Context, o TracingOptions) (*Logs, error) {
	if o.Env == nil {
		return nil, nil
	}
	at, err := otlpEndpoint(o.Env, "LOGS")
	if at == nil || err != nil {
		return nil, err
	}
	exporter, err := newLogExporter(ctx, at)
	if err != nil {
		return nil, at.wrap(" logs", err)
	}
	quiet := &quietLogs{Exporter: exporter, endpoint: at, log: o.Log}
	if quiet.log == nil {
		quiet.log = slog.New(slog.DiscardHandler)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(t.resource), sdklog.WithProcessor(sdklog.NewBatchProcessor(quiet)))
	return &Logs{Handler: plainAttributes{otelslog.NewHandler("weir", otelslog.WithLoggerProvider(provider))}, provider: provider}, nil
}

func newLogExporter(ctx context.Context, at *endpoint) (sdklog.Exporter, error) {
	if at.protocol == "grpc" {
		options := []otlploggrpc.Option{otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false})}
		if at.unnamed != "" {
			options = append(options, otlploggrpc.WithEndpointURL(at.unnamed))
		}
		return otlploggrpc.New(ctx, options...)
	}
	options := []otlploghttp.Option{otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false})}
	if at.unnamed != "" {
		options = append(options, otlploghttp.WithEndpointURL(at.unnamed))
	}
	return otlploghttp.New(ctx, options...)
}

// Shutdown sends what was logged last and ends the sending, within two seconds or
// when ctx ends. On nil Logs it does nothing.
func (l *Logs) Shutdown(ctx context.Context) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, metricsEndFor)
	defer cancel()
	return l.provider.Shutdown(ctx)
}

// quietLogs says once that a collector does not take the log.
type quietLogs struct {
	sdklog.Exporter
	*endpoint
	log    *slog.Logger
	failed atomic.Bool
}

// Export sends records. It never fails, or the SDK would say so each time.
func (e *quietLogs) Export(ctx context.Context, records []sdklog.Record) error {
	err := e.Exporter.Export(ctx, records)
	if was := e.failed.Swap(err != nil); err != nil && !was {
		e.log.Warn("the collector does not take the log", "target", e.target, "error", e.explain(err))
	}
	return nil
}

// plainAttributes gives a handler attributes that OTLP can hold: texts for all
// that is a kind of text, and for what prints itself; valid UTF-8 of some length,
// since one odd byte costs the whole batch; and none where nothing is known.
type plainAttributes struct{ slog.Handler }

// longestLog is how many bytes of a text a record's attribute holds.
const longestLog = 4 << 10

func (h plainAttributes) Handle(ctx context.Context, r slog.Record) error {
	plain := slog.NewRecord(r.Time, r.Level, call.Shorten(r.Message, longestLog), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		plain.AddAttrs(plainAttrs([]slog.Attr{a})...)
		return true
	})
	return h.Handler.Handle(ctx, plain)
}

func (h plainAttributes) WithAttrs(attrs []slog.Attr) slog.Handler {
	return plainAttributes{h.Handler.WithAttrs(plainAttrs(attrs))}
}
func (h plainAttributes) WithGroup(name string) slog.Handler {
	return plainAttributes{h.Handler.WithGroup(name)}
}

func plainAttrs(attrs []slog.Attr) []slog.Attr {
	plain := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		key, v := call.Shorten(a.Key, longestLog), a.Value.Resolve()
		switch v.Kind() {
		case slog.KindGroup:
			plain = append(plain, slog.Attr{Key: key, Value: slog.GroupValue(plainAttrs(v.Group())...)})
			continue
		case slog.KindString, slog.KindAny:
		default:
			plain = append(plain, slog.Attr{Key: key, Value: v})
			continue
		}
		text := v.String() // as it prints itself
		if v.Kind() == slog.KindAny && v.Any() == nil || text == "" {
			continue
		}
		plain = append(plain, slog.String(key, call.Shorten(text, longestLog)))
	}
	return plain
}
