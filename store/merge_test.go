package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/store/call"
)

// shardIn records a shard's calls, the n-th of which begins n times apart after
// the first, and what is kept of the first of them.
func shardIn(t *testing.T, path string, shard, calls int, run Run) []*call.Call {
	t.Helper()
	db, tr, stop := tracing(t, path, nil)
	var made []*call.Call
	for i := range calls {
		c := example(1000 * (3*i + shard))
		c.Side, c.Scenario, c.Instants.Due = call.Client, "scenario_"+string(rune('a'+shard)), c.Arrived-call.Instant(int64(shard+1)*int64(time.Millisecond))
		sc := record(tr, context.Background(), c)
		c.TraceID, c.SpanID = sc.TraceID(), sc.SpanID()
		made = append(made, c)
	}
	k := keeping(t, db, KeeperOptions{})
	kept := content(shard)
	kept.SpanID, kept.TraceID = made[0].SpanID, made[0].TraceID
	add(t, k, kept)
	flush(t, k)
	run.Shard, run.Shards = shard, 3
	stop()
	if _, err := db.write.Exec("INSERT INTO export_cursor (target, writer, last_id, failed, failed_ns, error) VALUES ('collector', 1, 2, 3, ?, ?)", shard, fmt.Sprintf("gone %d", shard)); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveRun(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	return made
}

// Shards that are valid each, since so few requests say little, can be parts of a
// run that is not.
func TestARunOfShardsIsJudgedByTheLagOfAll(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for shard := range 3 {
		run := Run{ID: "7f3a01", Seed: 7, Started: time.Unix(1_700_000_000, 0), Ended: time.Unix(1_700_000_010, 0), Verdict: "valid", Sent: 4}
		files = append(files, filepath.Join(dir, string(rune('a'+shard))+".db"))
		shardIn(t, files[shard], shard, 4, run)
	}
	path := filepath.Join(dir, "all.db")
	_, err := Merge(context.Background(), path, files, func(lag Lag) (string, error) {
		var ranks []time.Duration
		for rank := 1; rank <= lag.Requests; rank++ {
			d, err := lag.At(rank)
			if err != nil {
				t.Error(err)
			}
			ranks = append(ranks, d)
		}
		if len(ranks) != 12 || !slices.IsSorted(ranks) || lag.P99 != ranks[11] || lag.P99 != 3*time.Millisecond || lag.TTFT <= 0 {
			t.Errorf("%+v of %v", lag, ranks)
		}
		return "too late", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := openAt(t, path).Runs(context.Background(), "")
	if err != nil || len(runs) != 1 || runs[0].Verdict != "invalid: client" || len(runs[0].Reasons) != 1 || runs[0].Reasons[0] != "too late" {
		t.Errorf("%+v, %v", runs, err)
	}
}

func TestMergedShardsAreOneRunWithAllThatWasKept(t *testing.T) {
	dir := t.TempDir()
	started := time.Unix(1_700_000_000, 0)
	var files []string
	var want []*call.Call
	for shard := range 3 {
		run := Run{ID: "7f3a01", Name: "m", Seed: 7, Started: started, Ended: started.Add(time.Duration(10+shard) * time.Second), Verdict: "valid",
			Planned: 5, Sent: 4, NotSent: 1, PlannedRate: 2, SentRate: 1.5, Scenarios: []string{"a", "b"}, Notes: []string{"said"}}
		if shard == 1 {
			run.Verdict, run.Reasons, run.Partial = "invalid: client", []string{"too slow"}, true
			run.Notes = append(run.Notes, "of one")
		}
		files = append(files, filepath.Join(dir, string(rune('a'+shard))+".db"))
		want = append(want, shardIn(t, files[shard], shard, 4, run)...)
	}
	path := filepath.Join(dir, "all.db")
	m, err := Merge(context.Background(), path, files, nil)
	if err != nil || m != (Merged{Stores: 3, Spans: 12, Runs: 1}) {
		t.Fatalf("%+v, %v", m, err)
	}
	db := openAt(t, path)
	byID := map[[8]byte]*call.Call{}
	for _, c := range want {
		byID[c.SpanID] = c
	}
	var last call.Instant
	for _, c := range all(t, db, "all") {
		if c.Done < last {
			t.Errorf("a call that ended at %s comes after one of %s", c.Done, last)
		}
		last = c.Done
		w := byID[c.SpanID]
		if w == nil || c.Scenario != w.Scenario || c.Run != w.Run || c.Done-c.Arrived != w.Done-w.Arrived || c.TraceID != w.TraceID || c.ServedModel != w.ServedModel {
			t.Errorf("call %x: %v, want %v", c.SpanID, c, w)
		}
		delete(byID, c.SpanID)
	}
	if len(byID) > 0 {
		t.Errorf("%d calls are missing", len(byID))
	}
	for shard := range 3 {
		if c, ok, err := db.Content(context.Background(), want[4*shard].SpanID); err != nil || !ok || !c.Full {
			t.Errorf("what was kept of shard %d: %v, %v", shard, ok, err)
		}
	}
	runs, err := db.Runs(context.Background(), "")
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	wantRun := Run{ID: "7f3a01", Name: "m", Seed: 7, Started: started, Ended: started.Add(12 * time.Second), Verdict: "invalid: client", Partial: true,
		Reasons: []string{"shard 1 of 3: too slow"}, Planned: 15, Sent: 12, NotSent: 3, PlannedRate: 6, SentRate: 4.5, Scenarios: []string{"a", "b"},
		Notes:  []string{"each shard: said", "shard 1 of 3: of one"},
		LagP50: 2 * time.Millisecond, LagP99: 3 * time.Millisecond, LagMax: 3 * time.Millisecond, Labels: map[string]string{}}
	if diff := cmp.Diff(wantRun, runs[0]); diff != "" {
		t.Error(diff)
	}
	// A collector that had the first two of each store is not sent them again,
	// and how sending went is told of all.
	sending, err := db.Deliveries(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	wantSending := []Delivery{{Target: "collector", Sent: 6, Waiting: 6, Failed: 9, FailedAt: time.Unix(0, 2), Err: "gone 2"}}
	if diff := cmp.Diff(wantSending, sending); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeMergedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := Run{ID: "1", Seed: 7, Started: time.Unix(1, 0), Ended: time.Unix(2, 0), Verdict: "valid"}
	shardIn(t, at("a.db"), 0, 2, run)
	shardIn(t, at("b.db"), 0, 2, run)
	other := run
	other.Seed = 8
	shardIn(t, at("c.db"), 1, 2, other)
	for _, row := range []struct {
		name  string
		files []string
		want  string
	}{
		{"the same database twice", []string{"a.db", "a.db"}, "2 calls stand in more than one of the databases"},
		{"the same shard twice", []string{"a.db", "b.db"}, "shard 0 of 3 stands in two of the databases"},
		{"another plan's shard", []string{"a.db", "c.db"}, "not shards of one"},
		{"one that does not exist", []string{"a.db", "none.db"}, "none.db: does not exist yet"},
	} {
		var files []string
		for _, f := range row.files {
			files = append(files, at(f))
		}
		_, err := Merge(context.Background(), at("new.db"), files, nil)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v does not say %q", row.name, err, row.want)
		}
		if _, err := os.Stat(at("new.db")); err == nil {
			t.Errorf("%s: something was left", row.name)
		}
	}
	if _, err := Merge(context.Background(), at("a.db"), []string{at("b.db")}, nil); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("%v", err)
	}
}
