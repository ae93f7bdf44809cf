package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/proxy/wire"
	"weir/store/call"
)

// load makes a call that was sent at ms and whose answer came evenly from then
// to its end.
func load(at, took, input, output int) *call.Call {
	c := seen("chat", 0)
	sent := call.Instant(at) * millisecond
	end := sent + call.Instant(took)*millisecond
	c.Arrived, c.Body, c.Admitted, c.Connected, c.Sent, c.Headers = sent, sent, sent, sent, sent, sent
	c.Attempts = 1
	c.FirstToken = call.Mark{Received: sent, Delivered: sent}
	c.LastToken, c.Done = call.Mark{Received: end, Delivered: end}, end
	c.Usage = wire.Usage{Input: wire.N(int64(input)), Output: wire.N(int64(output))}
	return c
}

// turnedAway makes a call that the endpoint refused within a millisecond.
func turnedAway(at, status int) *call.Call {
	c := load(at, 1, 0, 0)
	c.Outcome, c.Status, c.Usage, c.Streamed = call.RateLimited, status, wire.Usage{}, false
	if status != 429 {
		c.Outcome = call.Overloaded
	}
	c.FirstToken, c.LastToken = call.Mark{}, call.Mark{}
	c.Headers = c.Done
	return c
}

// stored puts calls into the order in which a store has them: as they ended.
func stored(calls ...*call.Call) []*call.Call {
	slices.SortStableFunc(calls, func(a, b *call.Call) int { return int(a.Done - b.Done) })
	return calls
}

// endpointOf finds the onset in calls of one endpoint.
func endpointOf(t *testing.T, calls ...*call.Call) Endpoint {
	t.Helper()
	all := summary(t, Options{}, stored(calls...)...).Endpoints
	if len(all) != 1 {
		t.Fatalf("%d endpoints, want 1", len(all))
	}
	return all[0]
}

// steady is a load of so many calls a second for so many seconds from 1 s on,
// each of 100 tokens in and 60 out in 2 s.
func steady(perSecond, seconds int) []*call.Call {
	var calls []*call.Call
	for i := range perSecond * seconds {
		calls = append(calls, load(1000+i*1000/perSecond, 2000, 100, 60))
	}
	return calls
}

// near compares figures that went through floating point.
var near = cmp.Options{cmpopts.EquateApprox(1e-9, 1e-6), cmpopts.IgnoreFields(Onset{}, "At")}

