package loadmodel

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a client's requests are held against: the published windows, read
// without the reader that is tested.
func publishedWindows(t *testing.T, path string) (windows []window, cvs []float64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(b)) {
		var start, rate, cv, shape, scale float64
		var family string
		fields := strings.Split(strings.TrimSpace(text), ",")
		for i, into := range []any{&start, &rate, &cv, &family, &shape, &scale} {
			if i == 3 {
				family = fields[i]
			} else if err := json.Unmarshal([]byte(fields[i]), into); err != nil {
				t.Fatal(err)
			}
		}
		windows = append(windows, window{start, rate, gaps{family, shape}})
		cvs = append(cvs, cv)
	}
	return windows, cvs
}

// meanLength is the mean of a published distribution, a JSON string with a
// Python dict in it.
func meanLength(t *testing.T, path, start, field string) float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]string
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var sum, shares float64
	for pair := range strings.SplitSeq(strings.Trim(all[start][field], "{}"), ", ") {
		key, value, _ := strings.Cut(pair, ": ")
		var tokens, share float64
		if json.Unmarshal([]byte(key), &tokens) != nil || json.Unmarshal([]byte(value), &share) != nil {
			t.Fatalf("%q", pair)
		}
		sum, shares = sum+tokens*share, shares+share
	}
	return sum / shares
}

// checkClient draws the windows of a client that begin in a time, and holds
// counts, gaps and lengths to what was published of them.
func checkClient(t *testing.T, trace string, from, to time.Duration, lengthsOf string) {
	t.Helper()
	windows, cvs := publishedWindows(t, trace)
	opened, err := OpenTrace(trace, TraceOptions{From: from, To: to, Seed: 11})
	if err != nil {
		t.Fatal(err)
	}
	at := map[int][]float64{}
	var in, out, n float64
	for row, err := range opened.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		s := (from + row.At).Seconds()
		at[int(s/600)] = append(at[int(s/600)], s)
		in, out, n = in+float64(row.Input), out+float64(row.Output), n+1
	}
	checked := 0
	for i, w := range windows {
		if w.start < from.Seconds() || w.start >= to.Seconds() {
			continue
		}
		checked++
		got := float64(len(at[i]))
		want := w.rate * 600
		if math.Abs(got-want) > 5*max(cvs[i], 1)*math.Sqrt(want) {
			t.Errorf("window %g: %g requests, want %g", w.start, got, want)
		}
		if want < 1000 {
			continue
		}
		var gaps []float64
		for k := 1; k < len(at[i]); k++ {
			gaps = append(gaps, at[i][k]-at[i][k-1])
		}
		mean, variance := moments(gaps)
		if cv := math.Sqrt(variance) / mean; math.Abs(cv-cvs[i]) > 0.1*cvs[i] {
			t.Errorf("window %g: the CV of its gaps is %.3f, want %.3f", w.start, cv, cvs[i])
		}
	}
	if checked == 0 || n == 0 {
		t.Fatal("no window was checked")
	}
	dataset := strings.TrimSuffix(trace, "-trace.csv") + "-dataset.json"
	for field, got := range map[string]float64{"input_tokens": in / n, "output_tokens": out / n} {
		if want := meanLength(t, dataset, lengthsOf, field); math.Abs(got-want) > 0.03*want {
			t.Errorf("%s are %.1f on average, want %.1f", field, got, want)
		}
	}
}

func TestClientsOfServeGenAreDrawnAsPublished(t *testing.T) {
	checkClient(t, "testdata/traces/servegen/chunk-27-trace.csv", 0, time.Hour, "0")
	checkClient(t, "testdata/traces/servegen/chunk-48-trace.csv", 0, 2*time.Hour, "0")
	root := "../../../shared/traces/servegen"
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the published clients are not beside this checkout: %v", err)
	}
	checkClient(t, root+"/reason/deepseek-r1/chunk-48-trace.csv", 0, 6*time.Hour, "0")
	checkClient(t, root+"/reason/deepseek-r1/chunk-48-trace.csv", 6*time.Hour, 12*time.Hour, "21600")
	checkClient(t, root+"/language/m-small/chunk-27-trace.csv", 86400*time.Second, 88200*time.Second, "86400")
	checkClient(t, root+"/language/m-small/chunk-27-trace.csv", 1_200_000*time.Second, 1_203_000*time.Second, "1188000")
}

