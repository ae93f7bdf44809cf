package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
	"weir/proxy"
)

// modelText is a load model whose one scenario has that match rule and limit.
func modelText(match, limit string) string {
	return `{"load_model": {"target_qps": 1, "duration_seconds": 1, "scenarios": [
  {"id": "s", "weight": 1, "input_tokens": 9, "output_tokens": 9, "match": "` + match + `", "limit": ` + limit + `}]}}`
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func bookOf(t *testing.T, text string, flags *laneFlags) *rulebook {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.json")
	write(t, file, text)
	m, err := loadmodel.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openRulebook(file, m, flags, &impairFlags{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A stream that is under way when everything changes ends as it would have, and
// is counted where it belongs now.
func TestAStreamOutlivesNewRules(t *testing.T) {
	const first, rest = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	goOn := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		<-goOn
		_, _ = io.WriteString(w, rest)
	}))
	defer endpoint.Close()
	at, err := url.Parse(endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := bookOf(t, modelText("model == 'old'", `{"concurrency": 2}`), &laneFlags{})
	p := &proxy.Proxy{Upstreams: []proxy.Upstream{{URL: at}}, Match: b.match, Shaper: b.shaper}
	h, err := p.Handler()
	if err != nil {
		t.Fatal(err)
	}
	weir := httptest.NewServer(h)
	defer weir.Close()
	defer p.Close()

	ask := func(model string) *http.Response {
		resp, err := http.Post(weir.URL+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := ask("old")
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	begun := make([]byte, len(first))
	if _, err := io.ReadFull(body, begun); err != nil {
		t.Fatal(err)
	}
	inFlight := func() map[string]int {
		got := map[string]int{}
		for _, l := range b.shaper.Lanes() {
			if l.Limit != "" {
				got[l.Name+" "+l.Limit] = l.InFlight
			}
		}
		return got
	}
	if diff := cmp.Diff(map[string]int{"scenario=s concurrency=2": 1}, inFlight()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	write(t, b.file, strings.Replace(modelText("model == 'new'", `{"concurrency": 1}`), `"target_qps"`, `"limit": {"rps": 100}, "target_qps"`, 1))
	var said bytes.Buffer
	(&app{stdio: stdio{err: &said}}).reread(b)
	if want := "load model " + b.file + " was read again: all rps=100; scenario=s concurrency=1\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	if diff := cmp.Diff(map[string]int{"scenario=s concurrency=1": 1, "all rps=100": 1}, inFlight()); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	if _, ok := b.match(loadmodel.Facts{Model: "old"}); ok {
		t.Error("the old match rule holds on")
	}
	if scenario, _ := b.match(loadmodel.Facts{Model: "new"}); scenario != "s" {
		t.Errorf("by the new match rule it is %q", scenario)
	}
	close(goOn)
	ended, err := io.ReadAll(body)
	if err != nil || string(begun)+string(ended) != first+rest {
		t.Errorf("the stream was %q%q, %v", begun, ended, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"scenario=s concurrency=1": 0, "all rps=100": 0}, inFlight()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

func TestFlagsSetTheirPartsOverTheModels(t *testing.T) {
	for _, row := range []struct {
		sentence string
		flags    laneFlags
		want     []string
	}{
		{"no flags → the model's", laneFlags{}, []string{"all rps=5 wait=20s", "scenario=s rpm=90.5 concurrency=2"}},
		{"short flags are of all calls", laneFlags{rpm: "70", tpm: "1000", concurrency: "adaptive"}, []string{"all rpm=70 tpm=1000 concurrency=adaptive wait=20s", "scenario=s rpm=90.5 concurrency=2"}},
		{"a part is taken away", laneFlags{rps: "off"}, []string{"all wait=20s", "scenario=s rpm=90.5 concurrency=2"}},
		{"all parts are: the lane is gone", laneFlags{rules: ruleTexts{texts: []string{"rps=off wait=off", "scenario=s rps=off concurrency=off"}}}, []string{}},
		{"the later flag counts, and other lanes come behind", laneFlags{rps: "1", rules: ruleTexts{texts: []string{"all rps=2", "key=each rps=3", "scenario=s rps=4"}}},
			[]string{"all rps=2 wait=20s", "scenario=s rps=4 concurrency=2", "key=each rps=3"}},
		{"another spelling of the same selector is the same lane", laneFlags{rules: ruleTexts{texts: []string{"key=each scenario=s rps=1", "scenario=s key=each burst=2"}}},
			[]string{"all rps=5 wait=20s", "scenario=s rpm=90.5 concurrency=2", "scenario=s key=each rps=1 burst=2"}},
	} {
		text := strings.Replace(modelText("turns > 1", `{"rpm": 90.5, "concurrency": 2}`), `"target_qps"`, `"limit": {"rps": 5, "wait": "20s"}, "target_qps"`, 1)
		b := bookOf(t, text, &row.flags)
		if diff := cmp.Diff(row.want, ruleLines(b.shaper.Rules())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
		// What is changed is taken back to just that.
		if _, _, err := b.change("scenario=s priority=low rps=8"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.change("rps=off wait=off"); err != nil {
			t.Fatal(err)
		}
		if err := b.reset(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, ruleLines(b.shaper.Rules())); diff != "" {
			t.Errorf("%s, after reset (-want +got):\n%s", row.sentence, diff)
		}
	}
}

func TestAFileIsToldFromWhatItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.json")
	missing := stampOf(file)
	write(t, file, "one")
	one := stampOf(file)
	if !one.same(stampOf(file)) || !missing.same(stampOf(file+"x")) || missing.same(one) || one.same(missing) {
		t.Error("what did not change is not the same, or what came or went is")
	}
	write(t, file, "longer")
	if one.same(stampOf(file)) {
		t.Error("a longer file is the same")
	}
	// Replaced by rename, with the same size and time.
	now := time.Now()
	write(t, file, "abc")
	write(t, file+".new", "xyz")
	for _, f := range []string{file, file + ".new"} {
		if err := os.Chtimes(f, now, now); err != nil {
			t.Fatal(err)
		}
	}
	before := stampOf(file)
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if before.same(stampOf(file)) {
		t.Error("another file in its place is the same")
	}
	touched := stampOf(file)
	if err := os.Chtimes(file, now, now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if touched.same(stampOf(file)) {
		t.Error("a touched file is the same")
	}
}
