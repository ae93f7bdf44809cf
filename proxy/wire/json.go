package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/tidwall/gjson"
)

// parse reads a JSON value without copying it: the result aliases data.
func parse(data []byte) gjson.Result {
	return gjson.Parse(view(data))
}

// alias gives a string's bytes, which must not be written to.
func alias(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// stringOf copies a JSON string out of the body; empty for any other value.
func stringOf(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return string(alias(v.Str))
}

// rawOf copies a value's JSON out of the body; empty where there is none.
func rawOf(v gjson.Result) string { return string(alias(v.Raw)) }

// walk starts a cursor at a value; at one that is not there, it reads null.
func walk(v gjson.Result) *cursor {
	if v.Raw == "" {
		return &cursor{b: []byte("null")}
	}
	return &cursor{b: alias(v.Raw)}
}

// quote appends s as a JSON string.
func quote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// object parses a request or answer, which must be one JSON object.
func object(body []byte, what string) (gjson.Result, error) {
	c, err := walkObject(body, what)
	if err != nil {
		return gjson.Result{}, err
	}
	c.skip()
	if err := c.end(what); err != nil {
		return gjson.Result{}, err
	}
	if !gjson.ValidBytes(body) {
		return gjson.Result{}, fmt.Errorf("read %s: it is not JSON: %w", what, whyNotJSON(body))
	}
	return parse(body), nil
}

// whyNotJSON says where body is broken, in the words of encoding/json.
func whyNotJSON(body []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return errors.New("a string or number in it is malformed")
}

// elements are those of an array; a value of another kind has none, though
// gjson would make it one.
func elements(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return nil
	}
	return v.Array()
}

func stringList(v gjson.Result) []string {
	if v.Type == gjson.String {
		return []string{stringOf(v)}
	}
	var list []string
	for _, e := range elements(v) {
		list = append(list, stringOf(e))
	}
	return list
}

// marshal writes v without escaping HTML, so that text costs what it says.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func jsonString(s string) json.RawMessage {
	return quote(make([]byte, 0, len(s)+len(s)/16+2), s)
}

// created is the creation time that written answers state: a fixed one, so
// that equal answers are equal bytes.
const created = 1_750_000_000

func quoteBytes(dst, s []byte) []byte { return quote(dst, view(s)) }

// appendStringField appends ,"name":"value" unless the value is empty.
func appendStringField(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(dst, ',')
	dst = quote(dst, name)
	dst = append(dst, ':')
	return quoteBytes(dst, value)
}

// appendCount appends ,"name":n unless n is unknown; the comma only after
// another field.
func appendCount(dst []byte, name string, c Count) []byte {
	if !c.Known {
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = quote(dst, name)
	dst = append(dst, ':')
	return strconv.AppendInt(dst, c.N, 10)
}

// isDone says whether data is the marker that ends OpenAI's streams.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }
