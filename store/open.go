// Package store keeps calls in SQLite: it records the spans that the proxy and
// the generator make, answers questions about them, and sends them on to
// OpenTelemetry collectors. SCHEMA.md beside this file is the contract of the
// database.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Path  string
	write *sql.DB // one connection: SQLite has one writer; nil when read-only
	read  *sql.DB
}

// Options say how a database is opened.
type Options struct {
	// ReadOnly opens a database that exists, to be asked only.
	ReadOnly bool
}

// DefaultPath is where the database is when nobody says otherwise: weir.db in
// weir's folder of the XDG data folder.
func DefaultPath(env func(string) (string, bool)) (string, error) {
	if dir, ok := env("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "weir", "weir.db"), nil
	}
	home, ok := env("HOME")
	if !ok || home == "" {
		return "", errors.New("neither XDG_DATA_HOME nor HOME is set; say where the database is with --db")
	}
	return filepath.Join(home, ".local", "share", "weir", "weir.db"), nil
}

const sqliteDriver = "weir-sqlite3"

func init() {
	sql.Register(sqliteDriver, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		// A log that a long read let grow is cut back; temporary tables need no file.
		_, err := c.Exec("PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY", nil)
		return err
	}})
}

// Open opens the database at path and brings its schema up to date; its folder
// and the file are made, private to the user, if they do not exist.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	db, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string, o Options) (*DB, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, errors.New("is a folder; name a file in it")
	case err != nil && o.ReadOnly:
		if errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("does not exist yet; weir demo, weir proxy and weir load make it")
		}
		return nil, plain(err)
	case err != nil:
		if err := create(path); err != nil {
			return nil, err
		}
	}
	db := &DB{Path: path}
	if !o.ReadOnly {
		if db.write, err = connect(ctx, path, "rwc"); err != nil {
			return nil, explain(err)
		}
		if err := migrate(ctx, db.write); err != nil {
			db.Close()
			return nil, explain(err)
		}
		private(path)
	}
	if db.read, err = connect(ctx, path, "ro"); err != nil {
		db.Close()
		return nil, explain(err)
	}
	if o.ReadOnly {
		var version int
		if err := db.read.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			db.Close()
			return nil, explain(err)
		}
		switch {
		case version > len(migrations):
			db.Close()
			return nil, newerSchema(version)
		case version == 0:
			db.Close()
			return nil, errors.New("holds nothing of weir's; weir demo, weir proxy and weir load make such a file")
		case version < len(migrations):
			db.Close()
			return nil, fmt.Errorf("has schema %d and this weir wants %d; weir proxy or weir load brings it up to date", version, len(migrations))
		}
	}
	return db, nil
}

// create makes the folder and an empty file that only the user can read.
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("its folder cannot be made: %w; choose another place with --db", plain(err))
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot be made in its folder: %w; choose another place with --db", plain(err))
	}
	return f.Close()
}

// private takes the group's and everybody's rights from a database that was
// made elsewhere.
func private(path string) {
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
			_ = os.Chmod(file, 0o600) // somebody else's file is theirs to share
		}
	}
}

// plain is an error of the system without the path around it.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// explain adds the next step to what SQLite says.
func explain(err error) error {
	var e sqlite3.Error
	switch {
	case !errors.As(err, &e):
		if strings.Contains(err.Error(), "CGO_ENABLED=0") {
			return errors.New("this weir was built without cgo, which SQLite needs; build it with a C compiler and CGO_ENABLED=1")
		}
		return err
	case e.Code == sqlite3.ErrNotADB:
		return errors.New("is not an SQLite database; choose another place with --db")
	case e.Code == sqlite3.ErrCorrupt:
		return fmt.Errorf("is damaged (%w); move it away, or choose another place with --db. sqlite3 FILE .recover may save what it holds", err)
	case e.Code == sqlite3.ErrFull:
		return fmt.Errorf("the disk is full (%w); make room, or choose another place with --db", err)
	case e.Code == sqlite3.ErrReadonly, e.Code == sqlite3.ErrPerm, e.Code == sqlite3.ErrCantOpen:
		return fmt.Errorf("cannot be written (%w); give yourself the right to, or choose another place with --db", err)
	case e.Code == sqlite3.ErrBusy, e.Code == sqlite3.ErrLocked:
		return fmt.Errorf("another program holds it (%w); end that one, or choose another place with --db", err)
	case e.Code == sqlite3.ErrIoErr:
		return fmt.Errorf("the disk does not take it (%w): is it full, or a network folder? Choose another place with --db", err)
	}
	return err
}

// connect opens a pool and reads back what SQLite made of the pragmas.
func connect(ctx context.Context, path, mode string) (*sql.DB, error) {
	q := url.Values{
		"mode": {mode}, "_busy_timeout": {"5000"}, "_cache_size": {"-16384"}, "_foreign_keys": {"0"},
	}
	if mode != "ro" {
		q.Set("_journal_mode", "WAL")
		q.Set("_synchronous", "NORMAL")
		q.Set("_txlock", "immediate")
		q.Set("_secure_delete", "true") // what is forgotten is gone from the file
	}
	db, err := sql.Open(sqliteDriver, "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	if mode != "ro" {
		db.SetMaxOpenConns(1)
	}
	var journal string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
		db.Close()
		return nil, err
	}
	if mode != "ro" && journal != "wal" {
		db.Close()
		return nil, fmt.Errorf("its folder does not allow SQLite's write-ahead log (journal mode is %q), as network folders do not; choose a local one with --db", journal)
	}
	return db, nil
}

// Close closes the database. Recorders are shut down before.
func (db *DB) Close() error {
	var errs []error
	for _, pool := range []*sql.DB{db.read, db.write} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// Secret is 32 random bytes under a name, made on first use and kept in the
// database.
func (db *DB) Secret(ctx context.Context, name string) ([]byte, error) {
	fresh := make([]byte, 32)
	rand.Read(fresh)
	if _, err := db.write.ExecContext(ctx, "INSERT OR IGNORE INTO secrets (name, value) VALUES (?, ?)", name, fresh); err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	var value []byte
	if err := db.write.QueryRowContext(ctx, "SELECT value FROM secrets WHERE name = ?", name).Scan(&value); err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	return value, nil
}
