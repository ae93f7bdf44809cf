package sim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// saying is a request whose user says text, with a tool unless the API has none.
func saying(api wire.API, stream bool, text string) *wire.Request {
	r := request(api, stream)
	r.MaxTokens = wire.Count{}
	if api == wire.Messages {
		r.MaxTokens = wire.N(1000)
	}
	r.Messages[0].Parts[0].Text = text
	if api != wire.Completions {
		r.Tools = []wire.Tool{{Name: "look", Parameters: []byte(`{"type":"object"}`)}}
	}
	return r
}

// answer is what came back, streamed or not, as text or as a call.
func answerTo(t *testing.T, e *endpoint, api wire.API, r *wire.Request) heard {
	t.Helper()
	resp, body, err := post(t, e, api, r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
	}
	if r.Stream {
		return listen(t, api, resp.Header.Get("Content-Type"), body)
	}
	var a wire.Answer
	if err := wire.For(api).ParseAnswer(&a, body); err != nil {
		t.Fatal(err)
	}
	h := heard{finish: a.Finish, usage: a.Usage}
	for _, p := range a.Parts {
		h.text += p.Text
		h.tool += p.Name + p.Arguments
	}
	return h
}

func TestScriptedTurn(t *testing.T) {
	const prompt = `Do it. [[tool look {"at":"[[x]] \"堰\"", "deep":{"n":[1,[2]]}}]] then [[say 它在 there.]]`
	e := serve(t, Config{Script: true})
	for _, api := range apis {
		for _, stream := range []bool{true, false} {
			name := string(api)
			if stream {
				name += " streamed"
			}
			t.Run(name, func(t *testing.T) {
				r := saying(api, stream, prompt)
				if api != wire.Completions { // which has no tools
					h := answerTo(t, e, api, r)
					want := `look{"at":"[[x]] \"堰\"", "deep":{"n":[1,[2]]}}`
					if h.tool != want || h.text != "" || h.finish != wire.FinishWord(api, "tool") {
						t.Fatalf("answer %+v, want the call %s", h, want)
					}
					r.Messages = append(r.Messages,
						wire.Message{Role: wire.Assistant, Parts: []wire.Part{{Kind: wire.KindTool, ID: "c1", Name: "look", Arguments: `{}`}}},
						wire.Message{Role: wire.ToolRole, Parts: []wire.Part{{Kind: wire.KindToolResult, ID: "c1", Name: "look", Text: "[[say not this]]"}}})
				}
				h := answerTo(t, e, api, r)
				if h.text != "它在 there." || h.tool != "" || h.finish != wire.FinishWord(api, "stop") {
					t.Errorf("after the call: %+v, want exactly the text", h)
				}
				if !h.usage.Output.Known || h.usage.Output.N < 4 {
					t.Errorf("output tokens %v of a text of about 5", h.usage.Output)
				}
			})
		}
	}
}

