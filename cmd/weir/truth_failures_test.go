package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/generator/sim"
	"weir/proxy/wire"
	"weir/store/call"
)

// everyWay is a load model that asks in every dialect, streamed and whole.
func everyWay() string {
	var scenarios []string
	for _, api := range dialects {
		for _, stream := range []bool{true, false} {
			scenarios = append(scenarios, fmt.Sprintf(
				`{ "id": "%s_%t", "api": "%s", "stream": %t, "weight": 0.1, "input_tokens": {"min": 30, "max": 60}, "output_tokens": {"min": 40, "max": 60} }`, api, stream, api, stream))
		}
	}
	return `{ "load_model": { "name": "failures", "model": "sim", "target_qps": 30, "duration_seconds": 1, "arrivals": {"process": "constant"},
		"scenarios": [` + strings.Join(scenarios, ",\n") + `] } }`
}

// ending is what both views of a call must say.
type ending struct {
	outcome    call.Outcome
	absent     call.Absence // in a stream
	message    string       // part of the error's message
	body       string       // part of what is kept of the error's body
	retryAfter time.Duration
	stalls     int
	ttft       time.Duration // at least
}

// TestTruthOfFailures sends calls of every dialect into each fault that the
// simulator knows, through the whole chain, and holds what both views say of
// the failure against what the simulator did.
func TestTruthOfFailures(t *testing.T) {
	ok := ending{outcome: call.OK}
	for _, row := range []struct {
		sentence string
		fault    sim.Fault
		stream   ending
		whole    ending
	}{
		{"429 → rate_limited, with its Retry-After", sim.Fault{Kind: "429", Wait: 7 * time.Second},
			ending{outcome: call.RateLimited, absent: call.AbsentHTTPError, message: "simulated: rate limit reached", body: "simulated: rate limit reached", retryAfter: 7 * time.Second},
			ending{outcome: call.RateLimited, absent: call.AbsentHTTPError, message: "simulated: rate limit reached", body: "simulated: rate limit reached", retryAfter: 7 * time.Second}},
		{"500 → server_error", sim.Fault{Kind: "500"},
			ending{outcome: call.ServerError, absent: call.AbsentHTTPError, message: "simulated: internal error", body: "simulated: internal error"},
			ending{outcome: call.ServerError, absent: call.AbsentHTTPError, message: "simulated: internal error", body: "simulated: internal error"}},
		{"529 → overloaded", sim.Fault{Kind: "529"},
			ending{outcome: call.Overloaded, absent: call.AbsentHTTPError, message: "simulated: overloaded", body: "simulated: overloaded"},
			ending{outcome: call.Overloaded, absent: call.AbsentHTTPError, message: "simulated: overloaded", body: "simulated: overloaded"}},
		{"an error in a 200 → stream_error", sim.Fault{Kind: "error"},
			ending{outcome: call.StreamError, message: "simulated: the model failed", body: "simulated: the model failed"},
			ending{outcome: call.StreamError, absent: call.AbsentStreamError, message: "simulated: the model failed", body: "simulated: the model failed"}},
		{"cut in its midst → truncated", sim.Fault{Kind: "cut"},
			ending{outcome: call.Truncated, message: "EOF"},
			ending{outcome: call.Truncated, absent: call.AbsentTruncated, message: "EOF"}},
		{"a clean end without the terminal event → truncated", sim.Fault{Kind: "end"},
			ending{outcome: call.Truncated, message: "without its terminal event"}, ok},
		{"a pause above the threshold → ok, with a stall", sim.Fault{Kind: "stall", Wait: 1300 * time.Millisecond},
			ending{outcome: call.OK, stalls: 1}, ok},
		{"a late first token → ok, and late", sim.Fault{Kind: "slow", Wait: 400 * time.Millisecond},
			ending{outcome: call.OK, ttft: 400 * time.Millisecond}, ok},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			t.Parallel()
			row.fault.Share = 1
			ch := startChain(t, sim.Config{Faults: []sim.Fault{row.fault}, Seed: 3})
			result := ch.play(t, everyWay(), 1)
			calls, records := ch.stored(t), ch.truth(t)
			if len(calls) != result.Sent || len(records) != result.Sent {
				t.Fatalf("%d calls in the store, %d records of the simulator, %d sent; want all equal", len(calls), len(records), result.Sent)
			}
			// A refused call has no id in its answer, and is known by its place
			// among those of its scenario: they begin tens of milliseconds apart.
			slices.SortFunc(records, func(a, b *sim.Record) int { return a.Accepted.Compare(b.Accepted) })
			ways := map[string]int{}
			for _, v := range calls {
				api, stream := v.proxy.API, v.proxy.Request.Stream
				ways[v.proxy.Scenario]++
				i := slices.IndexFunc(records, func(r *sim.Record) bool { return r.API == api && r.Stream == stream })
				if i < 0 {
					t.Errorf("%v: the simulator has no record of it", v.proxy)
					continue
				}
				r := records[i]
				records = slices.Delete(records, i, i+1)
				want := row.whole
				if stream {
					want = row.stream
				}
				for _, c := range []*call.Call{v.client, v.proxy} {
					holdFailure(t, c, r, want)
				}
			}
			if len(ways) != 2*len(dialects) {
				t.Errorf("calls by scenario: %v; want some of all %d", ways, 2*len(dialects))
			}
		})
	}
}

