package loadmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// node is a value of JSON, or of YAML in JSON's terms, that knows where it stands.
type node struct {
	at      int // offset in the document
	value   any // string, json.Number, bool, nil; members and items have their own fields
	members []member
	items   []node
	kind    string          // "object", "array", "string", "number", "boolean", "null"
	raw     json.RawMessage // as it stands in the document; nil in YAML
}

// json is the value as JSON.
func (n *node) json() json.RawMessage {
	if n.raw != nil {
		return bytes.Clone(n.raw)
	}
	return n.appendJSON(nil)
}

func (n *node) appendJSON(b []byte) []byte {
	between := func(i int) {
		if i > 0 {
			b = append(b, ',')
		}
	}
	switch n.kind {
	case "object":
		b = append(b, '{')
		for i := range n.members {
			between(i)
			b = appendText(b, n.members[i].name)
			b = n.members[i].value.appendJSON(append(b, ':'))
		}
		return append(b, '}')
	case "array":
		b = append(b, '[')
		for i := range n.items {
			between(i)
			b = n.items[i].appendJSON(b)
		}
		return append(b, ']')
	}
	return appendText(b, n.value)
}

// appendText writes a text, a number, a boolean or null.
func appendText(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of such values there is none that JSON has not
	}
	return append(b, text...)
}

type member struct {
	name  string
	at    int
	value node
}

// document is a file under reading.
type document struct {
	name string
	data []byte
}

// Error says what is wrong with a load model or trace, and where.
type Error struct {
	File         string
	Line, Column int // from 1; 0 when the fault has no place
	Problem      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("load model %s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("load model %s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// fault makes an error about the byte at the offset.
func (d *document) fault(at int, format string, a ...any) *Error {
	before := d.data[:min(max(at, 0), len(d.data))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{d.name, line, 1 + utf8.RuneCount(before[start:]), fmt.Sprintf(format, a...)}
}

// parse reads the whole document as one value.
func (d *document) parse() (node, error) {
	// The decoder's own places are not to be relied on while it reads token by
	// token. This reads the bytes once more, and says exactly which is wrong.
	if err := json.Unmarshal(d.data, new(json.RawMessage)); err != nil {
		return node{}, d.syntax(err)
	}
	dec := json.NewDecoder(bytes.NewReader(d.data))
	dec.UseNumber()
	return d.value(dec, 0)
}

// syntax is the error of a document that is not JSON.
func (d *document) syntax(err error) error {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return &Error{File: d.name, Problem: err.Error()}
	}
	at, problem := int(s.Offset)-1, s.Error()
	switch {
	case strings.Contains(problem, "unexpected end"):
		return d.fault(len(d.data), "the document ends too early; close every bracket, brace and quote")
	case strings.Contains(problem, "after top-level value"):
		return d.fault(at, "something stands behind the end of the document; a load model is one object, not JSON Lines: take it out")
	case strings.Contains(problem, "max depth"):
		return d.tooDeep(at)
	}
	return d.fault(at, "not JSON here: %s%s", problem, d.advice(at))
}

// next reads a token and where it begins.
func (d *document) next(dec *json.Decoder) (json.Token, int, error) {
	from := int(dec.InputOffset())
	t, err := dec.Token()
	if err != nil {
		return nil, from, d.fault(from, "%v", err)
	}
	at := from + len(d.data[from:]) - len(bytes.TrimLeft(d.data[from:], " \t\r\n,:"))
	return t, at, nil
}

// advice is what to do about the usual mistakes, by the byte that is wrong.
func (d *document) advice(at int) string {
	before := bytes.TrimRight(d.data[:at], " \t\r\n")
	switch c := d.data[at]; {
	case c == '/' || c == '#':
		return "; JSON has no comments: take it out"
	case c == '\'':
		return "; JSON has only double quotes"
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte{','}):
		return "; take out the comma before it"
	case c == 'N' || c == 'I':
		return "; JSON has no NaN and no infinity"
	case c == '"' || c == '{' || c == '[':
		return "; is a comma or colon missing before it?"
	}
	return ""
}

// deepest is how many brackets and braces may be open at once. It keeps a
// hostile document from exhausting the stack.
const deepest = 100

func (d *document) tooDeep(at int) error {
	return d.fault(at, "nested deeper than %d levels; a load model needs a few", deepest)
}

func (d *document) value(dec *json.Decoder, depth int) (node, error) {
	t, at, err := d.next(dec)
	if err != nil {
		return node{}, err
	}
	if depth > deepest {
		return node{}, d.tooDeep(at)
	}
	n := node{at: at, value: t}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = "object"
			err = d.object(dec, &n, depth)
		} else {
			n.kind = "array"
			for err == nil && dec.More() {
				var item node
				item, err = d.value(dec, depth+1)
				n.items = append(n.items, item)
			}
			if err == nil {
				_, _, err = d.next(dec)
			}
		}
	case string:
		n.kind = "string"
	case json.Number:
		n.kind = "number"
	case bool:
		n.kind = "boolean"
	default:
		n.kind = "null"
	}
	if err == nil {
		n.raw = json.RawMessage(d.data[at:dec.InputOffset()])
	}
	return n, err
}

func (d *document) object(dec *json.Decoder, n *node, depth int) error {
	seen := map[string]bool{}
	for dec.More() {
		t, at, err := d.next(dec)
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if seen[name] {
			return d.fault(at, "field %q stands twice in one object; keep one", name)
		}
		seen[name] = true
		v, err := d.value(dec, depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, at, v})
	}
	_, _, err := d.next(dec)
	return err
}

// article puts a or an before a kind.
func article(kind string) string {
	if kind == "null" {
		return kind
	}
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}
