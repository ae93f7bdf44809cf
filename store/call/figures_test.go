package call

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// What weir held after a refusal, and never sent again, was not waiting for the
// endpoint.
func TestAccountOfACallThatWasHeldToTheEnd(t *testing.T) {
	in := Instants{Arrived: 10 * ms, Body: 10 * ms, Admitted: 12 * ms, Connected: 12 * ms, Sent: 13 * ms, Done: 43 * ms}
	again := in
	again.Again, again.Connected, again.Sent = 20*ms, 21*ms, 22*ms
	held := Parts{Queue: 2 * time.Millisecond, Attempts: 31 * time.Millisecond}
	for _, row := range []struct {
		sentence string
		call     Call
		want     Parts
		held     bool
	}{
		{"weir refused it in the end", Call{Instants: in, Shaping: Shaping{Refusals: 1}, Outcome: Refused}, held, true},
		{"its client left meanwhile", Call{Instants: in, Shaping: Shaping{Refusals: 1}, Outcome: ClientGone}, held, true},
		{"it was sent again, refused again, and refused by weir", Call{Instants: again, Shaping: Shaping{Refusals: 2}, Outcome: Refused}, held, true},
		{"it was sent again, and its client left before an answer", Call{Instants: again, Shaping: Shaping{Refusals: 1}, Outcome: ClientGone},
			Parts{Queue: 2 * time.Millisecond, Attempts: 8 * time.Millisecond, Connect: time.Millisecond, Send: time.Millisecond, Wait: 21 * time.Millisecond}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got, _ := row.call.Account()
			if diff := cmp.Diff(row.want, got); diff != "" || row.call.HeldToTheEnd() != row.held {
				t.Errorf("held %v\n%s", row.call.HeldToTheEnd(), diff)
			}
		})
	}
}

func TestAccount(t *testing.T) {
	const unit = time.Millisecond
	for _, row := range []struct {
		sentence string
		in       Instants
		want     Parts
		ok       bool
	}{
		{"all instants → their differences",
			Instants{Arrived: 10 * ms, Body: 11 * ms, Admitted: 13 * ms, Connected: 17 * ms, Sent: 25 * ms, Headers: 26 * ms, FirstToken: Mark{41 * ms, 0}, LastToken: Mark{73 * ms, 0}, Done: 137 * ms},
			Parts{unit, 2 * unit, 0, 4 * unit, 8 * unit, 16 * unit, 32 * unit, 64 * unit}, true},
		{"sent again after a refusal → the attempts before are a part of their own",
			Instants{Arrived: 10 * ms, Body: 11 * ms, Admitted: 13 * ms, Again: 33 * ms, Connected: 34 * ms, Sent: 35 * ms, Headers: 36 * ms, Done: 37 * ms},
			Parts{Read: unit, Queue: 2 * unit, Attempts: 20 * unit, Connect: unit, Send: unit, Wait: 2 * unit}, true},
		{"nothing between → all of it is reading",
			Instants{Arrived: 10 * ms, Done: 20 * ms}, Parts{Read: 10 * unit}, true},
		{"no first token → the wait lasts to the end",
			Instants{Arrived: 10 * ms, Body: 10 * ms, Admitted: 10 * ms, Connected: 10 * ms, Sent: 12 * ms, Headers: 15 * ms, Done: 20 * ms}, Parts{Send: 2 * unit, Wait: 8 * unit}, true},
		{"answered before the body was out → sent is cut at the headers",
			Instants{Arrived: 10 * ms, Body: 10 * ms, Admitted: 10 * ms, Connected: 10 * ms, Sent: 18 * ms, Headers: 15 * ms, FirstToken: Mark{17 * ms, 0}, LastToken: Mark{17 * ms, 0}, Done: 20 * ms}, Parts{Send: 5 * unit, Wait: 2 * unit, Tail: 3 * unit}, true},
		{"answered, and the body was never out → the same",
			Instants{Arrived: 10 * ms, Body: 10 * ms, Admitted: 10 * ms, Connected: 10 * ms, Headers: 15 * ms, FirstToken: Mark{17 * ms, 0}, LastToken: Mark{17 * ms, 0}, Done: 20 * ms}, Parts{Send: 5 * unit, Wait: 2 * unit, Tail: 3 * unit}, true},
		{"an instant after its successor → cut at it",
			Instants{Arrived: 10 * ms, Body: 19 * ms, Admitted: 12 * ms, Done: 20 * ms}, Parts{Read: 2 * unit, Connect: 8 * unit}, true},
		{"not ended → none", Instants{Arrived: 10 * ms}, Parts{}, false},
		{"never arrived → none", Instants{Done: 10 * ms}, Parts{}, false},
		{"ended before it arrived → none", Instants{Arrived: 10 * ms, Done: 9 * ms}, Parts{}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := &Call{Instants: row.in}
			p, ok := c.Account()
			if diff := cmp.Diff(row.want, p); diff != "" || ok != row.ok {
				t.Errorf("ok %v, want %v\n%s", ok, row.ok, diff)
			}
			if diff := cmp.Diff(row.in, c.Instants); diff != "" {
				t.Errorf("the account changed the instants:\n%s", diff)
			}
		})
	}
}

