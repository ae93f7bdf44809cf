package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadResponseCreate(t *testing.T) {
	type read struct {
		Head         Head
		Generate, OK bool
	}
	for _, row := range []struct {
		name, msg string
		want      read
	}{
		{"Codex's prewarm", `{"type":"response.create","model":"gpt-5.2-codex","instructions":"You are…","input":[],"tools":[{"type":"function","name":"shell"}],"tool_choice":"auto","reasoning":{"effort":"high"},"store":false,"stream":true,"include":[],"prompt_cache_key":"k","generate":false,"client_metadata":{"x-codex-turn-metadata":"{}"}}`,
			read{Head{Model: "gpt-5.2-codex", ReasoningLevel: "high", PromptCacheKey: "k", ToolCount: 1, Stream: true}, false, true}},
		{"its turn", `{"type":"response.create","model":"m","previous_response_id":"resp_1","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"stream":true}`,
			read{Head{Model: "m", PreviousResponse: "resp_1", MessageCount: 1, TurnCount: 1, Stream: true}, true, true}},
		{"a lane, without the fields of HTTP", `{"type":"response.create","stream_id":"main","model":"m","input":"hi"}`,
			read{Head{Model: "m", MessageCount: 1, TurnCount: 1, Stream: true}, true, true}},
		{"nested", `{"response":{"model":"m","input":"hi","generate":false},"event_id":"e1","type":"response.create"}`,
			read{Head{Model: "m", MessageCount: 1, TurnCount: 1, Stream: true}, false, true}},
		{"nested, told beside it not to generate", `{"type":"response.create","generate":false,"response":{"model":"m"}}`,
			read{Head{Model: "m", Stream: true}, false, true}},
		{"response is no object → the fields beside it", `{"type":"response.create","response":"x","model":"m"}`,
			read{Head{Model: "m", Stream: true}, true, true}},
		{"generate is no truth value → it is unsaid", `{"type":"response.create","generate":"no"}`,
			read{Head{Stream: true}, true, true}},
		{"cut at the limit → what came before", `{"type":"response.create","model":"m","input":[{"role":"user","content":"once upon a`,
			read{Head{Model: "m", MessageCount: 1, TurnCount: 1, Stream: true}, true, true}},
		{"nested and cut", `{"type":"response.create","response":{"model":"m","generate":false,"input":[{"role":"us`,
			read{Head{Model: "m", MessageCount: 1, Stream: true}, false, true}},
		{"another type", `{"type":"response.processed","response_id":"resp_1","model":"m"}`, read{}},
		{"no type", `{"model":"m"}`, read{}},
		{"the type within", `{"response":{"type":"response.create"}}`, read{}},
		{"no object", `["response.create"]`, read{}},
		{"nothing", ``, read{}},
	} {
		got := read{Head: Head{Model: "of before"}}
		got.Generate, got.OK = ReadResponseCreate([]byte(row.msg), &got.Head)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
}

func TestResponseLane(t *testing.T) {
	for msg, want := range map[string]string{
		`{"type":"response.create","stream_id":"main","model":"m"}`:         "main",
		`{"type":"response.create","stream_id":"ma\u0069n"}`:                "main",
		`{"type":"response.create","response":{"stream_id":"a"}}`:           "a",
		`{"type":"response.create","input":[{"stream_id":"a"}]}`:            "",
		`{"type":"response.create","stream_id":null}`:                       "",
		`{"type":"response.create","stream_id":"main","input":"breaks of`:   "main",
		`{"type":"response.create","input":"breaks off before the stream_i`: "",
		`stream_id`: "",
	} {
		if got := ResponseLane([]byte(msg)); got != want {
			t.Errorf("%s: lane %q, want %q", msg, got, want)
		}
	}
}

// What a server sends on a WebSocket has no SSE field with its type.
func TestEventsOfAWebSocket(t *testing.T) {
	type said struct {
		Type, Lane, ID, Text, Tool, Finish string
		Usage                              Usage
		Err                                *Error
		Terminal, Ends, Unknown            bool
	}
	for _, row := range []struct {
		name, msg string
		want      said
	}{
		{"begins", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","error":null}}`,
			said{Type: "response.created", ID: "resp_1"}},
		{"text of a lane", `{"type":"response.output_text.delta","stream_id":"main","delta":"hi"}`,
			said{Type: "response.output_text.delta", Lane: "main", Text: "hi"}},
		{"a call, the type last", `{"item":{"type":"function_call","call_id":"c","name":"shell"},"output_index":1,"type":"response.output_item.added"}`,
			said{Type: "response.output_item.added", Tool: "shell"}},
		{"completed", `{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":9,"output_tokens":2}}}`,
			said{Type: "response.completed", ID: "resp_1", Finish: "completed", Usage: Usage{Input: N(9), Output: N(2)}, Terminal: true, Ends: true}},
		{"completed without output, as a prewarm is", `{"type":"response.completed","response":{"id":"resp_0","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":0}}}`,
			said{Type: "response.completed", ID: "resp_0", Finish: "completed", Usage: Usage{Input: N(9), Output: N(0)}, Terminal: true, Ends: true}},
		{"incomplete", `{"type":"response.incomplete","response":{"id":"resp_1","incomplete_details":{"reason":"max_output_tokens"}}}`,
			said{Type: "response.incomplete", ID: "resp_1", Finish: "max_output_tokens", Terminal: true, Ends: true}},
		{"failed", `{"type":"response.failed","response":{"id":"resp_1","error":{"code":"server_error","message":"Sorry."}}}`,
			said{Type: "response.failed", ID: "resp_1", Finish: "failed", Err: &Error{Code: "server_error", Message: "Sorry."}, Terminal: true, Ends: true}},
		{"refused", `{"type":"error","status":400,"stream_id":"main","error":{"type":"invalid_request_error","code":"previous_response_not_found","message":"Previous response with id 'resp_0' not found.","param":"previous_response_id"}}`,
			said{Type: "error", Lane: "main", Ends: true, Err: &Error{Status: 400, Type: "invalid_request_error", Code: "previous_response_not_found", Message: "Previous response with id 'resp_0' not found."}}},
		{"the connection's age, the status last", `{"type":"error","error":{"type":"invalid_request_error","code":"websocket_connection_limit_reached","message":"60 minutes"},"status":400}`,
			said{Type: "error", Ends: true, Err: &Error{Status: 400, Type: "invalid_request_error", Code: "websocket_connection_limit_reached", Message: "60 minutes"}}},
		{"too many requests, with headers", `{"type":"error","status_code":429,"error":{"type":"usage_limit_reached","message":"Enough."},"headers":{"retry-after":"1"}}`,
			said{Type: "error", Ends: true, Err: &Error{Status: 429, Type: "usage_limit_reached", Message: "Enough."}}},
		{"an error whose fields stand beside its type", `{"type":"error","code":"server_error","message":"Oh.","param":null}`,
			said{Type: "error", Ends: true, Err: &Error{Code: "server_error", Message: "Oh."}}},
		{"an error that says nothing, but its status", `{"type":"error","status":503}`,
			said{Type: "error", Ends: true, Err: &Error{Status: 503}}},
		{"what is not of the API", `{"type":"codex.rate_limits","rate_limits":{"allowed":true}}`,
			said{Type: "codex.rate_limits", Unknown: true}},
	} {
		var ev Event
		if err := For(Responses).ParseEvent(&ev, Frame{Data: []byte(row.msg)}); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		got := said{Type: string(ev.Type), Lane: string(ev.StreamID), ID: string(ev.ID), Text: string(ev.Text), Finish: string(ev.Finish),
			Usage: ev.Usage, Err: ev.Err, Terminal: ev.Terminal, Ends: ev.EndsResponse(), Unknown: ev.Unknown}
		for _, d := range ev.Tools {
			got.Tool += string(d.Name)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
}