func TestTheOnsetOfRefusalIsFound(t *testing.T) {
	refusedAt := func(ms, status int) []*call.Call { return append(steady(10, 90), turnedAway(ms, status)) }
	full := Load{Calls: N(10), Tokens: N(96_000), Input: N(60_000), Output: N(36_000), InFlight: N(20)}
	for _, c := range []struct {
		sentence string
		calls    []*call.Call
		want     Onset
	}{
		{"after both windows are full", refusedAt(81_000, 429), Onset{After: N(80), Status: 429, Load: full, Window: N(10), TokenWindow: N(60)}},
		{"503 and 529 are refusals too", refusedAt(81_000, 529), Onset{After: N(80), Status: 529, Load: full, Window: N(10), TokenWindow: N(60)}},
		{"the first of several is told", append(refusedAt(81_000, 529), turnedAway(82_000, 429)), Onset{After: N(80), Status: 529, Load: full, Window: N(10), TokenWindow: N(60)}},
		// Of 340 calls those of the last 2 s are on their way: a half of them, and a bit.
		{"the windows are what has passed", refusedAt(35_000, 429), Onset{After: N(34), Status: 429, Window: N(10), TokenWindow: N(34),
			Load: Load{Calls: N(10), Input: N(60_000), Output: N((320 + 10.5) * 60 * 60 / 34.0), Tokens: N(60_000 + (320+10.5)*60*60/34.0), InFlight: N(20)}}},
		{"too little has passed for rates", refusedAt(1500, 429), Onset{After: N(0.5), Status: 429, Load: Load{InFlight: N(6)}}},
		{"enough for calls, not for tokens", refusedAt(3000, 429), Onset{After: N(2), Status: 429, Window: N(2), Load: Load{Calls: N(10), InFlight: N(20)}}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			e := endpointOf(t, c.calls...)
			if e.Onset == nil {
				t.Fatal("no onset")
			}
			if diff := cmp.Diff(c.want, *e.Onset, near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNoRefusalOfTheEndpoint(t *testing.T) {
	own := turnedAway(20_000, 429)
	own.Outcome = call.Refused
	own.Sent, own.Headers = 0, 0
	impaired := turnedAway(20_000, 429)
	impaired.Impaired, impaired.Attempts = []string{"429"}, 0
	credit := turnedAway(20_000, 429)
	credit.ErrorMessage = "insufficient_quota"
	failed := turnedAway(20_000, 500)
	failed.Outcome = call.ServerError
	for sentence, c := range map[string]*call.Call{"weir's own": own, "one that weir made up": impaired, "want of credit": credit, "a failure": failed} {
		e := endpointOf(t, append(steady(10, 30), c)...)
		if e.Onset != nil || e.Refusals != 0 {
			t.Errorf("%s: onset %+v after %d refusals", sentence, e.Onset, e.Refusals)
		}
		if e.Passed.Calls.V < 10 {
			t.Errorf("%s: only %v calls a second passed", sentence, e.Passed.Calls)
		}
	}
}

// Which calls are in flight at the onset of an endpoint that takes three at
// once: each schedule is one that it can have seen.
func TestWhoIsInFlightAtTheOnset(t *testing.T) {
	long := func(at int) *call.Call { return load(at, 60_000, 10, 10) }
	refused := func(at, took int) *call.Call {
		c := turnedAway(at, 429)
		c.Done = c.Sent + call.Instant(took)*millisecond
		c.Headers = c.Done
		return c
	}
	again := func(admitted, sentAgain int) *call.Call { // by weir, after a refusal
		c := load(sentAgain, 1000, 10, 10)
		c.Refusals, c.Admitted, c.Again = 1, call.Instant(admitted)*millisecond, c.Sent
		return c
	}
	given := func(admitted, done int) *call.Call { // up, after a refusal
		c := turnedAway(done, 429)
		c.Outcome, c.Refusals, c.Admitted = call.Refused, 1, call.Instant(admitted)*millisecond
		return c
	}
	for _, c := range []struct {
		sentence string
		calls    []*call.Call
	}{
		{"one after the other", []*call.Call{long(1000), long(2000), long(3000), refused(4000, 5)}},
		{"together, the refused one not sent last", []*call.Call{long(1000), refused(1001, 5), long(1002), refused(1003, 5), long(1004), refused(1005, 5)}},
		{"the refused one sent first", []*call.Call{refused(1000, 5), long(1001), long(1002), long(1003)}},
		{"one ends before the refusal is heard", []*call.Call{long(1000), long(1001), load(1002, 1000, 10, 10), refused(2000, 5), long(2010)}},
		{"those sent after the refusal was heard are none of them", []*call.Call{long(1000), long(1001), long(1002), refused(2000, 5), long(2005), long(2006)}},
		{"nor those of a second later", []*call.Call{long(1000), long(1001), long(1002), refused(2000, 5000), long(3000)}},
		{"the call was let go before the others were sent, and sent again", []*call.Call{again(1000, 5000), long(1001), long(1002), long(1003), long(2001)}},
		{"soon sent again, it is none of them itself", []*call.Call{long(1000), long(1001), long(1002), again(1003, 1200)}},
		{"not sent again in the end", []*call.Call{given(1000, 5000), long(1001), long(1002), long(1003), long(2001)}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if e := endpointOf(t, c.calls...); e.Onset == nil || e.Onset.InFlight != N(3) {
				t.Errorf("onset %+v, want 3 in flight", e.Onset)
			}
		})
	}
}

// What was meant for a call, and befell it or not, takes nothing from what the
// endpoint said of it.
func TestTheEndpointsRefusalsOfImpairedCallsCount(t *testing.T) {
	refused := turnedAway(20_000, 429)
	refused.Impaired = []string{call.NotApplied("first_token+800ms", "status 429")}
	throttled := turnedAway(20_000, 429)
	throttled.Impaired = []string{"bandwidth=1000"}
	again := load(21_000, 1000, 100, 60)
	again.Refusals, again.HoldReason, again.Impaired = 1, "429", []string{"first_token+800ms"}
	again.Admitted, again.Again = 20_000*millisecond, 20_900*millisecond
	for sentence, c := range map[string]*call.Call{"not applied": refused, "the answer slowed": throttled, "sent again, and then impaired": again} {
		e := endpointOf(t, append(steady(10, 30), c)...)
		if e.Refusals != 1 || e.Onset == nil || e.Onset.Status != 429 || e.Onset.After != N(19) {
			t.Errorf("%s: onset %+v after %d refusals", sentence, e.Onset, e.Refusals)
		}
	}
}

// A call that was refused, sent again and answered refused before it was
// answered, however much later it ended.
func TestARefusalThatWasMadeGoodCounts(t *testing.T) {
	again := load(81_000, 1000, 100, 60)
	again.Refusals, again.HoldReason = 3, "529"
	again.Admitted, again.Again = 41_000*millisecond, 80_900*millisecond
	e := endpointOf(t, append(steady(10, 120), again)...)
	want := Onset{After: N(40), Status: 529, Window: N(10), TokenWindow: N(40), Load: Load{Calls: N(10), InFlight: N(20),
		Input: N(60_000), Output: N((380 + 10.5) * 60 * 60 / 40.0), Tokens: N(60_000 + (380+10.5)*60*60/40.0)}}
	if e.Onset == nil || e.Refusals != 3 {
		t.Fatalf("onset %+v after %d refusals, want 3", e.Onset, e.Refusals)
	}
	if diff := cmp.Diff(want, *e.Onset, near); diff != "" {
		t.Error(diff)
	}
}

// A call whose attempts were all refused is a refusal, and no load.
func TestACallThatWasNeverTakenIsNoLoad(t *testing.T) {
	given := load(40_000, 30_000, 0, 0)
	given.Outcome, given.Refusals, given.Usage, given.HoldReason = call.Refused, 2, wire.Usage{}, "429"
	given.FirstToken, given.LastToken = call.Mark{}, call.Mark{}
	left := load(50_000, 30_000, 0, 0)
	left.Outcome, left.Refusals, left.Usage = call.ClientGone, 1, wire.Usage{}
	e := endpointOf(t, append(steady(10, 90), given, left)...)
	if e.Calls != 900 || e.Refusals != 3 || e.Onset == nil || e.Onset.After != N(39) || e.Passed.InFlight != N(20) {
		t.Errorf("%d calls, %d refusals, onset %+v, passed %+v", e.Calls, e.Refusals, e.Onset, e.Passed)
	}
}

func TestTheMostThatPassedHadNoRefusal(t *testing.T) {
	// 10 a second for 20 s, then 20 a second with a refusal every 9 s.
	calls := steady(10, 20)
	for i := range 20 * 30 {
		calls = append(calls, load(21_000+i*50, 2000, 100, 60))
	}
	for at := 21_500; at < 51_000; at += 9000 {
		calls = append(calls, turnedAway(at, 429))
	}
	e := endpointOf(t, calls...)
	// The window that ends just before the first refusal has half a second of
	// the higher rate in it, both its ends counted.
	if got, want := e.Passed.Calls, N((95+10)/10.0); math.Abs(got.V-want.V) > 0.11 {
		t.Errorf("%v calls a second passed, want about %v", got, want)
	}
	if e.Passed.InFlight != N(40) || e.Passed.Tokens.Known || e.Calls != 800 || e.Refusals != 4 {
		t.Errorf("passed %+v, of %d calls with %d refusals", e.Passed, e.Calls, e.Refusals)
	}
}

func TestTokensThatAreNotKnownAreNotCounted(t *testing.T) {
	silent := load(60_000, 2000, 0, 0)
	silent.Usage = wire.Usage{}
	e := endpointOf(t, append(steady(10, 90), silent, turnedAway(81_000, 429))...)
	if l := e.Onset.Load; l.Tokens.Known || l.Input.Known || l.Output.Known || !l.Calls.Known {
		t.Errorf("with a call of unknown usage in the window: %+v", l)
	}
	e = endpointOf(t, append(steady(10, 200), silent, turnedAway(181_000, 429))...)
	if l := e.Onset.Load; l.Tokens != N(96_000) {
		t.Errorf("with one long before: %+v", l)
	}
}

func TestEndpointsAreToldApart(t *testing.T) {
	other := func(c *call.Call) *call.Call { c.KeyFingerprint = "00c0ffee"; return c }
	calls := append(steady(10, 30), other(load(5000, 100, 1, 1)), other(turnedAway(6500, 429)))
	all := summary(t, Options{}, stored(calls...)...).Endpoints
	if len(all) != 2 || all[0].Onset != nil || all[1].Onset == nil || all[1].Onset.InFlight != N(0) || all[1].Onset.After != N(1.5) {
		t.Errorf("endpoints %+v", all)
	}
}

// However loads are mixed, the figures are those that counting by hand gives.
func TestTheOnsetIsWhatCountingGives(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var calls []*call.Call
		for range 200 {
			calls = append(calls, load(1000+rng.IntN(150_000), 1+rng.IntN(20_000), rng.IntN(5000), 1+rng.IntN(900)))
		}
		refusal := turnedAway(1001+rng.IntN(150_000), 429)
		refusal.Headers += call.Instant(rng.IntN(3000)) * millisecond
		refusal.Done = refusal.Headers
		calls = append(calls, refusal)
		e := endpointOf(t, calls...)
		want := counted(calls, refusal)
		if diff := cmp.Diff(want, e.Onset.Load, cmpopts.EquateApprox(1e-6, 1e-3)); diff != "" {
			t.Fatalf("seed %d, refused after %v s: %s", seed, e.Onset.After.V, diff)
		}
	}
}

// counted is the load at a refusal, by looking at every call.
func counted(calls []*call.Call, refusal *call.Call) Load {
	at, first := refusal.Sent, refusal.Sent
	for _, c := range calls {
		first = min(first, c.Sent)
	}
	callsFrom, tokensFrom := max(first, at-call.Instant(10*time.Second)), max(first, at-call.Instant(time.Minute))
	var sent, input, output float64
	inFlight := underWay(calls, at)
	for _, c := range calls {
		if c.Sent >= at && c.Sent < min(refusal.Headers, at+call.Instant(time.Second)) && c != refusal {
			inFlight = max(inFlight, underWay(calls, c.Sent))
		}
		if c.Sent >= at {
			continue
		}
		if c.Sent >= callsFrom {
			sent++
		}
		if c.Sent >= tokensFrom {
			input += float64(c.Usage.Input.N)
		}
		if from, to := max(c.FirstToken.Received, tokensFrom), min(c.LastToken.Received, at); to > from {
			output += float64(c.Usage.Output.N) * float64(to-from) / float64(c.LastToken.Received-c.FirstToken.Received)
		}
	}
	l := Load{InFlight: N(inFlight)}
	if w := time.Duration(at - callsFrom); w >= time.Second {
		l.Calls = N(sent / w.Seconds())
	}
	if w := time.Duration(at - tokensFrom); w >= 6*time.Second {
		l.Input, l.Output = N(input/w.Minutes()), N(output/w.Minutes())
		l.Tokens = N(l.Input.V + l.Output.V)
	}
	return l
}

// underWay are the calls that are taken and have not ended at a moment.
func underWay(calls []*call.Call, at call.Instant) (n float64) {
	for _, c := range calls {
		if c.Sent <= at && c.Done > at && c.Outcome == call.OK {
			n++
		}
	}
	return n
}

// What is held back is bounded, and a call that comes too late is said.
func TestCallsThatComeTooLateAreSaid(t *testing.T) {
	hour := 3_600_000
	r := summary(t, Options{}, load(hour, 10, 1, 1), load(2*hour, 10, 1, 1), load(1000, 10, 1, 1), load(2*hour-1000, 10, 1, 1))
	if got := r.Endpoints[0].Calls; got != 3 {
		t.Errorf("%d calls counted, want 3", got)
	}
	want := []string{"1 call in none of the endpoints' figures: they ended over 10m after later ones, or there are more than 100 endpoints"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrittenOfAnOnset(t *testing.T) {
	var b bytes.Buffer
	summary(t, Options{}, stored(append(steady(10, 90), turnedAway(81_000, 429))...)...).onsets(&b, Style{})
	again := load(81_000, 1000, 100, 60)
	again.Refusals, again.Admitted, again.Again, again.KeyFingerprint = 1, 80_000*millisecond, 80_900*millisecond, "00c0ffee"
	summary(t, Options{}, stored(append(steady(10, 90), again)...)...).onsets(&b, Style{})
	summary(t, Options{}, stored(steady(10, 90)...)...).onsets(&b, Style{})
	summary(t, Options{}, stored(turnedAway(1000, 429), load(3000, 1000, 1, 1))...).onsets(&b, Style{})
	summary(t, Options{}, stored(turnedAway(1000, 503), load(1000, 1000, 1, 1))...).onsets(&b, Style{})
	summary(t, Options{}, turnedAway(1000, 529)).onsets(&b, Style{})
	summary(t, Options{}, stored(load(1000, 500, 1, 1), turnedAway(1003, 429))...).onsets(&b, Style{})
	want := `
the endpoint began to refuse at 10.0 calls/s, 96,000 tokens/min, 20 in flight (first after 1m20s; HTTP 429)
  at most without a refusal: 10.0 calls/s, 96,000 tokens/min, 20 in flight

main sim-small key 00c0ffee refused its first call (the call was sent again)
  at most without a refusal: 1 in flight

the endpoint refused its first call (HTTP 429)
  at most without a refusal: 1 in flight

the endpoint began to refuse at 1 in flight (the first of several sent together; HTTP 503)
  at most without a refusal: 1 in flight

the endpoint refused its first call (HTTP 529)

the endpoint began to refuse at 1 in flight (first after 3.0ms; HTTP 429)
  at most without a refusal: 1 in flight
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
