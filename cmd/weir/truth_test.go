package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/store/call"
)

// mixed speaks every dialect, streamed and whole, with and without tools, in
// single calls and in conversations, at 20 requests a second.
const mixed = `{ "load_model": { "name": "truth", "model": "sim", "target_qps": 20, "duration_seconds": 27, "scenarios": [
  { "id": "chat",             "api": "chat",        "weight": 0.10, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 120} },
  { "id": "chat_agent",       "api": "chat",        "weight": 0.10, "input_tokens": {"min": 400, "max": 2000}, "output_tokens": {"min": 20, "max": 100}, "tools": 4, "turns": {"min": 2, "max": 4} },
  { "id": "chat_gzip",        "api": "chat",        "weight": 0.08, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 120}, "model": "sim-gzip", "language": "zh" },
  { "id": "chat_whole",       "api": "chat",        "weight": 0.05, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 60}, "stream": false },
  { "id": "completions",      "api": "completions", "weight": 0.10, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 120} },
  { "id": "responses_rag",    "api": "responses",   "weight": 0.08, "input_tokens": {"min": 3000, "max": 6000}, "output_tokens": {"min": 20, "max": 120} },
  { "id": "responses_agent",  "api": "responses",   "weight": 0.08, "input_tokens": {"min": 400, "max": 1500}, "output_tokens": {"min": 20, "max": 100}, "tools": 3, "model": "sim-held" },
  { "id": "messages",         "api": "messages",    "weight": 0.10, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 120}, "model": "sim-held" },
  { "id": "messages_agent",   "api": "messages",    "weight": 0.10, "input_tokens": {"min": 400, "max": 2000}, "output_tokens": {"min": 20, "max": 100}, "tools": 4, "turns": {"min": 2, "max": 4}, "model": "sim-gzip" },
  { "id": "messages_whole",   "api": "messages",    "weight": 0.03, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 60}, "stream": false },
  { "id": "gemini",           "api": "gemini",      "weight": 0.06, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 120} },
  { "id": "gemini_tools",     "api": "gemini",      "weight": 0.04, "input_tokens": {"min": 300, "max": 900},  "output_tokens": {"min": 20, "max": 100}, "tools": 2, "model": "sim-held" },
  { "id": "gemini_array",     "api": "gemini",      "weight": 0.06, "input_tokens": {"min": 300, "max": 900},  "output_tokens": {"min": 20, "max": 100}, "tools": 2, "model": "sim-array" },
  { "id": "gemini_whole",     "api": "gemini",      "weight": 0.02, "input_tokens": {"min": 50, "max": 400},   "output_tokens": {"min": 20, "max": 60}, "stream": false } ] } }`

// TestFiguresAgainstTheSimulator holds what the store says of hundreds of calls
// against what the simulator wrote, and when.
//
// What does not depend on the machine's mood is held for every single call:
// spans, outcome, usage, which event is the first token, how many there are,
// and the order of cause and effect. The distance of every instant from the
// truth has its bound of 2 ms at p99; see hold for a busy machine.
func TestFiguresAgainstTheSimulator(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of load")
	}
	hold(t, 2, playMixed)
}

func playMixed(t *testing.T) (d differences, heard spread) {
	ch := startChain(t, sim.Config{
		Engine: sim.EngineConfig{
			Slots: 64, Step: 9 * time.Millisecond, PerSequence: 15 * time.Microsecond, PerToken: 5 * time.Microsecond,
			Chunk: 4096, TokensPerStep: 3, KVTokens: 2_000_000, CacheTokens: 500_000,
		},
		ToolShare: 0.6, Reasoning: 0.2, Pings: 12 * time.Millisecond, Seed: 5,
	})
	control := listenToNoise(t)
	result := ch.play(t, mixed, 1)
	heard = control.end()

	calls, records := ch.stored(t), ch.truth(t)
	if len(calls) < 500 || len(calls) != result.Sent || len(records) != result.Sent {
		t.Errorf("%d calls in the store, %d records of the simulator, %d sent, %d not sent; want all equal, and at least 500", len(calls), len(records), result.Sent, result.NotSent)
	}
	truth := map[string]*sim.Record{}
	for _, r := range records {
		truth[r.ID] = r
	}
	seen := map[string]int{}
	for _, v := range calls {
		r := truth[v.proxy.ResponseID]
		if r == nil {
			t.Errorf("%v: the simulator has no record %q", v.proxy, v.proxy.ResponseID)
			continue
		}
		delete(truth, r.ID)
		seen[v.proxy.Scenario]++
		holdCall(t, v, r)
		holdInstants(t, &d, v, r)
		if r.Stream {
			holdStream(t, &d, v, r, ch.streams[r.ID])
		}
	}
	for id := range truth {
		t.Errorf("nothing in the store is about the simulator's record %s", id)
	}
	t.Logf("%d calls: %v; lag p99 %v, %s", len(calls), seen, result.Lag.P99, result.Verdict)
	if len(seen) != 14 {
		t.Errorf("%d scenarios had calls, want all 14", len(seen))
	}
	return d, heard
}

