// Package generator runs a plan: it draws sessions and requests from a load
// model or a trace, prepares their prompts ahead of time, sends each at its
// instant of one absolute schedule, and says whether what it measured can be
// trusted.
package generator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir/generator/loadmodel"
	"weir/store/call"
)

// Run is one run of a plan against a target. Plan, Target.BaseURL and Tracer are
// required; every other field's zero value works.
type Run struct {
	ID     string // empty: NewRunID
	Plan   *Plan
	Target Target
	Tracer trace.Tracer // a client span each call

	Labels      map[string]string
	MaxInFlight int           // calls at once; 0: the plan's model's, which may be no limit
	Timeout     time.Duration // of one call, send to end; 0: the plan's model's, which may be none

	StartAt time.Time        // when the plan begins; zero: as soon as its first prompts are ready
	AbortIf []Condition      // under which the run ends itself
	Budget  loadmodel.Budget // what it may use at most; zero: the plan's model's, which may be none
	Prices  []Price          // by which a budget in dollars is kept

	// OnProgress, when set, gets a snapshot every ProgressEvery (0: a second),
	// one at a time, and one at the end.
	OnProgress    func(Progress)
	ProgressEvery time.Duration

	// OnRetry, when set, is told of each try of the preflight that went wrong and
	// is made again.
	OnRetry func(said string)

	transport http.RoundTripper // in tests; nil: our own
	backOff   time.Duration     // of the preflight, in tests; 0: preflightBackOff
}

