package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func textPart(s string) Part { return Part{Kind: KindText, Text: s} }

func TestRequestsAreReadInAllTheirForms(t *testing.T) {
	yes, no := true, false
	for _, row := range []struct {
		name string
		api  API
		body string
		want Request
	}{
		{"chat, all that steers it", Chat, `{"model":"m","stream":true,"max_completion_tokens":5,"temperature":0.5,"top_p":1,"frequency_penalty":0,"presence_penalty":-1,"seed":7,"n":2,"stop":"x","reasoning_effort":"low","service_tier":"flex","user":"u","prompt_cache_key":"k","stream_options":{"include_usage":false},"response_format":{"type":"json_schema"},"messages":[]}`,
			Request{Head: Head{Model: "m", Stream: true, MaxTokens: N(5), Temperature: F(0.5), TopP: F(1), FrequencyPenalty: F(0), PresencePenalty: F(-1), Seed: N(7), Choices: N(2), Stop: []string{"x"}, ReasoningLevel: "low", ServiceTier: "flex", User: "u", PromptCacheKey: "k", IncludeUsage: &no, OutputType: "json"}}},
		{"chat, messages of all roles", Chat, `{"messages":[{"role":"developer","content":"a"},{"role":"system","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"},{"type":"image_url","image_url":{"url":"data:,"}}]},{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"t1","content":"ok"},{"role":"assistant","content":"d","refusal":"no","tool_calls":null}],"tools":[{"type":"function","function":{"name":"f","description":"does","parameters":{"type":"object"}}}]}`,
			Request{Head: Head{MessageCount: 6, TurnCount: 1, ToolCount: 1}, System: "a\nb", Messages: []Message{
				{User, []Part{textPart("c"), {Kind: KindOther, Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"data:,"}}`)}}},
				{Assistant, []Part{{Kind: KindReasoning, Text: "hm"}, {Kind: KindTool, ID: "t1", Name: "f", Arguments: `{"a":1}`}}},
				{ToolRole, []Part{{Kind: KindToolResult, ID: "t1", Text: "ok"}}},
				{Assistant, []Part{textPart("d"), {Kind: KindRefusal, Text: "no"}}},
			}, Tools: []Tool{{"f", "does", json.RawMessage(`{"type":"object"}`)}}}},
		{"nulls where lists are promised", Chat, `{"model":null,"messages":null,"tools":null,"stop":null,"stream":null,"stream_options":null}`, Request{}},
		{"fields of other types", Chat, `{"model":1,"messages":"x","max_tokens":"5","stream":"true","stop":[1,"a"],"tools":{},"temperature":null}`, Request{Head: Head{Stop: []string{"", "a"}}}},
		{"legacy prompt", Completions, `{"model":"m","prompt":"a","max_tokens":3,"stream_options":{"include_usage":true}}`,
			Request{Head: Head{Model: "m", MaxTokens: N(3), IncludeUsage: &yes, MessageCount: 1, TurnCount: 1}, Messages: []Message{{User, []Part{textPart("a")}}}}},
		{"legacy prompts", Completions, `{"prompt":["a","b"]}`,
			Request{Head: Head{MessageCount: 1, TurnCount: 1}, Messages: []Message{{User, []Part{textPart("a\nb")}}}}},
		{"responses, input a string", Responses, `{"model":"m","input":"a","instructions":"s","max_output_tokens":9,"previous_response_id":"r0","reasoning":{"effort":"high"},"text":{"format":{"type":"text"}}}`,
			Request{Head: Head{Model: "m", MaxTokens: N(9), PreviousResponse: "r0", ReasoningLevel: "high", OutputType: "text", MessageCount: 1, TurnCount: 1}, System: "s", Messages: []Message{{User, []Part{textPart("a")}}}}},
		{"responses, items", Responses, `{"input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"x"}]},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"t1","output":"ok"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}],"tools":[{"type":"function","name":"f","parameters":{}}]}`,
			Request{Head: Head{MessageCount: 6, TurnCount: 1, ToolCount: 1}, System: "d", Messages: []Message{
				{User, []Part{textPart("a"), {Kind: KindOther, Raw: json.RawMessage(`{"type":"input_image","image_url":"x"}`)}}},
				{Assistant, []Part{{Kind: KindReasoning, Text: "hm"}, {Kind: KindTool, ID: "t1", Name: "f", Arguments: "{}"}}},
				{ToolRole, []Part{{Kind: KindToolResult, ID: "t1", Text: "ok"}}},
				{Assistant, []Part{textPart("b")}},
			}, Tools: []Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}}}},
		{"messages, system as blocks, results of tools", Messages, `{"model":"c","max_tokens":100,"stream":true,"metadata":{"user_id":"{\"session_id\":\"s\"}"},"output_config":{"effort":"low"},"stop_sequences":["x"],"top_k":40,"system":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"ok"}]},{"type":"text","text":"go on"}]},{"role":"user","content":[{"type":"image","source":{}}]}],"tools":[{"name":"f","description":"does","input_schema":{"type":"object"}}]}`,
			Request{Head: Head{Model: "c", MaxTokens: N(100), Stream: true, User: `{"session_id":"s"}`, ReasoningLevel: "low", Stop: []string{"x"}, TopK: F(40), MessageCount: 4, TurnCount: 2, ToolCount: 1}, System: "a\nb", Messages: []Message{
				{User, []Part{textPart("c")}},
				{Assistant, []Part{{Kind: KindReasoning, Text: "hm"}, {Kind: KindTool, ID: "t1", Name: "f", Arguments: `{"a":1}`}}},
				{ToolRole, []Part{{Kind: KindToolResult, ID: "t1", Text: "ok"}, textPart("go on")}},
				{User, []Part{{Kind: KindOther, Raw: json.RawMessage(`{"type":"image","source":{}}`)}}},
			}, Tools: []Tool{{"f", "does", json.RawMessage(`{"type":"object"}`)}}}},
		{"messages, a system message as Claude Code sends it", Messages, `{"system":"a","messages":[{"role":"system","content":"b"},{"role":"user","content":"c"}]}`,
			Request{Head: Head{MessageCount: 2, TurnCount: 1}, System: "a\nb", Messages: []Message{{User, []Part{textPart("c")}}}}},
		{"messages that go on from an answer", Messages, `{"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":"c"}]}`,
			Request{Head: Head{PreviousResponse: "msg_1", MessageCount: 1, TurnCount: 1}, Messages: []Message{{User, []Part{textPart("c")}}}}},
		{"gemini", Gemini, `{"systemInstruction":{"parts":[{"text":"a"}]},"contents":[{"role":"user","parts":[{"text":"b"},{"inlineData":{}}]},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"ok"}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{}},{"name":"g"}]},{"googleSearch":{}}],"generationConfig":{"maxOutputTokens":9,"temperature":1,"topP":0.9,"topK":40,"candidateCount":1,"seed":3,"stopSequences":["x"],"thinkingConfig":{"thinkingLevel":"LOW"},"responseMimeType":"application/json"}}`,
			Request{Head: Head{MaxTokens: N(9), Temperature: F(1), TopP: F(0.9), TopK: F(40), Choices: N(1), Seed: N(3), Stop: []string{"x"}, ReasoningLevel: "low", OutputType: "json", MessageCount: 3, TurnCount: 1, ToolCount: 2}, System: "a", Messages: []Message{
				{User, []Part{textPart("b"), {Kind: KindOther, Raw: json.RawMessage(`{"inlineData":{}}`)}}},
				{Assistant, []Part{{Kind: KindReasoning, Text: "hm"}, {Kind: KindTool, Name: "f", Arguments: `{"a":1}`}}},
				{ToolRole, []Part{{Kind: KindToolResult, Name: "f", Text: "ok"}}},
			}, Tools: []Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}, {Name: "g"}}}},
		{"gemini as Code Assist wraps it", Gemini, `{"model":"g","project":"p","request":{"contents":[{"role":"user","parts":[{"text":"a"}]}]}}`,
			Request{Head: Head{Model: "g", MessageCount: 1, TurnCount: 1}, Messages: []Message{{User, []Part{textPart("a")}}}}},
	} {
		var got Request
		if err := For(row.api).ParseRequest(&got, []byte(row.body)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
		var head Head
		if err := For(row.api).ParseHead(&head, []byte(row.body)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if diff := cmp.Diff(row.want.Head, head); diff != "" {
			t.Errorf("%s, the head alone:\n%s", row.name, diff)
		}
	}
}

func TestRequestsThatCannotBeReadAreErrors(t *testing.T) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		for body, want := range map[string]string{
			``:                        "read request: it is empty",
			`[]`:                      "read request: want a JSON object, and it begins with '['",
			`{"model":"m","messages"`: "read request: it is not JSON: broken at byte 23 of 23",
			`{"model":"m"`:            "read request: it is not JSON: broken at byte 12 of 12",
			`{"model":tru}`:           "read request: it is not JSON: broken at byte 9 of 13",
		} {
			var r Request
			if err := For(api).ParseRequest(&r, []byte(body)); err == nil || err.Error() != want {
				t.Errorf("%s: %s: %v; want %s", api, body, err, want)
			}
		}
		var r Request
		if err := For(api).ParseRequest(&r, []byte(`{"x":"`+"\x01"+`"}`)); err == nil || !strings.HasPrefix(err.Error(), "read request: it is not JSON: invalid character") {
			t.Errorf("%s: a control character in a string: %v", api, err)
		}
		deep := `{"messages":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}"
		if err := For(api).ParseRequest(&r, []byte(deep)); err == nil {
			t.Errorf("%s: a million lists in each other were read", api)
		}
		var h Head
		if err := For(api).ParseHead(&h, []byte(`{"model":"m","n":2,"messages":[{"role":"user","content":"cut at the limit`)); err == nil {
			t.Errorf("%s: a body that breaks off has no error", api)
		}
		if api != Gemini && h.Model != "m" {
			t.Errorf("%s: what stood before the break is lost: %+v", api, h)
		}
	}
}

// someRequest makes a request that its dialect can say.
func someRequest(rng *rand.Rand, api API) Request {
	word := func() string {
		return []string{"a", "你好", "\"q\"\n\t\\", "🌊 x", "</script> & co", "\x01\x7f", strings.Repeat("long ", 100)}[rng.IntN(7)]
	}
	maybe := func() bool { return rng.IntN(2) == 0 }
	object := func() string {
		b, _ := json.Marshal(map[string]string{"a": word()})
		return string(b)
	}
	r := Request{Head: Head{Model: "m", Stream: maybe()}}
	if api == Gemini { // they stand in the path
		r.Model, r.Stream = "", false
	}
	if maybe() {
		r.MaxTokens, r.Temperature, r.TopP = N(rng.Int64N(1000)), F(rng.Float64()), F(float64(rng.IntN(2)))
	}
	if maybe() {
		r.Stop = []string{word(), word()}
		r.ReasoningLevel = []string{"low", "high"}[rng.IntN(2)]
	}
	if api != Messages && maybe() {
		r.OutputType, r.Seed, r.Choices = []string{"text", "json"}[rng.IntN(2)], N(rng.Int64N(100)), N(2)
	}
	if (api == Chat || api == Completions) && maybe() {
		ask := maybe()
		r.IncludeUsage = &ask
	}
	if api != Gemini && maybe() {
		r.User, r.ServiceTier = word(), "flex"
	}
	if api == Completions {
		r.Messages = []Message{{User, []Part{textPart(word())}}}
		r.MessageCount, r.TurnCount = 1, 1
		return r
	}
	if maybe() {
		r.System = word()
	}
	for i := range rng.IntN(3) {
		r.Tools = append(r.Tools, Tool{Name: fmt.Sprint("f", i), Description: word(), Parameters: json.RawMessage(object())})
		r.ToolCount++
	}
	for i := range rng.IntN(4) + 1 {
		r.Messages = append(r.Messages, Message{User, []Part{textPart(word())}})
		answer := Message{Role: Assistant}
		if maybe() {
			answer.Parts = append(answer.Parts, Part{Kind: KindReasoning, Text: word()})
		}
		if maybe() {
			answer.Parts = append(answer.Parts, textPart(word()))
		}
		call := Part{Kind: KindTool, ID: fmt.Sprint("t", i), Name: "f0", Arguments: object()}
		answer.Parts = append(answer.Parts, call)
		result := Part{Kind: KindToolResult, ID: call.ID, Text: word()}
		if api == Gemini {
			result.Name = "f0"
		}
		r.Messages = append(r.Messages, answer, Message{ToolRole, []Part{result}})
	}
	r.TurnCount = len(r.Messages) / 3
	// What the API lists: the messages, a system message, the items of one.
	switch api {
	case Responses:
		for _, m := range r.Messages {
			r.MessageCount += len(m.Parts)
		}
	case Chat:
		r.MessageCount = len(r.Messages)
		if r.System != "" {
			r.MessageCount++
		}
	default:
		r.MessageCount = len(r.Messages)
	}
	return r
}

func TestRequestSurvivesWritingAndReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			r := someRequest(rng, api)
			body, err := For(api).AppendRequest(nil, &r)
			if err != nil {
				t.Fatalf("%s: %v", api, err)
			}
			if !json.Valid(body) {
				t.Fatalf("%s: wrote what is not JSON: %s", api, body)
			}
			again, _ := For(api).AppendRequest(nil, &r)
			if !bytes.Equal(body, again) {
				t.Fatalf("%s: the same request gave other bytes:\n%s\n%s", api, body, again)
			}
			var got Request
			if err := For(api).ParseRequest(&got, body); err != nil {
				t.Fatalf("%s: %v: %s", api, err, body)
			}
			if diff := cmp.Diff(r, got); diff != "" {
				t.Fatalf("%s: written as %s\n%s", api, body, diff)
			}
		}
	}
}

