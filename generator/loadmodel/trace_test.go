package loadmodel

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// figures are what the published traces are known by.
type figures struct {
	n              int
	span, rate, cv float64
	dispersion     [3]float64 // variance over mean of counts per 1, 10 and 60 s
	inMean         float64
	in             [4]int // p50, p95, p99, max
	outMean        float64
	out            [4]int
}

func measure(t *testing.T, path string) figures {
	t.Helper()
	trace, err := OpenTrace(path, TraceOptions{Times: Verbatim})
	if err != nil {
		t.Fatal(err)
	}
	return figuresOf(all(t, trace))
}

func figuresOf(rows []Row) figures {
	var at []float64
	var in, out []int
	for _, row := range rows {
		at, in, out = append(at, row.At.Seconds()), append(in, row.Input), append(out, row.Output)
	}
	f := figures{n: len(at), span: at[len(at)-1]}
	f.rate = float64(f.n) / f.span
	var gaps []float64
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	mean, variance := moments(gaps)
	f.cv = math.Sqrt(variance) / mean
	for i, bin := range []float64{1, 10, 60} {
		counts := make([]float64, int(f.span/bin)+1)
		for _, s := range at {
			counts[int(s/bin)]++
		}
		mean, variance := moments(counts)
		f.dispersion[i] = variance / mean
	}
	f.inMean, f.in = tokenFigures(in)
	f.outMean, f.out = tokenFigures(out)
	return f
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

func tokenFigures(x []int) (mean float64, q [4]int) {
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	slices.Sort(x)
	at := func(p float64) int { return x[max(int(math.Ceil(p*float64(len(x))))-1, 0)] }
	return mean, [4]int{at(0.5), at(0.95), at(0.99), x[len(x)-1]}
}

func TestPublishedTracesGiveTheirFigures(t *testing.T) {
	for _, row := range []struct {
		file string
		want figures
	}{
		{"AzureLLMInferenceTrace_conv.csv", figures{19366, 3502, 5.53, 1.09, [3]float64{1.4, 4.0, 20.6}, 1155, [4]int{1020, 4083, 4142, 14050}, 211, [4]int{129, 451, 601, 1000}}},
		{"mooncake_conversation_trace.jsonl", figures{12031, 3537, 3.40, 3.03, [3]float64{7.9, 2.1, 2.9}, 12035, [4]int{6909, 39551, 85400, 126195}, 343, [4]int{350, 698, 1119, 2000}}},
	} {
		t.Run(row.file, func(t *testing.T) {
			path := filepath.Join("../../../shared/traces", row.file)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the published trace is not beside this checkout: %v", err)
			}
			got := measure(t, path)
			near := func(what string, got, want, share float64) {
				if math.Abs(got-want) > share*want {
					t.Errorf("%s is %.4g, want %.4g", what, got, want)
				}
			}
			if got.n != row.want.n {
				t.Errorf("%d rows, want %d", got.n, row.want.n)
			}
			// The published figures interpolate between ranks.
			for i := range 4 {
				if d := got.in[i] - row.want.in[i]; d < -1 || d > 1 {
					t.Errorf("input quantiles are %v, want %v", got.in, row.want.in)
				}
				if d := got.out[i] - row.want.out[i]; d < -1 || d > 1 {
					t.Errorf("output quantiles are %v, want %v", got.out, row.want.out)
				}
			}
			near("span", got.span, row.want.span, 0.001)
			near("rate", got.rate, row.want.rate, 0.002)
			near("CV of gaps", got.cv, row.want.cv, 0.01)
			near("mean input", got.inMean, row.want.inMean, 0.001)
			near("mean output", got.outMean, row.want.outMean, 0.003)
			for i, bin := range []string{"1 s", "10 s", "60 s"} {
				near("dispersion at "+bin, got.dispersion[i], row.want.dispersion[i], 0.04)
			}
		})
	}
}

