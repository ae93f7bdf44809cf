package report

import (
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/proxy/wire"
	"weir/store/call"
)

const millisecond = call.Instant(time.Millisecond)

// seen makes a successful proxy's call of a scenario that arrived at 1 s; its
// first token came ttft milliseconds later, and ten more tokens 10 ms apart.
func seen(scenario string, ttft int) *call.Call {
	at := 1000 * millisecond
	first := at + call.Instant(ttft)*millisecond
	c := &call.Call{
		Side: call.Proxy, Scenario: scenario, API: wire.Chat, Operation: wire.OpChat, Upstream: "main",
		Status: 200, Streamed: true, Outcome: call.OK, UsageSource: call.UsageReported, Events: 13, TokenEvents: 11,
		Usage: wire.Usage{Input: wire.N(100), Output: wire.N(11), CacheRead: wire.N(25)},
	}
	c.Request.Model = "sim-small"
	c.Arrived, c.Body, c.Admitted, c.Connected, c.Sent, c.Headers = at, at, at, at, at, first
	c.FirstByte = call.Mark{Received: first, Delivered: first}
	c.FirstEvent, c.FirstToken, c.FirstText = c.FirstByte, c.FirstByte, c.FirstByte
	last := first + 100*millisecond
	c.LastToken = call.Mark{Received: last, Delivered: last}
	c.Done = last
	return c
}

// failedCall is a proxy's call that ended otherwise.
func failedCall(scenario string, o call.Outcome, status int, message string) *call.Call {
	c := seen(scenario, 1)
	c.Outcome, c.Status, c.ErrorMessage = o, status, message
	c.FirstToken, c.FirstText, c.LastToken = call.Mark{}, call.Mark{}, call.Mark{}
	c.NoFirstToken, c.Usage, c.UsageSource, c.Streamed = call.AbsentHTTPError, wire.Usage{}, "", false
	return c
}

// spans numbers a span and its parent.
func spans(c *call.Call, span, parent byte) *call.Call {
	c.SpanID[7], c.ParentSpan[7] = span, parent
	return c
}

// clientOf is the generator's view of a proxy's call: apart milliseconds
// slower.
func clientOf(p *call.Call, span byte, apart int) *call.Call {
	c := *p
	c.Side = call.Client
	c.SpanID, c.ParentSpan = [8]byte{7: span}, [8]byte{}
	if c.FirstToken.Reached() {
		c.FirstToken = call.Mark{Received: p.FirstToken.Delivered + call.Instant(apart)*millisecond}
	}
	c.Due = c.Arrived - 3*millisecond
	return &c
}

