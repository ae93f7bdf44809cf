package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// mergeRuns writes the runs of all sources, the shards of a run as one, and
// gives the number of runs.
func (db *DB) mergeRuns(ctx context.Context, from []*source, judge func(Lag) (string, error)) (int, error) {
	var ids []string
	parts := map[string][]Run{}
	for _, s := range from {
		runs, err := s.db.Runs(ctx, "")
		if err != nil {
			return 0, err
		}
		for _, r := range slices.Backward(runs) {
			if parts[r.ID] == nil {
				ids = append(ids, r.ID)
			}
			parts[r.ID] = append(parts[r.ID], r)
		}
	}
	for _, id := range ids {
		r, err := together(parts[id])
		if err == nil && len(parts[id]) > 1 {
			err = db.measureLag(ctx, &r, judge)
		}
		if err == nil {
			err = db.SaveRun(ctx, r)
		}
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", id, err)
		}
	}
	return len(ids), nil
}

// together makes one run of its shards.
func together(parts []Run) (Run, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	slices.SortFunc(parts, func(a, b Run) int { return a.Shard - b.Shard })
	r := parts[0]
	r.Reasons, r.Notes = nil, nil
	r.Planned, r.Sent, r.NotSent, r.PlannedRate, r.SentRate, r.Partial = 0, 0, 0, 0, 0, false
	r.Verdict = "valid"
	seen := map[int]bool{}
	var targets []string
	for _, p := range parts {
		if p.Shards != r.Shards || p.Shards < 2 || p.Seed != r.Seed {
			return r, errors.New("two databases have a run of this id that are not shards of one; was one copied from the other?")
		}
		if seen[p.Shard] {
			return r, fmt.Errorf("shard %d of %d stands in two of the databases; merge one of them", p.Shard, p.Shards)
		}
		seen[p.Shard] = true
		if !slices.Contains(targets, p.Target) {
			targets = append(targets, p.Target)
		}
		r.add(p)
	}
	r.Target = strings.Join(targets, targetGap)
	r.Notes = append(r.Notes, notesOf(parts)...)
	if missing := r.Shards - len(parts); missing > 0 {
		r.Notes = append([]string{fmt.Sprintf("%d of %d shards %s missing: the figures are of a part of the plan", missing, r.Shards, verb(missing, "is", "are"))}, r.Notes...)
	}
	r.Shard, r.Shards = 0, 0
	return r, nil
}

// notesOf are the notes of shards, each with whose it is; one that all of them
// have is given once.
func notesOf(parts []Run) (notes []string) {
	everybodys := func(note string) bool {
		return !slices.ContainsFunc(parts, func(p Run) bool { return !slices.Contains(p.Notes, note) })
	}
	for i, p := range parts {
		for _, note := range p.Notes {
			switch {
			case !everybodys(note):
				notes = append(notes, fmt.Sprintf("shard %d of %d: %s", p.Shard, p.Shards, note))
			case i == 0:
				notes = append(notes, "each shard: "+note)
			}
		}
	}
	return notes
}

// targetGap stands between the addresses of shards.
const targetGap = ", "

// Targets takes a Run's Target apart; none where it is empty.
func Targets(target string) []string {
	if target == "" {
		return nil
	}
	return strings.Split(target, targetGap)
}

// add adds a shard to the run that is made of it and others.
func (r *Run) add(p Run) {
	if p.Started.Before(r.Started) {
		r.Started = p.Started
	}
	if p.Ended.IsZero() { // it was killed, so the run never came to its end
		r.Ended, r.Verdict = time.Time{}, ""
		r.Notes = append(r.Notes, fmt.Sprintf("shard %d of %d never came to its end", p.Shard, p.Shards))
	} else if !r.Ended.IsZero() && p.Ended.After(r.Ended) {
		r.Ended = p.Ended
	}
	r.Partial = r.Partial || p.Partial
	r.Planned, r.Sent, r.NotSent = r.Planned+p.Planned, r.Sent+p.Sent, r.NotSent+p.NotSent
	r.PlannedRate, r.SentRate = r.PlannedRate+p.PlannedRate, r.SentRate+p.SentRate
	if p.Verdict != "valid" && r.Verdict != "" {
		r.Verdict = p.Verdict
	}
	for _, why := range p.Reasons {
		r.Reasons = append(r.Reasons, fmt.Sprintf("shard %d of %d: %s", p.Shard, p.Shards, why))
	}
}

// Lag is how late the requests of a run left.
type Lag struct {
	Requests int
	P99      time.Duration
	TTFT     time.Duration // median of the successful calls, from the send; 0: there was none
	// At gives the lag of a rank, from 1, the least, to Requests.
	At func(rank int) (time.Duration, error)
}

// measureLag finds the lag of a run among its calls: the percentiles of the
// whole do not follow from those of the parts, nor does what is to be said of it.
func (db *DB) measureLag(ctx context.Context, r *Run, judge func(Lag) (string, error)) error {
	const calls = ` FROM spans WHERE run = (SELECT id FROM names WHERE name = ?) AND side = (SELECT id FROM names WHERE name = 'client')`
	// ranked gives a value of the calls for which a condition holds: the lag is
	// the negative of due_ns, which counts from the send.
	ranked := func(value, condition string, rank int) (d time.Duration, err error) {
		err = db.write.QueryRowContext(ctx, "SELECT "+value+calls+condition+" ORDER BY 1 LIMIT 1 OFFSET ?", r.ID, rank-1).Scan(&d)
		return d, err
	}
	count := func(condition string) (n int, err error) {
		err = db.write.QueryRowContext(ctx, "SELECT count(*)"+calls+condition, r.ID).Scan(&n)
		return n, err
	}
	const sent = " AND due_ns IS NOT NULL AND warm_up IS NULL"
	lag := Lag{At: func(rank int) (time.Duration, error) { return ranked("max(-due_ns, 0)", sent, rank) }}
	n, err := count(sent)
	if err != nil || n == 0 {
		return err
	}
	lag.Requests = n
	for _, q := range []struct {
		rank int
		to   *time.Duration
	}{{(n + 1) / 2, &r.LagP50}, {(99*n + 99) / 100, &r.LagP99}, {n, &r.LagMax}} {
		if *q.to, err = lag.At(q.rank); err != nil {
			return err
		}
	}
	lag.P99 = r.LagP99
	const answered = " AND ttft_upstream_ns IS NOT NULL AND warm_up IS NULL AND outcome = (SELECT id FROM names WHERE name = 'ok')"
	if n, err = count(answered); err == nil && n > 0 {
		lag.TTFT, err = ranked("ttft_upstream_ns", answered, (n+1)/2)
	}
	if err != nil || judge == nil || r.Verdict == "" {
		return err
	}
	reason, err := judge(lag)
	if err == nil && reason != "" {
		r.Verdict, r.Reasons = "invalid: client", append([]string{reason}, r.Reasons...)
	}
	return err
}

// verb is the one that so many things want: 1 is missing, 2 are.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
