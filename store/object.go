package store

import (
	"encoding/json"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// object is a JSON object under way, written member by member: a call has
// dozens of properties, and a map of them costs more than all its columns. The
// zero object is empty; what it says is given by String.
type object []byte

// with appends a member. Names come once each. Its error is that of a value
// that JSON cannot hold.
func (o object) with(name string, value attribute.Value) (object, error) {
	next := byte(',')
	if len(o) == 0 {
		next = '{'
	}
	o, err := quote(append(o, next), name)
	if err != nil {
		return nil, err
	}
	return appendJSON(append(o, ':'), value)
}

func (o object) String() string {
	if len(o) == 0 {
		return "{}"
	}
	return string(o) + "}"
}

// appendJSON is json.Marshal, faster for what nearly all properties are.
func appendJSON(dst []byte, value attribute.Value) ([]byte, error) {
	switch value.Type() {
	case attribute.STRING:
		return quote(dst, value.AsString())
	case attribute.INT64:
		return strconv.AppendInt(dst, value.AsInt64(), 10), nil
	case attribute.BOOL:
		return strconv.AppendBool(dst, value.AsBool()), nil
	}
	return marshal(dst, value.AsInterface())
}

func quote(dst []byte, text string) ([]byte, error) {
	if plainText(text) {
		return append(append(append(dst, '"'), text...), '"'), nil
	}
	return marshal(dst, text)
}

func marshal(dst []byte, value any) ([]byte, error) {
	b, err := json.Marshal(value)
	return append(dst, b...), err
}

// plainText says whether a string stands in JSON as it is.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
