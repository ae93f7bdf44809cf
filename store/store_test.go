package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"weir/proxy/wire"
	"weir/store/call"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_STORE_TEST_CHILD"); dir != "" {
		recordUntilKilled(dir)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// tracing opens a database and what records into it. stop writes all of it.
func tracing(t testing.TB, path string, env map[string]string) (db *DB, tr *Tracing, stop func()) {
	t.Helper()
	db = openAt(t, path)
	tr, err := NewTracing(context.Background(), db, TracingOptions{Version: "test", Env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := tr.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return db, tr, stop
}

// example is a call that went well, n µs after the first.
func example(n int) *call.Call {
	at := call.Now() + call.Instant(n*1000)
	ms := func(f float64) call.Instant { return at + call.Instant(f*1e6) }
	return &call.Call{
		Side: call.Proxy, Run: "7f3a01", Scenario: "short_chat", ScenarioFrom: "header", Session: "s-1", Turn: 2,
		Labels: map[string]string{"team": "search", "baseline": ""},
		API:    wire.Chat, Operation: wire.OpChat, Provider: "openai", Upstream: "sim", Host: "127.0.0.1", Port: 9000,
		Method: "POST", Path: "/v1/chat/completions", Request: wire.Head{Model: "gpt-x", Stream: true, MaxTokens: wire.N(200), Temperature: wire.F(0.5), Stop: []string{"a", "b"}},
		RequestBytes: 800, ClientName: "codex", ClientVersion: "1.2", KeyFingerprint: "00ff00ff", Attempts: 1,
		Status: 200, ResponseID: "r-1", ServedModel: "gpt-x-2", Finish: "stop", ResponseBytes: 4000, Streamed: true,
		Usage: wire.Usage{Input: wire.N(120), CacheRead: wire.N(0), Output: wire.N(51)}, UsageSource: call.UsageReported,
		Events: 53, TokenEvents: 51, Timeline: call.Timeline{1, 2, 3, 17}, Outcome: call.OK,
		Instants: call.Instants{
			Due: ms(-1), Arrived: at, Body: ms(0.1), Admitted: ms(0.2), Connected: ms(0.3), Sent: ms(0.4), Headers: ms(20),
			FirstByte: call.Mark{Received: ms(20), Delivered: ms(20.1)}, FirstEvent: call.Mark{Received: ms(20), Delivered: ms(20.1)},
			FirstToken: call.Mark{Received: ms(40), Delivered: ms(40.1)}, FirstText: call.Mark{Received: ms(40), Delivered: ms(40.1)},
			LastToken: call.Mark{Received: ms(140), Delivered: ms(140.1)}, Done: ms(141),
		},
	}
}

// record makes a span of a call, as the proxy does.
func record(tr *Tracing, ctx context.Context, c *call.Call) trace.SpanContext {
	copied := *c // what a span takes with it is its own
	s := copied.Begin(ctx, tr.Provider.Tracer("weir"))
	copied.End(s)
	return s.SpanContext()
}

func all(t testing.TB, db *DB, words ...string) []*call.Call {
	t.Helper()
	s, err := ParseSelection(words)
	if err != nil {
		t.Fatal(err)
	}
	var calls []*call.Call
	for c, err := range db.Calls(context.Background(), s, Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

func TestCallComesBackAsItWas(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	want := example(0)
	sc := record(tr, context.Background(), want)
	stop()
	got := all(t, db, "all")
	if len(got) != 1 {
		t.Fatalf("%d calls came back", len(got))
	}
	want.TraceID, want.SpanID = sc.TraceID(), sc.SpanID()
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

func TestTypedColumnsHoldTheFiguresForSQL(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	record(tr, context.Background(), example(0))
	record(tr, context.Background(), &call.Call{Side: call.Proxy, Operation: wire.OpChat, Outcome: call.Unreachable, Instants: call.Instants{Arrived: call.Now(), Done: call.Now() + 1}})
	stop()
	var felt, upstream, response, tpot, queued *int64
	ask := func(where string) {
		err := db.read.QueryRow("SELECT ttft_felt_ns, ttft_upstream_ns, ttft_response_ns, tpot_ns, queued_ns FROM spans JOIN names ON names.id = outcome WHERE "+where).Scan(&felt, &upstream, &response, &tpot, &queued)
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("name = 'ok'")
	for _, f := range []struct {
		name string
		got  *int64
		want int64
	}{{"felt", felt, 40_100_000}, {"upstream", upstream, 39_600_000}, {"response", response, 41_000_000}, {"tpot", tpot, 2_000_000}, {"queued", queued, 100_000}} {
		if f.got == nil || *f.got != f.want {
			t.Errorf("%s is %v, want %d", f.name, f.got, f.want)
		}
	}
	ask("name = 'unreachable'")
	if felt != nil || upstream != nil || tpot != nil || queued != nil {
		t.Error("what was not measured is not NULL")
	}
}

func TestDatabaseIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "weir.db")
	_, tr, stop := tracing(t, path, nil)
	record(tr, context.Background(), example(0))
	if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", filepath.Base(file), info.Mode().Perm(), err, want)
		}
	}
	stop()
}

func TestFlushWritesAllThatHasEnded(t *testing.T) {
	db, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for i := range 2000 {
		record(tr, context.Background(), example(i))
	}
	if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(all(t, db, "all")); n != 2000 || tr.Recorder.Written() != 2000 || tr.Recorder.Waiting() != 0 || tr.Recorder.Lost() != 0 {
		t.Errorf("%d in the database; written %d, waiting %d, lost %d", n, tr.Recorder.Written(), tr.Recorder.Waiting(), tr.Recorder.Lost())
	}
}

func TestUnsampledParentIsStillRecorded(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true})
	record(tr, trace.ContextWithRemoteSpanContext(context.Background(), parent), example(0))
	stop()
	got := all(t, db, "all")
	if len(got) != 1 || got[0].TraceID != [16]byte{1} || got[0].ParentSpan != [8]byte{2} {
		t.Errorf("recorded %v", got)
	}
}

