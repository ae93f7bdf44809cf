package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// agentBody is a first request as a coding agent sends it to Anthropic's API:
// 50 KB, most of it the definitions of tools.
func agentBody(tb testing.TB) []byte {
	tb.Helper()
	type object = map[string]any
	prose := "Executes a command in a persistent shell.\n\nUsage:\n- Quote paths that contain spaces: \"like this\".\n- NEVER use it to `cat` files; use the other tool instead.\n"
	var tools []object
	for i := range 12 {
		properties := object{}
		for j := range 6 {
			properties[fmt.Sprintf("parameter_%d", j)] = object{
				"type": "string", "description": "The absolute path to the file, or a \"pattern\" to look for in it",
				"enum": []string{"content", "files_with_matches", "count"}, "minLength": 1,
			}
		}
		properties["edits"] = object{"type": "array", "minItems": 1, "items": object{"type": "object", "additionalProperties": false,
			"required": []string{"old", "new"}, "properties": object{"old": object{"type": "string"}, "new": object{"type": "string", "default": nil}}}}
		tools = append(tools, object{
			"name": fmt.Sprintf("Tool%d", i), "description": strings.Repeat(prose, 7),
			"input_schema": object{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, "required": []string{"edits"}, "additionalProperties": false},
		})
	}
	text := func(s string) object { return object{"type": "text", "text": s} }
	cached := text(strings.Repeat("You help users with software engineering tasks.\nIMPORTANT: be \"exact\".\n", 90))
	cached["cache_control"] = object{"type": "ephemeral"}
	body, err := json.Marshal(object{
		"model": "claude", "stream": true, "max_tokens": 32000,
		"system": []object{text("x-header: cc;"), text("You are an agent."), cached},
		"messages": []object{
			{"role": "system", "content": strings.Repeat("# Environment\n- Platform: linux\n", 60)},
			{"role": "user", "content": []object{text(strings.Repeat("<system-reminder>\nAs you answer, you can use this context:\n", 100)), text("Mend the test.")}},
			{"role": "assistant", "content": []object{{"type": "tool_use", "id": "toolu_1", "name": "Tool1", "input": object{"command": "cat main.go"}}}},
			{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "toolu_1", "content": strings.Repeat("func main() {\n\tfmt.Println(\"hello\")\n}\n", 20)}}},
		},
		"tools": tools,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func BenchmarkReadShape(b *testing.B) {
	run := func(name string, api API, body []byte) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadShape(api, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("agent/50KB", Messages, agentBody(b))
	for _, api := range []API{Chat, Responses, Messages, Gemini} {
		run(string(api)+"/1MB", api, longBody(b, api, 1<<20))
	}
	run("messages/8MB", Messages, longBody(b, Messages, 8<<20))
}
