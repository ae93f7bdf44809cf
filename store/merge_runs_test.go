package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAMergedRunNamesTheShardThatWasKilled(t *testing.T) {
	begun := Run{ID: "1", Seed: 7, Started: time.Unix(1, 0), Shards: 2}
	ended := begun
	ended.Ended, ended.Verdict, ended.Shard = time.Unix(9, 0), "valid", 1
	run, err := together([]Run{ended, begun})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shard 0 of 2 never came to its end"}, run.Notes); diff != "" || run.Verdict != "" || !run.Ended.IsZero() {
		t.Errorf("%+v: %s", run, diff)
	}
}

func TestAMergedRunSaysHowManyShardsAreMissing(t *testing.T) {
	var parts []Run
	for shard := range 2 {
		parts = append(parts, Run{ID: "1", Seed: 7, Started: time.Unix(1, 0), Ended: time.Unix(9, 0), Verdict: "valid", Shard: shard, Shards: 3})
	}
	run, err := together(parts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 of 3 shards is missing: the figures are of a part of the plan"}, run.Notes); diff != "" {
		t.Error(diff)
	}
}

// The first shard's endpoint is not all that was loaded.
func TestAMergedRunNamesTheEndpointsOfAllShards(t *testing.T) {
	for _, row := range []struct {
		name    string
		targets []string // by shard
		want    []string
	}{
		{"one for all", []string{"http://a", "http://a", "http://a"}, []string{"http://a"}},
		{"one each", []string{"http://b", "http://a", "http://c"}, []string{"http://b", "http://a", "http://c"}},
		{"two share one", []string{"http://a", "http://b", "http://a"}, []string{"http://a", "http://b"}},
		{"none is known", []string{"", "", ""}, nil},
	} {
		var parts []Run
		for shard, target := range row.targets {
			parts = append(parts, Run{ID: "1", Seed: 7, Target: target, Started: time.Unix(1, 0), Ended: time.Unix(9, 0), Verdict: "valid", Shard: shard, Shards: 3})
		}
		run, err := together(parts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, Targets(run.Target)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}
