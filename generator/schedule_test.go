package generator

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"weir/proxy/wire"
)

// clockwork is an endpoint without a network, so that its time can be tests'.
type clockwork struct {
	takes time.Duration               // from the request to the end of the answer
	fails func(at time.Duration) bool // since the first request; nil: never
	mu    sync.Mutex
	sent  []time.Time
	turns map[string][]time.Time // by session
}

func (c *clockwork) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	now := time.Now()
	c.sent = append(c.sent, now)
	at := now.Sub(c.sent[0])
	if id := r.Header.Get("X-Weir-Session"); id != "" {
		c.turns[id] = append(c.turns[id], now)
	}
	c.mu.Unlock()
	select {
	case <-time.After(c.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if c.fails != nil && c.fails(at) {
		return &http.Response{StatusCode: 529, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: r}, nil
	}
	w := wire.NewWriter(wire.For(wire.Chat), "r", "m", wire.Usage{}, wire.WriterOptions{})
	body := w.Open(nil)
	body = w.Text(body, "hello")
	body = w.Close(body, "stop", wire.Usage{})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func play(t *testing.T, model string, takes time.Duration, change func(*Run)) (*clockwork, *Result, []Session, time.Time) {
	t.Helper()
	planned := collect(t, &Plan{Model: decode(t, model), Seed: 1})
	c, result, _, begun := playLoop(t, model, takes, change)
	return c, result, planned, begun
}

// playLoop plays a model whose sessions are not known before, too.
func playLoop(t *testing.T, model string, takes time.Duration, change func(*Run)) (*clockwork, *Result, *Run, time.Time) {
	t.Helper()
	c := &clockwork{takes: takes, turns: map[string][]time.Time{}}
	r := &Run{Plan: &Plan{Model: decode(t, model), Seed: 1}, Target: Target{BaseURL: "http://endpoint"}, Tracer: noop.NewTracerProvider().Tracer(""), transport: c}
	if change != nil {
		change(r)
	}
	begun := time.Now()
	result, err := r.Do(context.Background(), context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c, result, r, begun
}

const steady = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}}],
  "target_qps": 5, "duration_seconds": 60, "ramp_up_seconds": 20}}`

func TestEveryRequestLeavesAtItsInstantOfOneSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, result, planned, begun := play(t, steady, 10*time.Second, nil)
		if len(c.sent) != len(planned) || result.Lag.Max > 0 || result.Late != 0 || result.Verdict != Valid {
			t.Fatalf("%d of %d sent: %+v", len(c.sent), len(planned), result)
		}
		slices.SortFunc(c.sent, time.Time.Compare)
		for i, s := range planned {
			if got := c.sent[i].Sub(begun) - lead; got != s.Due {
				t.Fatalf("request %d left at %s, due at %s", i, got, s.Due)
			}
		}
		if result.InFlightHi < 40 {
			t.Errorf("at most %d calls at once: slow answers held the plan up", result.InFlightHi)
		}
		if r := float64(len(planned)) / 60; result.PlannedRate < r*0.99 || result.SentRate < r*0.99 {
			t.Errorf("planned %.2f/s, sent %.2f/s, want %.2f/s", result.PlannedRate, result.SentRate, r)
		}
	})
}

const thinking = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 200, "max": 400}, "output_tokens": {"min": 1, "max": 2},
  "turns": {"min": 3, "max": 3}, "think_seconds": {"distribution": "constant", "value": 2}}],
  "target_qps": 1, "duration_seconds": 30, "arrivals": {"process": "constant"}}}`

func TestATurnIsDueAfterTheAnswerBeforeItAndTheTimeToThink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, result, planned, _ := play(t, thinking, 5*time.Second, nil)
		if len(planned) != 10 || result.Sent != 30 || result.Lag.Max > 0 {
			t.Fatalf("%d sessions: %+v", len(planned), result)
		}
		for id, at := range c.turns {
			if len(at) != 3 || at[1].Sub(at[0]) != 7*time.Second || at[2].Sub(at[1]) != 7*time.Second {
				t.Errorf("session %s: turns at %v, want 7 s apart", id, at)
			}
		}
		// Sessions that started finish, past the plan's length.
		if result.Took < 30*time.Second || result.Took > 50*time.Second {
			t.Errorf("the run took %s", result.Took)
		}
	})
}

func TestLatenessAddsUpAndIsNeverForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 2 requests/s for 20 s, 1 s each, one at a time: the 40th leaves 20 s late.
		model := `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 1, "max": 2}}],
		  "target_qps": 2, "duration_seconds": 20, "arrivals": {"process": "constant"}}}`
		_, result, _, _ := play(t, model, time.Second, func(r *Run) { r.MaxInFlight = 1 })
		if result.Sent != 40 || result.Lag.Max != 19500*time.Millisecond || result.CapWaits != 39 || result.Verdict != InvalidClient {
			t.Errorf("%+v", result)
		}
		if result.TTFT.Max != 0 && result.Response.Max < 20*time.Second {
			t.Errorf("response time at most %s", result.Response.Max)
		}
	})
}
