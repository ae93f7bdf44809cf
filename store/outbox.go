package store

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"weir/store/call"
)

const (
	sendRows    = 512
	sendBytes   = 2 << 20 // collectors take messages of 4 MiB, and one span is far smaller
	sendTimeout = 10 * time.Second
	firstRetry  = time.Second
	longRetry   = 30 * time.Second
)

// Outbox sends the spans in the database to a collector by OTLP, in the order
// in which they were written. How far it has come is kept in the database, so
// that a collector that is down loses nothing and delays nobody: what it did
// not take is sent when it can be, by this process or the next one with the
// same target. Each span is sent at least once, under the same ids.
type Outbox struct {
	db       *DB
	target   string
	writer   int64
	client   otlptrace.Client
	resource *resourcepb.Resource
	log      *slog.Logger

	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	ctx     context.Context // ends when no more may be sent
	cancel  context.CancelFunc
	sent    atomic.Int64
	failed  atomic.Int64
	lastErr atomic.Pointer[error]
}

// What is asked after each batch, or whenever somebody looks. A database has many
// processes and spans: none of it may read all spans, so there is an index.
const (
	countWaiting = `SELECT count(*) FROM export_cursor c JOIN spans s ON s.writer = c.writer
		WHERE c.target = ? AND s.id > c.last_id AND s.sampled = 1`
	writersToSend = `SELECT c.writer, w.pid, w.heartbeat_ns, w.ended_ns FROM export_cursor c JOIN writers w ON w.id = c.writer
		WHERE c.target = ? AND (c.writer = ? OR c.last_id < (SELECT max(s.id) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1)) ORDER BY c.writer`
	deliveries = `SELECT c.target, sum(c.failed), max(c.failed_ns),
		(SELECT e.error FROM export_cursor e WHERE e.target = c.target ORDER BY e.failed_ns DESC LIMIT 1),
		sum((SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id <= c.last_id)),
		sum((SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id > c.last_id))
		FROM export_cursor c GROUP BY c.target ORDER BY c.target`
)

