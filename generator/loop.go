package generator

import (
	"context"
	"runtime"
	"sync"
	"time"

	"weir/store/call"
)

// A closed loop has so many virtual users, each of which plays one session
// after the other, with the scenario's time to think between them. Nothing is
// due before the answer to what came before it: the endpoint's own slowness
// holds the load back, which an open loop never lets it do. So a request of a
// closed loop is due at the end of the call before it plus the time to think,
// and its response time holds the client's lateness alone: it says nothing of
// requests that were never sent because others took long.

// pauseAfterFailure is the least time between a user's failed session and the
// next one: an endpoint that refuses at once would be asked as fast as this
// machine can.
const pauseAfterFailure = 100 * time.Millisecond

// starting is the time over which users start, evenly, so that a loop does not
// begin with all its requests in one moment.
const starting = time.Second

// Users is how many virtual users a closed loop has, of this shard; 0 for an
// open loop.
func (p *Plan) Users() int {
	if !p.closed() {
		return 0
	}
	return p.Shard.share(p.Model.Concurrency)
}

func (p *Plan) closed() bool {
	return !p.recorded() && p.Model != nil && p.Model.Concurrency > 0
}

// userSession draws the n-th session of a user, both from 0. It depends on
// neither's time: users take turns in the order of sessions, however long each
// one's take.
func (p *Plan) userSession(shares []float64, user, n int) Session {
	index := user + n*p.Model.Concurrency
	scenario := p.scenario(shares, index)
	s := p.session(p.Model, index, scenario)
	sc := &p.Model.Scenarios[scenario]
	s.Turns[0].Think = time.Duration(sc.ThinkSeconds.Draw(p.rng(streamThink, index)) * float64(time.Second))
	return s
}

// userStart is when a user's first session is due.
func (p *Plan) userStart(user int) time.Duration {
	return time.Duration(int64(min(starting, p.Length()/10)) * int64(user) / int64(p.Model.Concurrency))
}

// user is one virtual user under way.
type user struct {
	*running
	number int // among the users of all shards, from 0
	shares []float64
	hands  chan struct{} // as many as may write prompts at once
	n      int           // sessions drawn so far
}

// prepare begins to write the user's next session.
func (v *user) prepare(ctx context.Context) *job {
	j := &job{session: v.Plan.userSession(v.shares, v.number, v.n), plan: v.Plan, ready: make(chan struct{}), release: func() {}}
	v.n++
	v.wg.Go(func() {
		defer close(j.ready)
		select {
		case v.hands <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-v.hands }()
		j.conversation, j.first, j.err = j.plan.converse(j.session)
	})
	return j
}

// play plays the user's sessions until the plan's length is over. Each session
// is written while the one before it is under way.
func (v *user) play(j *job) {
	due := v.start + call.Instant(v.Plan.userStart(v.number))
	for {
		// Sessions that would start later than the plan lasts are not of it.
		if time.Duration(due-v.start) >= v.tally.length || !v.sleep(due) || !j.wait(v.stop) || v.stop.Err() != nil {
			return
		}
		next := v.prepare(v.stop)
		j.session.WarmUp = time.Duration(due-v.start) < v.Plan.Model.WarmUp
		end, ok := v.session(j, due)
		if end == 0 {
			return
		}
		j = next
		think := j.session.Turns[0].Think
		if !ok {
			think = max(think, pauseAfterFailure)
		}
		due = end + call.Instant(think)
	}
}

// loop plays a closed loop to its end. The first sessions of all users are
// written before it starts.
func (u *running) loop(result *Result) error {
	shares, _ := u.Plan.Model.SessionShares()
	hands := make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))
	var users []*user
	var first []*job
	for number := range u.Plan.Model.Concurrency {
		if u.Plan.Shard.has(number) {
			v := &user{running: u, number: number, shares: shares, hands: hands}
			users, first = append(users, v), append(first, v.prepare(u.stop))
		}
	}
	for _, j := range first {
		if !j.wait(u.stop) {
			break
		}
	}
	u.begin(result)
	defer u.watchOut()()
	cpu := startCPU()
	report := u.report()
	var playing sync.WaitGroup
	for i, v := range users {
		playing.Go(func() { v.play(first[i]) })
	}
	playing.Wait()
	result.CPU = cpu.share()
	u.cancel() // whoever still writes a session that nobody will play
	u.wg.Wait()
	report()
	return u.fault
}
