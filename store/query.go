package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"syscall"
	"time"

	"weir/store/call"
)

// Order says in which order calls come, and how many.
type Order struct {
	By    string // "", "oldest", "newest" or "slowest" (TTFT felt; calls without one last)
	Limit int    // 0: all
}

// orders are the orders as SQL.
var orders = map[string]string{
	"": "s.id", "oldest": "s.start_ns, s.id", "newest": "s.start_ns DESC, s.id DESC", "slowest": "s.ttft_felt_ns IS NULL, s.ttft_felt_ns DESC, s.id",
}

// Calls gives the calls of a selection, one after the other, in constant
// memory. An error ends them.
func (db *DB) Calls(ctx context.Context, s Selection, o Order) iter.Seq2[*call.Call, error] {
	return func(yield func(*call.Call, error) bool) {
		f, err := db.filter(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		order, ok := orders[o.By]
		if !ok {
			yield(nil, fmt.Errorf("order %q: want oldest, newest or slowest", o.By))
			return
		}
		query := selectSpan + f.sql() + " ORDER BY " + order
		if o.Limit > 0 {
			query += fmt.Sprintf(" LIMIT %d", o.Limit)
		}
		for _, c := range db.spans(ctx, query, f.args...) {
			if !yield(c.call, c.err) || c.err != nil {
				return
			}
		}
	}
}

// found is one row that a query gave.
type found struct {
	call    *call.Call
	sampled bool
	err     error
}

// spans runs a query that begins with selectSpan; the key is the row's id.
func (db *DB) spans(ctx context.Context, query string, args ...any) iter.Seq2[int64, found] {
	return func(yield func(int64, found) bool) {
		fail := func(err error) { yield(0, found{err: fmt.Errorf("database %s: %w", db.Path, explain(err))}) }
		lookup := map[int64]string{}
		rows, err := db.read.QueryContext(ctx, query, args...)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			id, c, sampled, err := scanSpan(rows.Scan, func(n int64) string {
				name, ok := lookup[n]
				if !ok {
					_ = db.read.QueryRowContext(ctx, "SELECT name FROM names WHERE id = ?", n).Scan(&name) // unknown: empty
					lookup[n] = name
				}
				return name
			})
			if err != nil {
				fail(err)
				return
			}
			if !yield(id, found{c, sampled, nil}) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}

// Call finds a call by the beginning of its span id or trace id, and all views
// of it: those of the same trace, the asked one first.
func (db *DB) Call(ctx context.Context, prefix string) ([]*call.Call, error) {
	from, to, err := hexRange(prefix)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", prefix, err)
	}
	traceTo := append(append([]byte{}, to...), 255, 255, 255, 255, 255, 255, 255, 255)
	var first *call.Call
	query := selectSpan + " WHERE s.span_id BETWEEN ? AND ? OR s.trace_id BETWEEN ? AND ? ORDER BY s.id LIMIT 10"
	for _, c := range db.spans(ctx, query, from, to, from, traceTo) {
		if c.err != nil {
			return nil, c.err
		}
		if first != nil && first.TraceID != c.call.TraceID {
			return nil, fmt.Errorf("call %s: several calls begin like that: %x, %x, …", prefix, first.SpanID, c.call.SpanID)
		}
		if first == nil || strings.HasPrefix(fmt.Sprintf("%x", c.call.SpanID), strings.ToLower(prefix)) {
			first = c.call
		}
	}
	if first == nil {
		return nil, fmt.Errorf("call %s: %w", prefix, errNoCall)
	}
	views := []*call.Call{first}
	for _, c := range db.spans(ctx, selectSpan+" WHERE s.trace_id = ? AND s.span_id <> ? ORDER BY s.start_ns", first.TraceID[:], first.SpanID[:]) {
		if c.err != nil {
			return nil, c.err
		}
		views = append(views, c.call)
	}
	return views, nil
}

// Follow gives the calls that are written after it began, as they come, until
// ctx ends, which is no error.
func (db *DB) Follow(ctx context.Context, s Selection) iter.Seq2[*call.Call, error] {
	return func(yield func(*call.Call, error) bool) {
		var last int64
		if err := db.read.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM spans").Scan(&last); err != nil {
			yield(nil, fmt.Errorf("database %s: %w", db.Path, explain(err)))
			return
		}
		if !s.hasScope() {
			s.terms = append([]term{{"all", ""}}, s.terms...)
		}
		for {
			f, err := db.filter(ctx, s)
			if err == nil {
				f.and("s.id > ?", last)
				for id, c := range db.spans(ctx, selectSpan+f.sql()+" ORDER BY s.id", f.args...) {
					if c.err != nil {
						err = c.err
						break
					}
					last = id
					if !yield(c.call, nil) {
						return
					}
				}
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(tick):
			}
		}
	}
}

// Unfinished is a call that has not ended.
type Unfinished struct {
	Call *call.Call // what was known when it began

	// Interrupted says that the process that carried it has ended without
	// ending the call: it was killed, or the machine stopped.
	Interrupted bool
}

// InFlight gives the calls that have begun and not ended, the oldest first.
// One that began less than a quarter of a second ago may not stand there yet.
func (db *DB) InFlight(ctx context.Context) ([]Unfinished, error) {
	rows, err := db.read.QueryContext(ctx, `SELECT f.span_id, f.trace_id, f.start_ns, f.properties, w.pid, w.heartbeat_ns, w.ended_ns
		FROM in_flight f JOIN writers w ON w.id = f.writer ORDER BY f.start_ns`)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	var all []Unfinished
	for rows.Next() {
		var span, trace []byte
		var start, heartbeat int64
		var properties string
		var pid int
		var ended *int64
		if err := rows.Scan(&span, &trace, &start, &properties, &pid, &heartbeat, &ended); err != nil {
			return nil, err
		}
		c := &call.Call{Instants: call.Instants{Arrived: call.At(time.Unix(0, start))}}
		copy(c.SpanID[:], span)
		copy(c.TraceID[:], trace)
		var values map[string]any
		if err := json.Unmarshal([]byte(properties), &values); err != nil {
			return nil, err
		}
		for key, v := range values {
			c.SetProperty(key, v)
		}
		all = append(all, Unfinished{c, ended != nil || gone(pid, time.Unix(0, heartbeat))})
	}
	return all, rows.Err()
}

// gone says whether a writer has ended without saying so. A number that another
// process has by now is told by the heartbeat, which a living writer renews at
// least once a minute, while its disk takes it.
func gone(pid int, heartbeat time.Time) bool {
	p, err := os.FindProcess(pid)
	if err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true
	}
	return time.Since(heartbeat) > 10*time.Minute
}

// Lost is how many calls the processes that wrote from the instant from on
// could not write.
func (db *DB) Lost(ctx context.Context, from time.Time) (int64, error) {
	var n int64
	err := db.read.QueryRowContext(ctx, "SELECT coalesce(sum(lost), 0) FROM writers WHERE heartbeat_ns >= ?", from.UnixNano()).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	return n, nil
}
