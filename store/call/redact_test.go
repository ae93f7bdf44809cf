package call

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedact(t *testing.T) {
	for _, row := range []struct{ sentence, in, want string }{
		{"OpenAI's key", "Incorrect API key provided: sk-proj-abcDEF123_456-xyz. You can", "Incorrect API key provided: [redacted] You can"},
		{"a key with its middle masked", "key sk-abcd**********wxyz is", "key sk-[redacted] is"},
		{"Anthropic's key", `"sk-ant-api03-AbC_d-123456"`, `"sk-[redacted]"`},
		{"Bearer", "Authorization: Bearer abc.def~ghi==", "Authorization: Bearer [redacted]"},
		{"Basic", "authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"},
		{"a header", "x-api-key: 0123456789abcdef\r\nhost: x", "x-api-key: [redacted]\r\nhost: x"},
		{"a JSON field", `{"api_key":"abc123","n":1}`, `{"api_key":"[redacted]","n":1}`},
		{"a JSON field inside a string", `"{\"x-goog-api-key\":\"abc123\"}"`, `"{\"x-goog-api-key\":\"[redacted]\"}"`},
		{"Google's key", "API key AIzaSyA1234567890abcdefghijk not valid", "API key AIza[redacted] not valid"},
		{"a query", "Post \"https://h/v1beta/models/m:generateContent?alt=sse&key=abc123&x=1\": EOF", "Post \"https://h/v1beta/models/m:generateContent?alt=sse&key=[redacted]&x=1\": EOF"},
		{"a token in a query", "https://h/?access_token=abc#f", "https://h/?access_token=[redacted]"},
		{"a JWT", "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_123 expired", "token eyJ[redacted] expired"},
		{"Groq's and Hugging Face's keys", "gsk_0123456789abcdef hf_0123456789abcdef", "gsk_[redacted] hf_[redacted]"},
		{"words that only look alike", "task-force risk-adjusted desk-sharing the key is bearer of news monkey=1", "task-force risk-adjusted desk-sharing the key is bearer of news monkey=1"},
		{"usage", `{"usage":{"prompt_tokens":12,"max_tokens":5}}`, `{"usage":{"prompt_tokens":12,"max_tokens":5}}`},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := Redact(row.in)
			if got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
			if again := Redact(got); again != got {
				t.Errorf("a second time gives %q", again)
			}
		})
	}
}

func TestStorableIsValidUTF8WithinItsLimit(t *testing.T) {
	got := storable("世世世\xff"+strings.Repeat("界", 100), 8)
	if got != "世世" {
		t.Errorf("got %q", got)
	}
	if s := storable("a\xffb", 10); !utf8.ValidString(s) {
		t.Errorf("got %q", s)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("x-api-key: abc key=1&key=2 Bearer aaaaaaaaaaa sk-aaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, s string) {
		once := Redact(s)
		if again := Redact(once); again != once {
			t.Errorf("%q → %q → %q", s, once, again)
		}
	})
}