func TestPartsAddUpWhateverTheInstants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() Instant {
		if rng.IntN(4) == 0 {
			return 0
		}
		return Instant(rng.Int64N(2000) - 1000)
	}
	ended := 0
	for range 100_000 {
		c := &Call{Instants: Instants{
			Due: random(), Arrived: random(), Body: random(), Admitted: random(), Again: random(), Connected: random(), Sent: random(), Headers: random(), Done: random(),
			FirstByte: Mark{random(), random()}, FirstToken: Mark{random(), random()}, LastToken: Mark{random(), random()},
		}}
		p, ok := c.Account()
		if !ok {
			continue
		}
		ended++
		sum := time.Duration(0)
		for _, d := range []time.Duration{p.Read, p.Queue, p.Attempts, p.Connect, p.Send, p.Wait, p.Generate, p.Tail} {
			if d < 0 {
				t.Fatalf("%+v has a negative part: %+v", c.Instants, p)
			}
			sum += d
		}
		if d, _ := c.Duration(); d != sum {
			t.Fatalf("%+v: parts %+v add up to %v, the call took %v", c.Instants, p, sum, d)
		}
		if d, ok := c.TTFTUpstream(); ok && d < 0 {
			t.Fatalf("%+v: TTFT %v", c.Instants, d)
		}
	}
	if ended < 10_000 {
		t.Fatalf("only %d calls had an account", ended)
	}
}

