package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Run is one run of the generator.
type Run struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`   // of the load model
	Target  string            `json:"target"` // address that was sent to; of shards that were merged, all of theirs, with ", " between
	Seed    uint64            `json:"seed"`
	Version string            `json:"version"`         // of weir
	Model   []byte            `json:"model,omitempty"` // the load model's document; nil when a trace was played without one
	Labels  map[string]string `json:"labels,omitempty"`

	Started time.Time `json:"started_at"`
	Ended   time.Time `json:"ended_at,omitzero"` // zero while it runs, and when it never came to an end
	Verdict string    `json:"verdict,omitempty"` // empty until it has ended
	Reasons []string  `json:"reasons,omitempty"`
	Partial bool      `json:"partial,omitempty"` // it was broken off

	Planned     int           `json:"planned"`
	Sent        int           `json:"sent"`
	NotSent     int           `json:"not_sent"`
	PlannedRate float64       `json:"planned_per_s,omitzero"` // 0: unknown
	SentRate    float64       `json:"sent_per_s,omitzero"`
	LagP50      time.Duration `json:"lag_p50_ns"` // meaningless where none was sent, as the next two
	LagP99      time.Duration `json:"lag_p99_ns"`
	LagMax      time.Duration `json:"lag_max_ns"`
	Scenarios   []string      `json:"scenarios,omitempty"` // ids, as the model lists them

	Notes  []string `json:"notes,omitempty"`  // how to read its figures, a sentence each
	Shard  int      `json:"shard,omitempty"`  // the part of the plan that it sent, from 0
	Shards int      `json:"shards,omitempty"` // and of how many; 0: all of it
}

const runColumns = `id, name, target, seed, version, model, labels, started_ns, ended_ns, verdict, reasons, partial,
	planned, sent, not_sent, planned_rate, sent_rate, lag_p50_ns, lag_p99_ns, lag_max_ns, scenarios, notes, shard, shards`

// SaveRun writes a run, or what has become of it.
func (db *DB) SaveRun(ctx context.Context, r Run) error {
	labels, err := json.Marshal(orEmpty(r.Labels))
	if err != nil {
		return err
	}
	reasons, err := json.Marshal(append([]string{}, r.Reasons...))
	if err != nil {
		return err
	}
	scenarios, err := json.Marshal(append([]string{}, r.Scenarios...))
	if err != nil {
		return err
	}
	notes, err := json.Marshal(append([]string{}, r.Notes...))
	if err != nil {
		return err
	}
	var shard, shards any
	if r.Shards > 0 {
		shard, shards = r.Shard, r.Shards
	}
	_, err = db.write.ExecContext(ctx, "INSERT OR REPLACE INTO runs ("+runColumns+") VALUES (?"+strings.Repeat(",?", strings.Count(runColumns, ","))+")",
		r.ID, r.Name, r.Target, fmt.Sprint(r.Seed), r.Version, text(r.Model), string(labels), r.Started.UnixNano(), instant(r.Ended), r.Verdict, string(reasons), flag(r.Partial),
		r.Planned, r.Sent, r.NotSent, known(r.PlannedRate), known(r.SentRate), lag(r, r.LagP50), lag(r, r.LagP99), lag(r, r.LagMax), string(scenarios), string(notes), shard, shards)
	if err != nil {
		return fmt.Errorf("database %s: save run %s: %w", db.Path, r.ID, explain(err))
	}
	return nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

func known(f float64) any {
	if f == 0 {
		return nil
	}
	return f
}

// lag is absent for a run that sent nothing.
func lag(r Run, d time.Duration) any {
	if r.Sent == 0 {
		return nil
	}
	return int64(d)
}

// Runs gives the runs whose ids begin with prefix, the newest first; all of
// them for "".
func (db *DB) Runs(ctx context.Context, prefix string) ([]Run, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT "+runColumns+" FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY started_ns DESC", prefix)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", db.Path, explain(err))
	}
	defer rows.Close()
	var runs []Run
	for rows.Next() {
		r, err := scanRun(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("database %s: read a run: %w", db.Path, err)
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

func scanRun(scan func(...any) error) (r Run, err error) {
	var seed, labels, reasons, scenarios, notes string
	var shard, shards *int
	var model *string
	var started int64
	var ended, p50, p99, most *int64
	var planned, sent *float64
	if err = scan(&r.ID, &r.Name, &r.Target, &seed, &r.Version, &model, &labels, &started, &ended, &r.Verdict, &reasons, &r.Partial,
		&r.Planned, &r.Sent, &r.NotSent, &planned, &sent, &p50, &p99, &most, &scenarios, &notes, &shard, &shards); err != nil {
		return r, err
	}
	if _, err = fmt.Sscan(seed, &r.Seed); err != nil {
		return r, err
	}
	if shard != nil && shards != nil {
		r.Shard, r.Shards = *shard, *shards
	}
	if model != nil {
		r.Model = []byte(*model)
	}
	r.Started = time.Unix(0, started)
	if ended != nil {
		r.Ended = time.Unix(0, *ended)
	}
	for _, f := range []struct {
		from *float64
		to   *float64
	}{{planned, &r.PlannedRate}, {sent, &r.SentRate}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	for _, d := range []struct {
		from *int64
		to   *time.Duration
	}{{p50, &r.LagP50}, {p99, &r.LagP99}, {most, &r.LagMax}} {
		if d.from != nil {
			*d.to = time.Duration(*d.from)
		}
	}
	for _, j := range []struct {
		from string
		to   any
	}{{labels, &r.Labels}, {reasons, &r.Reasons}, {scenarios, &r.Scenarios}, {notes, &r.Notes}} {
		if err := json.Unmarshal([]byte(j.from), j.to); err != nil {
			return r, err
		}
	}
	return r, nil
}