// holdFailure checks one view of a call against what is wanted of it and what
// the simulator did.
func holdFailure(t *testing.T, c *call.Call, r *sim.Record, want ending) {
	t.Helper()
	first, spoke := r.FirstToken()
	absent := want.absent
	if absent == "" && !r.Stream {
		absent = call.AbsentNotStreamed
	}
	if absent == "" && !spoke {
		t.Errorf("%v: the simulator wrote no token, so this test sees nothing", c)
	}
	if c.Outcome != want.outcome || c.NoFirstToken != absent || c.Status != r.Status {
		t.Errorf("%v (%s, streamed %t): outcome %q, no first token because %q, status %d; want %q, %q, %d",
			c, c.API, r.Stream, c.Outcome, c.NoFirstToken, c.Status, want.outcome, absent, r.Status)
	}
	if c.ResponseID != "" && c.ResponseID != r.ID {
		t.Errorf("%v: answered as %s, the simulator's record is %s", c, c.ResponseID, r.ID)
	}
	if !strings.Contains(c.ErrorMessage, want.message) || !strings.Contains(c.ErrorBody, want.body) || (want.outcome == call.OK) != (c.ErrorMessage == "" && c.ErrorType == "") {
		t.Errorf("%v (%s): error %s %q, body %q; want %q in the one and %q in the other", c, c.API, c.ErrorType, c.ErrorMessage, c.ErrorBody, want.message, want.body)
	}
	if c.RetryAfter != want.retryAfter {
		t.Errorf("%v: Retry-After %v, want %v", c, c.RetryAfter, want.retryAfter)
	}
	// No tools are in play, so a write with output holds one token event.
	var tokens int64
	var stalled time.Duration
	var last time.Time
	for _, w := range r.Events {
		if w.Output == 0 {
			continue
		}
		tokens++
		if !last.IsZero() && w.Before.Sub(last) > time.Second {
			stalled += w.Before.Sub(last)
		}
		last = w.Before
	}
	if c.TokenEvents != tokens || c.FirstToken.Reached() != spoke {
		t.Errorf("%v (%s): %d token events, first token %v; the simulator wrote %d", c, c.API, c.TokenEvents, c.FirstToken, tokens)
	}
	if off := (c.Gaps.Stalled - stalled).Abs(); c.Gaps.Stalls != want.stalls || off > coarse {
		t.Errorf("%v (%s): %d stalls of %v together, want %d of %v", c, c.API, c.Gaps.Stalls, c.Gaps.Stalled, want.stalls, stalled)
	}
	if ttft, ok := c.TTFTUpstream(); spoke && (!ok || ttft < want.ttft || (ttft-first.Before.Sub(r.Body)).Abs() > coarse) {
		t.Errorf("%v (%s): TTFT %v, the simulator took %v", c, c.API, ttft, first.Before.Sub(r.Body))
	}
	if want.outcome != call.OK {
		return
	}
	if in, out := c.Usage.Input, c.Usage.Output; in != r.Usage.Input || out != r.Usage.Output {
		t.Errorf("%v (%s): usage %v → %v, the simulator's %v → %v", c, c.API, in, out, r.Usage.Input, r.Usage.Output)
	}
}

// coarse is how far a time may be off in tests that run beside each other and
// are not about times.
// A wrong event or a missed pause is further off.
const coarse = 290 * time.Millisecond

