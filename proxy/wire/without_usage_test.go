package wire

import (
	"encoding/json"
	"testing"
)

func TestUsageIsTakenOutAndTheRestStays(t *testing.T) {
	for _, row := range []struct {
		api       API
		doc, want string
	}{
		{Chat, `{"id":"1","choices":[{"delta":{"content":"\"usage\":{}"}}],"usage":null}`, `{"id":"1","choices":[{"delta":{"content":"\"usage\":{}"}}]}`},
		{Chat, `{"id":"1","choices":[],"usage":{"prompt_tokens":1}}`, ``},
		{Chat, `{"choices":[],"prompt_filter_results":[]}`, `{"choices":[],"prompt_filter_results":[]}`},
		{Chat, `{"usage": {"a":1} , "choices":[{"index":0,"usage":{"x":1}},{"usage":{"x":2},"index":1}]}`, `{ "choices":[{"index":0},{"index":1}]}`},
		{Chat, `{"choices":[{}],"x_groq":{"id":"r","usage":{"x":1}}}`, `{"choices":[{}],"x_groq":{"id":"r"}}`},
		{Chat, `[DONE]`, `[DONE]`},
		{Responses, `{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":1},"output":[]}}`, `{"type":"response.completed","response":{"id":"r","output":[]}}`},
		{Messages, `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}`, `{"type":"message_start","message":{"id":"m"}}`},
		{Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`},
		{Gemini, `{"candidates":[{}],"usageMetadata":{"promptTokenCount":1},"modelVersion":"g"}`, `{"candidates":[{}],"modelVersion":"g"}`},
		{Gemini, `{"response":{"usageMetadata":{"promptTokenCount":1}}}`, `{"response":{}}`},
		{Messages, `{"usage":{"a`, `{"usage":{"a`},
	} {
		doc := []byte(row.doc)
		got := string(WithoutUsage(row.api, doc))
		if got != row.want {
			t.Errorf("%s %s: %s, want %s", row.api, row.doc, got, row.want)
		}
		if string(doc) != row.doc {
			t.Errorf("%s: the document itself was changed to %s", row.doc, doc)
		}
	}
}

func FuzzWithoutUsage(f *testing.F) {
	f.Add(`{"choices":[{"usage":{"x":1}}],"usage":{"a":[1,2]}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		for api := range usagePlaces {
			rest := WithoutUsage(api, []byte(doc))
			if json.Valid([]byte(doc)) && len(rest) > 0 && !json.Valid(rest) {
				t.Errorf("%s: %s is no JSON without usage: %s", api, doc, rest)
			}
		}
	})
}