// newOutbox is nil where the environment configures no collector.
func newOutbox(ctx context.Context, db *DB, r *Recorder, res *resource.Resource, o TracingOptions) (*Outbox, error) {
	b, err := openOutbox(ctx, db, r.writer, res, o)
	if b == nil || err != nil {
		return nil, err
	}
	if _, err := db.write.ExecContext(ctx, "INSERT OR IGNORE INTO export_cursor (target, writer, last_id) VALUES (?, ?, (SELECT coalesce(max(id), 0) FROM spans))", b.target, r.writer); err != nil {
		b.cancel()
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	wrote := func(int64) { b.stir() }
	r.wrote.Store(&wrote)
	go b.run(b.ctx)
	return b, nil
}

// openOutbox is an outbox that is ready to send, and does not do so by itself.
func openOutbox(ctx context.Context, db *DB, writer int64, res *resource.Resource, o TracingOptions) (*Outbox, error) {
	target, protocol, err := otlpTarget(o.Env, "TRACES")
	if target == "" || err != nil {
		return nil, err
	}
	var client otlptrace.Client
	switch protocol {
	case "grpc":
		client = otlptracegrpc.NewClient(otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}))
	case "http/protobuf", "":
		client = otlptracehttp.NewClient(otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	default:
		return nil, unknownProtocol(protocol)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &Outbox{
		db: db, target: target, writer: writer, client: client, log: o.Log, ctx: run, cancel: cancel,
		resource: &resourcepb.Resource{Attributes: keyValues(res.Attributes())},
		wake:     make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if err := client.Start(run); err != nil {
		cancel()
		return nil, fmt.Errorf("OTLP to %s: %w", target, err)
	}
	return b, nil
}

// BadVariable is an OTEL_ variable that cannot be followed, and what is wanted.
type BadVariable string

func (v BadVariable) Error() string { return string(v) }

func unknownProtocol(protocol string) error {
	return BadVariable("OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol + ": want grpc or http/protobuf")
}

// otlpTarget reads where a signal, TRACES, METRICS or LOGS, is to be sent, by the
// variables of the OpenTelemetry specification; empty for nowhere. An address
// that is no URL is an error: the SDK would send to its own default instead.
func otlpTarget(env func(string) (string, bool), signal string) (target, protocol string, err error) {
	get := func(names ...string) string {
		for _, name := range names {
			if v, ok := env(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_"+signal+"_EXPORTER") == "none" {
		return "", "", nil
	}
	target = get("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if target == "" {
		return "", "", nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", BadVariable("OTEL_EXPORTER_OTLP_ENDPOINT for " + strings.ToLower(signal) + ": want a URL, as http://127.0.0.1:4318, or http://127.0.0.1:4317 for gRPC")
	}
	u.User = nil // it may hold a password, and the target is stored and told
	return u.String(), get("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"), nil
}

// Target is the collector's address.
func (b *Outbox) Target() string { return b.target }

// Sent is how many spans the collector took, Failed how many attempts to send
// some it did not.
func (b *Outbox) Sent() int64   { return b.sent.Load() }
func (b *Outbox) Failed() int64 { return b.failed.Load() }

// Err is why the last attempt failed; nil when it did not.
func (b *Outbox) Err() error {
	if err := b.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

// Waiting is how many spans of the database are yet to be sent to the target.
func (b *Outbox) Waiting(ctx context.Context) (n int64, err error) {
	err = b.db.read.QueryRowContext(ctx, countWaiting, b.target).Scan(&n)
	return n, err
}

func (b *Outbox) stir() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Outbox) run(ctx context.Context) {
	defer close(b.done)
	wait := firstRetry
	for {
		err := b.sendAll(ctx)
		var again <-chan time.Time
		if err != nil {
			again = time.After(wait)
			wait = min(2*wait, longRetry)
		} else {
			wait = firstRetry
		}
		wake := b.wake
		if err != nil {
			wake = nil // new spans do not make the collector well
		}
		select {
		case <-b.stop:
			_ = b.sendAll(ctx) // told by Err
			return
		case <-wake:
		case <-again:
		}
	}
}

// sendAll sends what waits: this process's spans, and those that processes
// which have ended left for the same target.
func (b *Outbox) sendAll(ctx context.Context) error {
	writers, err := b.writers(ctx)
	for _, w := range writers {
		for more := true; more && err == nil; {
			more, err = b.sendBatch(ctx, w)
		}
	}
	if err == nil {
		b.lastErr.Store(nil)
		return nil
	}
	b.failed.Add(1)
	if b.lastErr.Swap(&err) == nil {
		b.log.Warn("the collector does not take spans; they are kept and sent later", "target", b.target, "error", call.Redact(err.Error()))
	}
	return err
}

func (b *Outbox) writers(ctx context.Context) ([]int64, error) {
	rows, err := b.db.read.QueryContext(ctx, writersToSend, b.target, b.writer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []int64
	for rows.Next() {
		var id, heartbeat int64
		var pid int
		var ended *int64
		if err := rows.Scan(&id, &pid, &heartbeat, &ended); err != nil {
			return nil, err
		}
		if id == b.writer || ended != nil || (pid != os.Getpid() && gone(pid, time.Unix(0, heartbeat))) {
			all = append(all, id)
		}
	}
	return all, rows.Err()
}

// sendBatch sends the next spans of one writer.
func (b *Outbox) sendBatch(ctx context.Context, writer int64) (more bool, err error) {
	var cursor int64
	if err := b.db.read.QueryRowContext(ctx, "SELECT last_id FROM export_cursor WHERE target = ? AND writer = ?", b.target, writer).Scan(&cursor); err != nil {
		return false, err
	}
	last, more, err := b.send(ctx, writer, filter{}, cursor)
	if err != nil {
		if ctx.Err() == nil {
			_, _ = b.db.write.ExecContext(ctx, "UPDATE export_cursor SET failed = failed + 1, failed_ns = ?, error = ? WHERE target = ? AND writer = ?",
				time.Now().UnixNano(), call.Redact(err.Error()), b.target, writer) // err itself is told
		}
		return false, err
	}
	if last == cursor {
		return false, nil
	}
	_, err = b.db.write.ExecContext(ctx, "UPDATE export_cursor SET last_id = ? WHERE target = ? AND writer = ?", last, b.target, writer)
	return more, err
}

// send sends the first spans behind an id that a writer wrote and f lets pass,
// as many as go in one message, and gives the id of the last one.
func (b *Outbox) send(ctx context.Context, writer int64, f filter, behind int64) (last int64, more bool, err error) {
	f.and("s.id > ?", behind)
	f.and("s.writer = ?", writer)
	last, n, size := behind, 0, 0
	var batch []*tracepb.Span
	for id, row := range b.db.spans(ctx, selectSpan+f.sql()+" ORDER BY s.id LIMIT ?", append(f.args, sendRows)...) {
		if row.err != nil {
			return 0, false, row.err
		}
		last, n = id, n+1
		if row.sampled {
			s := span(row.call)
			batch = append(batch, s)
			if size += proto.Size(s); size >= sendBytes {
				more = true
				break
			}
		}
	}
	if len(batch) == 0 {
		return last, n == sendRows, nil
	}
	from, err := b.resourceOf(ctx, writer)
	if err != nil {
		return 0, false, err
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err = b.client.UploadTraces(sending, []*tracepb.ResourceSpans{{
		Resource:   from,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "weir"}, Spans: batch}},
	}})
	// A collector that took a part must not be sent that part again.
	if err != nil && !strings.Contains(err.Error(), "OTLP partial success") {
		return 0, false, err
	}
	b.sent.Add(int64(len(batch)))
	return last, more || n == sendRows, nil
}

// shutdown makes a last attempt, which ctx ends.
func (b *Outbox) shutdown(ctx context.Context) error {
	close(b.stop)
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	b.cancel()
	<-b.done
	return b.client.Stop(context.WithoutCancel(ctx))
}

// span is a call as OTLP has it.
func span(c *call.Call) *tracepb.Span {
	s := &tracepb.Span{
		TraceId: c.TraceID[:], SpanId: c.SpanID[:], Name: c.SpanName(), Kind: tracepb.Span_SPAN_KIND_CLIENT,
		StartTimeUnixNano: uint64(c.Started().UnixNano()), EndTimeUnixNano: uint64(c.Done.Time().UnixNano()),
		Attributes: keyValues(c.Attributes()), Flags: 1, TraceState: c.TraceState,
	}
	for _, e := range c.SpanEvents() {
		s.Events = append(s.Events, &tracepb.Span_Event{Name: e.Name, TimeUnixNano: uint64(e.At.Time().UnixNano())})
	}
	if c.ParentSpan != [8]byte{} {
		s.ParentSpanId = c.ParentSpan[:]
	}
	if code, message := c.SpanStatus(); code == codes.Error {
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	}
	return s
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
