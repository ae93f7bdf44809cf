package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sketch is a shape as it is read aloud: role, kind and tool of each block.
func sketch(s Shape) (all []string) {
	kinds := map[Kind]string{0: "-", KindText: "text", KindReasoning: "reasoning", KindRefusal: "refusal", KindTool: "call", KindToolResult: "result", KindOther: "other"}
	for _, b := range s.Blocks {
		line := string(b.Role) + " " + kinds[b.Kind]
		if b.Name != "" {
			line += " " + b.Name
		}
		all = append(all, line)
	}
	return all
}

func hashes(t *testing.T, api API, body string) (all []uint64) {
	t.Helper()
	s, err := ReadShape(api, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, b := range s.Blocks {
		all = append(all, b.Hash)
	}
	return all
}

func TestShapeHasWhatAPrefixCacheSees(t *testing.T) {
	for _, row := range []struct {
		api  API
		body string
		want []string
	}{
		{Chat, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}}]},
			{"role":"assistant","content":"b","reasoning_content":"hm","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"ok"}],
			"tools":[{"type":"function","function":{"name":"f"}}]}`,
			[]string{"definition - f", "system text", "user text", "user other", "assistant reasoning", "assistant text", "assistant call f", "tool result f"}},
		{Messages, `{"tools":[{"name":"Bash","input_schema":{}}],"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"Bash","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"},{"type":"text","text":"go"}]}]}`,
			[]string{"definition - Bash", "system text", "user text", "assistant reasoning", "assistant text", "assistant call Bash", "tool result Bash", "user text"}},
		{Responses, `{"instructions":"s","tools":[{"type":"function","name":"f"}],"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"ok"}]}`,
			[]string{"definition - f", "system text", "user text", "assistant call f", "tool result f"}},
		{Responses, `{"input":"a"}`, []string{"user text"}},
		{Gemini, `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}],"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{}}]},
			{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`,
			[]string{"definition - f", "system text", "user text", "user other", "assistant call f", "tool result f"}},
		{Completions, `{"prompt":"a"}`, []string{"user text"}},
	} {
		s, err := ReadShape(row.api, []byte(row.body))
		if diff := cmp.Diff(row.want, sketch(s)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", row.api, err, diff)
		}
	}
}

// The same conversation is the same however its client spells it the next time.
func TestShapeIsOfMeaningNotOfBytes(t *testing.T) {
	for _, row := range []struct {
		sentence string
		api      API
		a, b     string
		same     bool
	}{
		{"a string and a list of one text", Messages, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"content":[{"type":"text","text":"a"}],"role":"user"}]}`, true},
		{"marks of the cache", Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`, `{"messages":[{"role":"user","content":"a"}]}`, true},
		{"ids of calls", Messages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"2","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"x"}]}]}]}`, true},
		{"the order of keys", Messages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{"a":1,"b":{"c":2,"d":3}}}]}]}`, `{"messages":[{"role":"assistant","content":[{"input":{"b":{"d":3, "c":2},"a":1},"name":"f","type":"tool_use"}]}]}`, true},
		{"inside arguments too", Chat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1,\"b\":2}"}}]}]}`, `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"arguments":"{ \"b\": 2, \"a\": 1 }","name":"f"}}]}]}`, true},
		{"escapes", Chat, `{"messages":[{"role":"user","content":"A\u00e4\/"}]}`, `{"messages":[{"role":"user","content":"\u0041ä/"}]}`, true},
		{"developer is system", Responses, `{"input":[{"role":"developer","content":"s"}]}`, `{"input":[{"role":"system","content":[{"type":"input_text","text":"s"}]}]}`, true},
		{"other words", Chat, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":"b"}]}`, false},
		{"another role", Chat, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"assistant","content":"a"}]}`, false},
		{"other arguments", Chat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]}]}`, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":2}"}}]}]}`, false},
		{"another tool", Messages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}]}`, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"g","input":{}}]}]}`, false},
		{"numbers are not strings", Gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}]}`, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"1"}}}]}]}`, false},
		{"where a text ends", Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"ab"},{"type":"text","text":"c"}]}]}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"bc"}]}]}`, false},
	} {
		if same := cmp.Equal(hashes(t, row.api, row.a), hashes(t, row.api, row.b)); same != row.same {
			t.Errorf("%s: the same is %v, want %v\n%s\n%s", row.sentence, same, row.same, row.a, row.b)
		}
	}
}

// What comes later changes nothing of what came before.
func TestConversationThatGrowsKeepsItsBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, api := range []API{Chat, Responses, Messages, Gemini} {
		for range 50 {
			r := Request{Head: Head{Model: "m"}, System: "s"}
			var before []uint64
			for n := range 8 {
				role, kind := User, KindText
				if n%2 == 1 {
					role = Assistant
				}
				r.Messages = append(r.Messages, Message{Role: role, Parts: []Part{{Kind: kind, Text: fmt.Sprint("text ", rng.IntN(5))}}})
				body, err := For(api).AppendRequest(nil, &r)
				if err != nil {
					t.Fatal(err)
				}
				now := hashes(t, api, string(body))
				if n > 0 && len(now) != len(before)+1 || !slices.Equal(before, now[:len(before)]) {
					t.Fatalf("%s: after %d messages the blocks are %x, before %x", api, n+1, now, before)
				}
				before = now
			}
		}
	}
}

func TestShapeOfABodyThatBreaksOff(t *testing.T) {
	s, err := ReadShape(Messages, []byte(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"us`))
	if err == nil || len(s.Blocks) != 2 {
		t.Errorf("%v, %+v", err, s)
	}
	if _, err := ReadShape("telepathy", []byte(`{}`)); err == nil {
		t.Error("an API that does not exist has a shape")
	}
}

func FuzzReadShape(f *testing.F) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"t","function":{"name":"f","arguments":"{\"a\":[1,{\"b\":null}]}"}}]}]}`,
		`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`,
		`{"instructions":"s","input":[{"type":"reasoning","summary":[{"text":"hm"}]},{"type":"custom_tool_call","name":"p","input":"x"}]}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`,
		`{"prompt":["a","b"]}`, `{`, `[]`, "\"\\ud800\"",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			s, _ := ReadShape(api, body)
			again, _ := ReadShape(api, body)
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("%s: read twice it differs:\n%s", api, diff)
			}
			for _, b := range s.Blocks {
				if b.Bytes < 0 || b.Bytes > len(body) || b.Role == "" {
					t.Errorf("%s: a block of %d bytes by %q in a body of %d", api, b.Bytes, b.Role, len(body))
				}
			}
		}
	})
}
