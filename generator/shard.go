package generator

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Shard is a part of a plan that is sent by several machines. All of them draw
// the whole plan, and each keeps every Of-th session: what the shards send is
// together the plan, and no session is sent twice. The zero Shard is all of it.
type Shard struct {
	Index int // from 0, as Kubernetes numbers the pods of an Indexed Job
	Of    int
}

// mostShards is more than anybody has machines.
const mostShards = 10_000

// ParseShard reads "2/4": the third of four.
func ParseShard(text string) (Shard, error) {
	index, of, found := strings.Cut(text, "/")
	i, errIndex := strconv.Atoi(index)
	n, errOf := strconv.Atoi(of)
	if !found || errIndex != nil || errOf != nil || n < 1 || n > mostShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("%q: want INDEX/COUNT, the index from 0, as 0/4 to 3/4", text)
	}
	return Shard{i, n}, nil
}

// String is the shard as it is parsed; empty for the whole plan.
func (s Shard) String() string {
	if !s.part() {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// part says whether it is less than the whole plan.
func (s Shard) part() bool { return s.Of > 1 }

// has says whether the n-th session (or user) is the shard's, from 0.
func (s Shard) has(n int) bool { return !s.part() || n%s.Of == s.Index }

// share is how many of n things are the shard's.
func (s Shard) share(n int) int {
	if !s.part() {
		return n
	}
	return (n - s.Index + s.Of - 1) / s.Of
}

// fraction is the shard's part of the whole.
func (s Shard) fraction() float64 {
	if !s.part() {
		return 1
	}
	return 1 / float64(s.Of)
}

// of keeps the shard's sessions of all, and any error.
func (s Shard) of(all iter.Seq2[Session, error]) iter.Seq2[Session, error] {
	if !s.part() {
		return all
	}
	return func(yield func(Session, error) bool) {
		n := 0
		for session, err := range all {
			if (err != nil || s.has(n)) && !yield(session, err) {
				return
			}
			n++
		}
	}
}