// NewRunID gives a run's name: 8 hex digits, unlikely to come twice.
func NewRunID() string {
	var b [4]byte
	rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// running is a run under way.
type running struct {
	*Run
	client *client
	tally  *tally
	places chan struct{} // as many as there may be calls at once; nil: any number
	start  call.Instant

	stop   context.Context // ends when no more is to be sent
	cancel context.CancelFunc
	once   sync.Once
	fault  error // of a plan that cannot be sent on; set once

	purse    *purse // nil: no budget
	learner  learner
	lookouts []*lookout
	halted   sync.Once
	why      string // the run ended itself; set once

	calls    context.Context // ends when calls are to be broken off
	breakOff context.CancelFunc
	wg       sync.WaitGroup // sessions
}

// Do sends the plan and returns when every call has ended. When ctx ends, no
// more is sent and what is under way is awaited; when hard ends, that is broken
// off too. Both give the result so far, marked Partial. The error is of a run
// that could not begin, or of a trace that could not be read on; what went
// wrong with calls is in the result.
func (r *Run) Do(ctx, hard context.Context) (*Result, error) {
	base, err := r.Target.parse()
	switch {
	case err != nil:
		return nil, err
	case r.Plan == nil || r.Tracer == nil:
		return nil, errors.New("run: needs a plan and a tracer")
	}
	purse, err := r.newPurse()
	if err != nil {
		return nil, err
	}
	if r.ID == "" {
		r.ID = NewRunID()
	}
	trip := r.transport
	if trip == nil {
		own := newTransport(&r.Target)
		defer own.CloseIdleConnections()
		trip = own
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	calls, breakOff := context.WithCancel(hard)
	defer breakOff()

	length := r.Plan.Length()
	u := &running{Run: r, tally: newTally(r.Plan.scenarios(), r.Plan.warmsFor(), length), stop: stop, cancel: cancel, calls: calls, breakOff: breakOff, purse: purse}
	defer context.AfterFunc(stop, u.tally.stop)()
	for _, c := range r.AbortIf {
		u.lookouts = append(u.lookouts, newLookout(c))
	}
	u.tally.lookouts = u.lookouts
	u.client = newClient(r, base, r.timeout(), trip)
	if n := r.maxInFlight(); n > 0 {
		u.places = make(chan struct{}, n)
	}
	result := &Result{RunID: r.ID, Seed: r.Plan.Seed, Length: length}
	if r.Plan.closed() {
		result.Users = r.Plan.Users()
		err = u.loop(result)
	} else {
		err = u.play(result)
	}
	result.Stopped = u.why
	result.Partial = ctx.Err() != nil || hard.Err() != nil || u.why != ""
	result.Took = time.Duration(call.Now() - u.start)
	u.tally.result(result)
	result.Learned = u.learner.fit()
	u.judge(result)
	return result, err
}

func (r *Run) timeout() time.Duration {
	if r.Timeout == 0 && r.Plan.Model != nil {
		return r.Plan.Model.Timeout
	}
	return r.Timeout
}

func (r *Run) maxInFlight() int {
	if r.MaxInFlight == 0 && r.Plan.Model != nil {
		return r.Plan.Model.MaxInFlight
	}
	return r.MaxInFlight
}

// lead is the time between the first prompts' being ready and the run's start.
const lead = 20 * time.Millisecond

// play sends all sessions and waits for them.
func (u *running) play(result *Result) error {
	ahead := u.prepareAhead()
	defer ahead.close()
	primed := ahead.prime(u.stop)
	u.begin(result)
	defer u.watchOut()()
	cpu := startCPU()
	report := u.report()
	for _, job := range primed {
		u.launch(job)
	}
	for job := range ahead.queue {
		u.launch(job)
	}
	result.CPU = cpu.share() // while sending: the wait for the last answers would thin it
	u.wg.Wait()
	report()
	ahead.close()
	return errors.Join(ahead.err, u.fault)
}

// begin sets the run's start, which all of the plan is counted from.
func (u *running) begin(result *Result) {
	u.start = call.Now() + call.Instant(lead)
	if !u.StartAt.IsZero() {
		u.start = call.At(u.StartAt)
	}
	result.Started = u.start.Time()
	u.tally.begin(u.start)
}

// abortPatience is how long a run that has ended itself waits for its calls: an
// endpoint that is the reason may never end them.
const abortPatience = 30 * time.Second

// halt ends the run for a reason of its own: no more is sent, and what is under
// way has abortPatience left.
func (u *running) halt(why string) {
	u.halted.Do(func() {
		u.why = why
		context.AfterFunc(u.stop, func() {
			t := time.NewTimer(abortPatience)
			defer t.Stop()
			select {
			case <-t.C:
				u.breakOff()
			case <-u.calls.Done():
			}
		})
	})
	u.cancel()
}

// fail ends the run: a request that cannot be written is the plan's fault, and
// others of its kind would follow.
func (u *running) fail(err error) {
	u.once.Do(func() { u.fault = err })
	u.cancel()
}

// launch waits for a session's instant, and lets it go.
func (u *running) launch(j *job) {
	due := u.start + call.Instant(j.session.Due)
	u.tally.planned(&j.session, due)
	going := u.sleep(due) && j.wait(u.stop) && u.stop.Err() == nil
	j.release()
	if going {
		u.wg.Go(func() { u.session(j, due) })
	}
}

// sleep waits until an instant; false when the run stops before.
func (u *running) sleep(until call.Instant) bool {
	wait := time.Duration(until - call.Now())
	if wait <= 0 {
		return u.stop.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-u.stop.Done():
		return false
	}
}

// session sends the turns of one session, the first of which is due at an
// instant. A turn is due at the planned end of the one before, which is its due
// and the time that its answer took, and the time to think: what our own client
// was late by is never forgiven. In a closed loop it is due at the actual end
// and the time to think. It gives the end of the last call, 0 if the run stopped
// before there was one, and whether all turns went well.
func (u *running) session(j *job, due call.Instant) (end call.Instant, ok bool) {
	s := &j.session
	if j.err != nil {
		u.fail(j.err)
		u.tally.skipped(s, len(s.Turns), whyStopped)
		return 0, false
	}
	p := j.first
	j.first = nil
	for turn := range s.Turns {
		if turn > 0 {
			due += call.Instant(s.Turns[turn].Think)
			if !u.sleep(due) {
				u.tally.skipped(s, len(s.Turns)-turn, whyStopped)
				return end, false
			}
		}
		c, a := u.turn(s, turn, p, due)
		if c == nil {
			u.tally.skipped(s, len(s.Turns)-turn, whyStopped)
			return end, false
		}
		end = c.Done
		if turn+1 == len(s.Turns) {
			return end, c.Outcome == call.OK
		}
		if c.Outcome != call.OK {
			u.tally.skipped(s, len(s.Turns)-turn-1, string(c.Outcome))
			return end, false
		}
		if due += c.Done - c.Arrived; u.Plan.closed() {
			due = c.Done
		}
		var err error
		if p, err = j.conversation.next(turn+1, a, trusted(c)); err != nil {
			u.fail(err)
			u.tally.skipped(s, len(s.Turns)-turn-1, whyStopped)
			return end, false
		}
		u.tally.grew(j.conversation.counted, s.Turns[turn+1].Input)
	}
	return end, true
}

// turn sends one request, as soon as there is a place for it; nil when the run
// stops first.
func (u *running) turn(s *Session, turn int, p *prepared, due call.Instant) (*call.Call, *answer) {
	if u.places != nil {
		select {
		case u.places <- struct{}{}:
		default:
			u.tally.waited()
			select {
			case u.places <- struct{}{}:
			case <-u.stop.Done():
				return nil, nil
			}
		}
		defer func() { <-u.places }()
	}
	if !u.purse.take(s.Model, p.turn) {
		u.halt(u.purse.spent())
		return nil, nil
	}
	var a *answer
	if turn+1 < len(s.Turns) {
		a = &answer{}
	}
	u.tally.sending(s)
	c := u.client.begin(s, turn, p, due)
	_ = u.client.send(u.calls, c, p, a) // what went wrong is in the call
	u.purse.settle(s.Model, p.turn, c)
	u.tally.ended(s, c)
	u.learner.add(c)
	return c, a
}

// report starts the progress snapshots and gives what ends them.
func (u *running) report() (end func()) {
	if u.OnProgress == nil {
		return func() {}
	}
	every := u.ProgressEvery
	if every <= 0 {
		every = time.Second
	}
	var last Progress
	show := func() {
		p := u.tally.progress(last)
		p.RunID = u.ID
		if p.Elapsed-last.Elapsed < every/2 { // the last one: too short a time for a rate
			p.PlannedRate, p.SentRate = last.PlannedRate, last.SentRate
		}
		p.Draining = u.stop.Err() != nil || p.Elapsed > p.Length
		last = p
		u.OnProgress(p)
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				show()
			case <-quit:
				return
			}
		}
	})
	return func() {
		close(quit)
		wg.Wait()
		show()
	}
}
