package store

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"weir/store/call"
)

const (
	queueLength = 16_384
	batchRows   = 512
	fullWait    = 100 * time.Millisecond // how long an ending call waits for room
	idleBeat    = time.Minute            // how often a writer without calls says that it lives
)

// Recorder is a span processor that writes weir's spans to the database, in
// batches of its own goroutine. Nothing of it stands in the way of a request:
// a span is queued when its call has ended. When the queue is full the ending
// call waits a moment; what finds no room even then is lost and counted, and so
// is all that comes until there is room again.
// Spans that are not weir's calls are passed over.
type Recorder struct {
	writing
	writer int64
	sql    statements
	rows   rows // the writer's own
	names  *names
	// wrote is shown each batch once it is written, with the calls' ids, 0 for one
	// that was not; nil when nobody listens.
	wrote atomic.Pointer[func(batch []ended, ids []int64)]
	// measure is shown each ended call once, by the writer; nil when nobody looks.
	measure atomic.Pointer[func(*call.Call, trace.SpanContext)]

	queue chan ended

	// ending is held while a span is queued, and for good once no more may be.
	ending  sync.RWMutex
	stopped bool

	mu   sync.Mutex
	open map[[8]byte]*openCall

	written, lost, waiting atomic.Int64
	choked                 atomic.Bool // a span waited in vain for room, and there was none since
}

// openCall is a call in flight.
type openCall struct {
	call  *call.Call // still written to by others, until its span ends
	id    [8]byte
	trace [16]byte
	start time.Time
	// series is of metrics; nil of a connection, which is no call of them.
	series *call.Series
	attrs  []attribute.KeyValue // nil once they stand in the table; the writer's own
	kept   bool                 // stands in the table; the writer's own
	over   bool                 // its row is being written; the writer's own
	ended  bool                 // its row is not written yet
	lost   bool                 // it has ended, and its span found no room
}

// ended is a call that waits to be written.
type ended struct {
	call *call.Call
	span trace.SpanContext
	open *openCall
}

// NewRecorder begins to record. version is weir's own, kept with the process.
func NewRecorder(ctx context.Context, db *DB, version string) (*Recorder, error) {
	now := time.Now().UnixNano()
	res, err := db.write.ExecContext(ctx, "INSERT INTO writers (pid, started_ns, heartbeat_ns, version) VALUES (?, ?, ?, ?)", os.Getpid(), now, now, version)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	id, err := res.LastInsertId()
	if err != nil {
		return nil, err
	}
	sql, err := prepare(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	r := &Recorder{
		writing: writing{db: db}, writer: id, sql: sql, names: newNames(),
		queue: make(chan ended, queueLength), open: map[[8]byte]*openCall{},
	}
	r.begin(r.run)
	return r, nil
}

// Written is how many calls are in the database, Lost how many could not be
// written and never will be, Waiting how many ended calls are not written yet.
func (r *Recorder) Written() int64 { return r.written.Load() }
func (r *Recorder) Lost() int64    { return r.lost.Load() }
func (r *Recorder) Waiting() int64 { return r.waiting.Load() }

// Err is why the last batch could not be written; nil when it could.
func (r *Recorder) Err() error { return r.failure() }

// OnStart takes down that a call is in flight.
func (r *Recorder) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	c := call.Begun(ctx)
	if c == nil {
		return
	}
	sc := s.SpanContext()
	o := &openCall{call: c, id: sc.SpanID(), trace: sc.TraceID(), start: s.StartTime(), attrs: c.StartAttributes()}
	if c.Purpose != call.PurposeConnection {
		series := c.Series()
		o.series = &series
	}
	r.mu.Lock()
	r.open[o.id] = o
	r.mu.Unlock()
}

// OnEnd queues an ended call.
func (r *Recorder) OnEnd(s sdktrace.ReadOnlySpan) {
	sc := s.SpanContext()
	r.mu.Lock()
	o := r.open[sc.SpanID()]
	r.mu.Unlock()
	if o == nil {
		return
	}
	r.ending.RLock()
	defer r.ending.RUnlock()
	r.waiting.Add(1)
	lost := r.stopped || !r.enqueue(ended{o.call, sc, o})
	if lost {
		r.lose(1)
	}
	r.mu.Lock()
	o.ended, o.lost = true, lost
	r.mu.Unlock()
}

// show shows a call to whoever measures calls.
func (r *Recorder) show(e ended) ended {
	if measure := r.measure.Load(); measure != nil {
		(*measure)(e.call, e.span)
	}
	return e
}

// underWay are the series of the calls that have begun and not ended.
func (r *Recorder) underWay() []*call.Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*call.Series, 0, len(r.open))
	for _, o := range r.open {
		if !o.ended && o.series != nil {
			all = append(all, o.series)
		}
	}
	return all
}

// enqueue finds room for a call; false when there was none even after a wait.
func (r *Recorder) enqueue(e ended) bool {
	select {
	case r.queue <- e:
		r.choked.Store(false)
		return true
	default:
	}
	// Calls may be ended one after the other: if each waited, a disk that takes
	// nothing would hold up ever more of them.
	if r.choked.Load() {
		return false
	}
	timer := time.NewTimer(fullWait)
	defer timer.Stop()
	select {
	case r.queue <- e:
		return true
	case <-timer.C:
		r.choked.Store(true)
		return false
	}
}

