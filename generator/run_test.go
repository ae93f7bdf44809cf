package generator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const oneShot = `{"load_model": {"name": "one", "api": %q, "model": "gpt-4o", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 300, "max": 900}, "output_tokens": {"min": 5, "max": 20}, "corpus": %q}],
  "target_qps": 100, "duration_seconds": 0.3, "arrivals": {"process": "constant"}}}`

func TestEveryDialectIsSpokenAndMeasured(t *testing.T) {
	for _, api := range []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini} {
		for _, kind := range []string{"prose", "rag", "agent", "code"} {
			if api != wire.Chat && kind != "agent" {
				continue
			}
			e := newEndpoint(t)
			r, rec := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(oneShot, api, kind)), Seed: 1})
			r.ID, r.Labels = "cafe0001", map[string]string{"try": "1", "night": ""}
			result := do(t, r)
			if result.Sent != 30 || result.PerScenario[0].OK != 30 || result.TTFT.N != 30 || result.NotSent != 0 || result.Partial {
				t.Fatalf("%s, %s: %+v", api, kind, result)
			}
			for i, asked := range e.requests {
				if got := tokensOf(asked); api != wire.Completions && asked.Model != "gpt-4o" {
					t.Errorf("%s: request %d of %d tokens asks for model %q", api, i, got, asked.Model)
				}
			}
			h := e.headers[0]
			want := http.Header{"X-Weir-Scenario": {"a"}, "X-Weir-Run": {"cafe0001"}, "X-Weir-Label": {"night=", "try=1"}}
			for name, values := range want {
				if diff := cmp.Diff(values, h[name]); diff != "" {
					t.Errorf("%s: header %s:\n%s", api, name, diff)
				}
			}
			parents := map[string]bool{}
			for _, h := range e.headers {
				parents[h.Get("Traceparent")] = true
			}
			for _, c := range rec.calls(t) {
				if c.Side != call.Client || c.Run != "cafe0001" || c.Scenario != "a" || c.Outcome != call.OK || c.UsageSource != call.UsageReported {
					t.Errorf("%s: %s %s %s %s %s", api, c.Side, c.Run, c.Scenario, c.Outcome, c.UsageSource)
				}
				if !parents[fmt.Sprintf("00-%x-%x-01", c.TraceID, c.SpanID)] {
					t.Errorf("%s: call %x was sent without its traceparent", api, c.SpanID)
				}
				within := max(c.ExpectedInput.N/50, 4)
				if api == wire.Completions {
					within += 16 // the endpoint counts messages, which this API has not
				}
				if miss := c.Usage.Input.N - c.ExpectedInput.N; miss > within || miss < -within {
					t.Errorf("%s, %s: planned %d tokens, the endpoint counts %d", api, kind, c.ExpectedInput.N, c.Usage.Input.N)
				}
				if c.Arrived < c.Due || c.Connected < c.Arrived || c.Sent < c.Connected || c.FirstToken.Received < c.Sent || c.Done < c.LastToken.Received {
					t.Errorf("%s: instants out of order: %+v", api, c.Instants)
				}
			}
		}
	}
}

const sessions = `{"load_model": {"name": "talk", "api": %q, "model": "gpt-4o", "scenarios": [
  {"id": "talk", "weight": 1, "input_tokens": {"min": 400, "max": 3000}, "output_tokens": {"min": 5, "max": 20}, "turns": {"min": 3, "max": 5}, "corpus": "agent", "think_seconds": {"min": 0.001, "max": 0.01}}],
  "target_qps": 60, "duration_seconds": 0.5, "arrivals": {"process": "constant"}}}`

func TestSessionsCarryTheModelsAnswersAndGrowToTheirTargets(t *testing.T) {
	for _, api := range []wire.API{wire.Chat, wire.Responses, wire.Messages, wire.Gemini, wire.Completions} {
		for _, tool := range []string{"", "read_file"} {
			e := newEndpoint(t)
			e.tool = tool
			r, rec := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(sessions, api)), Seed: 4})
			result := do(t, r)
			if result.Sent < 15 || result.NotSent != 0 || result.PerScenario[0].OK != result.Sent {
				t.Fatalf("%s: %+v", api, result)
			}
			turns := map[string]int{}
			for _, c := range rec.calls(t) {
				turns[c.Session] = max(turns[c.Session], c.Turn)
				// A turn adds 16 tokens at least, so a target may be passed.
				over := c.Usage.Input.N - c.ExpectedInput.N
				if api != wire.Completions && (over > 60+c.ExpectedInput.N/50 || over < -c.ExpectedInput.N/50-4) {
					t.Errorf("%s, turn %d: planned %d tokens, the endpoint counts %d", api, c.Turn, c.ExpectedInput.N, c.Usage.Input.N)
				}
			}
			for id, n := range turns {
				if n < 3 || n > 5 || !strings.HasPrefix(id, r.ID+"-") {
					t.Errorf("%s: session %s has %d turns", api, id, n)
				}
			}
			if api == wire.Completions {
				continue
			}
			answered := 0
			for _, asked := range e.requests {
				for i, m := range asked.Messages {
					if m.Role != wire.Assistant || len(m.Parts) == 0 || !strings.HasPrefix(m.Parts[0].Text, "a few words") {
						continue
					}
					answered++
					next := asked.Messages[i+1]
					if tool == "" && next.Role != wire.User {
						t.Errorf("%s: after the model's answer the %s speaks", api, next.Role)
					}
					if tool != "" && (next.Role != wire.ToolRole || api != wire.Gemini && next.Parts[0].ID != "call_9") {
						t.Errorf("%s: the model's call is answered by %+v", api, next)
					}
				}
			}
			if answered < 10 {
				t.Errorf("%s: the model's answers stand in the history %d times", api, answered)
			}
		}
	}
}