// What was read is the caller's: the body's memory may be used again.
func TestNothingReadFromABodyAliasesIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 100 {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			r := someRequest(rng, api)
			body, err := For(api).AppendRequest(nil, &r)
			if err != nil {
				t.Fatal(err)
			}
			var got Request
			if err := For(api).ParseRequest(&got, body); err != nil {
				t.Fatal(err)
			}
			clear(body)
			if diff := cmp.Diff(r, got); diff != "" {
				t.Fatalf("%s, a request:\n%s", api, diff)
			}
			a := someAnswer(rng, api, func() string { return string(oddWords[rng.IntN(len(oddWords))]) })
			body = For(api).AppendAnswer(nil, &a)
			var answer Answer
			if err := For(api).ParseAnswer(&answer, body); err != nil {
				t.Fatal(err)
			}
			clear(body)
			if diff := cmp.Diff(a, answer, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s, an answer:\n%s", api, diff)
			}
			body = []byte(`{"error":{"type":"t","code":"c","message":"m"}}`)
			e, _ := For(api).ParseError(body)
			clear(body)
			if e != (Error{Type: "t", Code: "c", Message: "m"}) {
				t.Fatalf("%s, an error: %+v", api, e)
			}
		}
	}
	for _, row := range []struct{ body, want string }{
		{`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{"n":1}}}]}]}`, `{"n":1}`},
	} {
		body := []byte(row.body)
		var r Request
		if err := For(Gemini).ParseRequest(&r, body); err != nil {
			t.Fatal(err)
		}
		clear(body)
		if got := r.Messages[0].Parts[0].Text; got != row.want {
			t.Errorf("a result that is an object: %q", got)
		}
	}
}

