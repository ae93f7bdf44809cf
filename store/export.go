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

// ResendOptions say to whom spans are sent.
type ResendOptions struct {
	TracingOptions
	// Adopt is the name of another collector, as Deliveries give it: what waits
	// for that one is sent to this one instead. Empty is for none.
	Adopt string
}

// Resent is what was sent.
type Resent struct {
	Target    string // the collector's name
	Sent      int64  // spans that it took
	Rejected  int64  // that it will never take
	Rejection string // why the last of them
}

// Resend sends to the collector that the OTEL_ variables name what waits for
// it: spans of processes that have ended. With a selection, all its spans go
// too, whether they were sent before or not, under the ids that they have: a
// collector may have been killed with spans that it had taken, and calls may
// have been recorded while none was named. It says what was sent, even beside an
// error.
func Resend(ctx context.Context, db *DB, selection *Selection, o ResendOptions) (sent Resent, err error) {
	if o.Env == nil {
		return sent, ErrNoCollector
	}
	res, err := newResource(ctx, o.TracingOptions)
	if err != nil {
		return sent, err
	}
	b, err := openOutbox(ctx, db, 0, res, o.TracingOptions)
	if err != nil {
		return sent, err
	}
	if b == nil {
		return sent, ErrNoCollector
	}
	defer b.cancel()
	sent.Target = b.target
	if o.Adopt != "" {
		if err := b.adopt(ctx, o.Adopt); err != nil {
			return sent, err
		}
	}
	behind, err := b.waitingFrom(ctx)
	if err == nil {
		err = b.sendAll(ctx)
	}
	if err == nil && selection != nil {
		err = b.resend(ctx, *selection, behind)
	}
	if err != nil {
		err = b.wrap("", err)
	}
	sent.Sent, sent.Rejected, sent.Rejection = b.Sent(), b.Rejected(), b.Rejection()
	return sent, errors.Join(err, b.client.Stop(context.WithoutCancel(ctx)))
}

// adopt makes what waits for another collector wait for this one. What a process
// that lives waits with is its own.
func (b *Outbox) adopt(ctx context.Context, from string) error {
	other := &Outbox{db: b.db, endpoint: &endpoint{target: from}}
	writers, err := other.writers(ctx)
	if err != nil || from == b.target {
		return err
	}
	if len(writers) == 0 {
		return nothingWaits(from)
	}
	tx, err := b.db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, w := range writers {
		for _, step := range []struct {
			query string
			args  []any
		}{
			// Where spans of the writer wait for this one too, they all do.
			{`INSERT OR IGNORE INTO export_cursor (target, writer, last_id, elsewhere)
				SELECT ?, c.writer, c.last_id, (SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id <= c.last_id)
				FROM export_cursor c WHERE c.target = ? AND c.writer = ?`, []any{b.target, from, w}},
			{`UPDATE export_cursor AS c SET
				elsewhere = elsewhere + (SELECT count(*) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1 AND s.id > c.last_id),
				last_id = (SELECT max(s.id) FROM spans s WHERE s.writer = c.writer AND s.sampled = 1) WHERE c.target = ? AND c.writer = ?`, []any{from, w}},
		} {
			if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// nothingWaits is the name of a collector that no spans of ended processes wait
// for.
type nothingWaits string

func (n nothingWaits) Error() string {
	return fmt.Sprintf("no spans of processes that have ended wait for %s; weir export --status names the collectors", string(n))
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
			var d dealt
			if d, more, err = b.send(ctx, w, of, last); err != nil {
				return err
			}
			last = d.last
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

	Rejected  int64  // spans that it will never take
	Rejection string // why the last of them; empty when none was
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
		var text, why sql.NullString
		if err := rows.Scan(&d.Target, &d.Failed, &at, &text, &d.Sent, &d.Waiting, &d.Rejected, &why); err != nil {
			return nil, err
		}
		d.Err, d.Rejection = tidy(text.String), why.String // an older weir kept what it was told
		if at.Valid {
			d.FailedAt = time.Unix(0, at.Int64)
		}
		all = append(all, d)
	}
	return all, rows.Err()
}
