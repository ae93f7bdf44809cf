package generator

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseShard(t *testing.T) {
	for _, row := range []struct {
		text string
		want Shard
		ok   bool
	}{
		{"0/4", Shard{0, 4}, true}, {"3/4", Shard{3, 4}, true}, {"0/1", Shard{0, 1}, true},
		{"4/4", Shard{}, false}, {"-1/4", Shard{}, false}, {"1", Shard{}, false}, {"1/0", Shard{}, false}, {"a/b", Shard{}, false}, {"", Shard{}, false},
	} {
		got, err := ParseShard(row.text)
		if got != row.want || (err == nil) != row.ok {
			t.Errorf("%q: %+v, %v", row.text, got, err)
		}
	}
	if s := (Shard{2, 4}).String(); s != "2/4" {
		t.Errorf("2/4 is written %q", s)
	}
}

// Byte for byte: every line that one machine writes is written by one shard,
// and shards write nothing else.
func TestShardsAreTogetherThePlanByteForByte(t *testing.T) {
	model := quickstart(t).Scaled(10 * time.Second)
	model.WarmUp = 2 * time.Second
	lines := func(s Shard) []string {
		var b bytes.Buffer
		if err := WriteDataset(context.Background(), &b, &Plan{Model: model, Seed: 7, Shard: s}); err != nil {
			t.Fatal(err)
		}
		return strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	whole := lines(Shard{})
	for _, n := range []int{1, 3, 4} {
		var parts []string
		for i := range n {
			part := lines(Shard{i, n})
			if least := len(whole) / n / 2; len(part) < least {
				t.Errorf("shard %d/%d has %d of %d requests", i, n, len(part), len(whole))
			}
			parts = append(parts, part...)
		}
		trim := func(list []string) []string {
			list = slices.Clone(list)
			for i := range list {
				list[i] = strings.TrimSuffix(list[i], "\n")
			}
			slices.Sort(list)
			return list
		}
		if !slices.Equal(trim(whole), trim(parts)) {
			t.Errorf("%d shards write %d lines that are not the %d of the plan", n, len(parts), len(whole))
		}
	}
}

func TestAShardHasItsPartOfTheRate(t *testing.T) {
	p := &Plan{Model: quickstart(t), Seed: 7, Shard: Shard{1, 4}}
	if got := p.peakQPS(); got != 5 {
		t.Errorf("a quarter of 20 a second is %v", got)
	}
	if n := (Shard{1, 4}).share(10); n != 3 {
		t.Errorf("of 10 users the second shard of 4 has %d", n)
	}
}
