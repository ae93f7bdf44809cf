package generator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/google/go-cmp/cmp"

	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy/wire"
)

// written writes a plan as a dataset file.
func writtenFile(t testing.TB, p *Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDataset(t.Context(), &b, p); err != nil {
		t.Fatal(err)
	}
	return file(t, "written.jsonl", b.String())
}

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path string, o DatasetOptions) *Dataset {
	t.Helper()
	d, err := OpenDataset(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// simulated plays a plan against the simulated endpoint, and gives the hash of
// each request that it recorded, by scenario and turn.
func simulated(t *testing.T, p *Plan) map[string]int {
	t.Helper()
	var mu sync.Mutex
	hashes := map[string]int{}
	bodies := map[string]string{}
	s, err := sim.New(sim.Config{Seed: 1, Engine: sim.EngineConfig{Slots: 256, Step: 100 * time.Microsecond, PerToken: 1, Chunk: 1 << 20, TokensPerStep: 64, KVTokens: 1 << 30},
		Log: func(r *sim.Record) {
			mu.Lock()
			defer mu.Unlock()
			hashes[bodies[r.Correlation]]++
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said := body
		if r.Header.Get("X-Weir-Turn") > "1" {
			said = withoutAnswers(r.URL.Path, body)
		}
		sum := sha256.Sum256(said)
		mu.Lock()
		n++
		id := fmt.Sprint(n)
		bodies[id] = r.Header.Get("X-Weir-Scenario") + " " + r.Header.Get("X-Weir-Turn") + " " + r.URL.Path + " " + hex.EncodeToString(sum[:8])
		mu.Unlock()
		r.Header.Set(sim.CorrelationHeader, id)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	run := &Run{Plan: p, Target: Target{BaseURL: server.URL}, Tracer: sdktrace.NewTracerProvider().Tracer("test")}
	result := do(t, run)
	if result.NotSent > 0 {
		t.Fatalf("%d of %d requests were not sent", result.NotSent, result.Planned)
	}
	server.Close()
	mu.Lock()
	defer mu.Unlock()
	return hashes
}

// withoutAnswers takes the words of the model out of a request: the simulated
// endpoint draws them anew for each, though never more or fewer of them.
func withoutAnswers(path string, body []byte) []byte {
	var r wire.Request
	f := wire.For(wire.Find("POST", path).API)
	if f.ParseRequest(&r, body) != nil {
		return body
	}
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Role == wire.Assistant {
			m.Parts = slices.DeleteFunc(m.Parts, func(p wire.Part) bool { return p.Kind == wire.KindText })
		}
	}
	text, _ := json.Marshal(r)
	return text
}

const everyKind = `{"load_model": {"name": "m", "seed": 3, "warm_up_seconds": 0.2, "extra_body": {"temperature": 0.5}, "scenarios": [
  {"id": "chat", "weight": 0.3, "input_tokens": {"min": 30, "max": 300}, "output_tokens": {"min": 5, "max": 60}, "model": "gpt-5-mini"},
  {"id": "rag", "weight": 0.2, "input_tokens": {"min": 300, "max": 900}, "output_tokens": {"min": 5, "max": 20}, "api": "responses", "language": "zh"},
  {"id": "agent", "weight": 0.3, "input_tokens": {"min": 600, "max": 3000}, "output_tokens": {"min": 5, "max": 60}, "turns": {"min": 2, "max": 4}, "api": "messages", "tools": 2, "corpus": "agent"},
  {"id": "old", "weight": 0.1, "input_tokens": {"min": 30, "max": 300}, "output_tokens": {"min": 5, "max": 20}, "api": "completions", "stream": false},
  {"id": "flat", "weight": 0.1, "input_tokens": {"min": 300, "max": 900}, "output_tokens": {"min": 5, "max": 20}, "turns": 3, "session": "flattened", "api": "gemini", "model": "g"}],
  "target_qps": 60, "duration_seconds": 1.5}}`

func TestADatasetSendsWhatItsModelSends(t *testing.T) {
	model := &Plan{Model: decode(t, everyKind), Seed: 3}
	path := writtenFile(t, model)
	want := simulated(t, model)
	got := simulated(t, &Plan{Model: &loadmodel.Model{}, Dataset: opened(t, path, DatasetOptions{}), Seed: 99})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests by hash, of the model and of the dataset:\n%s", diff)
	}
	turns := 0
	for key := range want {
		if strings.HasPrefix(key, "agent 2 ") {
			turns++
		}
	}
	if turns < 5 {
		t.Errorf("only %d second turns were compared", turns)
	}
}

func TestADatasetIsItsModelsPlan(t *testing.T) {
	model := &Plan{Model: decode(t, everyKind), Seed: 3}
	path := writtenFile(t, model)
	d := opened(t, path, DatasetOptions{})
	read := collect(t, &Plan{Model: &loadmodel.Model{}, Dataset: d, Seed: 99})
	planned := collect(t, model)
	for i := range read {
		read[i].Messages = nil
	}
	for i := range planned { // what only the corpus must know
		planned[i].Corpus, planned[i].Language, planned[i].Tools, planned[i].Flattened = "", "", 0, 0
	}
	if diff := cmp.Diff(planned, read); diff != "" {
		t.Error(diff)
	}
	var again bytes.Buffer
	if err := WriteDataset(t.Context(), &again, &Plan{Model: &loadmodel.Model{}, Dataset: d, Seed: 99}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if !bytes.Equal(text, again.Bytes()) {
		t.Error("a dataset that is read and written again is another")
	}
}

// asked gives the bodies that a dataset sends, in order.
func asked(t testing.TB, d *Dataset, m *loadmodel.Model) []string {
	t.Helper()
	p := &Plan{Model: m, Dataset: d, Seed: 1}
	var all []string
	for _, s := range collect(t, p) {
		c, first, err := p.converse(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, first.path+" "+string(first.body))
		for turn := 1; turn < len(s.Turns); turn++ {
			a := &answer{}
			a.text.WriteString("THE ANSWER")
			next, err := c.next(turn, a, wire.Usage{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, next.path+" "+string(next.body))
		}
	}
	return all
}

func TestWhatADatasetsLinesSend(t *testing.T) {
	for _, row := range []struct {
		name    string
		lines   string
		options DatasetOptions
		want    []string
	}{
		{
			"what steers weir never reaches the endpoint; all else does, as it stands",
			`{"scenario_id": "a", "model": "m", "messages": [{"role": "developer", "content": "x"}, {"role":"user","name":"bob","content":"hi"}], "max_tokens": 9, "stream": true, "metadata": {"expected_input_tokens": 5, "mine": 1}, "at_ms": 3, "api": "chat", "top_k": 4, "logit_bias": {"5": -1}}`,
			DatasetOptions{},
			[]string{`/v1/chat/completions {"messages":[{"role": "developer", "content": "x"}, {"role":"user","name":"bob","content":"hi"}],"model":"m","stream":true,"max_tokens":9,"stream_options":{"include_usage":true},"logit_bias":{"5": -1},"top_k":4}`},
		},
		{
			"a line that says nothing of streaming is streamed, one that sets no limit has none",
			`{"messages": [{"role":"user","content":"hi"}]}`,
			DatasetOptions{QPS: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`},
		},
		{
			"the options' model and API go before the file's",
			`{"model": "m", "messages": [{"role":"system","content":"s"},{"role":"user","content":"hi"}], "max_tokens": 9, "stream": false}`,
			DatasetOptions{QPS: 1, Model: "other", API: wire.Messages},
			[]string{`/v1/messages {"model":"other","max_tokens":9,"system":"s","messages":[{"role":"user","content":"hi"}]}`},
		},
		{
			"a session's verbatim turns are sent as they stand, whatever was answered",
			`{"messages": [{"role":"user","content":"hi"}], "session_id": "x", "turn": 1, "stream": false}
			 {"messages": [{"role":"user","content":"hi"},{"role":"assistant","content":"written"},{"role":"user","content":"so"}], "session_id": "x", "turn": 2, "stream": false, "think_ms": 5}`,
			DatasetOptions{QPS: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"user","content":"hi"}]}`,
				`/v1/chat/completions {"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"written"},{"role":"user","content":"so"}]}`},
		},
		{
			"a live session's turns follow the model's real answers",
			`{"messages": [{"role":"user","content":"hi"}], "session_id": "x", "stream": false, "seed": 4}
			 {"messages": [{"role":"user","content":"so"}], "session_id": "x", "stream": false, "metadata": {"history": "live"}}`,
			DatasetOptions{QPS: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"user","content":"hi"}],"seed":4}`,
				`/v1/chat/completions {"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"THE ANSWER"},{"role":"user","content":"so"}],"seed":4}`},
		},
		{
			"the body of a batch line is sent as it stands, but streamed",
			`{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": [{"role":"user","content":"hi"}], "max_completion_tokens": 7, "metadata": {"k": "v"}}}
			 {"custom_id": "2", "method": "POST", "url": "/v1/responses", "body": {"model": "m", "input": "hi", "stream": false, "max_output_tokens": 7}}`,
			DatasetOptions{QPS: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"user","content":"hi"}],"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":7,"metadata":{"k": "v"}}`,
				`/v1/responses {"model":"m","input":"hi","max_output_tokens":7}`},
		},
		{
			"ShareGPT's users say what they said, and hear what is answered now",
			`[{"id": "1", "conversations": [{"from": "gpt", "value": "unasked"}, {"from":"system","value":"be brief"}, {"from":"human","value":"hi"},{"from":"gpt","value":"hello there"},{"from":"human","value":"and?"},{"from":"gpt","value":"no"},{"from":"human","value":"unanswered"}]},
			  {"id": "2", "conversations": []}]`,
			DatasetOptions{QPS: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"stream":true,"max_tokens":2,"stream_options":{"include_usage":true}}`,
				`/v1/chat/completions {"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},{"role":"assistant","content":"THE ANSWER"},{"role":"user","content":"and?"}],"stream":true,"max_tokens":1,"stream_options":{"include_usage":true}}`},
		},
		{
			"ShareGPT as JSON Lines, and a limit",
			"{\"conversations\": [{\"from\":\"user\",\"value\":\"a\"},{\"from\":\"assistant\",\"value\":\"b\"}]}\n{\"conversations\": [{\"from\":\"user\",\"value\":\"c\"},{\"from\":\"assistant\",\"value\":\"d\"}]}\n",
			DatasetOptions{For: time.Minute, Limit: 1},
			[]string{`/v1/chat/completions {"messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":1,"stream_options":{"include_usage":true}}`},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := opened(t, file(t, "set.jsonl", row.lines), row.options)
			if diff := cmp.Diff(row.want, asked(t, d, &loadmodel.Model{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewTimesOfADataset(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"messages": [{"role":"user","content":"hi"}], "session_id": "s%d", "metadata": {"expected_input_tokens": 8}}`+"\n", i/2)
	}
	path := file(t, "set.jsonl", lines.String())
	due := func(o DatasetOptions) []time.Duration {
		var all []time.Duration
		for _, s := range collect(t, &Plan{Model: &loadmodel.Model{}, Dataset: opened(t, path, o), Seed: 1}) {
			all = append(all, s.Due)
		}
		if !slices.IsSorted(all) {
			t.Error("sessions go back in time")
		}
		return all
	}
	if all := due(DatasetOptions{For: time.Minute}); len(all) != 1500 || all[1499] > time.Minute || all[1499] < 59*time.Second || all[750] < 27*time.Second || all[750] > 33*time.Second {
		t.Errorf("all within a minute: %d sessions, the middle one at %s, the last at %s", len(all), all[750], all[len(all)-1])
	}
	// 10 requests a second are 5 sessions of two turns.
	if all := due(DatasetOptions{QPS: 10}); len(all) != 1500 || all[1499] < 270*time.Second || all[1499] > 330*time.Second {
		t.Errorf("at 10 requests a second: %d sessions, the last at %s", len(all), all[len(all)-1])
	}
	if all := due(DatasetOptions{QPS: 10, For: time.Minute}); len(all) < 240 || len(all) > 360 || all[len(all)-1] > time.Minute {
		t.Errorf("at 10 requests a second for a minute: %d sessions, the last at %s", len(all), all[len(all)-1])
	}
}

func TestTheFilesOwnTimes(t *testing.T) {
	path := file(t, "set.jsonl", `{"messages": [{"role":"user","content":"a"}], "at_ms": 1000, "session_id": 7}
{"messages": [{"role":"user","content":"a"}], "session_id": 7, "think_ms": 2500.5}
{"messages": [{"role":"user","content":"a"}], "at_ms": 400}
{"messages": [{"role":"user","content":"a"}], "at_ms": 3000.000001}
{"messages": [{"role":"user","content":"a"}], "at_ms": 4000, "session_id": 7, "turn": 3}
`)
	d := opened(t, path, DatasetOptions{Speed: 2})
	type when struct {
		Due, Think time.Duration
		Before     int
	}
	var got []when
	for _, s := range collect(t, &Plan{Model: &loadmodel.Model{}, Dataset: d}) {
		got = append(got, when{s.Due, s.Turns[len(s.Turns)-1].Think, s.Before})
	}
	want := []when{{500 * time.Millisecond, 1250250 * time.Microsecond, 0}, {500 * time.Millisecond, 0, 0}, {1500 * time.Millisecond, 0, 0}, {2 * time.Second, 0, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "of 4 sessions, 1 goes back in time") {
		t.Errorf("notes: %q", d.Notes)
	}
}

func TestATracesDatasetIsItsPlan(t *testing.T) {
	path := file(t, "trace.jsonl", `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0, "input_length": 40, "output_length": 9, "type": "text", "turn": 1, "hash_ids": [1, 2, 3]}
{"chat_id": 2, "parent_chat_id": -1, "timestamp": 1, "input_length": 30, "output_length": 9, "type": "text", "turn": 1, "hash_ids": [4, 5]}
{"chat_id": 3, "parent_chat_id": 1, "timestamp": 2, "input_length": 64, "output_length": 9, "type": "text", "turn": 2, "hash_ids": [1, 2, 3, 6]}
`)
	trace, err := loadmodel.OpenTrace(path, loadmodel.TraceOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	traced := &Plan{Trace: trace, Seed: 1}
	d := opened(t, writtenFile(t, traced), DatasetOptions{})
	type sent struct {
		Session, Scenario string
		Due               time.Duration
		Turn              int
		Body              string
	}
	all := func(p *Plan) (all []sent) {
		for _, s := range collect(t, p) {
			_, first, err := p.converse(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sent{s.ID, s.Scenario, s.Due, s.Before + 1, string(first.body)})
		}
		return all
	}
	want := all(traced)
	if want[2].Session == "" || want[2].Turn != 2 {
		t.Fatalf("the trace has no session with a second turn: %+v", want[2])
	}
	if diff := cmp.Diff(want, all(&Plan{Model: &loadmodel.Model{}, Dataset: d, Seed: 9})); diff != "" {
		t.Error(diff)
	}
}
