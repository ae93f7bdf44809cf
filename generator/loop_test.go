package generator

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const loop = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 400}, "output_tokens": {"min": 1, "max": 2},
  "turns": {"min": 1, "max": 3}, "think_seconds": {"distribution": "constant", "value": 2}}],
  "concurrency": 5, "duration_seconds": 120, "warm_up_seconds": 20, "seed": 1}}`

func TestAClosedLoopSendsASessionAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, result, _, begun := playLoop(t, loop, 3*time.Second, nil)
		// A call of 3 s and 2 s to think: each user sends every 5 s, for 140 s.
		if least, most := 5*140/5-5, 5*140/5+15; result.Sent < least || result.Sent > most {
			t.Errorf("%d sent, want %d to %d", result.Sent, least, most)
		}
		if result.InFlightHi > 5 || result.Users != 5 || result.PlannedRate != 0 || result.SentRate < 0.9 || result.Lag.Max > 0 || result.Verdict != Valid || result.Partial {
			t.Errorf("%+v", result)
		}
		if warm := 5 * 20 / 5; result.WarmUp < warm || result.WarmUp > warm+15 {
			t.Errorf("%d of warm-up, want about %d", result.WarmUp, warm)
		}
		slices.SortFunc(c.sent, time.Time.Compare)
		if first := c.sent[0].Sub(begun); first != lead {
			t.Errorf("the first left after %s", first)
		}
		for i, at := range c.sent[1:5] {
			if gap := at.Sub(c.sent[i]); gap != 200*time.Millisecond {
				t.Errorf("user %d started %s after the one before, want a fifth of a second", i+1, gap)
			}
		}
		if notes := strings.Join(result.Notes(), "\n"); !strings.Contains(notes, "closed loop of 5 users") {
			t.Errorf("notes %q", notes)
		}
	})
}

func TestAClosedLoopOfOneIsSaidOfOne(t *testing.T) {
	r := Result{Users: 1}
	if notes := strings.Join(r.Notes(), "\n"); !strings.HasPrefix(notes, "closed loop of 1 user: ") {
		t.Errorf("notes %q", notes)
	}
}

func TestASlowEndpointOfAClosedLoopIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, slow, _, _ := playLoop(t, loop, 8*time.Second, nil)
		_, quick, _, _ := playLoop(t, loop, 3*time.Second, nil)
		// Half as many sends, and none of them late by anything: what was never
		// asked for is in no figure.
		if slow.Sent*3 > quick.Sent*2 || slow.Lag.Max > 0 || slow.Response.Max != 8*time.Second {
			t.Errorf("slow: %d sent, lag %s, response %s; quick: %d sent", slow.Sent, slow.Lag.Max, slow.Response.Max, quick.Sent)
		}
	})
}

func TestUsersOfShardsPlayTheSessionsOfTheWholeLoop(t *testing.T) {
	model := decode(t, loop)
	shares, _ := model.SessionShares()
	all := &Plan{Model: model, Seed: 1}
	seen := map[int]bool{}
	total := 0
	for i := range 3 {
		part := &Plan{Model: model, Seed: 1, Shard: Shard{i, 3}}
		users := 0
		for number := range model.Concurrency {
			if !part.Shard.has(number) {
				continue
			}
			users++
			for n := range 4 {
				s, want := part.userSession(shares, number, n), all.userSession(shares, number, n)
				if s.Index != want.Index || s.Turns[0] != want.Turns[0] || seen[s.Index] {
					t.Errorf("shard %d, user %d: session %+v, want %+v; it was seen: %v", i, number, s, want, seen[s.Index])
				}
				seen[s.Index] = true
			}
		}
		if users != part.Users() {
			t.Errorf("shard %d has %d users and says %d", i, users, part.Users())
		}
		total += users
	}
	if total != 5 || len(seen) != 20 {
		t.Errorf("%d users, %d sessions", total, len(seen))
	}
}

// With the latency that the endpoint then has, what is told is what is sent.
func TestALoopOfAnAssumedLatencyIsTheOneThatIsPlayed(t *testing.T) {
	const takes = 3 * time.Second
	want := map[string]int{} // turns by session
	p := &Plan{Model: decode(t, loop), Seed: 1}
	told := func() (all []Session) {
		for s, err := range p.foreseen(Latency{TTFT: takes, Known: true}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		return all
	}
	total, sharded := 0, 0
	var last time.Duration
	for _, s := range told() {
		if s.Due < last || s.WarmUp != (s.Due < 20*time.Second) {
			t.Errorf("session %d is due at %s, after one of %s; warm-up: %v", s.Index, s.Due, last, s.WarmUp)
		}
		last = s.Due
		total += len(s.Turns)
		if s.ID != "" {
			want[s.ID] = len(s.Turns)
		}
	}
	for i := range 2 {
		p.Shard = Shard{i, 2}
		for _, s := range told() {
			sharded += len(s.Turns)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c, result, r, _ := playLoop(t, loop, takes, nil)
		if result.Sent != total || sharded != total {
			t.Errorf("%d sent, %d were told, %d of the shards", result.Sent, total, sharded)
		}
		for id, turns := range want {
			if got := len(c.turns[r.ID+"-"+id]); got != turns {
				t.Errorf("session %s: %d turns, want %d", id, got, turns)
			}
		}
	})
}
