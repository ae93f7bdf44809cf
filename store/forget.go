package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// oldest are contents in the order in which they go. It is read from an index
// alone, as the sum of their bytes is.
const oldest = "SELECT id, kept_bytes FROM contents ORDER BY at_ns LIMIT ?"

// prune makes one step of deletion, and says whether another may be needed.
func (k *Keeper) prune() (more bool, err error) {
	if k.o.Size > 0 && k.total > k.o.Size {
		if err := k.recount(); err != nil {
			return false, k.note(err)
		}
	}
	now := time.Now()
	steps := []struct {
		query string
		args  []any
		bytes int64 // to be deleted
	}{
		{"SELECT id, kept_bytes FROM contents WHERE until_ns <= ? ORDER BY until_ns LIMIT ?", []any{now.UnixNano(), keepRows}, keepBytes},
		{"SELECT id, kept_bytes FROM contents WHERE at_ns <= ? ORDER BY at_ns LIMIT ?", []any{now.Add(-k.o.For).UnixNano(), keepRows}, keepBytes},
		{oldest, []any{keepRows}, min(k.total-k.o.Size, keepBytes)},
	}
	for i, step := range steps {
		if i == 1 && k.o.For <= 0 || i == 2 && (k.o.Size <= 0 || step.bytes <= 0) {
			continue
		}
		n, bytes, err := k.db.deleteContents(context.Background(), step.bytes, step.query, step.args...)
		k.total -= bytes
		if n > 0 || err != nil {
			return true, k.note(err)
		}
	}
	return false, nil
}

// recount counts again if other processes have written since the last time:
// they may have deleted.
func (k *Keeper) recount() error {
	var version int64
	err := k.db.write.QueryRow("PRAGMA data_version").Scan(&version)
	if err == nil && version != k.version {
		k.version = version
		err = k.count(context.Background())
	}
	return err
}

// count finds out what all contents take.
func (k *Keeper) count(ctx context.Context) error {
	return k.db.write.QueryRowContext(ctx, "SELECT coalesce(sum(kept_bytes), 0) FROM contents").Scan(&k.total)
}

// deleteContents deletes the first contents that a query gives, with their
// sizes, until they make up so many bytes, in one transaction.
func (db *DB) deleteContents(ctx context.Context, bytes int64, query string, args ...any) (n int, freed int64, err error) {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	ids, freed, err := victims(ctx, tx, bytes, query, args...)
	if err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, "DELETE FROM contents WHERE id = ?", id); err != nil {
			return 0, 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, err
	}
	return len(ids), freed, nil
}

func victims(ctx context.Context, tx *sql.Tx, bytes int64, query string, args ...any) (ids []int64, freed int64, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for freed < bytes && rows.Next() {
		var id, kept int64
		if err := rows.Scan(&id, &kept); err != nil {
			return nil, 0, err
		}
		ids, freed = append(ids, id), freed+kept
	}
	return ids, freed, rows.Err()
}

// ForgetSince deletes the contents of the calls that began at an instant or
// later, the zero time being before all, and says how many there were. What is
// deleted is overwritten.
func (db *DB) ForgetSince(ctx context.Context, from time.Time) (int, error) {
	at := int64(0)
	if !from.IsZero() {
		at = from.UnixNano()
	}
	return db.forget(ctx, "SELECT id, kept_bytes FROM contents WHERE at_ns >= ? LIMIT ?", at, keepRows)
}

// ForgetCall deletes what is kept of the call with that span, and says whether
// there was anything.
func (db *DB) ForgetCall(ctx context.Context, span [8]byte) (bool, error) {
	n, err := db.forget(ctx, "SELECT id, kept_bytes FROM contents WHERE span_id = ? LIMIT ?", span[:], keepRows)
	return n > 0, err
}

// forget deletes all that a query gives, step by step, so that others can write
// in between, and the log in which it may still stand.
func (db *DB) forget(ctx context.Context, query string, args ...any) (all int, err error) {
	for {
		n, _, err := db.deleteContents(ctx, keepBytes, query, args...)
		if err != nil {
			return all, fmt.Errorf("database %s: %w", db.Path, explain(err))
		}
		if n == 0 {
			break
		}
		all += n
	}
	if _, err := db.write.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return all, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	return all, nil
}
