package store

import (
	"context"
	"database/sql"
	"time"
)

// statements are what each batch says, parsed once.
type statements struct{ insert, enter, leave, beat *sql.Stmt }

func prepare(ctx context.Context, db *DB) (s statements, err error) {
	for _, one := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&s.insert, insertSpan},
		{&s.enter, "INSERT OR REPLACE INTO in_flight (span_id, trace_id, writer, start_ns, properties) VALUES (?, ?, ?, ?, ?)"},
		{&s.leave, "DELETE FROM in_flight WHERE span_id = ?"},
		{&s.beat, "UPDATE writers SET heartbeat_ns = ?, lost = ? WHERE id = ?"},
	} {
		if *one.to, err = db.write.PrepareContext(ctx, one.text); err != nil { //nolint:sqlclosecheck // close does
			s.close()
			return statements{}, err
		}
	}
	return s, nil
}

func (s statements) close() {
	for _, one := range []*sql.Stmt{s.insert, s.enter, s.leave, s.beat} {
		if one != nil {
			_ = one.Close() // it has nothing to say any more
		}
	}
}

// inFlight brings the table of calls in flight up to date: those of the batch
// leave it, those that were still open come in. A call that ends between two
// ticks never stands there. settle takes the changes over once they are
// committed.
func (r *Recorder) inFlight(tx *sql.Tx, batch []ended) (settle func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	enter, leave := tx.Stmt(r.sql.enter), tx.Stmt(r.sql.leave) //nolint:sqlclosecheck // the transaction's end does
	for _, e := range batch {
		o := e.open
		o.over = true
		if o.kept {
			if _, err := leave.Exec(o.id[:]); err != nil {
				return nil, err
			}
		}
	}
	var kept, lost []*openCall
	for _, o := range r.open {
		if o.lost {
			if _, err := leave.Exec(o.id[:]); err != nil {
				return nil, err
			}
			lost = append(lost, o)
			continue
		}
		if o.kept || o.over || time.Since(o.start) < tick {
			continue
		}
		var properties object
		for _, kv := range o.attrs {
			if properties, err = properties.with(string(kv.Key), kv.Value); err != nil {
				return nil, err
			}
		}
		if _, err := enter.Exec(o.id[:], o.trace[:], r.writer, o.start.UnixNano(), properties.String()); err != nil {
			return nil, err
		}
		kept = append(kept, o)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range kept {
			o.kept, o.attrs = true, nil // a stream may be open for minutes
		}
		for _, e := range batch {
			delete(r.open, e.open.id)
		}
		for _, o := range lost {
			delete(r.open, o.id)
		}
	}, nil
}
