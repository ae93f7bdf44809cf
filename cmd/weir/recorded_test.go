package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/generator/loadmodel"
	"weir/proxy/wire"
	"weir/store"
	"weir/store/call"
)

// past is a call as a test writes it: in seconds since some day, in tokens.
type past struct {
	from, to float64
	in, out  int64
	shape    string // a letter each part of the request, of 640 bytes; empty: none was kept
	change   func(*call.Call)
}

func in(session string, change ...func(*call.Call)) func(*call.Call) {
	return func(c *call.Call) {
		c.Session = session
		for _, f := range change {
			f(c)
		}
	}
}

// recordCalls writes calls into a database.
func recordCalls(t *testing.T, calls []past) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	a := &app{stdio: stdio{strings.NewReader(""), io.Discard, io.Discard}, env: func(string) (string, bool) { return "", false }, hard: context.Background()}
	s, err := a.openStack(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := store.NewKeeper(t.Context(), s.db, store.KeeperOptions{})
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	at := func(s float64) call.Instant { return call.At(day.Add(time.Duration(s * float64(time.Second)))) }
	for _, spoken := range calls {
		c := &call.Call{Side: call.Proxy, API: wire.Chat, Operation: wire.OpChat, Outcome: call.OK, Status: 200, UsageSource: call.UsageReported}
		c.Request.Model, c.Request.Stream = "m", true
		c.Arrived, c.Done = at(spoken.from), at(spoken.to)
		if spoken.in > 0 {
			c.Usage = wire.Usage{Input: wire.N(spoken.in), Output: wire.N(spoken.out)}
		}
		if spoken.change != nil {
			spoken.change(c)
		}
		span := c.Begin(t.Context(), s.tracer)
		c.End(span)
		if spoken.shape != "" {
			content := store.Content{SpanID: span.SpanContext().SpanID(), TraceID: span.SpanContext().TraceID(), At: c.Started(), Shape: &wire.Shape{}}
			for _, part := range spoken.shape {
				content.Shape.Blocks = append(content.Shape.Blocks, wire.Block{Role: wire.User, Kind: wire.KindText, Bytes: 640, Hash: uint64(part)})
			}
			if !keeper.Add(1000, func() store.Content { return content }) {
				t.Fatal("no room for a shape")
			}
		}
	}
	if err := keeper.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowsOf reads the rows of recorded calls.
func rowsOf(t *testing.T, path string, words ...string) ([]loadmodel.Row, *recorded) {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	selection, err := store.ParseSelection(words)
	if err != nil {
		t.Fatal(err)
	}
	file, size, r, err := spool(t.Context(), db, selection)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace, err := loadmodel.RowsIn("calls", file, size, loadmodel.TraceOptions{Times: loadmodel.Verbatim})
	if err != nil {
		t.Fatal(err)
	}
	var rows []loadmodel.Row
	for row, err := range trace.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows, r
}

func TestRecordedCallsBecomeRows(t *testing.T) {
	const s = time.Second
	failed := func(c *call.Call) { c.Outcome, c.Status, c.Usage = call.RateLimited, 429, wire.Usage{} }
	agent := func(id string) func(*call.Call) { return func(c *call.Call) { c.Agent = id } }
	turn := func(n int) func(*call.Call) { return func(c *call.Call) { c.Turn = n } }
	for _, row := range []struct {
		sentence string
		calls    []past
		want     []loadmodel.Row
	}{
		{
			"calls without a session → a row each, at its instant",
			[]past{{from: 5, to: 6, in: 100, out: 10}, {from: 5.5, to: 5.7, in: 50, out: 5}},
			[]loadmodel.Row{{Input: 100, Output: 10}, {At: s / 2, Input: 50, Output: 5}},
		},
		{
			"turns of a session → one row, with the times to think",
			[]past{
				{from: 1, to: 2, in: 100, out: 10, change: in("a", turn(1))},
				{from: 1.5, to: 2.5, in: 30, out: 3, change: in("b", turn(4))},
				{from: 5, to: 6, in: 150, out: 20, change: in("a", turn(2))},
				{from: 6.25, to: 7, in: 190, out: 30, change: in("a", turn(3))},
			},
			[]loadmodel.Row{
				{Input: 100, Output: 10, Session: "a", Turn: 1, Then: []loadmodel.FollowUp{{Input: 150, Output: 20, Think: 3 * s}, {Input: 190, Output: 30, Think: s / 4}}},
				{At: s / 2, Input: 30, Output: 3, Session: "b", Turn: 4},
			},
		},
		{
			"agents of one session → rows of their own",
			[]past{
				{from: 0, to: 1, in: 100, out: 10, change: in("a", agent("x"))},
				{from: 2, to: 3, in: 40, out: 1, change: in("a", agent("y"))},
				{from: 4, to: 5, in: 120, out: 1, change: in("a", agent("x"))},
				{from: 6, to: 7, in: 60, out: 1, change: in("a", agent("y"))},
			},
			[]loadmodel.Row{
				{Input: 100, Output: 10, Session: "a", Turn: 1, Then: []loadmodel.FollowUp{{Input: 120, Output: 1, Think: 3 * s}}},
				{At: 2 * s, Input: 40, Output: 1, Session: "a", Turn: 1, Then: []loadmodel.FollowUp{{Input: 60, Output: 1, Think: 3 * s}}},
			},
		},
		{
			"a call before the answer to the one before, a shorter prompt, a turn behind a failure, a long silence → each begins anew",
			[]past{
				{from: 0, to: 5, in: 100, out: 10, change: in("a")},
				{from: 4, to: 6, in: 200, out: 1, change: in("a")},
				{from: 7, to: 8, in: 60, out: 1, change: in("a")},
				{from: 9, to: 10, in: 70, out: 1, change: in("a", failed, func(c *call.Call) { c.RequestBytes = 280 })},
				{from: 11, to: 12, in: 70, out: 1, change: in("a")},
				{from: 4000, to: 4001, in: 90, out: 1, change: in("a")},
			},
			[]loadmodel.Row{
				{Input: 100, Output: 10, Session: "a", Turn: 1},
				{At: 4 * s, Input: 200, Output: 1, Session: "a", Turn: 1},
				{At: 7 * s, Input: 60, Output: 1, Session: "a", Turn: 1, Then: []loadmodel.FollowUp{{Input: 70, Output: 1, Think: s}}},
				{At: 11 * s, Input: 70, Output: 1, Session: "a", Turn: 1},
				{At: 4000 * s, Input: 90, Output: 1, Session: "a", Turn: 1},
			},
		},
		{
			"a warm-up, a list of models, and the client's view where the proxy's is there → left out",
			[]past{
				{from: 0, to: 1, in: 9, out: 9, change: func(c *call.Call) { c.WarmUp = true }},
				{from: 1, to: 2, change: func(c *call.Call) { c.Operation = wire.OpModels }},
				{from: 2, to: 4, in: 70, out: 7, change: func(c *call.Call) { c.Side, c.Run, c.Scenario = call.Client, "r1", "chat" }},
				{from: 2.125, to: 3, in: 70, out: 7, change: func(c *call.Call) { c.Run, c.Scenario = "r1", "chat" }},
				{from: 3.125, to: 4, in: 80, out: 8, change: func(c *call.Call) { c.Side, c.Run, c.Scenario = call.Client, "r2", "rag" }},
			},
			[]loadmodel.Row{{Input: 70, Output: 7, Scenario: "chat"}, {At: s, Input: 80, Output: 8, Scenario: "rag"}},
		},
		{
			"no usage → the sizes planned, else those of the bytes and of the limit",
			[]past{
				{from: 0, to: 1, change: func(c *call.Call) { c.ExpectedInput, c.ExpectedOutput = wire.N(77), wire.N(7) }},
				{from: 1, to: 2, change: func(c *call.Call) { c.RequestBytes, c.Request.MaxTokens = 400, wire.N(33) }},
				{from: 2, to: 3, change: func(c *call.Call) { c.RequestBytes, c.API, c.Request.Stream = 4000, wire.Messages, false }},
			},
			[]loadmodel.Row{{Input: 77, Output: 7}, {At: s, Input: 100, Output: 33}, {At: 2 * s, Input: 1000, Output: 1, API: wire.Messages, Whole: true}},
		},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			rows, _ := rowsOf(t, recordCalls(t, row.calls), "all")
			for i := range row.want {
				row.want[i].Model = "m"
				if row.want[i].API == "" {
					row.want[i].API = wire.Chat
				}
			}
			if diff := cmp.Diff(row.want, rows, cmpopts.IgnoreFields(loadmodel.Row{}, "HashIDs")); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// A part of a request is 640 bytes, and so 160 tokens: two and a half blocks.
func TestRecordedShapesBecomeSharedBlocks(t *testing.T) {
	rows, r := rowsOf(t, recordCalls(t, []past{
		{from: 0, to: 1, in: 4 * 160, out: 1, shape: "TSab"},
		{from: 2, to: 3, in: 4 * 160, out: 1, shape: "TSxy"},
		{from: 4, to: 5, in: 3 * 160, out: 1, shape: "Txy"},
		{from: 6, to: 7, in: 160, out: 1},
		{from: 8, to: 9, in: 2 * 160, out: 1, shape: "PQ", change: in("s")},
		{from: 10, to: 11, in: 4 * 160, out: 1, shape: "PQRS", change: in("s")}, // holds what was said
		{from: 12, to: 13, in: 4 * 160, out: 1, shape: "PZRS", change: in("s")}, // says it otherwise
	}), "all")
	if len(rows) != 6 || len(rows[4].Then) != 1 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	shared := func(a, b int) (n int) {
		for n < min(len(rows[a].HashIDs), len(rows[b].HashIDs)) && rows[a].HashIDs[n] == rows[b].HashIDs[n] {
			n++
		}
		return n
	}
	for _, want := range []struct {
		sentence   string
		a, b, most int
	}{
		{"two parts in common: 320 tokens", 0, 1, 5},
		{"one part in common: 160 tokens, of which whole blocks", 0, 2, 2},
		{"parts behind a difference are no prefix", 1, 2, 2},
		{"nothing in common", 0, 4, 0},
		{"without a shape nothing is known", 0, 3, 0},
		{"a conversation that was changed shares what stands before the change", 4, 5, 2},
	} {
		if n := shared(want.a, want.b); n != want.most {
			t.Errorf("%s: %d blocks, want %d", want.sentence, n, want.most)
		}
	}
	if n := len(rows[0].HashIDs); n != 10 {
		t.Errorf("640 tokens are %d blocks, want 10", n)
	}
	if diff := cmp.Diff([]string{"1 of 7 calls has no shape: what has none shares nothing with others"}, r.notes()); diff != "" {
		t.Error(diff)
	}
}

// A session whose turns lie far apart does not keep all that came between them in
// memory: its later turn is then played at its own instant.
func TestSessionsDoNotWaitAmongTooManyCalls(t *testing.T) {
	const s = time.Second
	read := func(room int) (rows []loadmodel.Row, most int, r *recorded) {
		r = &recorded{open: map[line]*talk{}, room: room}
		r.write = func(row *loadmodel.Row) error {
			rows = append(rows, *row)
			return nil
		}
		day := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
		r.first = day
		add := func(at int, session string) {
			c := &call.Call{Outcome: call.OK, Usage: wire.Usage{Input: wire.N(100), Output: wire.N(5)}}
			c.Session, c.Arrived, c.Done = session, call.At(day.Add(time.Duration(at)*s)), call.At(day.Add(time.Duration(at)*s+s/2))
			r.place(c, nil)
			if err := r.flush(c.Started()); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(r.queue))
		}
		add(0, "slow")
		for i := range 100 {
			add(1+i, "")
		}
		add(101, "slow")
		if err := r.flush(time.Time{}); err != nil {
			t.Fatal(err)
		}
		return rows, most, r
	}
	rows, most, r := read(0)
	if len(rows) != 101 || len(rows[0].Then) != 1 || most != 101 || r.cut != 0 {
		t.Errorf("%d rows, the first %+v; %d waited, %d cut", len(rows), rows[0], most, r.cut)
	}
	rows, most, r = read(20 * 64)
	last := rows[len(rows)-1]
	if len(rows) != 102 || len(rows[0].Then) != 0 || last.Session != "slow" || last.At != 101*s || most > 20 || r.cut != 1 || !strings.Contains(strings.Join(r.notes(), ""), "1 session split") {
		t.Errorf("%d rows, the last %+v; %d waited, %d cut: %q", len(rows), last, most, r.cut, r.notes())
	}
}