// holdCall checks what has no tolerance.
func holdCall(t *testing.T, v views, r *sim.Record) {
	t.Helper()
	for _, c := range []*call.Call{v.client, v.proxy} {
		if c.Outcome != call.OK || c.ResponseID != r.ID || c.API != r.API || c.Streamed != r.Stream {
			t.Errorf("%v: api %s, streamed %t, id %s; the simulator answered %s in %s, streamed %t", c, c.API, c.Streamed, c.ResponseID, r.ID, r.API, r.Stream)
		}
		usage := c.Usage
		usage.Fresh = wire.Count{} // a part that the truth has no word for
		if diff := cmp.Diff(r.Usage, usage); diff != "" {
			t.Errorf("%v (%s): usage differs from the simulator's:\n%s", c, c.API, diff)
		}
		parts, ok := c.Account()
		took, _ := c.Duration()
		if sum := parts.Read + parts.Queue + parts.Connect + parts.Send + parts.Wait + parts.Generate + parts.Tail; !ok || sum != took {
			t.Errorf("%v: the parts add up to %v, the call took %v", c, sum, took)
		}
		if !r.Stream && (c.FirstToken.Reached() || c.NoFirstToken != call.AbsentNotStreamed) {
			t.Errorf("%v: first token %v, absent because %q; it was not streamed", c, c.FirstToken, c.NoFirstToken)
		}
	}
}

// holdInstants measures the instants outside the stream.
func holdInstants(t *testing.T, d *differences, v views, r *sim.Record) {
	t.Helper()
	c, p := v.client, v.proxy
	ordered(t, p, "client connected", c.Connected, "arrived", p.Arrived)
	ordered(t, p, "arrived", p.Arrived, "body", p.Body)
	ordered(t, p, "body", p.Body, "admitted", p.Admitted)
	ordered(t, p, "admitted", p.Admitted, "connected", p.Connected)
	ordered(t, p, "connected", p.Connected, "the simulator had read it all", call.At(r.Body))
	ordered(t, p, "the simulator had read it all", call.At(r.Body), "headers", p.Headers)
	ordered(t, p, "the simulator accepted", call.At(r.Accepted), "done", p.Done)

	d.add("arrived − client's request begun", gap(c.Connected, p.Arrived))
	d.add("body − client's request sent", gap(c.Sent, p.Body))
	d.add("connected − simulator accepted", gap(call.At(r.Accepted), p.Connected))
	d.add("sent − simulator read the body", gap(call.At(r.Body), p.Sent))
	d.add("headers − simulator's headers", gap(call.At(r.Headers), p.Headers))
	d.add("done − simulator done", gap(call.At(r.Done), p.Done))
	d.add("client's headers − proxy's", gap(p.Headers, c.Headers))
	d.add("client's done − proxy's", gap(p.Done, c.Done))
}

