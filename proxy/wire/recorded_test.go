package wire

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Streams in the shapes that providers send: what they say, and at which of
// their events the first token comes.
func TestStreamsOfTheProvidersAreHeard(t *testing.T) {
	for _, row := range []struct {
		file  string
		api   API
		first int // event that is the first token, from 0; -1 for none
		want  said
	}{
		{"chat-openai-tool.sse", Chat, 0, said{ID: "chatcmpl-B1", Model: "gpt-4o-2024-11-20", Tool: "get_weather", Arguments: `{"city":"Köln"}`, Finish: "tool_calls", Terminal: true,
			Usage: Usage{Input: N(81), CacheRead: N(64), Output: N(17), Reasoning: N(0)}}},
		{"chat-deepseek-reasoner.sse", Chat, 1, said{ID: "930c", Model: "deepseek-reasoner", Reasoning: "Hm, 9.11", Text: "9.8 is greater.", Finish: "stop", Terminal: true,
			Usage: Usage{Input: N(16), CacheRead: N(0), Output: N(31), Reasoning: N(23)}}},
		{"chat-gateway-error.sse", Chat, -1, said{ID: "gen-1", Model: "x/y", Errors: 1, Terminal: true}},
		{"completions-vllm.sse", Completions, 0, said{ID: "cmpl-7", Model: "llama-3.3-70b", Text: " Once upon", Finish: "length", Terminal: true,
			Usage: Usage{Input: N(5), Output: N(2)}}},
		{"messages-thinking-tool.sse", Messages, 3, said{ID: "msg_01", Model: "claude-opus-4-1", Reasoning: "I should look.", Text: "Let me see.", Tool: "Bash", Arguments: `{"command": "ls"}`, Finish: "tool_use", Terminal: true,
			Usage: Usage{Fresh: N(4), Input: N(15225), CacheRead: N(15011), CacheWrite: N(210), Output: N(96)}}},
		{"responses-codex-tool.sse", Responses, 4, said{ID: "resp_01", Model: "gpt-5.2-codex", Reasoning: "**Listing**", Tool: "shell", Arguments: `{"command":["ls"]}`, Finish: "completed", Terminal: true,
			Usage: Usage{Input: N(9012), CacheRead: N(8960), Output: N(71), Reasoning: N(40)}}},
		{"gemini-thinking-tool.sse", Gemini, 0, said{ID: "x1u2", Model: "gemini-2.5-pro", Reasoning: "**Planning**", Text: "I will look.", Tool: "list_directory", Arguments: `{"path": "."}`, Finish: "STOP", Terminal: true,
			Usage: Usage{Input: N(812), CacheRead: N(700), Output: N(87), Reasoning: N(68)}}},
	} {
		body, err := os.ReadFile(filepath.Join("testdata", "streams", row.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []int{1, 2, 3, 5, 17, 256, len(body)} {
			if diff := cmp.Diff(row.want, hear(t, For(row.api), SSE, body, step)); diff != "" {
				t.Errorf("%s, %d bytes at a time:\n%s", row.file, step, diff)
				break
			}
		}
		first, n := -1, 0
		var ev Event
		NewSplitter(SSE, 0).Feed(body, func(f Frame) {
			if err := For(row.api).ParseEvent(&ev, f); err != nil {
				t.Errorf("%s: %v", row.file, err)
			}
			if first < 0 && ev.Output() != 0 {
				first = n
			}
			n++
		})
		if first != row.first {
			t.Errorf("%s: the first token is event %d, want %d", row.file, first, row.first)
		}
	}
}
