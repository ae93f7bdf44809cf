package loadmodel

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	trace, err := OpenTrace(path, TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var at []float64
	var in, out []int
	for row, err := range trace.Rows() {
		if err != nil {
			t.Fatal(err)
		}
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
	f.inMean, f.in = lengths(in)
	f.outMean, f.out = lengths(out)
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

func lengths(x []int) (mean float64, q [4]int) {
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
		n            int
		first        Row
	}{
		{"testdata/traces/azure_conv_300.csv", "azure", 300, Row{Input: 374, Output: 44}},
		{"testdata/traces/mooncake_200.jsonl", "mooncake", 200, Row{Input: 6758, Output: 500}},
	} {
		trace, err := OpenTrace(row.file, TraceOptions{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if trace.Format != row.format {
			t.Errorf("%s taken for %s", row.file, trace.Format)
		}
		n := 0
		for r, err := range trace.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && (r.Input != row.first.Input || r.Output != row.first.Output || r.At != 0) {
				t.Errorf("%s: first row is %+v", row.file, r)
			}
			if row.format == "mooncake" && len(r.HashIDs) != (r.Input+511)/512 {
				t.Errorf("row %d has %d blocks for %d tokens", n, len(r.HashIDs), r.Input)
			}
			n++
		}
		if n != row.n {
			t.Errorf("%s: %d rows, want %d", row.file, n, row.n)
		}
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
		{"Azure 2025 has a column more",
			"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n2025-01-01 00:00:00.0000000,1,10,2\r\n2025-01-01 00:00:01.5000000,0,20,3\r\n", "azure",
			[]Row{{Input: 10, Output: 2}, {At: 1500 * time.Millisecond, Input: 20, Output: 3}}},
		{"BurstGPT is read by column name; 0 response tokens are a failure",
			"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,1.2,GPT-4,100,0,100,API log\n7.5,s1,2,ChatGPT,50,60,110,Conversation log\n", "burstgpt",
			[]Row{{Input: 100, Model: "GPT-4", Failed: true}, {At: 2500 * time.Millisecond, Input: 50, Output: 60, Model: "ChatGPT", Session: "s1"}}},
		{"Bailian is in seconds",
			`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 32, "output_length": 4, "type": "text", "turn": 1, "hash_ids": [1, 2]}` + "\n" +
				`{"chat_id": 2, "parent_chat_id": 1, "timestamp": 3.5, "input_length": 48, "output_length": 5, "type": "text", "turn": 2, "hash_ids": [1, 2, 3]}` + "\n", "bailian",
			[]Row{{Input: 32, Output: 4, HashIDs: []int{1, 2}}, {At: 2 * time.Second, Input: 48, Output: 5, Session: "1", HashIDs: []int{1, 2, 3}}}},
		{"a row that goes back in time → the time of the one before it",
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,1,1\n2023-01-01 00:00:12,2,1\n2023-01-01 00:00:11,3,1\n", "azure",
			[]Row{{Input: 1, Output: 1}, {At: 2 * time.Second, Input: 2, Output: 1}, {At: 2 * time.Second, Input: 3, Output: 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			trace, err := OpenTrace(write(t, "trace", row.text), TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if trace.Format != row.format {
				t.Errorf("taken for %s", trace.Format)
			}
			var got []Row
			for r, err := range trace.Rows() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			if !slices.EqualFunc(got, row.want, func(a, b Row) bool {
				return a.At == b.At && a.Input == b.Input && a.Output == b.Output && a.Session == b.Session && a.Model == b.Model && a.Failed == b.Failed && slices.Equal(a.HashIDs, b.HashIDs)
			}) {
				t.Errorf("read %+v\nwant %+v", got, row.want)
			}
		})
	}
}

func TestTraceErrorsNameTheirLine(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"no tokens", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,x,1\n", `:2: column "contexttokens": "x" is not a number of tokens`},
		{"no time", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", `:2: column "timestamp": "yesterday" is not a time`},
		{"short row", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,1\n", `:2: column "generatedtokens" is missing from this row`},
		{"unknown", "a,b,c\n1,2,3\n", "its first line is of no format that weir knows"},
		{"empty", "", "is empty"},
		{"negative", `{"timestamp": 1, "input_length": -1, "output_length": 2, "hash_ids": []}` + "\n", ":1: want timestamp, input_length and output_length, none of them negative"},
	} {
		trace, err := OpenTrace(write(t, "trace", row.text), TraceOptions{})
		if err == nil {
			for _, e := range trace.Rows() {
				if e != nil {
					err = e
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want …%s…", row.name, err, row.want)
		}
	}
}

func TestSurveyNotesWhatIsOdd(t *testing.T) {
	trace, err := OpenTrace("testdata/traces/mooncake_200.jsonl", TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.Survey()
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows != 200 || !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "clock is coarse") }) {
		t.Errorf("survey of a quantised trace: %+v", s)
	}
	trace, err = OpenTrace(write(t, "odd.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:10,0,1\n2023-01-01 00:00:09,5,1\n"), TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = trace.Survey(); err != nil || len(s.Notes) != 2 {
		t.Errorf("survey: %+v, %v; want a note on the row without tokens and one on the row that goes back", s, err)
	}
}

func FuzzTrace(f *testing.F) {
	for _, name := range []string{"azure_conv_300.csv", "mooncake_200.jsonl"} {
		b, err := os.ReadFile("testdata/traces/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:2000])
	}
	f.Add([]byte("Timestamp,Model,Request tokens,Response tokens\n1,a,2,3\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "trace")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := OpenTrace(path, TraceOptions{})
		if err != nil {
			return
		}
		var last time.Duration
		for row, err := range trace.Rows() {
			if err == nil && (row.At < last || row.Input < 0 || row.Output < 0) {
				t.Fatalf("row %+v after %v", row, last)
			}
			last = row.At
		}
	})
}
