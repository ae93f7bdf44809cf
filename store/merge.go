package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Merged is what a merge put together.
type Merged struct {
	Stores, Spans, Runs int
}

// Merge writes all that some databases hold into a new one at path, as if one
// process had recorded it: calls in the order in which they ended, and the
// shards of a run as one run. Nothing is left at path when it fails. Secrets are
// not taken along: they are each database's own. judge, unless it is nil, says
// what is wrong with the lag of a run that was made of shards, which may be more
// than was with that of each.
func Merge(ctx context.Context, path string, sources []string, judge func(Lag) (reason string, err error)) (m Merged, err error) {
	if _, err := os.Stat(path); err == nil {
		return m, fmt.Errorf("database %s: exists already; name a new one, what is there is not overwritten", path)
	}
	into, err := Open(ctx, path, Options{})
	if err != nil {
		return m, err
	}
	var from []*source
	defer func() {
		for _, s := range from {
			s.close()
		}
		err = errors.Join(err, into.Close())
		if err != nil {
			for _, file := range []string{path, path + "-wal", path + "-shm"} {
				_ = os.Remove(file) // it was made here, and is not whole
			}
		}
	}()
	for _, name := range sources {
		db, err := Open(ctx, name, Options{ReadOnly: true})
		if err != nil {
			return m, err
		}
		from = append(from, &source{db: db})
	}
	m.Stores = len(sources)
	if m.Spans, err = into.merge(ctx, from); err != nil {
		return m, fmt.Errorf("merge into %s: %w", path, err)
	}
	m.Runs, err = into.mergeRuns(ctx, from, judge)
	return m, err
}

// source is a database that is merged into another.
type source struct {
	db      *DB
	names   map[int64]int64  // ids: its own → the new one's
	writers map[int64]int64  //
	cursors []*exportedUntil // how far collectors have its calls

	rows   *sql.Rows
	values []any // of the row that comes next; nil when there is none
	ended  int64 // when its call did
}

func (s *source) close() {
	if s.rows != nil {
		s.rows.Close()
	}
	s.db.Close()
}

// exportedUntil is a row of export_cursor.
type exportedUntil struct {
	target       string
	writer, last int64
	merged       int64 // the same call's id in the new database

	failed, failedAt, err, rejected, rejection, elsewhere any // as they stand there
}

// The columns of spans that are read, after the id and the end: what is copied
// as it is, the writer, and ids of names.
var (
	mergedPlain = func() []string {
		list := []string{"trace_id", "span_id", "parent_span_id", "sampled", "start_ns", "labels", "timeline", "rest"}
		for _, f := range figures {
			list = append(list, f.name)
		}
		for _, c := range columns {
			if !c.dict {
				list = append(list, c.name)
			}
		}
		return list
	}()
	mergedNames = func() (list []string) {
		for _, c := range columns {
			if c.dict {
				list = append(list, c.name)
			}
		}
		return list
	}()
)

const mergeBatch = 2000 // calls in a transaction

// merge copies all but the runs, and gives the number of calls.
func (db *DB) merge(ctx context.Context, from []*source) (calls int, err error) {
	for _, s := range from {
		if err := db.adopt(ctx, s); err != nil {
			return 0, fmt.Errorf("%s: %w", s.db.Path, explain(err))
		}
	}
	columns := slices.Concat([]string{"id", "writer"}, mergedPlain, mergedNames)
	for _, s := range from {
		query := "SELECT start_ns + coalesce(done_ns, 0), " + strings.Join(columns, ", ") + " FROM spans ORDER BY id"
		if s.rows, err = s.db.read.QueryContext(ctx, query); err != nil { //nolint:rowserrcheck // next looks
			return 0, fmt.Errorf("%s: %w", s.db.Path, explain(err))
		}
		if err := s.next(len(columns)); err != nil {
			return 0, err
		}
	}
	insert := "INSERT INTO spans (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	for more := true; more; {
		tx, err := db.write.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		n, err := copyCalls(ctx, tx, insert, from, calls)
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			_ = tx.Rollback()
			return 0, err
		}
		calls, more = calls+n, n == mergeBatch
	}
	var different int
	if err := db.write.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT DISTINCT trace_id, span_id FROM spans)").Scan(&different); err != nil {
		return 0, err
	}
	if different != calls {
		return 0, fmt.Errorf("%d %s in more than one of the databases; name each database once, and none that others were merged into", calls-different, verb(calls-different, "call stands", "calls stand"))
	}
	for _, s := range from {
		for _, c := range s.cursors {
			if _, err := db.write.ExecContext(ctx, "INSERT INTO export_cursor (target, writer, last_id, failed, failed_ns, error, rejected, rejection, elsewhere) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				c.target, s.writers[c.writer], c.merged, c.failed, c.failedAt, c.err, c.rejected, c.rejection, c.elsewhere); err != nil {
				return 0, err
			}
		}
	}
	return calls, nil
}

