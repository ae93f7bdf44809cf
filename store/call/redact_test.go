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
		{"GitHub's, Slack's and Stripe's keys", "ghp_0123456789abcdefABCD xoxb-123-456-abcdef sk_live_0123456789", "ghp_[redacted] xoxb-[redacted] sk_live_[redacted]"},
		{"Amazon's keys", "AKIAIOSFODNN7EXAMPLE aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AKIA[redacted] aws_secret_access_key = [redacted]"},
		{"a variable", "export OPENAI_API_KEY=abc123\nexport B=1", "export OPENAI_API_KEY=[redacted]\nexport B=1"},
		{"an assignment in Go", `apiKey := "abc 123"`, `apiKey := "[redacted]"`},
		{"a password with everything in it", `{"password":"a,b;c}d \"e","n":1}`, `{"password":"[redacted]","n":1}`},
		{"a password that ends in a backslash", `{"password":"a\\","n":"b"}`, `{"password":"[redacted]","n":"b"}`},
		{"a password in a string in a string", `{"arguments":"{\"password\": \"a,b \\\"c\"}"}`, `{"arguments":"{\"password\": \"[redacted]\"}"}`},
		{"no password", `{"password":null,"api_key":"","x":{"password":{"type":"string"}}}`, `{"password":null,"api_key":"","x":{"password":{"type":"string"}}}`},
		{"keys at the beginnings of lines of a JSON string", `"a\nsk-abcdef123\tAKIAIOSFODNN7EXAMPLE\nBearer abcdef\u000aghp_0123456789"`, `"a\nsk-[redacted]\tAKIA[redacted]\nBearer [redacted]\u000aghp_[redacted]"`},
		{"a query in a JSON string", `"h?alt=sse\u0026key=abc\u0026token=def"`, `"h?alt=sse\u0026key=[redacted]\u0026token=[redacted]"`},
		{"a private key", "a -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0\n+/=\n-----END RSA PRIVATE KEY----- b", "a -----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY----- b"},
		{"a private key in a JSON string, with line numbers", `{"a":"1→-----BEGIN PRIVATE KEY-----\n2→MIIEpAIBAAKCAQEA0\n3→-----END PRIVATE KEY-----\n","b":1}`, `{"a":"1→-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----\n","b":1}`},
		{"a private key that breaks off", `{"a":"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE","b":"MIIEpAIB"}`, `{"a":"-----BEGIN OPENSSH PRIVATE KEY-----[redacted]","b":"MIIEpAIB"}`},
		{"a certificate, which is no secret", "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA0\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA0\n-----END CERTIFICATE-----"},
		{"two keys next to each other", "AKIAIOSFODNN7EXAMPLEsk-abcdef123", "AKIA[redacted]sk-[redacted]"},
		{"words that only look alike", "task-force risk-adjusted desk-sharing the key is bearer of news monkey=1 a basic example hf_hub_download", "task-force risk-adjusted desk-sharing the key is bearer of news monkey=1 a basic example hf_hub_download"},
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