// TestACancelledClientIsNoted has clients of every dialect that leave, before
// the answer began and in its midst: the upstream's request is cancelled within
// 50 ms, and the store says client_gone.
func TestACancelledClientIsNoted(t *testing.T) {
	const within, tries = 50 * time.Millisecond * raceFactor, 3
	for _, row := range []struct {
		sentence string
		model    string // on which habits of the endpoint depend
		engine   sim.EngineConfig
		leave    func(t *testing.T, answer io.Reader) // returns when the client is to leave
		absent   call.Absence
	}{
		{"before the headers, while it waits for a whole answer", "sim", endless, nil, call.AbsentClientGone},
		{"after the headers, before a token", "sim", slowReader, func(*testing.T, io.Reader) {}, call.AbsentClientGone},
		{"in the midst of the stream", "sim", endless, awaitSome, ""},
		{"in the midst of a compressed stream", "sim-gzip", endless, awaitSome, ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			ch := startChain(t, sim.Config{Engine: row.engine, Seed: 9})
			best := map[wire.API]time.Duration{}
			for _, api := range dialects {
				for range tries {
					left := leave(t, ch.base, api, row.model, row.leave)
					r := ch.awaitRecord(t)
					if r.API != api || r.Cancelled.IsZero() {
						t.Fatalf("the simulator's %s record is not cancelled: %+v", r.API, r)
					}
					took := r.Cancelled.Sub(left)
					if took < 0 {
						t.Errorf("%s: cancelled %v before the client left", api, -took)
					}
					if have, tried := best[api]; !tried || took < have {
						best[api] = took
					}
				}
				if best[api] > within {
					t.Errorf("%s: the upstream was cancelled %v after the client left, at the best of %d; want within %v", api, best[api], tries, within)
				}
			}
			t.Logf("from the client's leaving to the upstream's cancel, best of %d: %v", tries, best)
			spans := ch.spans(t)
			if want := tries * len(dialects); len(spans) != want {
				t.Errorf("%d calls in the store, want %d", len(spans), want)
			}
			for _, c := range spans {
				if c.Outcome != call.ClientGone || c.NoFirstToken != row.absent || !c.Done.Reached() {
					t.Errorf("%v (%s): outcome %q, no first token because %q; want client_gone, %q", c, c.API, c.Outcome, c.NoFirstToken, row.absent)
				}
			}
		})
	}
}

// slowReader takes minutes to read a prompt; endless takes no time for that and
// minutes to answer.
var (
	slowReader = sim.EngineConfig{Slots: 64, Step: 10 * time.Millisecond, PerToken: 2 * time.Second, Chunk: 4096, TokensPerStep: 1, KVTokens: 1_000_000}
	endless    = sim.EngineConfig{Slots: 64, Step: 10 * time.Millisecond, Chunk: 4096, TokensPerStep: 1, KVTokens: 1_000_000}
)

// awaitSome reads until some of the answer's body is there, and a little more.
func awaitSome(t *testing.T, answer io.Reader) {
	if _, err := io.ReadFull(answer, make([]byte, 2000)); err != nil {
		t.Errorf("the stream ended before the client left: %v", err)
	}
}

// leave asks for a long answer and breaks the request off, and gives when. With
// no await it asks for the answer whole, and breaks off while it waits for the
// headers.
func leave(t *testing.T, base string, api wire.API, model string, await func(*testing.T, io.Reader)) time.Time {
	t.Helper()
	f := wire.For(api)
	asked := wire.Request{
		Head:     wire.Head{Model: model, Stream: await != nil, MaxTokens: wire.N(8000)},
		Messages: []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: "tell me a long story about a weir and the river above it"}}}},
	}
	body, err := f.AppendRequest(nil, &asked)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+f.Path(&asked), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var left time.Time
	if await == nil {
		time.AfterFunc(60*time.Millisecond, func() {
			left = time.Now()
			cancel()
		})
	}
	resp, err := http.DefaultClient.Do(r)
	if await == nil {
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the request ended with %v before the client left", err)
		}
		return left
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	await(t, resp.Body)
	left = time.Now()
	cancel()
	return left
}

// awaitRecord takes the next record out of the simulator's log.
func (ch *chain) awaitRecord(t *testing.T) *sim.Record {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ch.mu.Lock()
		if len(ch.records) > 0 {
			r := ch.records[0]
			ch.records = ch.records[1:]
			ch.mu.Unlock()
			return r
		}
		ch.mu.Unlock()
	}
	t.Fatal("the simulator still answers a client that has left")
	return nil
}
