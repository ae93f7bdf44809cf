package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Tracing is where spans are made: they go through the recorder into the
// database, and from there to a collector if one is configured.
type Tracing struct {
	Provider *sdktrace.TracerProvider
	Recorder *Recorder
	Outbox   *Outbox // nil when no collector is configured

	resource *resource.Resource
}

// TracingOptions say whose spans they are.
type TracingOptions struct {
	Version string                           // of weir
	Env     func(name string) (string, bool) // of the process; nil: empty
	Log     *slog.Logger                     // told what the collector refuses; nil: nobody is
}

// NewTracing begins to record into db, and to send on to the collector that the
// OTEL_ variables name. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are
// honoured. OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none keep spans from
// being sent, not from being recorded: the database is weir's own truth, and
// for the same reason it also holds what a caller's trace was not sampled for.
func NewTracing(ctx context.Context, db *DB, o TracingOptions) (*Tracing, error) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	recorder, err := NewRecorder(ctx, db, o.Version)
	if err != nil {
		return nil, err
	}
	who, err := db.writerOf(ctx, recorder.writer)
	if err != nil {
		return nil, errors.Join(err, recorder.Shutdown(ctx))
	}
	res, err := newResource(ctx, o, attribute.String(keyInstance, who.instance()))
	if err != nil {
		return nil, errors.Join(err, recorder.Shutdown(ctx))
	}
	if err := db.keepResource(ctx, recorder.writer, res); err != nil {
		return nil, errors.Join(err, recorder.Shutdown(ctx))
	}
	t := &Tracing{Recorder: recorder, resource: res}
	if t.Outbox, err = newOutbox(ctx, db, recorder, res, o); err != nil {
		return nil, errors.Join(err, recorder.Shutdown(ctx))
	}
	t.Provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(res),
		sdktrace.WithSpanProcessor(recorder),
		sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.ParentBased(sdktrace.AlwaysSample()))))
	return t, nil
}

// newResource says what the spans are of, by the conventions; what the OTEL_
// variables say of it counts.
func newResource(ctx context.Context, o TracingOptions, more ...attribute.KeyValue) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "weir"), attribute.String(keyVersion, o.Version)),
		resource.WithAttributes(more...),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return res, nil
}

// Shutdown writes all that has ended, and then sends what it can until ctx
// ends; what the collector did not take stays in the database. Streams are
// drained before.
func (t *Tracing) Shutdown(ctx context.Context) error {
	err := t.Provider.Shutdown(ctx)
	if t.Outbox != nil {
		err = errors.Join(err, t.Outbox.shutdown(ctx))
	}
	return err
}