func TestSessionsThatAreNotStreamed(t *testing.T) {
	e := newEndpoint(t)
	model := strings.Replace(fmt.Sprintf(sessions, wire.Chat), `"corpus"`, `"stream": false, "corpus"`, 1)
	r, rec := newRun(e, &Plan{Model: decode(t, model), Seed: 4})
	result := do(t, r)
	if result.PerScenario[0].OK != result.Sent || result.Sent < 15 || result.TTFT.N != 0 {
		t.Errorf("%+v", result)
	}
	for _, c := range rec.calls(t) {
		if c.Streamed || c.NoFirstToken != call.AbsentNotStreamed {
			t.Errorf("streamed %v, no first token: %s", c.Streamed, c.NoFirstToken)
		}
	}
	carried := 0
	for _, asked := range e.requests {
		for _, m := range asked.Messages {
			if m.Role == wire.Assistant && len(m.Parts) > 0 && m.Parts[0].Text == "a few words for you" {
				carried++
			}
		}
	}
	if carried == 0 {
		t.Error("no answer was carried on")
	}
}

func TestAFlattenedSessionIsOneRequestWithItsHistory(t *testing.T) {
	e := newEndpoint(t)
	model := strings.Replace(fmt.Sprintf(sessions, wire.Chat), `"corpus": "agent"`, `"session": "flattened", "corpus": "prose"`, 1)
	r, _ := newRun(e, &Plan{Model: decode(t, model), Seed: 4})
	result := do(t, r)
	if result.Sent < 20 || result.PerScenario[0].OK != result.Sent {
		t.Errorf("%+v", result)
	}
	for i, asked := range e.requests {
		if asked.TurnCount < 3 || asked.TurnCount > 5 || e.headers[i].Get("X-Weir-Turn") != "" {
			t.Errorf("request %d has %d turns of the user, want 3 to 5", i, asked.TurnCount)
		}
	}
}

func TestAnswersLargerThanTheGrowthAreCounted(t *testing.T) {
	e := newEndpoint(t)
	e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) {
		f := wire.For(wire.Chat)
		text := strings.Repeat("many words ", 3000)
		w.Header().Set("Content-Type", "text/event-stream")
		writer := wire.NewWriter(f, "r", "m", wire.Usage{}, wire.WriterOptions{})
		w.Write(writer.Close(writer.Text(writer.Open(nil), text), "stop", wire.Usage{}))
	}
	r, _ := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(sessions, wire.Chat)), Seed: 4})
	result := do(t, r)
	if first := e.countFirst(); result.Overfull != result.Sent-first || result.Overfull == 0 {
		t.Errorf("%d of %d requests are overfull, %d are first", result.Overfull, result.Sent, first)
	}
}

func TestAFailedTurnLeavesTheRestUnsent(t *testing.T) {
	e := newEndpoint(t)
	e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) {
		if r.Header.Get("X-Weir-Turn") == "2" {
			w.WriteHeader(529)
			fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)
			return
		}
		e.talk(w, wire.For(wire.Chat), asked, 0)
	}
	r, _ := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(sessions, wire.Chat)), Seed: 4})
	planned := 0
	count := 0
	for _, s := range collect(t, r.Plan) {
		planned += len(s.Turns)
		count++
	}
	result := do(t, r)
	if result.Planned != planned || result.Sent != 2*count || result.NotSent != planned-2*count || result.PerScenario[0].Failed[call.Overloaded] != count {
		t.Errorf("%d sessions of %d requests: %+v", count, planned, result)
	}
}

