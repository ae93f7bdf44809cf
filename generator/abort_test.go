package generator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store/call"
)

func TestParseCondition(t *testing.T) {
	for _, row := range []struct {
		text string
		want Condition
		err  string // a part of it; empty: none
	}{
		{"error rate > 20% for 10s", Condition{Figure: "error rate", Above: true, Limit: 0.2, For: 10 * time.Second}, ""},
		{"error rate  >=  5%", Condition{Figure: "error rate", Above: true, Limit: 0.05, For: 10 * time.Second}, ""},
		{"ttft p95 > 8s for 1m", Condition{Figure: "ttft", Rank: 0.95, Above: true, Limit: 8, For: time.Minute}, ""},
		{"response ttft max>1500ms for 2s", Condition{Figure: "response ttft", Rank: 1, Above: true, Limit: 1.5, For: 2 * time.Second}, ""},
		{"lag p99 > 50ms", Condition{Figure: "lag", Rank: 0.99, Above: true, Limit: 0.05, For: 10 * time.Second}, ""},
		{"in flight > 500 for 5s", Condition{Figure: "in flight", Above: true, Limit: 500, For: 5 * time.Second}, ""},
		{"in flight < 2 for 1m", Condition{Figure: "in flight", Limit: 2, For: time.Minute}, ""},
		{"error rate 20%", Condition{}, "says neither > nor <"},
		{"error rate > 20", Condition{}, "20: want a share, as 20%"},
		{"error rate > 200%", Condition{}, "200%: want a share"},
		{"errors > 20%", Condition{}, `"errors" is no figure; want error rate, response ttft p95, ttft p95, lag p95, e2e p95, in flight`},
		{"ttft > 8s", Condition{}, "ttft needs p50, p90, p95, p99 or max behind it"},
		{"ttft p97 > 8s", Condition{}, "ttft needs p50"},
		{"ttft p95 > 8", Condition{}, "8: want a time, as 8s or 50ms"},
		{"in flight > many", Condition{}, "many: want a number of calls"},
		{"in flight > 5 for 100ms", Condition{}, "for 100ms: want a time from 1s to 1h"},
		{"", Condition{}, "neither"},
	} {
		got, err := ParseCondition(row.text)
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%q: %v does not say %q", row.text, err, row.err)
			}
			continue
		}
		if diff := cmp.Diff(row.want, got, cmpopts.IgnoreUnexported(Condition{})); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", row.text, err, diff)
		}
	}
}

// conditionOf parses a condition that a test states.
func conditionOf(t *testing.T, text string) Condition {
	t.Helper()
	c, err := ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestARunEndsItselfByItsConditions(t *testing.T) {
	for _, row := range []struct {
		name, condition string
		takes           time.Duration
		fails           func(at time.Duration) bool
		from, to        time.Duration // when it ends; both 0: it does not
		why             string
	}{
		{"no failures → to its end", "error rate > 20% for 10s", time.Second, nil, 0, 0, ""},
		{"failures from 20 s on → 2 s of 10 s later and no more than 10", "error rate > 20% for 10s", time.Second,
			func(at time.Duration) bool { return at > 20*time.Second }, 21 * time.Second, 33 * time.Second, "error rate was "},
		{"a second of failures of 10 → to its end", "error rate > 20% for 10s", time.Second,
			func(at time.Duration) bool { return at > 20*time.Second && at < 21*time.Second }, 0, 0, ""},
		{"answers of 6 s → e2e", "e2e p50 > 5s for 10s", 6 * time.Second, nil, 9 * time.Second, 25 * time.Second, "s, and e2e p50 > 5s for 10s ends the run"},
		{"answers that never end soon → many in flight", "in flight > 30 for 5s", 40 * time.Second, nil, 5 * time.Second, 30 * time.Second, "in flight was never below "},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, result, _, _ := playLoop(t, steadily, row.takes, func(r *Run) {
					r.AbortIf = []Condition{conditionOf(t, row.condition)}
					if row.fails != nil {
						r.transport.(*clockwork).fails = row.fails
					}
				})
				if row.to == 0 {
					if result.Partial || result.Stopped != "" || result.Sent != 300 {
						t.Errorf("%+v", result)
					}
					return
				}
				took := result.Took - min(row.takes, abortPatience)
				if !result.Partial || !strings.Contains(result.Stopped, row.why) || took < row.from || took > row.to {
					t.Errorf("after %s, partial %v: %q", result.Took, result.Partial, result.Stopped)
				}
				if !strings.Contains(strings.Join(result.Notes(), "\n"), "the run ended itself: "+result.Stopped) {
					t.Errorf("notes %q", result.Notes())
				}
			})
		})
	}
}

const steadily = `{"load_model": {"name": "s", "model": "m", "scenarios": [{"id": "a", "weight": 1, "input_tokens": {"min": 20, "max": 40}, "output_tokens": {"min": 10, "max": 10}}],
  "target_qps": 5, "duration_seconds": 60, "arrivals": {"process": "constant"}}}`

