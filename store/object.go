package store

import (
	"encoding/json"
	"strconv"
)

// object is a JSON object under way, written member by member: a call has
// dozens of properties, and a map of them costs more than all its columns. The
// zero object is empty; what it says is given by String.
type object []byte

// with appends a member. Names come once each. Its error is that of a value
// that JSON cannot hold.
func (o object) with(name string, value any) (object, error) {
	next := byte(',')
	if len(o) == 0 {
		next = '{'
	}
	o, err := appendJSON(append(o, next), name)
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
func appendJSON(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		if plainText(v) {
			return append(append(append(dst, '"'), v...), '"'), nil
		}
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	}
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
