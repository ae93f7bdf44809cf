package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

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
// for the same reason it also holds what a caller's trace was not sampled for, or
// OTEL_TRACES_SAMPLER leaves out.
func NewTracing(ctx context.Context, db *DB, o TracingOptions) (*Tracing, error) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	sampler, err := samplerOf(o.Env)
	if err != nil {
		return nil, err
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
		sdktrace.WithSampler(sdktrace.AlwaysRecord(sampler)))
	return t, nil
}

// samplerOf says which spans are sent, by OTEL_TRACES_SAMPLER.
func samplerOf(env func(string) (string, bool)) (sdktrace.Sampler, error) {
	get := variables(env)
	_, name := get.first("OTEL_TRACES_SAMPLER")
	_, arg := get.first("OTEL_TRACES_SAMPLER_ARG")
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	var sampler sdktrace.Sampler
	switch kind {
	case "":
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		share := 1.0
		if arg != "" {
			var err error
			if share, err = strconv.ParseFloat(arg, 64); err != nil || share < 0 || share > 1 {
				return nil, BadVariable("OTEL_TRACES_SAMPLER_ARG=" + arg + ": want a share from 0 to 1")
			}
		}
		sampler = sdktrace.TraceIDRatioBased(share)
	default:
		return nil, BadVariable("OTEL_TRACES_SAMPLER=" + name + ": want always_on, always_off or traceidratio, or parentbased_ and one of these")
	}
	if parentBased {
		sampler = sdktrace.ParentBased(sampler)
	}
	return sampler, nil
}

// newResource says what the spans are of, by the conventions; what the OTEL_
// variables say of it counts.
func newResource(ctx context.Context, o TracingOptions, more ...attribute.KeyValue) (*resource.Resource, error) {
	if _, pairs := variables(o.Env).first("OTEL_RESOURCE_ATTRIBUTES"); pairs != "" {
		for pair := range strings.SplitSeq(pairs, ",") {
			if key, _, ok := strings.Cut(pair, "="); !ok || strings.TrimSpace(key) == "" {
				return nil, BadVariable("OTEL_RESOURCE_ATTRIBUTES: want name=value, with a comma between several")
			}
		}
	}
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