// holdStream checks which events are tokens, and measures when they came.
func holdStream(t *testing.T, d *differences, v views, r *sim.Record, s *stream) {
	t.Helper()
	c, p := v.client, v.proxy
	events, err := readWhole(r.API, s.coding, s.body)
	if err != nil {
		t.Errorf("%v: the oracle cannot read the stream: %v", p, err)
		return
	}
	writes := writesOf(events, r)
	if writes == nil {
		t.Errorf("%v: the simulator's record and its bytes do not fit", p)
		return
	}
	want := make([]wire.Kind, len(events))
	tokens := int64(0)
	for i, ev := range events {
		want[i] = ev.output
		if ev.output != 0 {
			tokens++
		}
	}
	for _, side := range []*call.Call{c, p} {
		var got []wire.Kind
		for e := range side.Timeline.Events() {
			got = append(got, e.Output)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (%s): other events are tokens than should be:\n%s", side, side.API, diff)
			return
		}
		if side.TokenEvents != tokens || side.Events != int64(len(events)) {
			t.Errorf("%v: %d token events of %d, want %d of %d", side, side.TokenEvents, side.Events, tokens, len(events))
		}
	}

	i := 0
	for e := range p.Timeline.Events() {
		d.add("each event of the timeline − its write", gap(s.onWire(writes[i]), p.Arrived+call.Instant(e.After)))
		i++
	}
	mark := func(name string, of wire.Kind, last bool, got call.Mark) {
		t.Helper()
		at := -1
		for i, ev := range events {
			if ev.output&of != 0 || of == 0 {
				if at = i; !last {
					break
				}
			}
		}
		if at < 0 || !got.Reached() {
			if at >= 0 || got.Reached() {
				t.Errorf("%v: %s is %v, and is event %d of the stream", p, name, got, at)
			}
			return
		}
		// The instant is that of the right event: not before it was written,
		// and the timeline's for the same event, which has whole microseconds.
		ordered(t, p, name+" written", call.At(writes[at].Before), name+" received", got.Received)
		ordered(t, p, name+" received", got.Received, name+" delivered", got.Delivered)
		i := 0
		for e := range p.Timeline.Events() {
			if i == at {
				if off := gap(p.Arrived+call.Instant(e.After), got.Received); off < 0 || off >= time.Microsecond {
					t.Errorf("%v: %s is %v off event %d of the timeline", p, name, off, at)
				}
			}
			i++
		}
		d.add(name+" − its write", gap(s.onWire(writes[at]), got.Received))
	}
	// A keep-alive may come before any event: the first byte is of the first write.
	ordered(t, p, "first byte written", call.At(r.Events[0].Before), "first byte received", p.FirstByte.Received)
	d.add("first_byte − its write", gap(s.onWire(r.Events[0]), p.FirstByte.Received))
	mark("first_event", 0, false, p.FirstEvent)
	mark("first_token", wire.Output, false, p.FirstToken)
	mark("first_reasoning", wire.KindReasoning, false, p.FirstReasoning)
	mark("first_text", wire.KindText, false, p.FirstText)
	mark("first_tool", wire.KindTool, false, p.FirstTool)
	mark("last_token", wire.Output, true, p.LastToken)

	first, ok := r.FirstToken()
	ttft, measured := p.TTFTUpstream()
	if !ok || !measured {
		t.Errorf("%v: first token in truth: %t, TTFT measured: %t", p, ok, measured)
		return
	}
	d.add("upstream TTFT − truth", ttft-first.Before.Sub(r.Body))
	ordered(t, p, "first token at the proxy", p.FirstToken.Received, "at the client", c.FirstToken.Received)
	d.add("first_token delivered − client received", gap(c.FirstToken.Received, p.FirstToken.Delivered))
	d.add("last_token delivered − client received", gap(c.LastToken.Received, p.LastToken.Delivered))
}

// writesOf gives for each event the write that completed it; nil when the
// record's writes are not what was on the wire.
func writesOf(events []said, r *sim.Record) []sim.Written {
	var writes []sim.Written
	end, next := 0, 0
	for _, w := range r.Events {
		end += w.Bytes
		output := wire.Kind(0)
		for ; next < len(events) && events[next].end <= end; next++ {
			output |= events[next].output
			writes = append(writes, w)
		}
		if output != w.Output {
			return nil
		}
	}
	if next < len(events) {
		return nil
	}
	return writes
}

// gap is how much later than the truth something was seen.
func gap(truth, seen call.Instant) time.Duration { return time.Duration(seen - truth) }

// ordered insists on cause before effect: no machine is so busy that this
// turns round.
func ordered(t *testing.T, c *call.Call, cause string, first call.Instant, effect string, then call.Instant) {
	t.Helper()
	if !first.Reached() || !then.Reached() || first > then {
		t.Errorf("%v: %s at %v, %s at %v: want both, in this order", c, cause, first, effect, then)
	}
}