func TestAStalledEndpointShowsInTheResponseTime(t *testing.T) {
	const stall = 300 * time.Millisecond
	e := newEndpoint(t)
	busy := make(chan struct{}, 1)
	e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) {
		busy <- struct{}{} // one at a time
		e.talk(w, wire.For(wire.Chat), asked, stall)
		<-busy
	}
	m := decode(t, fmt.Sprintf(oneShot, wire.Chat, "prose")).Scaled(60 * time.Millisecond) // 6 requests
	r, rec := newRun(e, &Plan{Model: m, Seed: 1})
	r.MaxInFlight = 1
	result := do(t, r)
	if result.Sent != 6 {
		t.Fatalf("%+v", result)
	}
	// The endpoint took 0.3 s each time; the plan wanted all within 0.06 s. A
	// client that counted from its sends would report 0.3 s for all.
	if result.TTFT.P50 > stall+200*time.Millisecond || result.Response.Max < 5*stall {
		t.Errorf("ttft p50 %s, response max %s: want about %s, and %s at least", result.TTFT.P50, result.Response.Max, stall, 5*stall)
	}
	if result.Verdict != InvalidClient || result.CapWaits != 5 || !strings.Contains(strings.Join(result.Reasons, "\n"), "limit of 1 call in flight") {
		t.Errorf("verdict %s, %d waits, %q", result.Verdict, result.CapWaits, result.Reasons)
	}
	for _, c := range rec.calls(t) {
		if d, ok := c.TTFTResponse(); !ok || d < stall {
			t.Errorf("response time %s of a call due at %s", d, c.Due)
		}
	}
}

func TestTheFirstInterruptDrainsAndTheSecondEnds(t *testing.T) {
	for _, row := range []struct {
		name       string
		soft, hard bool
		outcome    call.Outcome
	}{
		{"one interrupt lets calls end", true, false, call.OK},
		{"two interrupts break them off", true, true, call.ClientGone},
		{"the second alone does too", false, true, call.ClientGone},
	} {
		e := newEndpoint(t)
		ctx, drain := context.WithCancel(context.Background())
		hard, end := context.WithCancel(context.Background())
		gate := make(chan struct{})
		e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) {
			if row.soft {
				drain()
			}
			if row.hard {
				end()
				<-r.Context().Done()
				return
			}
			<-gate
			e.talk(w, wire.For(wire.Chat), asked, 0)
		}
		m := decode(t, fmt.Sprintf(sessions, wire.Chat)).Scaled(time.Hour)
		r, rec := newRun(e, &Plan{Model: m, Seed: 1})
		go func() {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			close(gate)
		}()
		result, err := r.Do(ctx, hard)
		if err != nil {
			t.Fatal(err)
		}
		if !result.Partial || result.Sent == 0 || result.NotSent < 2*result.Sent || result.Planned != result.Sent+result.NotSent {
			t.Errorf("%s: %+v", row.name, result)
		}
		for _, c := range rec.calls(t) {
			if c.Outcome != row.outcome {
				t.Errorf("%s: a call was %s, want %s", row.name, c.Outcome, row.outcome)
			}
		}
		end()
		drain()
	}
}

func TestATimeoutIsSaid(t *testing.T) {
	e := newEndpoint(t)
	e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) { <-r.Context().Done() }
	m := decode(t, fmt.Sprintf(oneShot, wire.Chat, "prose")).Scaled(20 * time.Millisecond)
	r, _ := newRun(e, &Plan{Model: m, Seed: 1})
	r.Timeout = 40 * time.Millisecond
	if result := do(t, r); result.PerScenario[0].Failed[call.Timeout] != 2 {
		t.Errorf("%+v", result)
	}
}

func TestProgressIsToldAndEndsWithTheRun(t *testing.T) {
	e := newEndpoint(t)
	r, _ := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(oneShot, wire.Chat, "prose")), Seed: 1})
	var seen []Progress
	r.ProgressEvery = 20 * time.Millisecond
	r.OnProgress = func(p Progress) { seen = append(seen, p) }
	result := do(t, r)
	last := seen[len(seen)-1]
	if len(seen) < 3 || last.Sent != 30 || last.InFlight != 0 || last.RunID != result.RunID || last.Scenarios[0].OK != 30 || last.Scenarios[0].TTFT.N != 30 {
		t.Errorf("%d snapshots, the last %+v", len(seen), last)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Sent < seen[i-1].Sent || seen[i].Elapsed < seen[i-1].Elapsed {
			t.Errorf("snapshot %d goes back: %+v", i, seen[i])
		}
	}
}

func TestLabelsKeysAndRequestsNeedNoMoreThanTheTarget(t *testing.T) {
	e := newEndpoint(t)
	m := decode(t, fmt.Sprintf(oneShot, wire.Messages, "prose")).Scaled(20 * time.Millisecond)
	r, _ := newRun(e, &Plan{Model: m, Seed: 1})
	r.Target = Target{BaseURL: e.URL + "/api/v1/", Keys: Keys{OpenAI: "sk-openai", Anthropic: "sk-ant"}}
	do(t, r)
	h := e.headers[0]
	if h.Get("X-Api-Key") != "sk-ant" || h.Get("Authorization") != "" || h.Get("Anthropic-Version") == "" {
		t.Errorf("headers %v", h)
	}
}
