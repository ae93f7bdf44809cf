package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrorsAreReadWhateverTheirForm(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       Error
		ok         bool
	}{
		{"OpenAI", `{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			Error{Type: "tokens", Code: "rate_limit_exceeded", Message: "Rate limit reached"}, true},
		{"OpenAI without a code", `{"error":{"message":"m","type":"invalid_request_error","param":"x","code":null}}`,
			Error{Type: "invalid_request_error", Message: "m"}, true},
		{"Anthropic", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
			Error{Type: "overloaded_error", Message: "Overloaded"}, true},
		{"Gemini", `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}`,
			Error{Status: 429, Type: "RESOURCE_EXHAUSTED", Message: "Quota"}, true},
		{"Gemini's streams wrap it in an array", "[{\"error\":{\"code\":429,\"message\":\"Quota\",\"status\":\"RESOURCE_EXHAUSTED\"}}\r\n]",
			Error{Status: 429, Type: "RESOURCE_EXHAUSTED", Message: "Quota"}, true},
		{"vLLM, flat", `{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`,
			Error{Status: 400, Type: "BadRequestError", Message: "too long"}, true},
		{"Ollama, a string", `{"error":"model \"x\" not found"}`, Error{Message: `model "x" not found`}, true},
		{"DashScope, flat with a code", `{"code":"InvalidApiKey","message":"Invalid","request_id":"1"}`, Error{Code: "InvalidApiKey", Message: "Invalid"}, true},
		{"FastAPI", `{"detail":"Not Found"}`, Error{Message: "Not Found"}, true},
		{"FastAPI's validation", `{"detail":[{"type":"missing","loc":["body","messages",0],"msg":"Field required","input":{}}]}`,
			Error{Type: "missing", Message: "body.messages.0: Field required"}, true},
		{"white space around it", "\n {\"error\":{\"message\":\"m\"}} \n", Error{Message: "m"}, true},
		{"cut in its middle", `{"error":{"message":"Rate limit reached","type":"tok`, Error{Message: "Rate limit reached"}, true},
		{"error null is none", `{"id":"r1","error":null,"output":[]}`, Error{}, false},
		{"error empty is none", `{"id":"r1","error":"","choices":[]}`, Error{}, false},
		{"an answer is none", `{"id":"c1","choices":[{"message":{"content":"error"}}]}`, Error{}, false},
		{"HTML", `<html><body>502 Bad Gateway</body></html>`, Error{}, false},
		{"nothing", ``, Error{}, false},
		{"a number", `12`, Error{}, false},
		{"an empty array", `[]`, Error{}, false},
	} {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			got, ok := For(api).ParseError([]byte(row.body))
			if diff := cmp.Diff(row.want, got); diff != "" || ok != row.ok {
				t.Errorf("%s asked in %s: ok %v\n%s", row.name, api, ok, diff)
			}
		}
	}
}

func TestErrorsAreWrittenInTheCallersForm(t *testing.T) {
	e := Error{Status: 429, Type: "rate_limit_error", Code: "lane_full", Message: "the lane \"chat\" is full"}
	for api, want := range map[API]string{
		Chat:        `{"error":{"message":"the lane \"chat\" is full","type":"rate_limit_error","param":null,"code":"lane_full"}}`,
		Completions: `{"error":{"message":"the lane \"chat\" is full","type":"rate_limit_error","param":null,"code":"lane_full"}}`,
		Responses:   `{"error":{"message":"the lane \"chat\" is full","type":"rate_limit_error","param":null,"code":"lane_full"}}`,
		Messages:    `{"type":"error","error":{"type":"rate_limit_error","message":"the lane \"chat\" is full"}}`,
		Gemini:      `{"error":{"code":429,"message":"the lane \"chat\" is full","status":"RESOURCE_EXHAUSTED"}}`,
	} {
		got := For(api).AppendError(nil, &e)
		if string(got) != want || !json.Valid(got) {
			t.Errorf("%s: %s\nwant %s", api, got, want)
		}
	}
}

// What stands in a stream where an event should, and says that it failed.
func TestErrorsInsideAStreamAreSeen(t *testing.T) {
	for _, row := range []struct {
		name        string
		api         API
		event, data string
		want        *Error
	}{
		{"null beside a chunk is none", Chat, "", `{"choices":[{"delta":{"content":"a"}}],"error":null}`, nil},
		{"empty beside a chunk is none", Chat, "", `{"choices":[{"delta":{"content":"a"}}],"error":""}`, nil},
		{"vLLM's flat form", Chat, "", `{"object":"error","message":"m","type":"BadRequestError","code":400}`, &Error{Status: 400, Type: "BadRequestError", Message: "m"}},
		{"an event named error", Chat, "error", `{"message":"m","code":"c"}`, &Error{Code: "c", Message: "m"}},
		{"an event named error, legacy", Completions, "error", `{"message":"m"}`, &Error{Message: "m"}},
		{"OpenAI's form in Messages", Messages, "", `{"error":{"message":"m","type":"t"}}`, &Error{Type: "t", Message: "m"}},
		{"OpenAI's form in Responses", Responses, "", `{"error":{"message":"m","type":"t"}}`, &Error{Type: "t", Message: "m"}},
		{"Responses' error, nested", Responses, "error", `{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"m"}}`,
			&Error{Type: "insufficient_quota", Code: "insufficient_quota", Message: "m"}},
		{"Responses' error of a response that went on is none", Responses, "", `{"type":"response.completed","response":{"error":null}}`, nil},
		{"Messages' error without a word", Messages, "error", `{"type":"error"}`, &Error{Message: "the stream broke off with an error event that gives no reason"}},
		{"failed without a reason", Responses, "", `{"type":"response.failed","response":{}}`, &Error{Message: "the response failed without a reason"}},
	} {
		ev := parseOne(t, row.api, row.event, row.data)
		if diff := cmp.Diff(row.want, ev.Err); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
}

func TestEventsThatCannotBeReadAreErrors(t *testing.T) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		for name, row := range map[string]struct {
			frame Frame
			want  string
		}{
			"cut":       {Frame{Data: []byte(`{"type":"x","delta":"ab`)}, "read event: it is not JSON: broken at byte 20 of 23"},
			"trailing":  {Frame{Data: []byte(`{"a":1} {}`)}, "read event: it is not JSON: broken at byte 8 of 10"},
			"no object": {Frame{Data: []byte(`"hello"`)}, `read event: want a JSON object, and it begins with '"'`},
			"no JSON":   {Frame{Data: []byte(`hello`)}, "read event: want a JSON object, and it begins with 'h'"},
			"empty":     {Frame{}, "read event: it is empty"},
			"oversize":  {Frame{Data: []byte(`{"a":1}`), Oversize: true}, "read event: it is longer than what is inspected"},
		} {
			var ev Event
			err := For(api).ParseEvent(&ev, row.frame)
			if err == nil || err.Error() != row.want {
				t.Errorf("%s, %s: %v; want %s", api, name, err, row.want)
			}
		}
	}
}

func TestGeminisErrorsHaveGooglesWords(t *testing.T) {
	for status, want := range map[int]Error{
		400: {Status: 400, Type: "INVALID_ARGUMENT"}, 401: {Status: 401, Type: "UNAUTHENTICATED"}, 403: {Status: 403, Type: "PERMISSION_DENIED"},
		404: {Status: 404, Type: "NOT_FOUND"}, 429: {Status: 429, Type: "RESOURCE_EXHAUSTED"}, 500: {Status: 500, Type: "INTERNAL"},
		503: {Status: 503, Type: "UNAVAILABLE"}, 504: {Status: 504, Type: "DEADLINE_EXCEEDED"}, 529: {Status: 503, Type: "UNAVAILABLE"},
		502: {Status: 502, Type: "upstream_error"}, // Google has no word for it
	} {
		want.Message = "no"
		got, _ := For(Gemini).ParseError(For(Gemini).AppendError(nil, &Error{Status: status, Type: "upstream_error", Message: "no"}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d (-want +got):\n%s", status, diff)
		}
	}
}
