package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrNoCollector says that the environment names nowhere to send spans to.
var ErrNoCollector = errors.New("no collector is named: set OTEL_EXPORTER_OTLP_ENDPOINT, as to http://127.0.0.1:4318")

// Resend sends to the collector that the OTEL_ variables name what waits for
// it: spans of processes that have ended. With a selection, all its spans go
// too, whether they were sent before or not, under the ids that they have: a
// collector may have been killed with spans that it had taken, and calls may
// have been recorded while none was named. It gives how many spans were sent,
// even beside an error.
func Resend(ctx context.Context, db *DB, selection *Selection, o TracingOptions) (sent int64, err error) {
	if o.Env == nil {
		return 0, ErrNoCollector
	}
	res, err := newResource(ctx, o)
	if err != nil {
		return 0, err
	}
	b, err := openOutbox(ctx, db, 0, res, o)
	if err != nil {
		return 0, err
	}
	if b == nil {
		return 0, ErrNoCollector
	}
	defer b.cancel()
	behind, err := b.waitingFrom(ctx)
	if err == nil {
		err = b.sendAll(ctx)
	}
	if err == nil && selection != nil {
		err = b.resend(ctx, *selection, behind)
	}
	if err != nil {
		err = fmt.Errorf("OTLP to %s: %w", b.target, err)
	}
	return b.sent.Load(), errors.Join(err, b.client.Stop(context.WithoutCancel(ctx)))
}

// waitingFrom is where the spans that sendAll would send begin, by writer.
func (b *Outbox) waitingFrom(ctx context.Context) (map[int64]int64, error) {
	behind := map[int64]int64{}
	writers, err := b.writers(ctx)
	for _, w := range writers {
		var cursor int64
		if err := b.db.read.QueryRowContext(ctx, "SELECT last_id FROM export_cursor WHERE target = ? AND writer = ?", b.target, w).Scan(&cursor); err != nil {
			return nil, err
		}
		behind[w] = cursor
	}
	return behind, err
}

// resend sends a selection's spans, but for those behind the ids given, which
// were sent just now.
func (b *Outbox) resend(ctx context.Context, s Selection, behind map[int64]int64) error {
	f, err := b.db.filter(ctx, s)
	if err != nil {
		return err
	}
	writers, err := b.db.ids(ctx, "SELECT DISTINCT s.writer FROM spans s"+f.sql()+" ORDER BY 1", f.args...)
	if err != nil {
		return err
	}
	for _, w := range writers {
		of := filter{append([]string{}, f.where...), append([]any{}, f.args...)}
		if before, sent := behind[w]; sent {
			of.and("s.id <= ?", before)
		}
		for last, more := int64(0), true; more; {
			if last, more, err = b.send(ctx, w, of, last); err != nil {
				return err
			}
		}
	}
	return nil
}

func (db *DB) ids(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	var all []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// Delivery is how far a collector has been sent what was recorded for it.
type Delivery struct {
	Target   string
	Sent     int64 // spans that it took
	Waiting  int64 // spans that it is yet to take
	Failed   int64 // attempts to send some that failed
	FailedAt time.Time
	Err      string // of the last attempt that failed; empty when none did
}

// Deliveries are all collectors that spans were recorded for. What Resend sent
// of a selection stands in none.
func (db *DB) Deliveries(ctx context.Context) ([]Delivery, error) {
	rows, err := db.read.QueryContext(ctx, deliveries)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	var all []Delivery
	for rows.Next() {
		var d Delivery
		var at sql.NullInt64
		var text sql.NullString
		if err := rows.Scan(&d.Target, &d.Failed, &at, &text, &d.Sent, &d.Waiting); err != nil {
			return nil, err
		}
		if d.Err = text.String; at.Valid {
			d.FailedAt = time.Unix(0, at.Int64)
		}
		all = append(all, d)
	}
	return all, rows.Err()
}
