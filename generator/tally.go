package generator

import (
	"maps"
	"sync"
	"time"

	"weir/store/call"
)

// tally counts what a run does while it does it.
type tally struct {
	mu      sync.Mutex
	start   call.Instant
	stopped call.Instant  // when no more was to be sent; 0: not yet
	length  time.Duration // of the warm-up too
	warming time.Duration // of it, as a model says

	pace                      pace
	sent, notSent, late, warm int
	inFlight, inFlightHi      int
	capWaits, overfull        int
	exhausted                 map[string]int // what ran out → how often
	unsent                    map[string]int // why requests were not sent → how many

	lag, ttft, response sketch
	connect             sketch // the set-up of connections
	lookouts            []*lookout
	scenarios           map[string]*scenarioTally
	order               []string
}

type scenarioTally struct {
	sent, notSent, ok int
	failed            map[call.Outcome]int
	ttft, response    sketch
}

func newTally(scenarios []string, warming, length time.Duration) *tally {
	t := &tally{length: length, warming: warming, scenarios: map[string]*scenarioTally{}, order: scenarios, exhausted: map[string]int{}, unsent: map[string]int{}}
	for _, name := range scenarios {
		t.scenarios[name] = &scenarioTally{failed: map[call.Outcome]int{}}
	}
	return t
}

func (t *tally) begin(start call.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = start
}

// stop takes down that no more is to be sent from now on.
func (t *tally) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped == 0 {
		t.stopped = call.Now()
	}
}

func (t *tally) waited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capWaits++
}

// grew counts how large the context of a later turn became.
func (t *tally) grew(tokens, planned int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tokens > planned+max(planned/50, leastNewText) {
		t.overfull++
	}
}

// sending counts a request that goes out now.
func (t *tally) sending(s *Session) {
	now := call.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.inFlight++
	t.inFlightHi = max(t.inFlightHi, t.inFlight)
	for _, l := range t.lookouts {
		l.flying(t.inFlight)
	}
	if s.WarmUp {
		t.warm++
		return
	}
	t.scenarios[s.Scenario].sent++
	if time.Duration(now-t.start) <= t.length {
		t.pace.sentInTime++
	}
}

// ended counts how a call went.
func (t *tally) ended(s *Session, c *call.Call) {
	resource := c.Exhausted()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	for _, l := range t.lookouts {
		l.flying(t.inFlight)
		l.ended(c)
	}
	if c.Connected.Reached() && !c.ReusedConn {
		t.connect.add(time.Duration(c.Connected - c.Arrived))
	}
	if resource != "" {
		t.exhausted[resource]++
	}
	if s.WarmUp {
		return
	}
	lag := max(time.Duration(c.Arrived-c.Due), 0)
	t.lag.add(lag)
	if lag > LateAfter {
		t.late++
	}
	sc := t.scenarios[s.Scenario]
	if c.Outcome != call.OK {
		sc.failed[c.Outcome]++
		return
	}
	sc.ok++
	if d, ok := c.TTFTUpstream(); ok {
		t.ttft.add(d)
		sc.ttft.add(d)
	}
	if d, ok := c.TTFTResponse(); ok {
		t.response.add(d)
		sc.response.add(d)
	}
}

// flying is how many calls are in flight.
func (t *tally) flying() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inFlight
}

// whyStopped is why requests were not sent which no failed turn kept back.
const whyStopped = "stopped"

// skipped counts requests that will not be sent: because the run stopped, or a
// turn before them had this outcome. Nobody misses those of a warm-up.
func (t *tally) skipped(s *Session, n int, why string) {
	if s.WarmUp {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notSent += n
	t.unsent[why] += n
	t.scenarios[s.Scenario].notSent += n
}

// perScenario needs the lock.
func (t *tally) perScenario() []ScenarioResult {
	list := make([]ScenarioResult, len(t.order))
	for i, name := range t.order {
		sc := t.scenarios[name]
		list[i] = ScenarioResult{Scenario: name, Sent: sc.sent, NotSent: sc.notSent, OK: sc.ok, Failed: maps.Clone(sc.failed),
			TTFT: sc.ttft.quantiles(), Response: sc.response.quantiles()}
	}
	return list
}

// result gives the figures of the run's end.
func (t *tally) result(r *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Sent, r.NotSent, r.Planned = t.sent, t.notSent, t.sent+t.notSent
	r.Late, r.WarmUp, r.CapWaits, r.InFlightHi = t.late, t.warm, t.capWaits, t.inFlightHi
	r.Overfull, r.Connect, r.Unsent = t.overfull, t.connect.quantiles(), maps.Clone(t.unsent)
	t.kept(r)
	r.Lag, r.TTFT, r.Response = t.lag.quantiles(), t.ttft.quantiles(), t.response.quantiles()
	r.PerScenario = t.perScenario()
}

// progress gives a snapshot; rates are over the time since the one before.
func (t *tally) progress(before Progress) Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.comesDue(call.Now())
	p := Progress{Length: t.length, Planned: t.pace.came, Sent: t.sent, WarmUp: t.warm, NotSent: t.notSent, InFlight: t.inFlight,
		LagP99: t.lag.quantile(0.99), Scenarios: t.perScenario()}
	p.Elapsed = time.Duration(call.Now() - t.start)
	if s := (p.Elapsed - max(before.Elapsed, 0)).Seconds(); s > 0 {
		p.PlannedRate, p.SentRate = float64(p.Planned-before.Planned)/s, float64(p.Sent-before.Sent)/s
	}
	return p
}
