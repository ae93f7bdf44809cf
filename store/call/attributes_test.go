package call

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"weir/proxy/wire"
)

// fill sets every field of v to something that is not its zero value.
func fill(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+rng.IntN(26))) + "世")
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + rng.Int64N(1e9))
	case reflect.Float64:
		v.SetFloat(rng.Float64() + 0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		fill(p.Elem(), rng)
		v.Set(p)
	case reflect.Array, reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rng)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{5, 1})
			return
		}
		fill(v.Index(0), rng)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"team": "a", "区": "b"}))
	}
}

// full is a call of which everything is known.
func full(seed uint64) *Call {
	c := &Call{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "TraceID", "SpanID", "ParentSpan":
		default:
			fill(v.Field(i), rand.New(rand.NewPCG(seed, 0)))
		}
	}
	c.Request.User = "" // never leaves the process
	c.Arrived = At(time.Unix(1_800_000_000, 123456789))
	c.Due = c.Arrived - 5
	return c
}

// span sends c through a real tracer, and gives what a span processor sees.
func span(t *testing.T, c *Call) *Call {
	t.Helper()
	var ended *Call
	p := sdktrace.NewTracerProvider(sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: -1, AttributeCountLimit: -1}),
		sdktrace.WithSpanProcessor(onEnd(func(s sdktrace.ReadOnlySpan) {
			var ok bool
			if ended, ok = FromSpan(s); !ok {
				t.Fatal("FromSpan does not know weir's own span")
			}
		})))
	_, s := p.Tracer("test").Start(context.Background(), c.SpanName(), trace.WithTimestamp(c.Arrived.Time()), trace.WithAttributes(c.StartAttributes()...))
	s.SetAttributes(c.Attributes()...)
	s.End(trace.WithTimestamp(c.Done.Time()))
	ended.TraceID, ended.SpanID = [16]byte{}, [8]byte{}
	return ended
}

type onEnd func(sdktrace.ReadOnlySpan)

func (onEnd) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (f onEnd) OnEnd(s sdktrace.ReadOnlySpan)                 { f(s) }
func (onEnd) Shutdown(context.Context) error                  { return nil }
func (onEnd) ForceFlush(context.Context) error                { return nil }

func TestCallSurvivesItsSpan(t *testing.T) {
	for seed := range uint64(20) {
		c := full(seed)
		if diff := cmp.Diff(c, span(t, c)); diff != "" {
			t.Fatalf("seed %d: a full call changed on its way through a span:\n%s", seed, diff)
		}
	}
}

func TestAbsentStaysAbsent(t *testing.T) {
	c := &Call{Side: Proxy, Operation: wire.OpChat, Instants: Instants{Arrived: Now()}}
	for key := range c.Properties() {
		if key != keySide && key != keyOperation {
			t.Errorf("an empty call states %s", key)
		}
	}
	if diff := cmp.Diff(c, span(t, c)); diff != "" {
		t.Errorf("an empty call changed on its way through a span:\n%s", diff)
	}
}

func TestKeysAreSpelledOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			t.Errorf("%s stands twice", f.key)
		}
		seen[f.key] = true
	}
}

func BenchmarkSpan(b *testing.B) {
	c := full(1)
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(onEnd(func(s sdktrace.ReadOnlySpan) { FromSpan(s) })))
	tracer := p.Tracer("test")
	b.ReportAllocs()
	for b.Loop() {
		_, s := tracer.Start(context.Background(), c.SpanName(), trace.WithAttributes(c.StartAttributes()...))
		s.SetAttributes(c.Attributes()...)
		s.End()
	}
}