func TestFiguresOfTokens(t *testing.T) {
	base := func() *Call {
		return &Call{Side: Proxy, TokenEvents: 4, Usage: wire.Usage{Output: wire.N(11)}, UsageSource: UsageReported, Instants: Instants{
			Due: 1 * ms, Arrived: 3 * ms, Sent: 10 * ms, FirstToken: Mark{50 * ms, 52 * ms}, LastToken: Mark{150 * ms, 151 * ms}, Done: 200 * ms}}
	}
	type figure = func(*Call) (time.Duration, bool)
	const absent = time.Duration(-1)
	for _, row := range []struct {
		sentence string
		change   func(*Call)
		figure   figure
		want     time.Duration
	}{
		{"upstream TTFT counts from sent to received", func(*Call) {}, (*Call).TTFTUpstream, 40 * time.Millisecond},
		{"sent unseen → no upstream TTFT", func(c *Call) { c.Sent = 0 }, (*Call).TTFTUpstream, absent},
		{"no first token → no upstream TTFT", func(c *Call) { c.FirstToken = Mark{} }, (*Call).TTFTUpstream, absent},
		{"felt TTFT counts from arrived to delivered", func(*Call) {}, (*Call).TTFTFelt, 49 * time.Millisecond},
		{"first token never delivered → not felt", func(c *Call) { c.FirstToken.Delivered = 0 }, (*Call).TTFTFelt, absent},
		{"the generator feels what it receives", func(c *Call) { c.Side, c.FirstToken.Delivered = Client, 0 }, (*Call).TTFTFelt, 47 * time.Millisecond},
		{"response TTFT counts from due", func(*Call) {}, (*Call).TTFTResponse, 49 * time.Millisecond},
		{"nothing due → no response TTFT", func(c *Call) { c.Due = 0 }, (*Call).TTFTResponse, absent},
		{"lag is arrived − due", func(*Call) {}, (*Call).Lag, 2 * time.Millisecond},
		{"to last token", func(*Call) {}, (*Call).ToLastToken, 147 * time.Millisecond},
		{"duration", func(*Call) {}, (*Call).Duration, 197 * time.Millisecond},
		{"tpot is over output − 1", func(*Call) {}, (*Call).TPOT, 10 * time.Millisecond},
		{"one token → no tpot", func(c *Call) { c.Usage.Output = wire.N(1) }, (*Call).TPOT, absent},
		{"no usage → no tpot", func(c *Call) { c.Usage = wire.Usage{} }, (*Call).TPOT, absent},
		{"estimated → no tpot", func(c *Call) { c.UsageSource = UsageEstimated }, (*Call).TPOT, absent},
		{"suspicious → no tpot", func(c *Call) { c.UsageSource = UsageSuspicious }, (*Call).TPOT, absent},
		{"injected → tpot", func(c *Call) { c.UsageSource = UsageInjected }, (*Call).TPOT, 10 * time.Millisecond},
		{"all at one instant → no tpot, not 0", func(c *Call) { c.LastToken = c.FirstToken }, (*Call).TPOT, absent},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			c := base()
			row.change(c)
			got, ok := row.figure(c)
			if !ok {
				got = absent
			}
			if got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
	if n, ok := base().TokensPerEvent(); !ok || n != 2.75 {
		t.Errorf("tokens per event %v, %v: want 2.75", n, ok)
	}
}

// tokensAt is a stream whose token events come at the milliseconds given.
func tokensAt(stall time.Duration, times ...int) Gaps {
	c, m := (&script{api: wire.Chat, request: wire.Head{Stream: true}}).start()
	m.StallAfter = stall
	m.Begin(200, sse, t0+8*ms)
	for _, n := range times {
		at := t0 + Instant(n)*ms
		m.Observe([]byte(data(chatHel, chatRole)), at, at) // the second is no token: no gap
	}
	m.End(EndClean, nil, t0+Instant(times[len(times)-1]+1)*ms)
	return c.Gaps
}

func TestGaps(t *testing.T) {
	const unit = time.Millisecond
	burst := func(n int, at ...int) (times []int) {
		for _, a := range at {
			for range n {
				times = append(times, a)
			}
		}
		return times
	}
	for _, row := range []struct {
		sentence string
		got      Gaps
		want     Gaps
	}{
		{"one token → no gaps", tokensAt(0, 10), Gaps{}},
		{"nearest rank: the median of 1, 2, 3, 4 is 2", tokensAt(0, 10, 11, 13, 16, 20), Gaps{N: 4, P50: 2 * unit, P99: 4 * unit, Longest: 4 * unit}},
		{"one read → no time between", tokensAt(0, 10, 10), Gaps{N: 1}},
		{"a stall is above a second, not at it", tokensAt(0, 10, 1010, 2011, 3500), Gaps{N: 3, P50: 1001 * unit, P99: 1489 * unit, Longest: 1489 * unit, Stalls: 2, Stalled: 2490 * unit}},
		{"the threshold can be set", tokensAt(5*unit, 10, 20, 22), Gaps{N: 2, P50: 2 * unit, P99: 10 * unit, Longest: 10 * unit, Stalls: 1, Stalled: 10 * unit}},
		{"all at once after a second → coalesced", tokensAt(0, burst(20, 1500)...), Gaps{N: 19, Coalesced: true}},
		{"in bursts → coalesced", tokensAt(0, burst(5, 300, 900, 1500)...), Gaps{N: 14, P99: 600 * unit, Longest: 600 * unit, Coalesced: true}},
		{"all at once at once → not", tokensAt(0, burst(20, 500)...), Gaps{N: 19}},
		{"few events → not", tokensAt(0, burst(7, 1500)...), Gaps{N: 6}},
		{"half in pairs → not", tokensAt(0, burst(2, 300, 600, 900, 1200, 1500)...), Gaps{N: 9, P99: 300 * unit, Longest: 300 * unit}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if diff := cmp.Diff(row.want, row.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
