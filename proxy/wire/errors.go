package wire

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// parseError reads an error body of any dialect: gateways answer in another
// one than they were asked in.
func parseError(body []byte) (Error, bool) {
	body = bytes.TrimSpace(body)
	doc := parse(body)
	if doc.IsArray() { // Gemini wraps the errors of streams
		doc = doc.Get("0")
	}
	if !doc.IsObject() {
		return Error{}, false
	}
	if e := errorIn(alias(doc.Get("error").Raw)); e != nil {
		return *e, true
	}
	if doc.Get("type").Str == "error" || (doc.Get("message").Type == gjson.String && doc.Get("code").Exists()) {
		return *errorOf(doc), true
	}
	switch d := doc.Get("detail"); { // FastAPI servers: vLLM, SGLang
	case d.Type == gjson.String:
		return Error{Message: stringOf(d)}, true
	case d.IsArray():
		if msg := stringOf(d.Get("0.msg")); msg != "" {
			return Error{Type: stringOf(d.Get("0.type")), Message: joinField(d.Get("0.loc"), msg)}, true
		}
	}
	return Error{}, false
}

// joinField puts the name of the field that is wrong before what is said of it.
func joinField(loc gjson.Result, msg string) string {
	var path []string
	for _, p := range elements(loc) {
		path = append(path, string(alias(p.String())))
	}
	if len(path) == 0 {
		return msg
	}
	return strings.Join(path, ".") + ": " + msg
}

// errorIn reads the value of an event's error field: an object or a string. A
// null or an empty string is none.
func errorIn(raw []byte) *Error {
	v := parse(raw)
	if v.Type == gjson.String && v.Str == "" {
		return nil
	}
	return errorOf(v)
}

// errorOf reads the error object itself, or a plain string in its place.
func errorOf(v gjson.Result) *Error {
	if v.Type == gjson.String {
		return &Error{Message: stringOf(v)}
	}
	if !v.IsObject() {
		return nil
	}
	e := &Error{Type: stringOf(v.Get("type")), Message: stringOf(v.Get("message"))}
	switch code := v.Get("code"); code.Type {
	case gjson.Number:
		e.Code = strconv.FormatInt(code.Int(), 10)
		if n := code.Int(); n >= 400 && n < 600 {
			e.Status, e.Code = int(n), ""
		}
	case gjson.String:
		e.Code = stringOf(code)
	}
	if s := stringOf(v.Get("status")); s != "" {
		e.Type = s
	}
	return e
}

// appendOpenAIError writes {"error": {…}} as OpenAI does.
func appendOpenAIError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = quote(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"param":null,"code":`...)
	if e.Code == "" {
		dst = append(dst, "null"...)
	} else {
		dst = quote(dst, e.Code)
	}
	return append(dst, "}}"...)
}

func appendAnthropicError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = quote(dst, e.Message)
	return append(dst, "}}"...)
}

// googleCodes are the words of google.rpc.Code by the status that they come
// with.
var googleCodes = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// appendGeminiError writes an error as Google does, which has no status 529.
func appendGeminiError(dst []byte, e *Error) []byte {
	status, word := e.Status, e.Type
	if status == 529 {
		status = 503
	}
	if code := googleCodes[status]; code != "" {
		word = code
	}
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, `,"message":`...)
	dst = quote(dst, e.Message)
	dst = append(dst, `,"status":`...)
	dst = quote(dst, word)
	return append(dst, "}}"...)
}
