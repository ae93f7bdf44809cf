package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"strings"
	"sync"

	"weir/proxy/wire"
)

// script is what a prompt says of its own answer, so that whoever drives a
// client knows what the client will hear. With Config.Script an endpoint
// follows the directives that stand in the last message of the user that has
// any; requests without one are answered as always.
type script struct {
	tool   string // of the call that this answer is; empty: it is text
	text   string // all of the answer: its words, or the call's arguments
	fault  *Fault // of this request; nil: it goes well
	faulty int    // requests with this prompt that the fault befalls; 0: all
	prompt string // the words in which the directives stand
}

// directive is a sort of directive: how it is written and what it does.
type directive struct {
	name, form, what string
	read             func(*directives, string) (rest string, err error)
}

var directiveKinds = []directive{
	{"tool", "[[tool NAME {…}]]", "call the tool with these arguments; several are called one after the other, an answer each", (*directives).readTool},
	{"say", "[[say TEXT]]", "answer TEXT, in which {result} is what the last tool said, when all have been called (default: " + done + ")", (*directives).readSay},
	{"fault", "[[fault KIND 2]]", "let the first 2 requests with this prompt go wrong; KIND:TIME is a fault with a time; without a number all do", (*directives).readFault},
}

// done is said when a script says nothing else.
const done = "Done."

// ScriptHelp describes the directives, a line each.
func ScriptHelp() string {
	var b strings.Builder
	for _, d := range directiveKinds {
		fmt.Fprintf(&b, "%-17s %s\n", d.form, d.what)
	}
	return b.String()
}

// directives are all that one message says.
type directives struct {
	calls  []wire.Part
	say    string
	fault  *Fault
	faulty int
}

// readScript finds the script of a request and where in it the conversation
// stands: each answer of the model that called a tool is one call done. It is
// nil where no message has a directive.
func readScript(r *wire.Request) (*script, error) {
	called, result := 0, ""
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := &r.Messages[i]
		switch m.Role {
		case wire.Assistant:
			if calls(m) {
				called++
			}
			continue
		case wire.ToolRole:
			if called == 0 {
				result = said(m, wire.KindToolResult)
			}
			continue
		}
		prompt := said(m, wire.KindText)
		d, err := readDirectives(prompt)
		if err != nil {
			return nil, fmt.Errorf("script: %w", err)
		}
		if d != nil {
			s := d.at(called, r.Tools)
			s.prompt = prompt
			if s.tool == "" {
				s.text = strings.ReplaceAll(s.text, "{result}", result)
			}
			return s, nil
		}
	}
	return nil, nil
}

func calls(m *wire.Message) bool {
	for _, p := range m.Parts {
		if p.Kind == wire.KindTool {
			return true
		}
	}
	return false
}

