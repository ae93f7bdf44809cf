package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// migrations bring a database from each version to the next. user_version is
// how many have been applied. Applied ones are never changed.
var migrations = []string{`
CREATE TABLE writers (
	id           INTEGER PRIMARY KEY,
	pid          INTEGER NOT NULL,
	started_ns   INTEGER NOT NULL,
	heartbeat_ns INTEGER NOT NULL,
	ended_ns     INTEGER,
	lost         INTEGER NOT NULL DEFAULT 0,
	version      TEXT NOT NULL
) STRICT;

CREATE TABLE names (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE spans (
	id                       INTEGER PRIMARY KEY,
	trace_id                 BLOB NOT NULL,
	span_id                  BLOB NOT NULL,
	parent_span_id           BLOB,
	writer                   INTEGER NOT NULL REFERENCES writers,
	sampled                  INTEGER NOT NULL,
	start_ns                 INTEGER NOT NULL,
	side                     INTEGER REFERENCES names,
	run                      INTEGER REFERENCES names,
	scenario                 INTEGER REFERENCES names,
	scenario_from            INTEGER REFERENCES names,
	session                  TEXT,
	turn                     INTEGER,
	warm_up                  INTEGER,
	labels                   TEXT,
	api                      INTEGER REFERENCES names,
	operation                INTEGER REFERENCES names,
	provider                 INTEGER REFERENCES names,
	upstream                 INTEGER REFERENCES names,
	model                    INTEGER REFERENCES names,
	served_model             INTEGER REFERENCES names,
	client                   INTEGER REFERENCES names,
	key_fingerprint          INTEGER REFERENCES names,
	outcome                  INTEGER REFERENCES names,
	no_first_token           INTEGER REFERENCES names,
	status                   INTEGER,
	streamed                 INTEGER,
	input_tokens             INTEGER,
	output_tokens            INTEGER,
	cache_read_tokens        INTEGER,
	cache_write_tokens       INTEGER,
	reasoning_tokens         INTEGER,
	usage_source             INTEGER REFERENCES names,
	request_bytes            INTEGER,
	response_bytes           INTEGER,
	events                   INTEGER,
	token_events             INTEGER,
	due_ns                   INTEGER,
	body_ns                  INTEGER,
	admitted_ns              INTEGER,
	connected_ns             INTEGER,
	sent_ns                  INTEGER,
	headers_ns               INTEGER,
	first_byte_ns            INTEGER,
	first_event_ns           INTEGER,
	first_token_ns           INTEGER,
	first_token_delivered_ns INTEGER,
	last_token_ns            INTEGER,
	done_ns                  INTEGER,
	ttft_felt_ns             INTEGER,
	ttft_upstream_ns         INTEGER,
	ttft_response_ns         INTEGER,
	tpot_ns                  INTEGER,
	queued_ns                INTEGER,
	error_type               TEXT,
	error_message            TEXT,
	timeline                 BLOB,
	rest                     TEXT NOT NULL
) STRICT;
CREATE INDEX spans_start ON spans (start_ns);

CREATE TABLE in_flight (
	span_id    BLOB PRIMARY KEY,
	trace_id   BLOB NOT NULL,
	writer     INTEGER NOT NULL REFERENCES writers,
	start_ns   INTEGER NOT NULL,
	properties TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
	id           TEXT PRIMARY KEY,
	name         TEXT NOT NULL,
	target       TEXT NOT NULL,
	seed         TEXT NOT NULL,
	version      TEXT NOT NULL,
	model        TEXT,
	labels       TEXT NOT NULL,
	started_ns   INTEGER NOT NULL,
	ended_ns     INTEGER,
	verdict      TEXT NOT NULL,
	reasons      TEXT NOT NULL,
	partial      INTEGER NOT NULL,
	planned      INTEGER NOT NULL,
	sent         INTEGER NOT NULL,
	not_sent     INTEGER NOT NULL,
	planned_rate REAL,
	sent_rate    REAL,
	lag_p50_ns   INTEGER,
	lag_p99_ns   INTEGER,
	lag_max_ns   INTEGER,
	scenarios    TEXT NOT NULL
) STRICT;
CREATE INDEX runs_started ON runs (started_ns);

CREATE TABLE export_cursor (
	target  TEXT NOT NULL,
	writer  INTEGER NOT NULL REFERENCES writers,
	last_id INTEGER NOT NULL,
	PRIMARY KEY (target, writer)
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
	name  TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
`, `
CREATE TABLE contents (
	id                 INTEGER PRIMARY KEY,
	span_id            BLOB NOT NULL UNIQUE,
	trace_id           BLOB NOT NULL,
	at_ns              INTEGER NOT NULL,
	until_ns           INTEGER,
	kept_bytes         INTEGER NOT NULL,
	kind               TEXT NOT NULL,
	request_bytes      INTEGER NOT NULL,
	response_bytes     INTEGER NOT NULL,
	request_truncated  INTEGER NOT NULL,
	response_truncated INTEGER NOT NULL,
	shape              BLOB,
	request            BLOB,
	response           BLOB
) STRICT;
CREATE INDEX contents_at ON contents (at_ns, kept_bytes);
CREATE INDEX contents_until ON contents (until_ns) WHERE until_ns IS NOT NULL;
`, `
ALTER TABLE runs ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN shard INTEGER;
ALTER TABLE runs ADD COLUMN shards INTEGER;
`, `
ALTER TABLE export_cursor ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE export_cursor ADD COLUMN failed_ns INTEGER;
ALTER TABLE export_cursor ADD COLUMN error TEXT;
CREATE INDEX spans_writer ON spans (writer, sampled);
`, `
ALTER TABLE export_cursor ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE export_cursor ADD COLUMN rejection TEXT;
ALTER TABLE export_cursor ADD COLUMN elsewhere INTEGER NOT NULL DEFAULT 0;
ALTER TABLE writers ADD COLUMN resource TEXT;
`}

func newerSchema(version int) error {
	return fmt.Errorf("was written by a newer weir (schema %d, this one knows %d); use that one, or another --db", version, len(migrations))
}

// ownSchema fails on a database that is full of something else.
func ownSchema(ctx context.Context, db *sql.DB, version int) error {
	var tables, own int
	if err := db.QueryRowContext(ctx, "SELECT count(*), count(CASE WHEN name = 'writers' THEN 1 END) FROM sqlite_master WHERE type = 'table'").Scan(&tables, &own); err != nil {
		return err
	}
	// Another process may be making the tables just now.
	if own == 0 && (version > 0 || tables > 0) {
		return errors.New("is another program's SQLite database; choose another place with --db")
	}
	return nil
}

// migrate brings the schema up to date, each step in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return newerSchema(version)
	}
	if err := ownSchema(ctx, db, version); err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// Another process may have done it while this one waited.
		var now int
		err = tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&now)
		if err == nil && now == version {
			_, err = tx.ExecContext(ctx, migrations[version]+fmt.Sprintf("; PRAGMA user_version = %d", version+1))
		}
		if err != nil {
			_ = tx.Rollback()
			return fmt.Errorf("schema step %d: %w", version+1, err)
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}