func TestExtraStandsOverWhatAnAPIWouldSay(t *testing.T) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		r := Request{Head: Head{Model: "m", Temperature: F(1)}, Messages: []Message{{User, []Part{textPart("a")}}},
			Extra: map[string]json.RawMessage{"zeta": json.RawMessage(`[1]`), "alpha": json.RawMessage(`{"b":null}`), "model": json.RawMessage(`"other"`)}}
		body, err := For(api).AppendRequest([]byte("before"), &r)
		if err != nil {
			t.Fatal(err)
		}
		rest, ok := bytes.CutPrefix(body, []byte("before"))
		if !ok {
			t.Fatalf("%s: did not append: %s", api, body)
		}
		doc := parse(rest)
		if doc.Get("zeta").Raw != "[1]" || doc.Get("alpha").Raw != `{"b":null}` || doc.Get("model").Str != "other" || strings.Count(string(rest), `"model"`) != 1 {
			t.Errorf("%s: %s", api, rest)
		}
		r.Extra["alpha"] = json.RawMessage(`{`)
		if _, err := For(api).AppendRequest(nil, &r); err == nil {
			t.Errorf("%s: an extra field that is not JSON was written", api)
		}
	}
}

func TestTheLimitHasTheNameThatTheModelKnows(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o": "max_tokens", "gpt-oss-120b": "max_tokens", "gpt-5-mini": "max_completion_tokens", "openai/gpt-5.2": "max_completion_tokens",
		"o3": "max_completion_tokens", "o4-mini": "max_completion_tokens", "olmo-2": "max_tokens", "deepseek-chat": "max_tokens", "": "max_tokens",
		"org/o1": "max_completion_tokens", "o": "max_tokens", "gpt-": "max_tokens", "qwen3": "max_tokens",
	} {
		body, err := For(Chat).AppendRequest(nil, &Request{Head: Head{Model: model, MaxTokens: N(5)}})
		if err != nil || parse(body).Get(want).Int() != 5 {
			t.Errorf("%q: want %s: %s, %v", model, want, body, err)
		}
	}
}

// Any body is read without a panic; the head is the same alone, and what was
// understood is the same once it was written again.
func FuzzParseRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		r := someRequest(rng, api)
		body, err := For(api).AppendRequest(nil, &r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, uint8(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		format := For([]API{Chat, Completions, Responses, Messages, Gemini}[kind%5])
		var r Request
		if err := format.ParseRequest(&r, body); err != nil {
			return
		}
		var h Head
		if err := format.ParseHead(&h, body); err != nil {
			t.Fatalf("the whole was read, the head not: %v", err)
		}
		if diff := cmp.Diff(r.Head, h, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		written, err := format.AppendRequest(nil, &r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var again Request
		if err := format.ParseRequest(&again, written); err != nil {
			t.Fatalf("%s: what was written cannot be read: %v", written, err)
		}
	})
}
