package generator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/generator/corpus"
	"weir/generator/loadmodel"
	"weir/generator/sim"
	"weir/proxy/wire"
)

func openTrace(t *testing.T, path string, o loadmodel.TraceOptions) *loadmodel.Trace {
	t.Helper()
	trace, err := loadmodel.OpenTrace(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func traceFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// prefixCache is a simulated endpoint that reads prompts in no time, and holds
// all that it has read.
func prefixCache(t *testing.T) string {
	t.Helper()
	s, err := sim.New(sim.Config{Engine: sim.EngineConfig{Slots: 4, Step: time.Microsecond, Chunk: 1 << 20, TokensPerStep: 4, KVTokens: 1 << 22, CacheTokens: 1 << 24}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.Close(); s.Close() })
	return server.URL
}

// ask sends a session's first prompt, and gives how many tokens it had and how
// many of them the endpoint's prefix cache held.
func ask(t *testing.T, base string, p *Plan, s Session) (input, cached int) {
	t.Helper()
	s.Stream, s.Turns = false, s.Turns[:1]
	s.Turns[0].Output = 1
	_, first, err := p.converse(s)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(base+first.path, "application/json", bytes.NewReader(first.body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
	return answer.Usage.Prompt, answer.Usage.Details.Cached
}

// known is how many tokens a session's prompt has in common with the beginning
// of one before.
func known(before []Session, s *Session) int {
	most := 0
	for _, b := range before {
		n := 0
		for n < min(len(b.Blocks), len(s.Blocks)) && b.Blocks[n] == s.Blocks[n] {
			n++
		}
		most = max(most, min(n*s.BlockTokens, b.Turns[0].Input, s.Turns[0].Input))
	}
	return most
}

// The simulator's prefix cache hits what the trace says was shared. It knows
// prompts by stretches of 256 bytes, some 64 tokens, and says a share of the
// bytes: hence the tolerance.
func TestPromptsShareWhatTheTraceSays(t *testing.T) {
	for _, row := range []struct {
		name, path string
		limit      int
	}{
		{"Mooncake's blocks of 512", "loadmodel/testdata/traces/mooncake_200.jsonl", 60},
		{"Bailian's blocks of 16", traceFile(t, bailianTalks()), 0},
		{"sessions without ids, whose prompts grow", traceFile(t, growingTalks()), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &Plan{Trace: openTrace(t, row.path, loadmodel.TraceOptions{Limit: row.limit}), Model: &loadmodel.Model{Model: "gpt-4o"}, Seed: 5}
			base := prefixCache(t)
			var before []Session
			hits := 0
			for _, s := range collect(t, p) {
				want := known(before, &s)
				input, cached := ask(t, base, p, s)
				if d := input - s.Turns[0].Input; d < -max(4, input/100) || d > max(4, input/100) {
					t.Errorf("session %d: a prompt of %d tokens, want %d", s.Index, input, s.Turns[0].Input)
				}
				tolerance := 80 + want/20
				if cached < want-tolerance || cached > want+tolerance {
					t.Errorf("session %d: %d of %d tokens were known, want %d", s.Index, cached, input, want)
				}
				if want > 0 {
					hits++
				}
				before = append(before, s)
			}
			if hits < 8 {
				t.Errorf("only %d prompts share anything: the trace shows too little", hits)
			}
		})
	}
}

func bailianTalks() string {
	var b strings.Builder
	for chat := range 30 {
		talk, turn, parent := chat%10, chat/10, chat-10
		if turn == 0 {
			parent = -1
		}
		ids := []int{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20} // of all talks
		for i := range 20 * (turn + 1) {
			ids = append(ids, 1000*(talk+1)+i)
		}
		list, _ := json.Marshal(ids)
		fmt.Fprintf(&b, `{"chat_id": %d, "parent_chat_id": %d, "timestamp": %d.5, "input_length": %d, "output_length": 9, "type": "text", "turn": %d, "hash_ids": %s}`+"\n",
			chat, parent, chat, 16*len(ids)-5, turn+1, list)
	}
	return b.String()
}

func growingTalks() string {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, `{"timestamp": %d, "session_id": "s%d", "input_length": %d, "output_length": 20}`+"\n", 10*i, i%10, 600-100*(i/10))
	}
	return b.String()
}

func TestWithoutIDsNothingIsShared(t *testing.T) {
	p := &Plan{Trace: openTrace(t, "loadmodel/testdata/traces/azure_conv_300.csv", loadmodel.TraceOptions{Limit: 60}), Model: &loadmodel.Model{Model: "gpt-4o"}, Seed: 5}
	base := prefixCache(t)
	for _, s := range collect(t, p) {
		if len(s.Blocks) > 0 {
			t.Fatalf("session %d is made of blocks %v", s.Index, s.Blocks)
		}
		if _, cached := ask(t, base, p, s); cached > 0 {
			t.Errorf("session %d: %d tokens were known", s.Index, cached)
		}
	}
	// Other ids are other texts, in every run.
	trace := openTrace(t, traceFile(t, `{"timestamp": 0, "input_length": 5000, "output_length": 1, "hash_ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}`+"\n"), loadmodel.TraceOptions{})
	for seed := range uint64(3) {
		p := &Plan{Trace: trace, Model: &loadmodel.Model{Model: "gpt-4o"}, Seed: seed}
		for _, s := range collect(t, p) {
			if _, cached := ask(t, base, p, s); cached > 0 {
				t.Errorf("seed %d: %d tokens are those of another run", seed, cached)
			}
			s.Blocks = slices.Clone(s.Blocks)
			for i := range s.Blocks {
				s.Blocks[i] += 1000
			}
			if _, cached := ask(t, base, p, s); cached > 0 {
				t.Errorf("seed %d: %d tokens of other ids are the same", seed, cached)
			}
		}
	}
}

// Blocks set one behind the other count what they count alone, in every
// language, for every kind of text and both tokenizers.
func TestPromptsOfBlocksHitTheirLength(t *testing.T) {
	for _, model := range []string{"gpt-4o", "gpt-4"} {
		tok, _ := corpus.ForModel(model)
		for _, language := range []string{"en", "zh", "mixed"} {
			for _, kind := range []string{"prose", "rag", "agent", "code"} {
				for _, api := range []wire.API{wire.Chat, wire.Completions} {
					s := Session{API: api, Model: model, Corpus: kind, Language: language, BlockTokens: 16, Turns: []Turn{{Input: 1234, Output: 1}}}
					for i := range 70 {
						s.Blocks = append(s.Blocks, int64(i*i))
					}
					c, _, err := (&Plan{Seed: 3}).converse(s)
					if err != nil {
						t.Fatal(err)
					}
					n := tok.Count(c.request.Messages[0].Parts[0].Text)
					if api == wire.Chat {
						n += corpus.TokensPerPrompt + corpus.TokensPerMessage
					}
					if d := n - 1234; d < -12 || d > 12 {
						t.Errorf("%s, %s, %s, %s: %d tokens, want 1234", model, language, kind, api, n)
					}
				}
			}
		}
	}
}

// What is asked of an endpoint first, and sent, is what the rows ask for, where
// nothing else is said.
func TestRowsSayWhatTheyAskFor(t *testing.T) {
	rows := `{"at_ns": 0, "input_tokens": 9, "output_tokens": 1, "model": "a", "api": "messages", "scenario": "x"}
{"at_ns": 1, "input_tokens": 9, "output_tokens": 1, "model": "b", "whole": true, "session": "s", "turn": 4, "then": [{"input_tokens": 30, "output_tokens": 2, "think_ns": 1}]}
{"at_ns": 2, "input_tokens": 9, "output_tokens": 1, "model": "a", "api": "messages", "scenario": "y"}
`
	p := &Plan{Trace: openTrace(t, traceFile(t, rows), loadmodel.TraceOptions{}), Seed: 1}
	if want := []dialect{{wire.Messages, "a", true}, {wire.Chat, "b", false}}; !slices.Equal(want, p.dialects()) {
		t.Errorf("dialects %v, want %v", p.dialects(), want)
	}
	if want := []string{"trace", "x", "y"}; !slices.Equal(want, p.scenarios()) {
		t.Errorf("scenarios %q, want %q", p.scenarios(), want)
	}
	sessions := collect(t, p)
	second := &sessions[1]
	if sessions[0].Scenario != "x" || sessions[0].API != wire.Messages || second.Scenario != "trace" || second.Stream || second.Before != 3 || second.ID != "s" {
		t.Errorf("sessions are %+v", sessions)
	}
	if want := []Turn{{Input: 9, Output: 1}, {Input: 30, Output: 2, Think: leastThink}}; !slices.Equal(want, second.Turns) {
		t.Errorf("turns %+v, want %+v", second.Turns, want)
	}
	p.Model = &loadmodel.Model{Model: "mine", API: wire.Responses}
	if want := []dialect{{wire.Responses, "mine", true}, {wire.Responses, "mine", false}}; !slices.Equal(want, p.dialects()) {
		t.Errorf("dialects %v, want %v", p.dialects(), want)
	}
}
