package loadmodel

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func open(t *testing.T, path string, o TraceOptions) *Trace {
	t.Helper()
	trace, err := OpenTrace(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestWindowOfATrace(t *testing.T) {
	const file = "testdata/traces/azure_conv_300.csv"
	whole := all(t, open(t, file, TraceOptions{}))
	from, to := 20*time.Second, 40*time.Second
	var want []Row
	for _, row := range whole {
		if row.At >= from && row.At < to {
			row.At -= from
			want = append(want, row)
		}
	}
	if len(want) < 20 || len(want) == len(whole) {
		t.Fatalf("%d of %d rows stand in the window: it shows nothing", len(want), len(whole))
	}
	if diff := cmp.Diff(want, all(t, open(t, file, TraceOptions{From: from, To: to}))); diff != "" {
		t.Errorf("the window (-want +got):\n%s", diff)
	}
	for i := range want {
		want[i].At /= 4
	}
	got := all(t, open(t, file, TraceOptions{From: from, To: to, Speed: 4, Limit: 15}))
	if diff := cmp.Diff(want[:15], got); diff != "" {
		t.Errorf("15 rows of it four times as fast (-want +got):\n%s", diff)
	}
	s, err := open(t, file, TraceOptions{From: from, To: to}).Survey()
	if err != nil || s.Rows != len(want) || s.Span != 4*want[len(want)-1].At {
		t.Errorf("the survey has %d rows over %v, %v", s.Rows, s.Span, err)
	}
	for _, o := range []TraceOptions{{From: -1}, {To: -1}, {From: 2, To: 1}, {Times: "sometimes"}, {BlockTokens: -1}} {
		if _, err := OpenTrace(file, o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A trace whose rate changes by the minute, all rows of a second on its tick.
func tickingTrace(t *testing.T, minutes int, rate func(minute int) int) string {
	var b strings.Builder
	b.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	n := 0
	for second := range 60 * minutes {
		for range rate(second / 60) {
			n++
			fmt.Fprintf(&b, "2023-01-01 %02d:%02d:%02d,%d,1\n", second/3600, second/60%60, second%60, n)
		}
	}
	return write(t, "ticking.csv", b.String())
}

// sameRows compares so many rows that cmp would take seconds.
func sameRows(a, b []Row) bool {
	return slices.EqualFunc(a, b, func(a, b Row) bool { return reflect.DeepEqual(a, b) })
}

func TestResampledKeepsTheRateAndDrawsNewInstants(t *testing.T) {
	rate := func(minute int) int { return []int{5, 20, 2, 40}[minute%4] }
	path := tickingTrace(t, 40, rate)
	rows := all(t, open(t, path, TraceOptions{Times: Resampled, Seed: 9}))
	perMinute := make([]int, 40)
	var at []float64
	for i, row := range rows {
		if row.Input != i+1 {
			t.Fatalf("row %d is %d: rows do not keep their order", i, row.Input)
		}
		if i > 0 && row.At < rows[i-1].At {
			t.Fatalf("row %d goes back in time", i)
		}
		perMinute[row.At/time.Minute]++
		if rate(int(row.At/time.Minute)) == 40 {
			at = append(at, row.At.Seconds())
		}
	}
	for m, n := range perMinute {
		if want := 60 * rate(m); n != want {
			t.Errorf("minute %d has %d rows, want %d", m, n, want)
		}
	}
	// Within a minute arrivals are Poisson's: counts per second vary as much as
	// their mean, where the file's vary not at all.
	counts := map[int]float64{}
	for _, s := range at {
		counts[int(s)]++
	}
	var flat []float64
	for _, n := range counts {
		flat = append(flat, n)
	}
	mean, variance := moments(flat)
	if d := variance / mean; math.Abs(d-1) > 0.2 || math.Abs(mean-40) > 1 {
		t.Errorf("%.1f rows a second with a dispersion of %.2f, want 40 with 1", mean, d)
	}
	if !sameRows(rows, all(t, open(t, path, TraceOptions{Times: Resampled, Seed: 9}))) {
		t.Error("the same seed draws other instants")
	}
	if sameRows(rows, all(t, open(t, path, TraceOptions{Times: Resampled, Seed: 8}))) {
		t.Error("another seed draws the same instants")
	}
	// Minutes fuller than is held keep their rows and order.
	crowd := all(t, open(t, tickingTrace(t, 2, func(int) int { return 1200 }), TraceOptions{Times: Resampled}))
	for i := 1; i < len(crowd); i++ {
		if crowd[i].At < crowd[i-1].At || crowd[i].Input != i+1 {
			t.Fatalf("row %d: %+v after %+v", i, crowd[i], crowd[i-1])
		}
	}
	if len(crowd) != 2*60*1200 || crowd[len(crowd)-1].At > 2*time.Minute {
		t.Errorf("%d rows up to %v", len(crowd), crowd[len(crowd)-1].At)
	}
}

// The published drift of Azure's trace outlives new instants: its README says
// what Poisson arrivals within minutes give.
func TestResampledAzureKeepsItsDrift(t *testing.T) {
	path := "../../../shared/traces/AzureLLMInferenceTrace_conv.csv"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the published trace is not beside this checkout: %v", err)
	}
	f := figuresOf(all(t, open(t, path, TraceOptions{Times: Resampled, Seed: 1})))
	for i, want := range []float64{1.3, 4.1, 19.9} {
		if math.Abs(f.dispersion[i]-want) > 0.1*want {
			t.Errorf("dispersions are %.2f, want 1.3, 4.1 and 19.9", f.dispersion)
		}
	}
}

func TestBlocksOfAnotherSizeAreNoticed(t *testing.T) {
	trace := func(size, n int) string {
		var b strings.Builder
		for i := range n {
			input := 1000 + 37*i
			fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 5, "hash_ids": %s}`+"\n", i, input,
				strings.ReplaceAll(fmt.Sprint(make([]int, (input+size-1)/size)), " ", ", "))
		}
		return write(t, "t.jsonl", b.String())
	}
	for _, row := range []struct {
		sentence   string
		path       string
		o          TraceOptions
		blocks     int
		note, none string
	}{
		{"as the format says", trace(512, 100), TraceOptions{}, 512, "", "blocks"},
		{"by its rows 16, not 512", trace(16, 100), TraceOptions{}, 16, "stand for blocks of 16 tokens, not of the 512 that its format says: read by the format, its prompts would share 32 times", ""},
		{"16 asked for, by its rows 512", trace(512, 100), TraceOptions{BlockTokens: 16}, 16, "stand for blocks of 512 tokens, not of the 16 asked for: prompts keep their length, and share 0.03125 times", ""},
		{"512 asked for, and so it is", trace(512, 100), TraceOptions{BlockTokens: 512}, 512, "", "blocks"},
		{"of no size that caches use", trace(100, 100), TraceOptions{}, 512, "the hash ids of 100 of the first 100 rows do not fill their prompts with blocks of 512 tokens", ""},
		{"read as Bailian's", trace(512, 100), TraceOptions{Format: "bailian"}, 512, "stand for blocks of 512 tokens, not of the 16 that its format says", ""},
	} {
		opened := open(t, row.path, row.o)
		s, err := opened.Survey()
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(s.Notes, "\n")
		if opened.BlockTokens != row.blocks || !strings.Contains(notes, row.note) || row.none != "" && strings.Contains(notes, row.none) {
			t.Errorf("%s: blocks of %d, want %d; notes: %s", row.sentence, opened.BlockTokens, row.blocks, notes)
		}
	}
}

func TestTurnsAgainstTheirFormat(t *testing.T) {
	trace := func(input func(turn int) int) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, `{"timestamp": %d, "session_id": %d, "input_length": %d, "output_length": 50}`+"\n", i, i%10, input(i/10))
		}
		return write(t, "t.jsonl", b.String())
	}
	for _, row := range []struct {
		sentence string
		path     string
		last     int
		note     string
	}{
		{"what is new alone → the history is added", trace(func(int) int { return 100 }), 6*100 + 5*50, "count only what is new: the history is added to each"},
		{"with the history, against the format → as they stand", trace(func(turn int) int { return 100 + 200*turn }), 1100, "count their history (50 of 50), where by its format they would count only what is new"},
	} {
		opened := open(t, row.path, TraceOptions{})
		s, err := opened.Survey()
		if err != nil {
			t.Fatal(err)
		}
		rows := all(t, opened)
		if last := rows[len(rows)-1]; last.Input != row.last || last.Turn != 6 || !strings.Contains(strings.Join(s.Notes, "\n"), row.note) {
			t.Errorf("%s: the last turn is %+v, want %d tokens; notes: %q", row.sentence, last, row.last, s.Notes)
		}
		// All of a turn's prompt begins the next one's.
		for i := 10; i < len(rows); i++ {
			before, after := rows[i-10].HashIDs, rows[i].HashIDs
			if len(after) < len(before) || !cmp.Equal(before, after[:len(before)]) {
				t.Errorf("%s: row %d does not begin as the turn before", row.sentence, i)
			}
		}
		if cmp.Equal(rows[0].HashIDs, rows[1].HashIDs) {
			t.Errorf("%s: two sessions have the same text", row.sentence)
		}
	}
}

func TestOwnRowsComeBackAsTheyWere(t *testing.T) {
	rows := []Row{
		{Input: 5, Output: 1},
		{At: time.Second + 1, Input: 70, Output: 9, Model: "m", Session: "s", Turn: 3, HashIDs: []int64{-5, 1 << 62}, Failed: true, Scenario: "chat", API: wire.Messages, Whole: true,
			Then: []FollowUp{{Input: 90, Output: 4, Think: 3 * time.Second}, {Input: 100}}},
	}
	var b []byte
	for i := range rows {
		var err error
		if b, err = AppendRow(b, &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	trace, err := RowsIn("mine", bytes.NewReader(b), int64(len(b)), TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if diff := cmp.Diff(rows, all(t, trace)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if s, err := trace.Survey(); err != nil || s.Rows != 4 || s.Sessions != 2 || s.Unnamed != 1 || !cmp.Equal(s.Scenarios, []string{"chat"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if diff := cmp.Diff(rows, all(t, open(t, write(t, "own.jsonl", string(b)), TraceOptions{}))); diff != "" {
		t.Errorf("from a file (-want +got):\n%s", diff)
	}
	for _, bad := range []string{`{"at_ns": -1}`, `{"at_ns": 1, "input_tokens": -1}`, `{"at_ns": 1, "api": "telepathy"}`, `{"at_ns": 1, "then": [{"think_ns": -1}]}`} {
		if _, err := OpenTrace(write(t, "bad.jsonl", bad), TraceOptions{}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// Memory does not grow with the trace: the rows are made up as they are read,
// a few million of them, for no disk should hold 10 GB for it.
func TestMemoryStaysFlatHoweverLongTheTrace(t *testing.T) {
	const keys = 5000
	for _, row := range []struct {
		sentence string
		times    string
		early    int // by then what is remembered of sessions is full
		late     int // before the end, where the reader lets all go
		line     func(dst []byte, n int) []byte
	}{
		{"sessions that come and go, minutes drawn anew", Resampled, 22_500, 82_500, func(dst []byte, n int) []byte {
			return fmt.Appendf(dst, `{"timestamp": %d, "session_id": "s%d", "input_length": 900, "output_length": 30}`+"\n", n*10, n/2)
		}},
		{"chats, spread over ticks", Spread, 11_000, 61_000, func(dst []byte, n int) []byte {
			return fmt.Appendf(dst, `{"chat_id": %d, "parent_chat_id": %d, "timestamp": %d, "input_length": 64, "output_length": 30, "turn": 1, "hash_ids": [%d, 2, 3, 4]}`+"\n", n, n-n%3-1, n/50, n)
		}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			made := &endless{line: row.line, rows: row.late + 10_000}
			format := "mooncake"
			if row.times == Spread {
				format = "bailian"
			}
			trace := &Trace{Name: "made up", Format: format, BlockTokens: formats[format].blockTokens, Tick: time.Second, keys: keys, options: TraceOptions{Times: row.times}}
			trace.source = func() io.Reader { made.n = 0; return made }
			n, before, after := 0, uint64(0), uint64(0)
			for _, err := range trace.Rows() {
				if err != nil {
					t.Fatal(err)
				}
				switch n++; n {
				case row.early:
					before = held()
				case row.late:
					after = held()
				}
			}
			if n != made.rows {
				t.Errorf("%d rows, want %d", n, made.rows)
			}
			t.Logf("%d bytes are held after %d rows, %d after %d", after, row.late, before, row.early)
			if after > before+before/10 {
				t.Errorf("%d bytes are held after %d rows, %d after %d", after, row.late, before, row.early)
			}
		})
	}
}

// held is the memory that is in use.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endless is a file of rows that are written as they are read.
type endless struct {
	line    func(dst []byte, n int) []byte
	n, rows int
	rest    []byte
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.rest) < len(p) && e.n < e.rows {
		e.rest = e.line(e.rest, e.n)
		e.n++
	}
	if len(e.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest = e.rest[:copy(e.rest, e.rest[n:])]
	return n, nil
}
