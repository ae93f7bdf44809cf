package wire

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// usagePlaces are where a dialect states usage, in events and in answers; # is
// each element of a list.
var usagePlaces = map[API][]string{
	Chat:        {"usage", "x_groq.usage", "choices.#.usage"},
	Completions: {"usage", "choices.#.usage"},
	Responses:   {"usage", "response.usage"},
	Messages:    {"usage", "message.usage"},
	Gemini:      {"usageMetadata", "response.usageMetadata"},
}

// WithoutUsage takes usage out of an event's data or an answer, and leaves the
// rest as it came; doc itself is not changed. Of a chunk that holds nothing but
// usage nothing is left: an endpoint that reports none does not send it.
func WithoutUsage(api API, doc []byte) []byte {
	if !gjson.ValidBytes(doc) {
		return doc
	}
	rest := doc
	for _, place := range usagePlaces[api] {
		list, member, each := strings.Cut(place, ".#.")
		if !each {
			rest = withoutMember(rest, place)
			continue
		}
		for i := range gjson.GetBytes(rest, list+".#").Int() {
			rest = withoutMember(rest, list+"."+strconv.FormatInt(i, 10)+"."+member)
		}
	}
	if len(rest) < len(doc) && (api == Chat || api == Completions) {
		if choices := gjson.GetBytes(rest, "choices"); choices.IsArray() && choices.Get("#").Int() == 0 {
			return nil
		}
	}
	return rest
}

// withoutMember cuts a member out of the object that holds it. One whose name
// is spelled with escapes is left.
func withoutMember(doc []byte, place string) []byte {
	v := gjson.GetBytes(doc, place)
	if !v.Exists() || v.Index == 0 {
		return doc
	}
	name := `"` + place[strings.LastIndexByte(place, '.')+1:] + `"`
	const blank = " \t\r\n"
	before, colon := bytes.CutSuffix(bytes.TrimRight(doc[:v.Index], blank), []byte{':'})
	before, named := bytes.CutSuffix(bytes.TrimRight(before, blank), []byte(name))
	if !colon || !named {
		return doc
	}
	after := doc[v.Index+len(v.Raw):]
	if ahead, more := bytes.CutSuffix(bytes.TrimRight(before, blank), []byte{','}); more {
		before = ahead
	} else if behind, more := bytes.CutPrefix(bytes.TrimLeft(after, blank), []byte{','}); more {
		after = behind
	}
	return append(bytes.Clone(before), after...)
}
