package wire

import "testing"

func TestFindReadsPaths(t *testing.T) {
	for _, row := range []struct {
		line string
		want Route
	}{
		{"POST /v1/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /v1/v1/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST //v1//chat/completions/", Route{API: Chat, Operation: OpChat}},
		{"POST chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /openai/deployments/x/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /models/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /api/paas/v4/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"GET /v1/chat/completions", Route{API: Chat, Operation: OpOther}},
		{"GET /v1/chat/completions/c1", Route{Operation: OpOther}},

		{"POST /v1/completions", Route{API: Completions, Operation: OpTextCompletion}},
		{"POST /openai/deployments/x/completions", Route{API: Completions, Operation: OpTextCompletion}},

		{"POST /v1/responses", Route{API: Responses, Operation: OpChat}},
		{"POST /openai/v1/responses", Route{API: Responses, Operation: OpChat}},
		{"GET /v1/responses", Route{API: Responses, Operation: OpOther}},
		{"GET /v1/responses/r1", Route{Operation: OpOther}},
		{"DELETE /v1/responses/r1", Route{Operation: OpOther}},
		{"POST /v1/responses/r1/cancel", Route{Operation: OpOther}},
		{"GET /v1/responses/r1/input_items", Route{Operation: OpOther}},
		{"POST /v1/responses/input_tokens", Route{API: Responses, Operation: OpCountTokens}},

		{"POST /v1/messages", Route{API: Messages, Operation: OpChat}},
		{"POST /messages", Route{API: Messages, Operation: OpChat}},
		{"POST /v1/v1/messages", Route{API: Messages, Operation: OpChat}},
		{"POST /anthropic/v1/messages", Route{API: Messages, Operation: OpChat}},
		{"POST /v1/messages/count_tokens", Route{API: Messages, Operation: OpCountTokens}},
		{"POST /v1/messages/batches", Route{Operation: OpOther}},
		{"POST /v1/threads/t1/messages", Route{Operation: OpOther}},

		{"POST /v1beta/models/gemini-x:generateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "gemini-x"}},
		{"POST /v1beta/models/gemini-x:streamGenerateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "gemini-x", Stream: true}},
		{"POST /v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "gemini-x", Stream: true}},
		{"POST /v1beta/models/google/gemini-x:generateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "google/gemini-x"}},
		{"POST /v1beta/tunedModels/mine:generateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "mine"}},
		{"POST /v1internal:streamGenerateContent", Route{API: Gemini, Operation: OpGenerateContent, Stream: true}},
		{"POST /s/chat/v1internal:countTokens", Route{API: Gemini, Operation: OpCountTokens}},
		{"POST models/m:generateContent", Route{API: Gemini, Operation: OpGenerateContent, Model: "m"}},
		{"POST /v1internal:loadCodeAssist", Route{Operation: OpOther}},
		{"POST /v1/projects/p/locations/l/endpoints/7:streamGenerateContent", Route{API: Gemini, Operation: OpGenerateContent, Stream: true}},
		{"POST /v1beta/openai/chat/completions", Route{API: Chat, Operation: OpChat}},
		{"POST /v1/responses/compact", Route{Operation: OpOther}},
		{"POST /v1beta/models/gemini-x:countTokens", Route{API: Gemini, Operation: OpCountTokens, Model: "gemini-x"}},
		{"POST /v1beta/models/e:batchEmbedContents", Route{API: Gemini, Operation: OpEmbeddings, Model: "e"}},
		{"POST /v1beta/models/m:predictLongRunning", Route{API: Gemini, Operation: OpOther, Model: "m"}},
		{"POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict", Route{API: Messages, Operation: OpChat, Model: "claude-x", Stream: true}},
		{"POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", Route{API: Messages, Operation: OpCountTokens}},
		{"POST /v1/projects/p/locations/l/publishers/other/models/x:rawPredict", Route{Operation: OpOther}},

		{"POST /v1/embeddings", Route{Operation: OpEmbeddings}},
		{"GET /v1/models", Route{Operation: OpModels}},
		{"HEAD /v1/models", Route{Operation: OpModels}},
		{"GET /v1/models/ft:gpt-x:org::id", Route{Operation: OpModels}},
		{"GET /v1beta/models/gemini-x", Route{Operation: OpModels}},
		{"DELETE /v1/models/gpt-x", Route{Operation: OpOther}},
		{"POST /v1/models", Route{Operation: OpOther}},
		{"POST /v1/batches", Route{Operation: OpOther}},
		{"POST /v1/audio/speech", Route{Operation: OpOther}},
		{"HEAD /", Route{Operation: OpOther}},
		{"HEAD /api/hello", Route{Operation: OpOther}},
		{"GET ", Route{Operation: OpOther}},
	} {
		var method, path string
		for i := range row.line {
			if row.line[i] == ' ' {
				method, path = row.line[:i], row.line[i+1:]
				break
			}
		}
		if got := Find(method, path); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.line, got, row.want)
		}
	}
}

func TestEveryDialectHasItsFormatAndFindsItsOwnPath(t *testing.T) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		f := For(api)
		if f == nil || f.API() != api {
			t.Fatalf("%s: no format", api)
		}
		path := f.Path(&Request{Head: Head{Model: "m"}})
		if r := Find("POST", path); r.API != api || !r.Operation.Generates() {
			t.Errorf("%s: its path %s is read as %+v", api, path, r)
		}
	}
	if f := For("x"); f != nil {
		t.Errorf("a dialect that does not exist has a format: %v", f)
	}
	if p := For(Gemini).Path(&Request{Head: Head{Model: "models/m", Stream: true}}); p != "/v1beta/models/m:streamGenerateContent?alt=sse" {
		t.Errorf("Gemini streams from %s", p)
	}
}

func TestFramingFollowsTheContentType(t *testing.T) {
	for _, row := range []struct {
		contentType string
		stream      bool
		want        Framing
	}{
		{"text/event-stream", false, SSE},
		{"text/event-stream; charset=utf-8", true, SSE},
		{"Text/Event-Stream;charset", true, SSE},
		{"application/json", true, JSONArray},
		{"application/json; charset=UTF-8", true, JSONArray},
		{"application/json", false, Whole},
		{"text/html", true, Whole},
		{"", true, Whole},
	} {
		if got := FramingOf(row.contentType, row.stream); got != row.want {
			t.Errorf("%q, stream %v: framing %d, want %d", row.contentType, row.stream, got, row.want)
		}
	}
}