func TestTraceExcerptsAreRead(t *testing.T) {
	for _, row := range []struct {
		file, format string
		tick         time.Duration
		n            int
		first        Row
	}{
		{"testdata/traces/azure_conv_300.csv", "azure", 0, 300, Row{Input: 374, Output: 44}},
		{"testdata/traces/mooncake_200.jsonl", "mooncake", 3 * time.Second, 200, Row{Input: 6758, Output: 500}},
	} {
		trace, err := OpenTrace(row.file, TraceOptions{Limit: 1000, Times: Verbatim})
		if err != nil {
			t.Fatal(err)
		}
		if trace.Format != row.format || trace.Tick != row.tick {
			t.Errorf("%s taken for %s with a tick of %v", row.file, trace.Format, trace.Tick)
		}
		rows := all(t, trace)
		if len(rows) != row.n {
			t.Errorf("%s: %d rows, want %d", row.file, len(rows), row.n)
		}
		first := rows[0]
		first.HashIDs = nil
		if diff := cmp.Diff(row.first, first); diff != "" {
			t.Errorf("%s: first row (-want +got):\n%s", row.file, diff)
		}
		for i, r := range rows {
			if row.format == "mooncake" && len(r.HashIDs) != (r.Input+511)/512 {
				t.Errorf("row %d has %d blocks for %d tokens", i, len(r.HashIDs), r.Input)
			}
		}
	}
}

