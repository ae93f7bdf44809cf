package proxy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsageIsAskedForWithoutTouchingTheRest(t *testing.T) {
	const option = `{"include_usage":true}`
	for _, row := range []struct{ name, request, want string }{
		{"nothing said", `{"model":"m","stream":true}`, `{"model":"m","stream":true,"stream_options":` + option + `}`},
		{"blanks, escapes and odd numbers stay", "\n { \"stream\" : true , \"a\":\"\\u00e9}\\/\" , \"n\": 1.0e+2\n}\r\n ", "\n { \"stream\" : true , \"a\":\"\\u00e9}\\/\" , \"n\": 1.0e+2\n,\"stream_options\":" + option + "}\r\n "},
		{"an empty object", `{}`, `{"stream_options":` + option + `}`},
		{"another option", `{"stream_options":{"include_obfuscation":false},"stream":true}`, `{"stream_options":{"include_usage":true,"include_obfuscation":false},"stream":true}`},
		{"no option", ` {"stream_options": { } ,"stream":true}`, ` {"stream_options": {"include_usage":true } ,"stream":true}`},
		{"options of null", `{"stream_options":null,"stream":true}`, `{"stream_options":` + option + `,"stream":true}`},
		{"an option of null", `{"stream_options":{"a":[null],"include_usage" : null}}`, `{"stream_options":{"a":[null],"include_usage" : true}}`},
		{"the name elsewhere", `{"metadata":{"stream_options":"x"},"stream":true}`, `{"metadata":{"stream_options":"x"},"stream":true,"stream_options":` + option + `}`},
		{"refused", `{"stream_options":{"include_usage":false}}`, ""},
		{"asked for", `{"stream_options":{"include_usage":true}}`, ""},
		{"an option of another type", `{"stream_options":{"include_usage":"yes"}}`, ""},
		{"options of another type", `{"stream_options":[1]}`, ""},
		{"said twice", `{"stream_options":null,"stream_options":{}}`, ""},
		{"an option said twice", `{"stream_options":{"include_usage":null,"include_usage":null}}`, ""},
		{"a name that is spelled otherwise", `{"stream\u005foptions":{"include_usage":false}}`, ""},
		{"no JSON", `{"stream":true`, ""},
		{"more than JSON", `{"stream":true} {}`, ""},
		{"no object", `[true]`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := []byte(row.request)
			got := withUsage(request)
			if string(got) != row.want || (got == nil) != (row.want == "") {
				t.Errorf("%s\nis sent as %s\nwant       %s", row.request, got, row.want)
			}
			if string(request) != row.request {
				t.Errorf("the client's own request became %s", request)
			}
		})
	}
}

// Whatever is asked, only the option differs from what the client said.
func FuzzUsageIsAskedFor(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","stream":true}`, ` { "stream_options" : { } } `, `{"stream_options":null}`, `{"stream_options":{"include_usage":null,"x":{}}}`,
		`{"a":"}","b":[{"stream_options":1}]}`, `{"":null}`, `{"stream_options":{"":1}}`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		asked := withUsage(request)
		if asked == nil {
			return
		}
		var before, after map[string]any
		if json.Unmarshal(request, &before) != nil {
			return // stricter than gjson: of numbers and surrogates
		}
		if err := json.Unmarshal(asked, &after); err != nil {
			t.Fatalf("%s became %s: %v", request, asked, err)
		}
		options, _ := before["stream_options"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["include_usage"] = true
		before["stream_options"] = options
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s became %s:\n%s", request, asked, diff)
		}
		if withUsage(asked) != nil {
			t.Errorf("%s is asked again", asked)
		}
	})
}