func TestScript(t *testing.T) {
	user := func(text string) wire.Message {
		return wire.Message{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: text}}}
	}
	called := wire.Message{Role: wire.Assistant, Parts: []wire.Part{{Kind: wire.KindTool, Name: "a"}}}
	result := wire.Message{Role: wire.ToolRole, Parts: []wire.Part{{Kind: wire.KindToolResult, Text: "r"}}}
	tools := []wire.Tool{{Name: "a"}, {Name: "b"}}
	two := `[[tool a {}]][[tool b {"n": 1} ]] [[say end]]`
	for _, row := range []struct {
		sentence string
		messages []wire.Message
		tools    []wire.Tool
		want     *script
	}{
		{"no directive is no script", []wire.Message{user("if [[ -f x ]]; then [[sayx]]")}, tools, nil},
		{"a fault alone says Done.", []wire.Message{user("[[fault stall:3s]]")}, tools, &script{text: done, fault: &Fault{"stall", 1, 3e9}}},
		{"a fault of some requests", []wire.Message{user("[[fault 500 2]]")}, tools, &script{text: done, fault: &Fault{"500", 1, 0}, faulty: 2}},
		{"the first of two calls", []wire.Message{user(two)}, tools, &script{tool: "a", text: "{}"}},
		{"after one call comes the second", []wire.Message{user(two), called, result}, tools, &script{tool: "b", text: `{"n": 1}`}},
		{"and what the last tool said", []wire.Message{user("[[tool a {}]] [[say <{result}>]]"), called, result}, tools, &script{text: "<r>"}},
		{"after both comes the text", []wire.Message{user(two), called, result, called, result}, tools, &script{text: "end"}},
		{"the last message with directives counts", []wire.Message{user(two), called, result, user("[[say new]]"), user("a reminder")}, tools, &script{text: "new"}},
		{"a request without tools is told the text", []wire.Message{user(two)}, nil, &script{text: "end"}},
		{"a tool that the request lacks is told with those it has", []wire.Message{user(`[[tool c {}]]`)}, tools, &script{text: `script: the request has no tool "c", but a, b`}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got, err := readScript(&wire.Request{Messages: row.messages, Tools: row.tools})
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				got.prompt = ""
			}
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(script{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScriptErrors(t *testing.T) {
	e := serve(t, Config{Script: true})
	for prompt, want := range map[string]string{
		`[[tool look]]`:           "[[tool: it has no arguments; want [[tool NAME {…}]]",
		`[[tool look {"a":1]]`:    "[[tool: invalid character",
		`[[tool look {"a":`:       "[[tool: its arguments break off",
		`[[tool look {"a":1}`:     "[[tool: it has no ]] at its end",
		`[[say hello`:             "[[say: it has no ]] at its end",
		`[[say ]]`:                "[[say: it has no text",
		`[[fault 501]]`:           `[[fault: fault "501:1": unknown kind`,
		`[[fault 500 none]]`:      `[[fault: number "none": want 1 or more`,
		`[[fault stall:forever]]`: `time "forever"`,
	} {
		resp, body, _ := post(t, e, wire.Chat, saying(wire.Chat, true, prompt))
		told, ok := wire.For(wire.Chat).ParseError(body)
		if resp.StatusCode != http.StatusBadRequest || !ok || !strings.Contains(told.Message, want) {
			t.Errorf("%s: status %d, %q; want 400 and %q", prompt, resp.StatusCode, told.Message, want)
		}
	}
}

func TestScriptedFaultsBefallTheFirstRequests(t *testing.T) {
	e := serve(t, Config{Script: true})
	statuses := func(prompt string) (all []int) {
		for range 4 {
			resp, _, _ := post(t, e, wire.Messages, saying(wire.Messages, true, prompt))
			all = append(all, resp.StatusCode)
		}
		return all
	}
	for prompt, want := range map[string][]int{
		"one [[fault 500 2]]": {500, 500, 200, 200},
		"two [[fault 500 2]]": {500, 500, 200, 200}, // each prompt has its own
		"[[fault 429]]":       {429, 429, 429, 429},
	} {
		if diff := cmp.Diff(want, statuses(prompt)); diff != "" {
			t.Errorf("%s: %s", prompt, diff)
		}
	}
}

func TestScriptIsCutByItsLimit(t *testing.T) {
	e := serve(t, Config{Script: true})
	r := saying(wire.Messages, true, "[[say one two three four five six seven eight]]")
	r.MaxTokens = wire.N(4)
	if h := answerTo(t, e, wire.Messages, r); h.text != "one two three four" || h.finish != "max_tokens" || h.usage.Output.N != 4 {
		t.Errorf("answer %+v, want its first four tokens", h)
	}
}

func TestDirectivesAreWordsWithoutTheFlag(t *testing.T) {
	e := serve(t, Config{})
	r := saying(wire.Messages, true, "[[say hello]]")
	r.MaxTokens = wire.N(8)
	if h := answerTo(t, e, wire.Messages, r); h.text == "" || strings.Contains(h.text, "hello") {
		t.Errorf("answer %q, want an ordinary one", h.text)
	}
}