func TestCallsInFlightAreListedAndLeaveWhenTheyEnd(t *testing.T) {
	db, tr, _ := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	c := example(0)
	c.Arrived = call.At(time.Now().Add(-time.Second))
	s := c.Begin(context.Background(), tr.Provider.Tracer("weir"))
	listed := func() []Unfinished {
		if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
			t.Fatal(err)
		}
		list, err := db.InFlight(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	got := listed()
	if len(got) != 1 || got[0].Interrupted || got[0].Call.Scenario != "short_chat" || got[0].Call.Request.Model != "gpt-x" || got[0].Call.Turn != 2 {
		t.Fatalf("in flight: %+v", got)
	}
	c.End(s)
	if got := listed(); len(got) != 0 {
		t.Errorf("still in flight after its end: %+v", got)
	}
}

func TestSelections(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	make := func(n int, change func(*call.Call)) {
		c := example(n * 1000)
		change(c)
		record(tr, context.Background(), c)
	}
	make(1, func(c *call.Call) { c.Run = "aa01"; c.Labels = map[string]string{"base": ""} })
	make(2, func(c *call.Call) { c.Run = "aa02"; c.Scenario = "rag"; c.API = wire.Messages })
	make(3, func(c *call.Call) { c.Run = "bb01"; c.Request.Model = "other"; c.ServedModel = "served" })
	make(4, func(c *call.Call) { c.Run = "bb01"; c.Outcome = call.RateLimited; c.Session = "s-9" })
	stop()
	for _, row := range []struct {
		words []string
		want  int
	}{
		{nil, 2}, {[]string{"last"}, 2}, {[]string{"all"}, 4}, {[]string{"run:bb"}, 2}, {[]string{"run:aa02"}, 1},
		{[]string{"label:base"}, 1}, {[]string{"label:search"}, 3}, {[]string{"label:team=search"}, 3}, {[]string{"label:team=x"}, 0},
		{[]string{"since:1h"}, 4}, {[]string{"all", "scenario:rag"}, 1}, {[]string{"scenario:rag"}, 0}, {[]string{"all", "api:messages"}, 1},
		{[]string{"model:served"}, 1}, {[]string{"model:other"}, 1}, {[]string{"all", "model:nobody"}, 0},
		{[]string{"session:s-9"}, 1}, {[]string{"run:bb", "outcome:ok"}, 1}, {[]string{"all", "client:codex", "upstream:sim", "key:00ff00ff"}, 4},
	} {
		if got := all(t, db, row.words...); len(got) != row.want {
			t.Errorf("%v selects %d calls, want %d", row.words, len(got), row.want)
		}
	}
	for _, row := range []struct{ word, want string }{
		{"run:aa", "several runs begin like that: aa01, aa02"}, {"run:zz", "no run's id begins like that"},
	} {
		s, _ := ParseSelection([]string{row.word})
		var err error
		for _, err = range db.Calls(context.Background(), s, Order{}) {
		}
		if err == nil || !contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want …%s…", row.word, err, row.want)
		}
	}
	for _, row := range []struct{ word, want string }{
		{"runs:aa", "want last, all, run:7f3a"}, {"run:", "in the form run:7f3a"}, {"last:2", "in the form last"}, {"since:yesterday", "not a time such as"},
	} {
		if _, err := ParseSelection([]string{row.word}); err == nil || !contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want …%s…", row.word, err, row.want)
		}
	}
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