// said is the text of a message's parts of one kind.
func said(m *wire.Message, kind wire.Kind) string {
	var all []string
	for _, p := range m.Parts {
		if p.Kind == kind {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// at gives the script after so many calls. A request without tools is no turn
// of the conversation (clients let models name it, for one) and gets the words.
func (d *directives) at(called int, tools []wire.Tool) *script {
	s := &script{text: d.say, fault: d.fault, faulty: d.faulty}
	if called >= len(d.calls) || len(tools) == 0 {
		return s
	}
	call := d.calls[called]
	names := make([]string, len(tools))
	for i, t := range tools {
		if names[i] = t.Name; t.Name == call.Name {
			s.tool, s.text = call.Name, call.Arguments
			return s
		}
	}
	s.text = fmt.Sprintf("script: the request has no tool %q, but %s", call.Name, strings.Join(names, ", "))
	return s
}

// readDirectives reads what stands in a text; nil when nothing does. Other words
// in double brackets, such as a shell's tests, are left alone.
func readDirectives(text string) (*directives, error) {
	var d *directives
	for {
		_, after, found := strings.Cut(text, "[[")
		if !found {
			return d, nil
		}
		text = after
		kind := directiveOf(text)
		if kind == nil {
			continue
		}
		if d == nil {
			d = &directives{say: done}
		}
		var err error
		if text, err = kind.read(d, text[len(kind.name)+1:]); err != nil {
			return nil, fmt.Errorf("[[%s: %w; want %s", kind.name, err, kind.form)
		}
	}
}

// directiveOf finds the sort of directive whose inside text begins with; nil
// where it is none.
func directiveOf(text string) *directive {
	for i := range directiveKinds {
		if strings.HasPrefix(text, directiveKinds[i].name+" ") {
			return &directiveKinds[i]
		}
	}
	return nil
}

var errOpen = errors.New("it has no ]] at its end")

// readTool reads "NAME {…}]]". The arguments may hold anything that JSON can.
func (d *directives) readTool(s string) (string, error) {
	name, object, found := strings.Cut(s, " ")
	if !found || name == "" {
		return "", errors.New("it has no arguments")
	}
	arguments := json.NewDecoder(strings.NewReader(object))
	var fields map[string]json.RawMessage
	if err := arguments.Decode(&fields); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("its arguments break off")
		}
		return "", err
	}
	end := arguments.InputOffset()
	rest, closed := strings.CutPrefix(strings.TrimLeft(object[end:], " \n"), "]]")
	if !closed {
		return "", errOpen
	}
	d.calls = append(d.calls, wire.Part{Kind: wire.KindTool, Name: name, Arguments: strings.TrimSpace(object[:end])})
	return rest, nil
}

func (d *directives) readSay(s string) (string, error) {
	text, rest, closed := strings.Cut(s, "]]")
	if !closed {
		return "", errOpen
	}
	if text == "" {
		return "", errors.New("it has no text")
	}
	d.say = text
	return rest, nil
}

// readFault reads "KIND]]", "KIND:TIME]]", and either with a number.
func (d *directives) readFault(s string) (string, error) {
	text, rest, closed := strings.Cut(s, "]]")
	if !closed {
		return "", errOpen
	}
	what, number, counted := strings.Cut(strings.TrimSpace(text), " ")
	kind, wait, timed := strings.Cut(what, ":")
	part := kind + ":1"
	if timed {
		part += ":" + wait
	}
	f, err := parseFault(part)
	if err != nil {
		return "", err
	}
	if counted {
		if d.faulty, err = strconv.Atoi(strings.TrimSpace(number)); err != nil || d.faulty < 1 {
			return "", fmt.Errorf("number %q: want 1 or more", number)
		}
	}
	d.fault = &f
	return rest, nil
}

// scripted is the answer that the script wants: its plan, and who says it.
func (x *exchange) scripted(room int) (plan, *speaker) {
	speaker, tokens := x.s.words.reader(x.script.text)
	p := plan{tokens: tokens, finish: "stop"}
	if x.script.tool != "" {
		p.finish = "tool"
	}
	if x.req.MaxTokens.Known {
		room = min(room, int(max(x.req.MaxTokens.N, 1)))
	}
	if p.tokens > room {
		p.tokens, p.finish = room, "length"
	}
	if x.script.tool != "" {
		p.call = p.tokens
	}
	return p, speaker
}

// promptFaults counts how often prompts asked for a fault, so that it befalls the
// first requests only. The zero promptFaults has counted none.
type promptFaults struct {
	mu   sync.Mutex
	seed maphash.Seed
	n    map[uint64]int
}

// due says whether a request with this script goes wrong.
func (p *promptFaults) due(s *script) bool {
	if s.fault == nil || s.faulty == 0 {
		return s.fault != nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == nil {
		p.n, p.seed = map[uint64]int{}, maphash.MakeSeed()
	}
	key := maphash.String(p.seed, s.prompt)
	p.n[key]++
	return p.n[key] <= s.faulty
}