func all(t *testing.T, trace *Trace) (rows []Row) {
	t.Helper()
	for row, err := range trace.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCoarseClocksAreSpreadOverTheirTicks(t *testing.T) {
	const file = "testdata/traces/mooncake_200.jsonl"
	read := func(o TraceOptions) []Row {
		trace, err := OpenTrace(file, o)
		if err != nil {
			t.Fatal(err)
		}
		return all(t, trace)
	}
	verbatim, spread := read(TraceOptions{Times: Verbatim}), read(TraceOptions{Seed: 1})
	instants := map[time.Duration]bool{}
	var last time.Duration
	for i, row := range spread {
		instants[row.At] = true
		if moved := row.At - verbatim[i].At; moved < 0 || moved > 3001*time.Millisecond {
			t.Errorf("row %d moved by %v, out of its tick", i, moved)
		}
		if row.At < last {
			t.Errorf("row %d goes back from %v to %v", i, last, row.At)
		}
		last = row.At
		row.At = verbatim[i].At
		if diff := cmp.Diff(verbatim[i], row); diff != "" {
			t.Errorf("row %d is another (-verbatim +spread):\n%s", i, diff)
		}
	}
	if len(instants) < 190 {
		t.Errorf("the 200 rows stand on %d instants", len(instants))
	}
	if diff := cmp.Diff(spread, read(TraceOptions{Seed: 1})); diff != "" {
		t.Errorf("the same seed spreads otherwise:\n%s", diff)
	}
	if cmp.Equal(spread, read(TraceOptions{Seed: 2})) {
		t.Error("another seed spreads the same way")
	}
	// A limit in the middle of a tick ends there.
	if rows := read(TraceOptions{Limit: 55}); len(rows) != 55 {
		t.Errorf("limit 55 gives %d rows", len(rows))
	}
}

func TestTraceIsPlayedAtItsSpeedAndToItsLimit(t *testing.T) {
	at := func(o TraceOptions) (last time.Duration, n int) {
		trace, err := OpenTrace("testdata/traces/azure_conv_300.csv", o)
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range trace.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			last, n = row.At, n+1
		}
		return last, n
	}
	once, n := at(TraceOptions{Limit: 100})
	twice, _ := at(TraceOptions{Limit: 100, Speed: 2})
	if n != 100 || once == 0 || twice != once/2 {
		t.Errorf("%d rows in %v, and in %v at twice the speed", n, once, twice)
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOtherTraceFormats(t *testing.T) {
	for _, row := range []struct {
		name, text, format string
		want               []Row
	}{
		{
			"Azure 2025 has a column more",
			"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n2025-01-01 00:00:00.0000000,1,10,2\r\n2025-01-01 00:00:01.5000000,0,20,3\r\n", "azure",
			[]Row{{Input: 10, Output: 2}, {At: 1500 * time.Millisecond, Input: 20, Output: 3}},
		},
		{
			"Azure 2024 names its zone; quotes, blank lines and a BOM are no matter",
			"\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n\n2024-05-10 00:00:00.009930+00:00,2162,5\n\"2024-05-10 00:00:01.009930+00:00\",\"7\",8\n", "azure",
			[]Row{{Input: 2162, Output: 5}, {At: time.Second, Input: 7, Output: 8}},
		},
		{
			"BurstGPT is read by column name; 0 response tokens are a failure; an empty session is none",
			"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,1.2,GPT-4,100,0,100,API log\n7.5,s1,2,ChatGPT,50,60,110,Conversation log\n8,s1,2,ChatGPT,150,6,156,Conversation log\n", "burstgpt",
			[]Row{{Input: 100, Model: "GPT-4", Failed: true}, {At: 2500 * time.Millisecond, Input: 50, Output: 60, Model: "ChatGPT", Session: "s1", Turn: 1}, {At: 3 * time.Second, Input: 150, Output: 6, Model: "ChatGPT", Session: "s1", Turn: 2}},
		},
		{
			"Bailian is in seconds; a session is called after its first chat",
			`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 32, "output_length": 4, "type": "text", "turn": 1, "hash_ids": [1, 2]}` + "\n" +
				`{"chat_id": 2, "parent_chat_id": 1, "timestamp": 3.5, "input_length": 48, "output_length": 5, "type": "text", "turn": 2, "hash_ids": [1, 2, 3]}` + "\n" +
				`{"chat_id": 9, "parent_chat_id": 2, "timestamp": 4.5, "input_length": 64, "output_length": 6, "type": "text", "turn": 3, "hash_ids": []}` + "\n", "bailian",
			[]Row{
				{Input: 32, Output: 4, Session: "1", Turn: 1, HashIDs: []int64{1, 2}},
				{At: 2 * time.Second, Input: 48, Output: 5, Session: "1", Turn: 2, HashIDs: []int64{1, 2, 3}},
				{At: 3 * time.Second, Input: 64, Output: 6, Session: "1", Turn: 3, HashIDs: []int64{}},
			},
		},
		{
			"Mooncake's sessions count what is new → the history is added",
			`{"timestamp": 0, "session_id": "a", "input_length": 100, "output_length": 10}` + "\n" +
				`{"timestamp": 5, "session_id": 7, "input_length": 30, "output_length": 3}` + "\n" +
				`{"timestamp": 10, "session_id": "a", "input_length": 20, "output_length": 5}` + "\n" +
				`{"timestamp": 20, "session_id": "a", "input_length": 1, "output_length": 1}` + "\n", "mooncake",
			[]Row{
				{Input: 100, Output: 10, Session: "a", Turn: 1},
				{At: 5 * time.Millisecond, Input: 30, Output: 3, Session: "7", Turn: 1},
				{At: 10 * time.Millisecond, Input: 130, Output: 5, Session: "a", Turn: 2},
				{At: 20 * time.Millisecond, Input: 136, Output: 1, Session: "a", Turn: 3},
			},
		},
		{
			"a row that goes back in time → the time of the one before it",
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,1,1\n2023-01-01 00:00:12,2,1\n2023-01-01 00:00:11,3,1\n", "azure",
			[]Row{{Input: 1, Output: 1}, {At: 2 * time.Second, Input: 2, Output: 1}, {At: 2 * time.Second, Input: 3, Output: 1}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			trace, err := OpenTrace(write(t, "trace", row.text), TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if trace.Format != row.format {
				t.Errorf("taken for %s", trace.Format)
			}
			rows := all(t, trace)
			for i := range rows {
				if len(rows[i].HashIDs) > 0 && rows[i].HashIDs[0] > 1000 { // made up
					rows[i].HashIDs = nil
				}
			}
			if diff := cmp.Diff(row.want, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// What is remembered of sessions does not grow with the trace.
func TestSessionsOfLongAgoAreForgotten(t *testing.T) {
	var r recent[int, int]
	for i := range 5 * recentKeys {
		r.put(i, i, 0)
		if n := len(r.young) + len(r.old); n > 2*recentKeys {
			t.Fatalf("%d keys are held", n)
		}
		if back := i - recentKeys + 1; back >= 0 {
			if v, ok := r.get(back); !ok || v != back {
				t.Fatalf("the key of %d steps ago is forgotten", recentKeys-1)
			}
		}
	}
}

// The golden holds one error a line, without the file's folder.
func TestTraceErrorsNameTheirLine(t *testing.T) {
	const head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	const good = "2023-01-01 00:00:10,1,1\n"
	var got strings.Builder
	for _, row := range []struct {
		name, text string
		o          TraceOptions
	}{
		{"not a number", head + "2023-01-01 00:00:10,x,1\n", TraceOptions{}},
		{"not finite", head + good + "2023-01-01 00:00:10,NaN,1\n", TraceOptions{}},
		{"negative", head + good + good + "2023-01-01 00:00:10,-5,1\n", TraceOptions{}},
		{"no time", head + "yesterday,1,1\n", TraceOptions{}},
		{"long ago", head + "0001-01-01 00:00:10,1,1\n", TraceOptions{}},
		{"short row", head + "2023-01-01 00:00:10,1\n", TraceOptions{}},
		{"no rows", head, TraceOptions{}},
		{"column missing", "TIMESTAMP,ContextTokens\n", TraceOptions{Format: "azure"}},
		{"unknown columns", "a,b,c\n1,2,3\n", TraceOptions{}},
		{"a dataset", `{"scenario_id": "chat", "messages": []}` + "\n", TraceOptions{}},
		{"unknown format", head + good, TraceOptions{Format: "azzure"}},
		{"no speed", head + good, TraceOptions{Speed: -1}},
		{"empty", "", TraceOptions{}},
		{"negative length", `{"timestamp": 1, "input_length": -1, "output_length": 2, "hash_ids": []}` + "\n", TraceOptions{}},
		{"no length", `{"timestamp": 1, "input_length": 1, "output_length": 2}` + "\n" + `{"timestamp": 1}` + "\n", TraceOptions{}},
		{"endless time", `{"timestamp": 1e300, "input_length": 1, "output_length": 2}` + "\n", TraceOptions{}},
		{"wrong type", `{"timestamp": 1, "input_length": "1", "output_length": 2}` + "\n", TraceOptions{}},
		{"not JSON", `{"timestamp": 1, "input_length": 1, "output_length": 2}` + "\n{\n", TraceOptions{}},
		{"BurstGPT without seconds", "Timestamp,Model,Request tokens,Response tokens\nsoon,m,1,1\n", TraceOptions{}},
		{"endless line", head + strings.Repeat("x", longestLine+1), TraceOptions{}},
	} {
		path := write(t, "trace", row.text)
		trace, err := OpenTrace(path, row.o)
		if err == nil {
			for _, err = range trace.Rows() {
				if err != nil {
					break
				}
			}
		}
		if err == nil {
			t.Errorf("%s: no error", row.name)
			continue
		}
		text := strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), "")
		if strings.Contains(text, "\n") {
			t.Errorf("%s: the error has several lines:\n%s", row.name, text)
		}
		got.WriteString(row.name + ": " + text + "\n")
	}
	_, err := OpenTrace(filepath.Join(t.TempDir(), "none"), TraceOptions{})
	if err == nil || !strings.Contains(err.Error(), "no such file; check the path") {
		t.Errorf("no file: %v", err)
	}
	_, err = OpenTrace(t.TempDir(), TraceOptions{})
	if err == nil || !strings.Contains(err.Error(), "is a directory without clients of ServeGen") {
		t.Errorf("a folder: %v", err)
	}
	golden(t, "testdata/trace_errors.golden", got.String())
}

func TestFaultBehindTheBeginningEndsTheRows(t *testing.T) {
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n" + strings.Repeat("2023-01-01 00:00:10,1,1\n", probeRows+10) + "what is this,1,1\n"
	trace, err := OpenTrace(write(t, "long.csv", text), TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range trace.Rows() {
		if err == nil {
			n++
		}
	}
	if n != probeRows+10 || err == nil || !strings.Contains(err.Error(), "long.csv:5012: ") {
		t.Errorf("%d rows and then %v", n, err)
	}
	if _, err := trace.Survey(); err == nil {
		t.Error("the survey has no error")
	}
}

func TestLooksLikeTrace(t *testing.T) {
	for path, want := range map[string]bool{
		"testdata/traces/azure_conv_300.csv":             true,
		"testdata/traces/mooncake_200.jsonl":             true,
		"../../examples/quickstart/load_model.json":      false,
		"testdata/bad/empty.json":                        false,
		"testdata/traces":                                true, // clients of ServeGen are in it
		"testdata/bad":                                   false,
		"testdata/none":                                  false,
		write(t, "one.json", `{"load_model": {"x": 1}}`): false,
	} {
		if got := LooksLikeTrace(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