func (r *Recorder) lose(n int) {
	r.lost.Add(int64(n))
	r.waiting.Add(-int64(n))
}

// ForceFlush writes all that has ended before.
func (r *Recorder) ForceFlush(ctx context.Context) error { return r.all(ctx) }

// Shutdown writes all that has ended and stops. Calls that end later are lost,
// so streams are drained before. It gives up when ctx ends.
func (r *Recorder) Shutdown(ctx context.Context) error {
	err := r.end(ctx, func() {
		r.ending.Lock()
		r.stopped = true
		r.ending.Unlock()
	})
	if err != nil {
		return err
	}
	return r.Err()
}

// run is the only writer.
func (r *Recorder) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var batch []ended
	var due <-chan time.Time
	beat := time.Now()
	write := func() error {
		ticker.Reset(tick) // every batch brings the calls in flight up to date
		batch = r.take(batch)
		err := r.writeBatch(batch)
		if err == nil {
			batch = batch[:0]
		} else {
			// Kept and tried again, while there is room for what comes.
			due = time.After(tick)
		}
		return err
	}
	for {
		// A batch that cannot be written takes no more in.
		queue := r.queue
		if len(batch) >= batchRows {
			queue = nil
		}
		select {
		case e := <-queue:
			batch = append(batch, r.show(e))
			if len(batch) == 1 && due == nil {
				due = time.After(batchWait)
			}
			if len(batch) < batchRows || r.Err() != nil {
				continue
			}
			due = nil
			_ = write() // told by Err
		case <-due:
			due = nil
			_ = write() // told by Err
		case <-ticker.C:
			if r.Err() == nil && (len(batch) > 0 || r.anyOpen() || time.Since(beat) > idleBeat) {
				_ = write() // told by Err
				beat = time.Now()
			}
		case answer := <-r.flush:
			var err error
			for err = write(); err == nil && len(r.queue) > 0; err = write() {
			}
			answer <- err
		case <-r.stop:
			r.finish(batch)
			return
		}
	}
}

// take fills a batch from the queue without waiting.
func (r *Recorder) take(batch []ended) []ended {
	for len(batch) < batchRows {
		select {
		case e := <-r.queue:
			batch = append(batch, r.show(e))
		default:
			return batch
		}
	}
	return batch
}

// finish writes what is left. What cannot be written after some tries is lost.
func (r *Recorder) finish(batch []ended) {
	for tries := 0; ; {
		batch = r.take(batch)
		err := r.writeBatch(batch)
		if err == nil {
			if batch = batch[:0]; len(r.queue) == 0 {
				break
			}
			continue
		}
		if tries++; tries >= lastTries {
			r.lose(len(batch) + len(r.queue))
			break
		}
		time.Sleep(tick)
	}
	now := time.Now().UnixNano()
	_, _ = r.db.write.Exec("UPDATE writers SET ended_ns = ?, heartbeat_ns = ?, lost = ? WHERE id = ?", now, now, r.lost.Load(), r.writer)
	_, _ = r.db.write.Exec("DELETE FROM in_flight WHERE writer = ?", r.writer)
	r.sql.close()
	_, _ = r.db.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

func (r *Recorder) anyOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) > 0
}

// writeBatch writes ended calls and the calls in flight in one transaction.
func (r *Recorder) writeBatch(batch []ended) error {
	ids, written, err := r.transaction(batch)
	if r.note(err) != nil {
		r.names.forget() // some of them may have been rolled back
		return r.Err()
	}
	r.written.Add(int64(written))
	r.waiting.Add(-int64(written))
	r.lose(len(batch) - written)
	if wrote := r.wrote.Load(); wrote != nil && written > 0 {
		(*wrote)(batch, ids)
	}
	return nil
}

// transaction writes what it can of a batch: a call that cannot be put into a
// row, which no call should be, is left out, and does not stop the others.
func (r *Recorder) transaction(batch []ended) (ids []int64, written int, err error) {
	tx, err := r.db.write.Begin()
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if len(batch) > 0 {
		insert := tx.Stmt(r.sql.insert) //nolint:sqlclosecheck // the transaction's end does
		ids = make([]int64, len(batch))
		for i, e := range batch {
			var stored error // of a name that had to be written
			values, err := r.rows.row(e.call, r.writer, e.span.IsSampled(), func(name string) (id int64, err error) {
				id, stored = r.names.id(tx, name)
				return id, stored
			})
			if stored != nil {
				return nil, 0, stored
			}
			if err != nil {
				continue
			}
			res, err := insert.Exec(values...)
			if err != nil {
				return nil, 0, err
			}
			if ids[i], err = res.LastInsertId(); err != nil {
				return nil, 0, err
			}
			written++
		}
	}
	settle, err := r.inFlight(tx, batch)
	if err != nil {
		return nil, 0, err
	}
	if _, err := tx.Stmt(r.sql.beat).Exec(time.Now().UnixNano(), r.lost.Load()+int64(len(batch)-written), r.writer); err != nil { //nolint:sqlclosecheck // likewise
		return nil, 0, err
	}
	if err := tx.Commit(); err != nil {
		return nil, 0, err
	}
	settle()
	return ids, written, nil
}
