package generator

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"weir/proxy/wire"
	"weir/store/call"
)

// How far prompts are prepared ahead of their instants: so many sessions, and
// so many tokens of them, which bounds the memory.
const (
	sessionsAhead = 256
	tokensAhead   = 2_000_000
	sessionsFirst = 32 // that are ready before the run starts
)

// job is a session whose first request is being prepared.
type job struct {
	session      Session
	plan         *Plan
	conversation *conversation
	first        *prepared
	err          error
	ready        chan struct{}
	release      func() // gives back its part of tokensAhead
}

// wait waits until the first request is ready; false when ctx ends first.
func (j *job) wait(ctx context.Context) bool {
	select {
	case <-j.ready:
		return true
	default:
	}
	select {
	case <-j.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// ahead prepares prompts before they are due, so that no prompt is written on
// the sending path.
type ahead struct {
	queue chan *job // in the order of their starts; closed at the plan's end
	err   error     // why the plan ended early; set before queue is closed
	quit  context.CancelFunc
	wg    sync.WaitGroup
}

func (u *running) prepareAhead() *ahead {
	ctx, quit := context.WithCancel(u.stop)
	a := &ahead{queue: make(chan *job, sessionsAhead), quit: quit}
	work := make(chan *job, sessionsAhead)
	room := semaphore.NewWeighted(tokensAhead)
	a.wg.Go(func() {
		defer close(a.queue)
		defer close(work)
		a.err = a.draw(ctx, u.Plan, room, work)
	})
	// Half of the cores, so that those who send and read are never crowded out.
	for range max(runtime.GOMAXPROCS(0)/2, 1) {
		a.wg.Go(func() {
			for j := range work {
				if ctx.Err() == nil {
					j.conversation, j.first, j.err = j.plan.converse(j.session)
				}
				close(j.ready)
			}
		})
	}
	return a
}

// draw turns the plan into jobs, as far ahead as there is room.
func (a *ahead) draw(ctx context.Context, plan *Plan, room *semaphore.Weighted, work chan<- *job) error {
	for s, err := range plan.Sessions() {
		if err != nil {
			return err
		}
		weight := min(s.weight(), tokensAhead)
		if room.Acquire(ctx, weight) != nil {
			return nil
		}
		once := sync.Once{}
		j := &job{session: s, plan: plan, ready: make(chan struct{}), release: func() { once.Do(func() { room.Release(weight) }) }}
		select {
		case work <- j:
		case <-ctx.Done():
			return nil
		}
		select {
		case a.queue <- j:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// weight is about how many tokens of text a session holds: a dataset's has all
// its turns in full.
func (s *Session) weight() int64 {
	weight := int64(s.Turns[len(s.Turns)-1].Input)
	for i := range s.Messages {
		weight += int64(len(s.Messages[i].Body) / 4)
	}
	return weight
}

// prime takes the first sessions off the queue and waits until they are ready.
func (a *ahead) prime(ctx context.Context) []*job {
	var first []*job
	for j := range a.queue {
		first = append(first, j)
		if len(first) == sessionsFirst || !j.wait(ctx) {
			break
		}
	}
	return first
}

// close ends the preparing and waits for it.
func (a *ahead) close() {
	a.quit()
	a.wg.Wait()
}

// trusted is what a call's endpoint reported of its tokens, unless it
// contradicts the stream.
func trusted(c *call.Call) wire.Usage {
	if c.UsageSource == call.UsageSuspicious {
		return wire.Usage{}
	}
	return c.Usage
}
