package generator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// shareConversation is one conversation of a ShareGPT file.
type shareConversation struct {
	Model string       `json:"model"`
	Said  []shareWords `json:"conversations"`
}

type shareWords struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// conversations reads a ShareGPT file, an array or JSON Lines, one conversation
// at a time. Each is a live session: its users say what they said, and hear what
// the model answers now. A recorded answer only says how long the new one may
// be. What cannot be a turn is left out: words after the last answer, of which
// no length is known, and answers that nobody asked for.
func (d *Dataset) conversations() iter.Seq2[talk, error] {
	return func(yield func(talk, error) bool) {
		f, err := d.open()
		if err != nil {
			yield(talk{}, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 64<<10)
		dec := json.NewDecoder(r)
		array, err := isArray(r)
		if err == nil && array {
			_, err = dec.Token()
		}
		if err != nil {
			yield(talk{}, d.problem("is not JSON: %s", err))
			return
		}
		for n := 1; !array || dec.More(); n++ {
			var c shareConversation
			err := dec.Decode(&c)
			if !array && errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(talk{}, fmt.Errorf("dataset %s: conversation %d: %w", d.Path, n, lineProblem(err)))
				return
			}
			t := d.conversation(&c, n)
			if len(t.turns) > 0 && !yield(t, nil) {
				return
			}
		}
		if _, err := dec.Token(); err != nil { // the array's end
			yield(talk{}, d.problem("breaks off: %s", err))
		}
	}
}

// isArray looks at the first character that is no space.
func isArray(r *bufio.Reader) (bool, error) {
	for {
		c, _, err := r.ReadRune()
		switch {
		case err != nil:
			return false, err
		case unicode.IsSpace(c) || c == '\ufeff':
			continue
		}
		return c == '[', r.UnreadRune()
	}
}

// conversation turns a recorded conversation into a session.
func (d *Dataset) conversation(c *shareConversation, n int) talk {
	t := d.talk("", "", c.Model, nil)
	tok, _ := corpus.ForModel(t.model)
	var system, asked []string
	held := corpus.TokensPerPrompt
	for _, w := range c.Said {
		switch w.From {
		case "system":
			if len(t.turns) == 0 && len(asked) == 0 {
				system = append(system, w.Value)
				held += tok.Count(w.Value) + b2i(len(system) == 1)*corpus.TokensPerMessage
			}
		case "gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call":
			if len(asked) == 0 {
				continue
			}
			said := Said{Body: shareBody(system, asked), Live: len(t.turns) > 0}
			system = nil
			for _, text := range asked {
				held += tok.Count(text)
			}
			held += corpus.TokensPerMessage
			answer := max(tok.Count(w.Value), 1)
			t.turns = append(t.turns, Turn{Input: held, Output: answer})
			t.said = append(t.said, said)
			held += answer + corpus.TokensPerMessage
			asked = nil
		default: // human, user, tool, observation
			if w.Value != "" {
				asked = append(asked, w.Value)
			}
		}
	}
	if len(t.turns) > 1 {
		t.session = fmt.Sprintf("c%d", n)
	}
	t.place = fmt.Sprintf("dataset %s: conversation %d", d.Path, n)
	return t
}

// shareBody writes what is new in a turn as a request.
func shareBody(system, asked []string) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	join := func(all []string) string {
		var b bytes.Buffer
		for i, s := range all {
			if i > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(s)
		}
		return b.String()
	}
	var messages []message
	if len(system) > 0 {
		messages = append(messages, message{"system", join(system)})
	}
	messages = append(messages, message{string(wire.User), join(asked)})
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string][]message{"messages": messages}) // strings can always be written
	return bytes.TrimSpace(b.Bytes())
}