// copyCalls copies a batch, always the call that ended first of all.
func copyCalls(ctx context.Context, tx *sql.Tx, insert string, from []*source, copied int) (n int, err error) {
	statement, err := tx.PrepareContext(ctx, insert)
	if err != nil {
		return 0, err
	}
	defer statement.Close()
	for ; n < mergeBatch; n++ {
		var first *source
		for _, s := range from {
			if s.values != nil && (first == nil || s.ended < first.ended) {
				first = s
			}
		}
		if first == nil {
			return n, nil
		}
		v := first.values
		id := int64(copied + n + 1)
		old, _ := v[0].(int64)
		writer, _ := v[1].(int64)
		for _, c := range first.cursors {
			if c.writer == writer && old <= c.last {
				c.merged = id
			}
		}
		v[0], v[1] = id, first.writers[writer]
		for i := len(v) - len(mergedNames); i < len(v); i++ {
			if name, ok := v[i].(int64); ok {
				v[i] = first.names[name]
			}
		}
		if _, err := statement.ExecContext(ctx, v...); err != nil {
			return n, err
		}
		if err := first.next(len(v)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// next reads a source's next call.
func (s *source) next(n int) error {
	s.values = nil
	if !s.rows.Next() {
		if err := s.rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.db.Path, explain(err))
		}
		return nil
	}
	values := make([]any, n)
	into := []any{&s.ended}
	for i := range values {
		into = append(into, &values[i])
	}
	if err := s.rows.Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", s.db.Path, err)
	}
	s.values = values
	return nil
}

// adopt copies what calls refer to, and what else is kept beside them.
func (db *DB) adopt(ctx context.Context, s *source) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	all := newNames()
	s.names, s.writers = map[int64]int64{}, map[int64]int64{}
	err = each(ctx, s.db, "SELECT id, name FROM names", func(scan func(...any) error) error {
		var id int64
		var name string
		if err := scan(&id, &name); err != nil {
			return err
		}
		s.names[id], err = all.id(tx, name)
		return err
	})
	if err != nil {
		return err
	}
	// A process of another machine is not looked for among this one's: whoever
	// has not ended has, as far as this database knows.
	err = each(ctx, s.db, "SELECT id, pid, started_ns, heartbeat_ns, coalesce(ended_ns, heartbeat_ns), lost, version, resource FROM writers ORDER BY id", func(scan func(...any) error) error {
		v := make([]any, 8)
		if err := scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, "INSERT INTO writers (pid, started_ns, heartbeat_ns, ended_ns, lost, version, resource) VALUES (?, ?, ?, ?, ?, ?, ?)", v[1:]...)
		if err != nil {
			return err
		}
		old, _ := v[0].(int64)
		s.writers[old], err = res.LastInsertId()
		return err
	})
	if err != nil {
		return err
	}
	err = each(ctx, s.db, "SELECT target, writer, last_id, failed, failed_ns, error, rejected, rejection, elsewhere FROM export_cursor", func(scan func(...any) error) error {
		c := &exportedUntil{}
		s.cursors = append(s.cursors, c)
		return scan(&c.target, &c.writer, &c.last, &c.failed, &c.failedAt, &c.err, &c.rejected, &c.rejection, &c.elsewhere)
	})
	if err != nil {
		return err
	}
	for _, table := range []struct{ name, columns string }{
		{"in_flight", "span_id, trace_id, start_ns, properties, writer"},
		{"contents", "span_id, trace_id, at_ns, until_ns, kept_bytes, kind, request_bytes, response_bytes, request_truncated, response_truncated, shape, request, response"},
	} {
		n := strings.Count(table.columns, ",") + 1
		insert := "INSERT OR IGNORE INTO " + table.name + " (" + table.columns + ") VALUES (?" + strings.Repeat(", ?", n-1) + ")"
		err := each(ctx, s.db, "SELECT "+table.columns+" FROM "+table.name, func(scan func(...any) error) error {
			v := make([]any, n)
			into := make([]any, n)
			for i := range v {
				into[i] = &v[i]
			}
			if err := scan(into...); err != nil {
				return err
			}
			if table.name == "in_flight" {
				writer, _ := v[n-1].(int64)
				v[n-1] = s.writers[writer]
			}
			_, err := tx.ExecContext(ctx, insert, v...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// each reads the rows of a query.
func each(ctx context.Context, db *DB, query string, row func(scan func(...any) error) error) error {
	rows, err := db.read.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