func TestCallsThatNeverEndAreBrokenOffAfterAnAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, result, _, _ := playLoop(t, steadily, 24*time.Hour, func(r *Run) {
			r.AbortIf = []Condition{conditionOf(t, "in flight > 10 for 2s")}
		})
		gone := result.PerScenario[0].Failed[call.ClientGone]
		if result.Took < abortPatience || result.Took > abortPatience+10*time.Second || gone != result.Sent || gone == 0 {
			t.Errorf("took %s, %d of %d broken off", result.Took, gone, result.Sent)
		}
	})
}

func TestParseBudget(t *testing.T) {
	for _, row := range []struct {
		text string
		want loadmodel.Budget
		err  string
	}{
		{"tokens 2e6, usd 5", loadmodel.Budget{Tokens: 2_000_000, USD: 5}, ""},
		{"usd 0.25", loadmodel.Budget{USD: 0.25}, ""},
		{"5", loadmodel.Budget{}, "want 'tokens 2000000, usd 5'"},
		{"usd 0", loadmodel.Budget{}, "usd 0: want a number above 0"},
		{"usd 1, usd 2", loadmodel.Budget{}, "want 'tokens"},
		{"euro 5", loadmodel.Budget{}, "want 'tokens"},
	} {
		got, err := ParseBudget(row.text)
		if row.err == "" && (err != nil || got != row.want) || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%q: %+v, %v", row.text, got, err)
		}
	}
}

func TestABudgetIsNeverExceeded(t *testing.T) {
	const price = 1e6 // dollars a million: a dollar a token
	for _, row := range []struct {
		name   string
		budget loadmodel.Budget
		shard  Shard
		want   int64 // tokens at most
	}{
		{"in tokens", loadmodel.Budget{Tokens: 2000}, Shard{}, 2000},
		{"in dollars", loadmodel.Budget{USD: 3000}, Shard{}, 3000},
		{"a shard has its part", loadmodel.Budget{Tokens: 2000}, Shard{1, 2}, 1000},
		{"none", loadmodel.Budget{}, Shard{}, 0},
	} {
		e := newEndpoint(t)
		var used atomic.Int64
		e.script = func(e *endpoint, w http.ResponseWriter, r *http.Request, asked *wire.Request) {
			used.Add(int64(tokensOf(asked)) + 6)
			e.talk(w, wire.For(wire.Chat), asked, 2*time.Millisecond)
		}
		m := decode(t, fmt.Sprintf(`{"load_model": {"name": "one", "model": "gpt-4o", "scenarios": [
  {"id": "a", "weight": 1, "input_tokens": {"min": 100, "max": 100}, "output_tokens": {"min": 20, "max": 20}}],
  "target_qps": 200, "duration_seconds": 0.3, "arrivals": {"process": %q}}}`, "constant"))
		r, _ := newRun(e, &Plan{Model: m, Seed: 1, Shard: row.shard})
		r.Budget, r.Prices = row.budget, []Price{{Model: "*", Input: price, Output: price}}
		result := do(t, r)
		if row.want == 0 {
			if result.Partial || result.Sent != 60 {
				t.Errorf("%s: %+v", row.name, result)
			}
			continue
		}
		// A request is about 100 + 6 tokens, and may be 120: the last ones that fit are sent.
		if got := used.Load(); got > row.want || got < row.want*7/10 {
			t.Errorf("%s: %d tokens used, the budget is %d", row.name, got, row.want)
		}
		if !result.Partial || !strings.Contains(result.Stopped, "the budget has no room for the next request") || result.NotSent == 0 || result.Unsent[whyStopped] != result.NotSent {
			t.Errorf("%s: %q, %d not sent, %v", row.name, result.Stopped, result.NotSent, result.Unsent)
		}
	}
}

// What no endpoint reported is not told as a fact.
func TestWhatABudgetIsUsedUpByIsSaidToBeEstimatedWithoutUsage(t *testing.T) {
	for _, reported := range []bool{true, false} {
		e := newEndpoint(t)
		e.usage = reported
		r, _ := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(oneShot, wire.Chat, "prose")), Seed: 1})
		r.Budget = loadmodel.Budget{Tokens: 4000}
		r.MaxInFlight = 1 // so that every call before the last one has settled
		result := do(t, r)
		want := fmt.Sprintf("that is an estimate: of %d calls, %[1]d came without usage", result.Sent)
		if result.Sent < 2 || strings.Contains(result.Stopped, "estimate") == reported || !reported && !strings.Contains(result.Stopped, want) {
			t.Errorf("usage reported: %t, %d sent: %q, want %q", reported, result.Sent, result.Stopped, want)
		}
	}
}

func TestABudgetInDollarsNeedsPrices(t *testing.T) {
	e := newEndpoint(t)
	r, _ := newRun(e, &Plan{Model: decode(t, fmt.Sprintf(oneShot, wire.Chat, "prose")), Seed: 1})
	r.Budget = loadmodel.Budget{USD: 1}
	for _, row := range []struct {
		prices []Price
		want   string
	}{{nil, "no price is given"}, {[]Price{{Model: "other"}}, `model "gpt-4o" has no price`}} {
		r.Prices = row.prices
		if _, err := r.Do(context.Background(), context.Background()); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v does not say %q", err, row.want)
		}
	}
	if len(e.requests) > 0 {
		t.Errorf("%d requests were sent", len(e.requests))
	}
}
