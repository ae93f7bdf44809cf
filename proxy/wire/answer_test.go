package wire

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAnswersAreRead(t *testing.T) {
	for _, row := range []struct {
		name string
		api  API
		body string
		want Answer
	}{
		{"chat", Chat, `{"id":"c1","object":"chat.completion","model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,"reasoning":"hm","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}`,
			Answer{ID: "c1", Model: "m", ServiceTier: "default", SystemFingerprint: "fp", Finish: "stop", Parts: []Part{{Kind: KindReasoning, Text: "hm"}, textPart("a")},
				Usage: Usage{Input: N(3), Output: N(4), CacheRead: N(2), Reasoning: N(1)}}},
		{"chat, tools", Chat, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			Answer{Finish: "tool_calls", Parts: []Part{{Kind: KindTool, ID: "t1", Name: "f", Arguments: "{}"}}}},
		{"chat, a refusal", Chat, `{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`,
			Answer{Finish: "stop", Parts: []Part{{Kind: KindRefusal, Text: "no"}}}},
		{"chat without choices is malformed", Chat, `{"id":"c1","usage":null}`, Answer{ID: "c1", Malformed: true}},
		{"chat with empty choices is malformed", Chat, `{"choices":[]}`, Answer{Malformed: true}},
		{"chat with choices null is malformed", Chat, `{"choices":null}`, Answer{Malformed: true}},
		{"legacy", Completions, `{"id":"c1","choices":[{"text":"a","finish_reason":"length"}]}`, Answer{ID: "c1", Finish: "length", Parts: []Part{textPart("a")}}},
		{"legacy without choices is malformed", Completions, `{}`, Answer{Malformed: true}},
		{"responses", Responses, `{"id":"r1","model":"m","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"web_search_call","id":"w"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]},{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"}],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2}}}`,
			Answer{ID: "r1", Model: "m", Finish: "completed", Parts: []Part{{Kind: KindReasoning, Text: "hm"}, textPart("a"), {Kind: KindRefusal, Text: "no"}, {Kind: KindTool, ID: "t1", Name: "f", Arguments: "{}"}},
				Usage: Usage{Input: N(3), Output: N(4), CacheRead: N(1), Reasoning: N(2)}}},
		{"responses, cut short", Responses, `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, Answer{Finish: "max_output_tokens"}},
		{"responses without output is malformed", Responses, `{"id":"r1","output":null}`, Answer{ID: "r1", Malformed: true}},
		{"messages", Messages, `{"id":"m1","type":"message","model":"c","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"web_search_tool_result","content":[]}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":20,"cache_creation_input_tokens":100,"output_tokens":4,"service_tier":"standard"}}`,
			Answer{ID: "m1", Model: "c", Finish: "tool_use", ServiceTier: "standard", Parts: []Part{{Kind: KindReasoning, Text: "hm"}, textPart("a"), {Kind: KindTool, ID: "t1", Name: "f", Arguments: `{"a":1}`}},
				Usage: Usage{Fresh: N(3), Input: N(123), CacheRead: N(20), CacheWrite: N(100), Output: N(4)}}},
		{"messages without content is malformed", Messages, `{"id":"m1","content":null}`, Answer{ID: "m1", Malformed: true}},
		{"gemini", Gemini, `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"toolUsePromptTokenCount":6,"candidatesTokenCount":4,"thoughtsTokenCount":5,"cachedContentTokenCount":2},"modelVersion":"g","responseId":"i"}`,
			Answer{ID: "i", Model: "g", Finish: "STOP", Parts: []Part{{Kind: KindReasoning, Text: "hm"}, textPart("a"), {Kind: KindTool, Name: "f", Arguments: "{}"}},
				Usage: Usage{Input: N(9), CacheRead: N(2), Output: N(9), Reasoning: N(5)}}},
		{"gemini, a blocked prompt", Gemini, `{"promptFeedback":{"blockReason":"SAFETY"}}`, Answer{Finish: "SAFETY"}},
		{"gemini as Code Assist wraps it", Gemini, `{"response":{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}}`, Answer{Finish: "STOP", Parts: []Part{textPart("a")}}},
		{"gemini without candidates is malformed", Gemini, `{"candidates":[]}`, Answer{Malformed: true}},
	} {
		var got Answer
		if err := For(row.api).ParseAnswer(&got, []byte(row.body)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
}

// someUsage makes figures that a provider could state.
func someUsage(rng *rand.Rand, api API) Usage {
	u := Usage{Output: N(rng.Int64N(1000) + 100)}
	if rng.IntN(2) == 0 {
		u.Reasoning = N(rng.Int64N(100))
	}
	if rng.IntN(2) == 0 {
		u.CacheRead = N(rng.Int64N(100))
	}
	if rng.IntN(2) == 0 && api != Gemini {
		u.CacheWrite = N(rng.Int64N(100))
	}
	u.Input = N(rng.Int64N(1000) + u.CacheRead.N + u.CacheWrite.N)
	if api == Messages {
		u.Fresh = N(u.Input.N - u.CacheRead.N - u.CacheWrite.N)
	}
	return u
}

// someAnswer makes an answer that its dialect can say, its parts in the order
// in which the dialect lists them.
func someAnswer(rng *rand.Rand, api API, word func() string) Answer {
	maybe := func() bool { return rng.IntN(2) == 0 }
	a := Answer{ID: word(), Model: word(), Finish: FinishWord(api, []string{"stop", "length", "tool"}[rng.IntN(3)])}
	if maybe() {
		a.Usage = someUsage(rng, api)
	}
	if api == Chat || api == Completions {
		a.ServiceTier, a.SystemFingerprint = word(), word()
	}
	if api != Completions && maybe() {
		a.add(KindReasoning, word())
	}
	if api == Completions || maybe() {
		a.add(KindText, word())
	}
	if (api == Chat || api == Responses) && maybe() {
		a.add(KindRefusal, word())
	}
	if api != Completions {
		for range rng.IntN(3) {
			arguments, _ := json.Marshal(map[string]string{"a": word()})
			a.Parts = append(a.Parts, Part{Kind: KindTool, ID: word(), Name: word(), Arguments: string(arguments)})
		}
	}
	return a
}

func answerAgain(t testing.TB, api API, a *Answer) {
	t.Helper()
	body := For(api).AppendAnswer(nil, a)
	var got Answer
	if err := For(api).ParseAnswer(&got, body); err != nil {
		t.Fatalf("%s: %v: %s", api, err, body)
	}
	if diff := cmp.Diff(*a, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s: written as %s\n%s", api, body, diff)
	}
}

func TestAnswerSurvivesWritingAndReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			a := someAnswer(rng, api, func() string { return string(oddWords[rng.IntN(len(oddWords))]) })
			answerAgain(t, api, &a)
		}
	}
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		answerAgain(t, api, &Answer{Malformed: true})
	}
}

// An answer says the same once it was written and read, whatever its words.
func FuzzAnswerSurvives(f *testing.F) {
	for i, w := range oddWords {
		f.Add(string(w), uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, word string, seed uint64, kind uint8) {
		if word == "" {
			return
		}
		api := []API{Chat, Completions, Responses, Messages, Gemini}[kind%5]
		a := someAnswer(rand.New(rand.NewPCG(seed, 0)), api, func() string { return word })
		answerAgain(t, api, &a)
	})
}

// Any body is read without a panic.
func FuzzParseAnswer(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 10))
	for i, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		a := someAnswer(rng, api, func() string { return "a" })
		f.Add(For(api).AppendAnswer(nil, &a), uint8(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		format := For([]API{Chat, Completions, Responses, Messages, Gemini}[kind%5])
		var a Answer
		if err := format.ParseAnswer(&a, body); err == nil && !json.Valid(format.AppendAnswer(nil, &a)) {
			t.Fatalf("%s is read, and written as what is not JSON", body)
		}
	})
}