func each(calls ...*call.Call) iter.Seq2[*call.Call, error] {
	return func(yield func(*call.Call, error) bool) {
		for _, c := range calls {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func summary(t *testing.T, o Options, calls ...*call.Call) *Report {
	t.Helper()
	r, err := Summarise(each(calls...), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACallSeenByBothSidesCountsOnce(t *testing.T) {
	p := func() *call.Call { return spans(seen("chat", 400), 2, 1) }
	for _, c := range []struct {
		sentence                 string
		calls                    []*call.Call
		count, both, differ      int
		felt, response, upstream Num
	}{
		{"the proxy's span first, as it ends first", []*call.Call{p(), clientOf(p(), 1, 1)}, 1, 1, 0, N(400), N(404), N(400)},
		{"the client's span first", []*call.Call{clientOf(p(), 1, 1), p()}, 1, 1, 0, N(400), N(404), N(400)},
		{"only a client: there was no proxy", []*call.Call{clientOf(p(), 1, 0)}, 1, 0, 0, Num{}, N(403), Num{}},
		{"only a proxy: an agent called", []*call.Call{seen("chat", 400)}, 1, 0, 0, N(400), Num{}, N(400)},
		{"a parent that is no client of ours", []*call.Call{spans(seen("chat", 400), 2, 9), spans(seen("chat", 400), 3, 9)}, 2, 0, 0, N(400), Num{}, N(400)},
		{"apart by 10 ms of 400 is within 2 ms + 2 %", []*call.Call{p(), clientOf(p(), 1, 10)}, 1, 1, 0, N(400), N(413), N(400)},
		{"apart by 11 ms of 400 is not", []*call.Call{p(), clientOf(p(), 1, 11)}, 1, 1, 1, N(400), N(414), N(400)},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			r := summary(t, Options{}, c.calls...)
			row := r.Total
			if row.Calls != c.count || r.BothViews != c.both || row.Views.Differ != c.differ {
				t.Errorf("calls %d, both %d, differing %d; want %d, %d, %d", row.Calls, r.BothViews, row.Views.Differ, c.count, c.both, c.differ)
			}
			got := []Num{row.TTFTFelt.P50, row.TTFTResponse.P50, row.TTFTUpstream.P50}
			if diff := cmp.Diff([]Num{c.felt, c.response, c.upstream}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlySuccessfulCallsHaveLatencies(t *testing.T) {
	slow := failedCall("chat", call.StreamError, 200, "overloaded in the stream")
	slow.FirstToken = call.Mark{Received: 90_000 * millisecond, Delivered: 90_000 * millisecond}
	r := summary(t, Options{}, seen("chat", 400), slow, failedCall("chat", call.RateLimited, 429, "slow down"))
	if got := r.Rows[0].TTFTFelt; got.N != 1 || got.Max != N(400) {
		t.Errorf("ttft felt of %d calls up to %v ms, want of 1 up to 400", got.N, got.Max)
	}
	want := []Failure{
		{Group: []string{"chat"}, Outcome: call.RateLimited, Status: 429, Calls: 1, Messages: []string{"slow down"}},
		{Group: []string{"chat"}, Outcome: call.StreamError, Status: 200, Calls: 1, Messages: []string{"overloaded in the stream"}},
	}
	if diff := cmp.Diff(want, r.Failures, cmpopts.IgnoreFields(Failure{}, "What", "Next")); diff != "" {
		t.Error(diff)
	}
	if r.Rows[0].Share != share(1, 3) {
		t.Errorf("ok share %v, want a third", r.Rows[0].Share)
	}
}

func TestTheFirstDifferentMessagesOfAFailureAreKept(t *testing.T) {
	var calls []*call.Call
	for _, m := range []string{"one", "one", "two", "", "three", "four"} {
		calls = append(calls, failedCall("chat", call.ServerError, 500, m))
	}
	calls[3].ErrorBody = "<html>\n  Bad   gateway</html>"
	r := summary(t, Options{}, calls...)
	if diff := cmp.Diff([]string{"one", "two", "<html> Bad gateway</html>"}, r.Failures[0].Messages); diff != "" {
		t.Error(diff)
	}
	if r.Failures[0].Calls != 6 {
		t.Errorf("%d calls, want 6", r.Failures[0].Calls)
	}
}

func TestCallsThatAreNoMeasureAreLeftOutAndSaid(t *testing.T) {
	warm := seen("chat", 9000)
	warm.WarmUp = true
	models := seen("chat", 1)
	models.Operation = wire.OpModels
	prewarm, connection := seen("chat", 5), seen("chat", 5)
	prewarm.Purpose, connection.Purpose = call.PurposePrewarm, call.PurposeConnection
	r := summary(t, Options{}, warm, models, prewarm, connection, seen("chat", 400))
	if r.Total.Calls != 1 || r.Total.TTFTFelt.Max != N(400) || r.Total.TTFTFelt.N != 1 || r.WarmUp != 1 || r.NoGeneration != 3 {
		t.Errorf("calls %d of ttft %v, warm-up %d, no generation %d; want 1, 1, and 3", r.Total.Calls, r.Total.TTFTFelt, r.WarmUp, r.NoGeneration)
	}
	want := []string{"left out: 1 call of warm-up", "left out: 3 calls without generation (models, count_tokens, embeddings, prewarms, connections)"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

// Whatever became of a call: what is summed does not stand there without its doubt.
func TestUsageThatContradictsItsStreamIsWarnedOf(t *testing.T) {
	whole, cut := seen("chat", 400), failedCall("chat", call.Truncated, 200, "cut")
	whole.UsageSource, cut.UsageSource = call.UsageSuspicious, call.UsageSuspicious
	r := summary(t, Options{}, whole, cut)
	if diff := cmp.Diff([]string{"2 of 2 calls reported usage that contradicts itself or their stream"}, r.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestCallsThatWereNotSentSayWhy(t *testing.T) {
	c := seen("chat", 400)
	c.Run = "7f3a"
	for partial, want := range map[bool][]string{
		false: {"run 7f3a: 2 calls of the plan not sent, since a turn before them in their session failed"},
		true: {"run 7f3a was broken off: its figures are of what was sent",
			"run 7f3a: 2 calls of begun sessions not sent, since the run was broken off, or a turn before them in their session failed"},
	} {
		r := summary(t, Options{Runs: func([]string) ([]Run, error) {
			return []Run{{ID: "7f3a", Verdict: "valid", NotSent: 2, Partial: partial}}, nil
		}}, c)
		if diff := cmp.Diff(want, r.Warnings); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGroups(t *testing.T) {
	a, b := seen("rag", 400), seen("chat", 500)
	b.Request.Model, b.Labels, b.KeyFingerprint = "sim-large", map[string]string{"team": "blue", "beta": ""}, "00c0ffee"
	untagged := seen("", 100)
	for _, c := range []struct {
		sentence string
		by       []string
		order    []string
		want     [][]string
	}{
		{"by scenario unless asked otherwise; calls without one come last", nil, nil, [][]string{{"chat"}, {"rag"}, {""}}},
		{"in the load model's order", []string{"scenario"}, []string{"rag", "chat"}, [][]string{{"rag"}, {"chat"}, {""}}},
		{"the same load against two models is one table", []string{"scenario", "model"}, nil, [][]string{{"chat", "sim-large"}, {"rag", "sim-small"}, {"", "sim-small"}}},
		{"by one label", []string{"label:team"}, nil, [][]string{{"blue"}, {""}}},
		{"by all labels", []string{"label"}, nil, [][]string{{"beta team=blue"}, {""}}},
		{"by key", []string{"key"}, nil, [][]string{{"00c0ffee"}, {""}}},
		{"by outcome", []string{"outcome"}, nil, [][]string{{"ok"}}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			var got [][]string
			for _, row := range summary(t, Options{By: c.by, Order: c.order}, a, b, untagged).Rows {
				got = append(got, row.Group)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Summarise(each(), Options{By: []string{"colour"}}); err == nil {
		t.Error("grouping by a key that does not exist is no error")
	}
}

func TestSumsAndShares(t *testing.T) {
	noUsage := seen("chat", 400)
	noUsage.Usage, noUsage.UsageSource = wire.Usage{}, call.UsageMissing
	batched := seen("chat", 400)
	batched.Usage.Output = wire.N(33)
	batched.Admitted += 30 * millisecond
	batched.Again, batched.Connected, batched.Sent = batched.Arrived+120*millisecond, batched.Arrived+120*millisecond, batched.Arrived+120*millisecond
	batched.Gaps = call.Gaps{N: 10, Stalls: 2, Stalled: 3 * time.Second, Coalesced: true}
	row := summary(t, Options{}, seen("chat", 400), noUsage, batched).Rows[0]
	if diff := cmp.Diff(Tokens{InputMean: N(100), OutputMean: N(22), Input: N(200), Output: N(44), CacheReadShare: N(0.25),
		Sources: map[string]int{"reported": 2, "missing": 1}}, row.Tokens); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Stream{TokensPerEvent: N(2), Stalled: 1, Stalls: 2, StalledTime: N(3000), Coalesced: 1}, row.Stream); diff != "" {
		t.Error(diff)
	}
	sum := 0.0
	for _, part := range []Num{row.Account.Read, row.Account.Queue, row.Account.Attempts, row.Account.Connect, row.Account.Send, row.Account.Wait, row.Account.Generate, row.Account.Tail} {
		sum += part.V
	}
	if sum != row.ToDone.Mean.V {
		t.Errorf("the parts add up to %v ms, done − arrived is %v", sum, row.ToDone.Mean.V)
	}
}

func TestAnErrorOfTheStoreEndsTheSummary(t *testing.T) {
	broken := errors.New("disk I/O error")
	_, err := Summarise(func(yield func(*call.Call, error) bool) {
		_ = yield(seen("chat", 1), nil) && yield(nil, broken)
	}, Options{})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
