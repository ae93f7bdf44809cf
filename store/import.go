package store

import (
	"context"
	"fmt"
	"iter"
	"os"
	"time"

	"weir/store/call"
)

// Import writes calls that were read elsewhere, and gives how many it wrote and
// how many were there already, by their ids. An error ends it; what was written
// before stays. version is weir's own.
func Import(ctx context.Context, db *DB, version string, calls iter.Seq2[*call.Call, error]) (stored, known int, err error) {
	now := time.Now().UnixNano()
	res, err := db.write.ExecContext(ctx, "INSERT INTO writers (pid, started_ns, heartbeat_ns, ended_ns, version) VALUES (?, ?, ?, ?, ?)", os.Getpid(), now, now, now, version)
	if err != nil {
		return 0, 0, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	writer, err := res.LastInsertId()
	if err != nil {
		return 0, 0, err
	}
	im := importer{db: db, writer: writer, names: newNames()}
	batch := make([]*call.Call, 0, batchRows)
	flush := func() error {
		n, err := im.write(ctx, batch)
		if err != nil {
			return fmt.Errorf("database %s: %w", db.Path, explain(err))
		}
		stored, known = stored+n, known+len(batch)-n
		batch = batch[:0]
		return nil
	}
	for c, err := range calls {
		if err != nil {
			return stored, known, err
		}
		if batch = append(batch, c); len(batch) == batchRows {
			if err := flush(); err != nil {
				return stored, known, err
			}
		}
	}
	return stored, known, flush()
}

type importer struct {
	db     *DB
	writer int64
	names  *names
	rows   rows
}

// write writes the calls of a batch that are not there yet.
func (im *importer) write(ctx context.Context, batch []*call.Call) (n int, err error) {
	tx, err := im.db.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	defer func() {
		if err != nil {
			im.names.forget() // some of them may have been rolled back
		}
	}()
	for _, c := range batch {
		var there bool
		if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM spans WHERE start_ns = ? AND span_id = ? AND trace_id = ?)",
			c.Started().UnixNano(), c.SpanID[:], c.TraceID[:]).Scan(&there); err != nil {
			return 0, err
		}
		if there {
			continue
		}
		// Other programs' spans are theirs to send.
		values, err := im.rows.row(c, im.writer, c.Side != call.Imported, func(name string) (int64, error) { return im.names.id(tx, name) })
		if err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, insertSpan, values...); err != nil {
			return 0, err
		}
		n++
	}
	return n, tx.Commit()
}
