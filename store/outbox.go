package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

const (
	sendRows    = 512
	sendBytes   = 1<<20 - 16<<10 // gateways take messages of 1 MiB, collectors of 4; one span is smaller
	gatherFor   = time.Second    // how long a span waits for others to go with it
	sendTimeout = 10 * time.Second
	firstRetry  = time.Second
	longRetry   = 30 * time.Second
)

// Outbox sends the spans in the database to a collector by OTLP, in the order
// in which they were written. How far it has come is kept in the database, so
// that a collector that is down loses nothing and delays nobody: what it did
// not take is sent when it can be, by this process or the next one with the
// same target. Each span is sent at least once, under the same ids; one that the
// collector rejects for good is counted and passed over.
type Outbox struct {
	db *DB
	*endpoint
	writer   int64
	client   otlptrace.Client
	resource *resourcepb.Resource
	log      *slog.Logger

	fresh                  fresh // what this process wrote; empty of one that does not record
	wake, full             chan struct{}
	stop                   chan struct{}
	done                   chan struct{}
	ctx                    context.Context // ends when no more may be sent
	cancel                 context.CancelFunc
	sent, failed, rejected atomic.Int64
	lastErr                atomic.Pointer[error]
	rejection              atomic.Pointer[string]
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
		sum((SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id <= c.last_id) - c.rejected - c.elsewhere),
		sum((SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id > c.last_id)),
		sum(c.rejected), (SELECT e.rejection FROM export_cursor e WHERE e.target = c.target AND e.rejection IS NOT NULL ORDER BY e.writer DESC LIMIT 1)
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
	wrote := func(batch []ended, ids []int64) {
		if b.fresh.put(batch, ids) {
			stir(b.full)
		}
		stir(b.wake)
	}
	r.wrote.Store(&wrote)
	go b.run(b.ctx)
	return b, nil
}

// openOutbox is an outbox that is ready to send, and does not do so by itself.
func openOutbox(ctx context.Context, db *DB, writer int64, res *resource.Resource, o TracingOptions) (*Outbox, error) {
	at, err := otlpEndpoint(o.Env, "TRACES")
	if at == nil || err != nil {
		return nil, err
	}
	var client otlptrace.Client
	if at.protocol == "grpc" {
		options := []otlptracegrpc.Option{otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false})}
		if at.unnamed != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(at.unnamed))
		}
		client = otlptracegrpc.NewClient(options...)
	} else {
		options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false})}
		if at.unnamed != "" {
			options = append(options, otlptracehttp.WithEndpointURL(at.unnamed))
		}
		client = otlptracehttp.NewClient(options...)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &Outbox{
		db: db, endpoint: at, writer: writer, client: client, log: o.Log, ctx: run, cancel: cancel,
		resource: &resourcepb.Resource{Attributes: keyValues(res.Attributes())},
		wake:     make(chan struct{}, 1), full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if err := client.Start(run); err != nil {
		cancel()
		return nil, at.wrap("", err)
	}
	return b, nil
}

// Target is the collector's address.
func (b *Outbox) Target() string { return b.target }

// Sent is how many spans the collector took, Failed how many attempts to send
// some it did not.
func (b *Outbox) Sent() int64   { return b.sent.Load() }
func (b *Outbox) Failed() int64 { return b.failed.Load() }

// Rejected is how many spans the collector rejected for good, and Rejection why
// the last of them; empty when none was.
func (b *Outbox) Rejected() int64 { return b.rejected.Load() }
func (b *Outbox) Rejection() string {
	if why := b.rejection.Load(); why != nil {
		return *why
	}
	return ""
}

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

func stir(c chan struct{}) {
	select {
	case c <- struct{}{}:
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
			b.gather()
		case <-again:
		}
	}
}

// gather waits for more to send: a message costs as much as many spans.
func (b *Outbox) gather() {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-b.stop:
	case <-b.full:
	case <-timer.C:
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
		b.log.Warn("the collector does not take spans; they are kept and sent later", "target", b.target, "error", err)
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
	d, more, err := b.sendFresh(ctx, writer, cursor)
	if d.last > cursor || d.rejected > 0 {
		if _, written := b.db.write.ExecContext(ctx, "UPDATE export_cursor SET last_id = ?, rejected = rejected + ?, rejection = coalesce(?, rejection) WHERE target = ? AND writer = ?",
			d.last, d.rejected, null(d.rejection), b.target, writer); written != nil {
			return false, errors.Join(err, written)
		}
	}
	if err != nil && ctx.Err() == nil {
		_, _ = b.db.write.ExecContext(ctx, "UPDATE export_cursor SET failed = failed + 1, failed_ns = ?, error = ? WHERE target = ? AND writer = ?",
			time.Now().UnixNano(), err.Error(), b.target, writer) // err itself is told
	}
	return more && err == nil, err
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// sendFresh sends what this process wrote behind an id, from the database only
// where it must.
func (b *Outbox) sendFresh(ctx context.Context, writer, behind int64) (d dealt, more bool, err error) {
	if writer == b.writer {
		if batch, last, ok := b.fresh.take(behind); ok {
			d, err = b.deliver(ctx, writer, batch, behind, last)
			return d, false, err
		}
	}
	return b.send(ctx, writer, filter{}, behind)
}

// send sends the first spans behind an id that a writer wrote and f lets pass,
// as many as go in one message.
func (b *Outbox) send(ctx context.Context, writer int64, f filter, behind int64) (d dealt, more bool, err error) {
	f.and("s.id > ?", behind)
	f.and("s.writer = ?", writer)
	last, n := behind, 0
	var batch message
	for id, row := range b.db.spans(ctx, selectSpan+f.sql()+" ORDER BY s.id LIMIT ?", append(f.args, sendRows)...) {
		if row.err != nil {
			return dealt{last: behind}, false, row.err
		}
		if row.sampled {
			if batch.add(id, row.call); len(batch.encoded) > sendBytes && len(batch.spans) > 1 {
				batch.undo()
				more = true
				break
			}
		}
		last, n = id, n+1
	}
	d, err = b.deliver(ctx, writer, batch, behind, last)
	return d, err == nil && (more || n == sendRows), err
}

// deliver sends a message of a writer's spans, all that are to be sent behind
// one id up to another, and says what became of them, even beside an error.
func (b *Outbox) deliver(ctx context.Context, writer int64, batch message, behind, last int64) (d dealt, err error) {
	d.last = behind
	if len(batch.spans) > 0 {
		from, err := b.resourceOf(ctx, writer)
		if err != nil {
			return d, err
		}
		if err := b.upload(ctx, from, batch, &d); err != nil {
			return d, err
		}
	}
	d.last = last
	return d, nil
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