func TestLastIsTheNewestCallsWithoutARun(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for n, run := range []string{"aa01", "", ""} {
		c := example(n * 1000)
		c.Run = run
		record(tr, context.Background(), c)
	}
	stop()
	if got := all(t, db); len(got) != 3 {
		t.Errorf("the hour up to the newest call holds %d calls, want 3", len(got))
	}
}

func TestSlowestComesFirst(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	for n := range 5 {
		c := example(n)
		c.Turn = n
		if n == 3 {
			c.FirstToken = call.Mark{}
		} else {
			c.FirstToken.Delivered += call.Instant(n * 1_000_000)
		}
		record(tr, context.Background(), c)
	}
	stop()
	var turns []int
	for c, err := range db.Calls(context.Background(), Selection{}, Order{By: "slowest", Limit: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, c.Turn)
	}
	if fmt.Sprint(turns) != "[4 2 1 0]" {
		t.Errorf("slowest first: %v", turns)
	}
}

func TestCallIsFoundWithAllItsViews(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	client := example(0)
	client.Side = call.Client
	sc := record(tr, context.Background(), client)
	proxy := record(tr, trace.ContextWithSpanContext(context.Background(), sc), example(1))
	record(tr, context.Background(), example(2))
	stop()
	for _, id := range []string{proxy.SpanID().String(), proxy.SpanID().String()[:6]} {
		views, err := db.Call(context.Background(), id)
		if err != nil || len(views) != 2 || views[0].Side != call.Proxy || views[1].Side != call.Client || views[0].ParentSpan != views[1].SpanID {
			t.Errorf("%s: %v, %v", id, views, err)
		}
	}
	for _, id := range []string{"zz", "", "0123456789abcdef01"} {
		if _, err := db.Call(context.Background(), id); err == nil {
			t.Errorf("call %q was found", id)
		}
	}
}

func TestFollowGivesWhatComesAfter(t *testing.T) {
	db, tr, stop := tracing(t, filepath.Join(t.TempDir(), "weir.db"), nil)
	record(tr, context.Background(), example(0))
	if err := tr.Recorder.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	turns := []int{}
	next := example(1)
	next.Turn = 7
	go func() {
		time.Sleep(100 * time.Millisecond)
		record(tr, context.Background(), next)
	}()
	for c, err := range db.Follow(ctx, Selection{}) {
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, c.Turn)
		break
	}
	if fmt.Sprint(turns) != "[7]" {
		t.Errorf("followed %v", turns)
	}
	stop()
}

func TestRunComesBackAsItWas(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "weir.db"))
	want := Run{
		ID: "7f3a", Name: "llm_压测", Target: "127.0.0.1:8484", Seed: 1<<64 - 1, Version: "v", Model: []byte(`{"a":1}`), Labels: map[string]string{"a": "b"},
		Started: time.Unix(1, 5), Ended: time.Unix(9, 0), Verdict: "invalid: client", Reasons: []string{"lag"}, Partial: true, Planned: 10, Sent: 9, NotSent: 1,
		PlannedRate: 20, SentRate: 19.5, LagP50: 1, LagP99: 2, LagMax: 3, Scenarios: []string{"x", "y"}, Notes: []string{"one"}, Shard: 1, Shards: 3,
	}
	if err := db.SaveRun(context.Background(), Run{ID: "7f3a", Started: want.Started}); err != nil {
		t.Fatal(err)
	}
	if err := db.SaveRun(context.Background(), want); err != nil {
		t.Fatal(err)
	}
	got, err := db.Runs(context.Background(), "7f")
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if other, _ := db.Runs(context.Background(), "8"); len(other) != 0 {
		t.Errorf("found %v", other)
	}
}

func TestSecretIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	a, err := openAt(t, path).Secret(context.Background(), "keys")
	b, err2 := openAt(t, path).Secret(context.Background(), "keys")
	if err != nil || err2 != nil || len(a) != 32 || string(a) != string(b) {
		t.Errorf("%x, %v; %x, %v", a, err, b, err2)
	}
}
