package proxy

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
)

// withUsage is a request with stream_options.include_usage put into it, all
// other bytes as they were; nil where there is no place for it: the body is no
// JSON object, the option has a value already that is not null, or
// stream_options is no object.
func withUsage(request []byte) []byte {
	const field = `"include_usage":true`
	if !gjson.ValidBytes(request) {
		return nil
	}
	doc := gjson.ParseBytes(request)
	if !doc.IsObject() {
		return nil
	}
	options, several := member(doc, "stream_options")
	at := options.Index
	switch {
	case several || at > 0 && !bytes.HasPrefix(request[at:], []byte(options.Raw)):
		return nil
	case !options.Exists():
		end := bytes.LastIndexByte(request, '}')
		comma := ","
		if first, _ := member(doc, ""); !first.Exists() {
			comma = ""
		}
		return insert(request, end, end, comma+`"stream_options":{`+field+`}`)
	case options.Type == gjson.Null:
		return insert(request, at, at+len("null"), `{`+field+`}`)
	case !options.IsObject():
		return nil
	}
	said, several := member(options, "include_usage")
	switch {
	case several || said.Exists() && said.Type != gjson.Null:
		return nil
	case said.Exists():
		return insert(request, said.Index, said.Index+len("null"), "true")
	}
	comma := ","
	if first, _ := member(options, ""); !first.Exists() {
		comma = ""
	}
	return insert(request, at+1, at+1, field+comma)
}

// member is an object's member of a name, or its first one where the name is
// empty, and whether there are several.
func member(object gjson.Result, name string) (found gjson.Result, several bool) {
	object.ForEach(func(key, value gjson.Result) bool {
		if name == "" || key.Str == name {
			several = found.Exists()
			if !several {
				found = value
			}
		}
		return !several
	})
	return found, several
}

// insert puts text in the place of b[from:to], into new memory.
func insert(b []byte, from, to int, text string) []byte {
	return slices.Concat(b[:from], []byte(text), b[to:])
}