// A folder is its clients together, and a window of it is what it would be if
// all before it were drawn too.
func TestFolderOfClients(t *testing.T) {
	read := func(path string, o TraceOptions) []Row {
		trace, err := OpenTrace(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if trace.Format != "servegen" {
			t.Errorf("%s is taken for %s", path, trace.Format)
		}
		return all(t, trace)
	}
	const folder = "testdata/traces/servegen"
	hour := TraceOptions{To: 20 * time.Minute, Seed: 1}
	together := read(folder, hour)
	apart := len(read(filepath.Join(folder, "chunk-27-trace.csv"), hour)) + len(read(filepath.Join(folder, "chunk-48-trace.csv"), hour))
	if len(together) != apart || apart < 100_000 {
		t.Errorf("%d requests together, %d apart", len(together), apart)
	}
	for i := 1; i < len(together); i++ {
		if together[i].At < together[i-1].At {
			t.Fatalf("request %d goes back in time", i)
		}
	}
	late := read(folder, TraceOptions{From: 15 * time.Minute, To: 20 * time.Minute, Seed: 1})
	tail := together[len(together)-len(late):]
	for i := range tail {
		tail[i].At -= 15 * time.Minute
	}
	if !sameRows(tail, late) {
		t.Errorf("the window differs from the same time of the whole (-want +got):\n%.2000s", cmp.Diff(tail, late))
	}
	if sameRows(together, read(folder, TraceOptions{To: 20 * time.Minute, Seed: 2})) {
		t.Error("another seed draws the same")
	}
}

func TestFaultsOfClients(t *testing.T) {
	const good = "0,1,1,Gamma,1,1\n"
	const lengths = `{"0": {"input_tokens": "{50: 0.5, 60: 0.5}", "output_tokens": "{2: 1.0}"}}`
	for _, row := range []struct{ sentence, trace, dataset, want string }{
		{"a window of another family", good + "600,1,1,Pareto,1,1\n", lengths, `chunk-1-trace.csv:2: the family "Pareto" is not known`},
		{"a window without a rate", good + "600,x,1,Gamma,1,1\n", lengths, `the rate "x" is no number`},
		{"a shape of 0", good + "600,1,1,Weibull,0,1\n", lengths, "the shape 0 is no shape of a Weibull distribution"},
		{"windows out of order", good + good, lengths, "the window begins before the one above it"},
		{"columns missing", good + "600,1\n", lengths, "it has 2 columns"},
		{"no lengths beside it", good, "", "chunk-1-dataset.json: no such file"},
		{"lengths that are no dict", good, `{"0": {"input_tokens": "[50]", "output_tokens": "{2: 1.0}"}}`, `window 0: "[50]" is no distribution`},
		{"lengths that are no numbers", good, `{"0": {"input_tokens": "{a: 1}", "output_tokens": "{2: 1.0}"}}`, `"a: 1" is no pair of tokens and their share`},
		{"lengths that are all empty", good, `{"0": {"input_tokens": "{}", "output_tokens": "{}"}}`, "no window says how long requests are"},
		{"no request at all", "0,0,0,,0,0\n", lengths, "has no rows"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "chunk-1-trace.csv")
		if err := os.WriteFile(path, []byte(row.trace), 0o600); err != nil {
			t.Fatal(err)
		}
		if row.dataset != "" {
			if err := os.WriteFile(filepath.Join(dir, "chunk-1-dataset.json"), []byte(row.dataset), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := OpenTrace(path, TraceOptions{})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it to say: %s", row.sentence, err, row.want)
		}
	}
}
