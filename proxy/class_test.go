package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestCallThatNothingNamesHasAClass(t *testing.T) {
	for _, row := range []struct {
		sentence, request string
		input, output     int // tokens, as the endpoint counts them; 0: not at all
		scenario, from    string
	}{
		{"a short question", `"messages":[{"role":"user","content":"hi"}]`, 9, 120, "short_chat", "automatic"},
		{"with documents", `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]`, 4500, 300, "long_context_rag", "automatic"},
		{"with documents, without a count", `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]`, 0, 0, "long_context_rag", "automatic"},
		{"an image is long in bytes alone", `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]`, 900, 300, "short_chat", "automatic"},
		{"with tools", `"tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"}]`, 50, 5000, "multi_turn_agent", "automatic"},
		{"of several turns", `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"},{"role":"user","content":"e"}]`, 50, 20, "multi_turn_agent", "automatic"},
		{"with a long answer", `"messages":[{"role":"user","content":"a poem"}]`, 9, 2000, "long_output", "automatic"},
		{"max_tokens is no answer", `"max_tokens":32000,"messages":[{"role":"user","content":"a poem"}]`, 9, 30, "short_chat", "automatic"},
		{"not a conversation", `"no":"messages"`, 9, 30, "untagged", "default"},
	} {
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			usage := ""
			if row.input > 0 {
				usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, row.input, row.output)
			}
			fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]%s}`, usage)
		})
		s := start(t, up, nil)
		resp, err := s.client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m",`+row.request+`}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if c := s.call(t, 1); c.Scenario != row.scenario || c.ScenarioFrom != row.from {
			t.Errorf("%s: %q by %q, want %q by %q", row.sentence, c.Scenario, c.ScenarioFrom, row.scenario, row.from)
		}
	}
}

func TestClassGivesWayToEveryName(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {})
	s := start(t, up, nil)
	send := func(path string) {
		resp, err := s.client.Post(s.url+path, "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	send("/v1/chat/completions")
	send("/s/mine/v1/chat/completions")
	s.Tag("ours")
	send("/v1/chat/completions")
	s.call(t, 3)
	for n, want := range []string{"short_chat automatic", "mine path", "ours default"} {
		if c := s.call(t, n+1); c.Scenario+" "+c.ScenarioFrom != want {
			t.Errorf("call %d is %q by %q, want %s", n+1, c.Scenario, c.ScenarioFrom, want)
		}
	}
}
