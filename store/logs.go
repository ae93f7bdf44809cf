package store

import (
	"context"
	"fmt"
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
	target, protocol, err := otlpTarget(o.Env, "LOGS")
	if target == "" || err != nil {
		return nil, err
	}
	var exporter sdklog.Exporter
	switch protocol {
	case "grpc":
		exporter, err = otlploggrpc.New(ctx, otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false}))
	case "http/protobuf", "":
		exporter, err = otlploghttp.New(ctx, otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}))
	default:
		err = unknownProtocol(protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("OTLP logs to %s: %w", target, err)
	}
	quiet := &quietLogs{Exporter: exporter, target: target, log: o.Log}
	if quiet.log == nil {
		quiet.log = slog.New(slog.DiscardHandler)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(t.resource), sdklog.WithProcessor(sdklog.NewBatchProcessor(quiet)))
	return &Logs{Handler: otelslog.NewHandler("weir", otelslog.WithLoggerProvider(provider)), provider: provider}, nil
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
	target string
	log    *slog.Logger
	failed atomic.Bool
}

// Export sends records. It never fails, or the SDK would say so each time.
func (e *quietLogs) Export(ctx context.Context, records []sdklog.Record) error {
	err := e.Exporter.Export(ctx, records)
	if was := e.failed.Swap(err != nil); err != nil && !was {
		e.log.Warn("the collector does not take the log", "target", e.target, "error", call.Redact(err.Error()))
	}
	return nil
}
