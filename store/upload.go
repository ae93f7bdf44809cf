package store

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// dealt is what became of spans that were sent.
type dealt struct {
	last      int64  // id of the last one that need not be sent again
	rejected  int64  // that the collector will never take
	rejection string // why the last of them; empty when none was
}

// upload sends spans. Those that the collector refuses for good are found by
// halving, and passed over: they would stand before all others. An error says
// that those behind d.last are to be sent again.
func (b *Outbox) upload(ctx context.Context, from *resourcepb.Resource, batch message, d *dealt) error {
	err := b.post(ctx, from, batch)
	rejected, why, partial := partlyTaken(err)
	switch {
	case err == nil || partial:
		d.last = batch.spans[len(batch.spans)-1].id
		b.sent.Add(max(int64(len(batch.spans))-rejected, 0))
		if rejected > 0 {
			b.reject(d, rejected, b.explain(why).Error())
		}
		return nil
	case !forGood(err):
		return b.explain(err)
	case len(batch.spans) > 1:
		half := len(batch.spans) / 2
		if err := b.upload(ctx, from, batch.some(batch.spans[:half]), d); err != nil {
			return err
		}
		return b.upload(ctx, from, batch.some(batch.spans[half:]), d)
	}
	// One that refuses even nothing does not speak of this span: it is no
	// collector, or it is set up wrong, and what waits for it is kept.
	if b.post(ctx, from, message{}) != nil {
		return b.explain(err)
	}
	s := batch.spans[0]
	d.last = s.id
	b.reject(d, 1, fmt.Sprintf("span %x of trace %x: %s", s.span, s.trace, b.explain(err)))
	return nil
}

func (b *Outbox) reject(d *dealt, n int64, why string) {
	d.rejected += n
	d.rejection = why
	b.rejection.Store(&why)
	if b.rejected.Add(n) == n { // the first ones; all are counted
		b.log.Warn("the collector rejects spans for good; they are not sent again", "target", b.target, "spans", n, "error", why)
	}
}

// post makes one request; without spans it asks whether any are taken.
func (b *Outbox) post(ctx context.Context, from *resourcepb.Resource, batch message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return b.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{Resource: from, ScopeSpans: []*tracepb.ScopeSpans{batch.scope()}}})
}

// The exporters' errors have no types that others can name.
var (
	partialSuccess = regexp.MustCompile(`(?s)^OTLP partial success: (.*) \((\d+) spans rejected\)`)
	httpStatus     = regexp.MustCompile(`^failed to send to \S+: (\d{3}) `)
)

// partlyTaken says whether an error is that of a collector that took the others
// of a batch, how many it rejected, and why. What it took it must not be sent
// again, and it may reject none and only warn.
func partlyTaken(err error) (rejected int64, why error, partial bool) {
	if err == nil {
		return 0, nil, false
	}
	found := partialSuccess.FindStringSubmatch(err.Error())
	if found == nil {
		return 0, nil, false
	}
	n, _ := strconv.ParseInt(found[2], 10, 64)
	return n, fmt.Errorf("partial success: %s", found[1]), true
}

// forGood says whether an error is about what was sent, so that it would come
// again: 400 and 413, and their kin in gRPC. All other errors are about the
// collector or the way to it, and may pass.
func forGood(err error) bool {
	if found := httpStatus.FindStringSubmatch(err.Error()); found != nil {
		return found[1] == "400" || found[1] == "413"
	}
	switch s := status.Convert(err); s.Code() {
	case grpccodes.InvalidArgument:
		return true
	case grpccodes.ResourceExhausted: // of memory too, which passes
		return strings.Contains(s.Message(), "larger than max")
	}
	return false
}

func keyValues(list []attribute.KeyValue) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(list))
	for _, kv := range list {
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: value(kv.Value)})
	}
	return out
}

func value(v attribute.Value) *commonpb.AnyValue {
	str := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.STRINGSLICE:
		var list []*commonpb.AnyValue
		for _, s := range v.AsStringSlice() {
			list = append(list, str(s))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: list}}}
	}
	return str(v.String())
}
