package generator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestASecretIsNeverPrinted(t *testing.T) {
	target := Target{BaseURL: "http://h", Keys: Keys{OpenAI: "sk-verysecret", Anthropic: "sk-verysecret", Gemini: "sk-verysecret"}}
	b, err := json.Marshal(target.Keys)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(b), target.Keys.OpenAI.String(), fmt.Sprint(&target)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, target), fmt.Sprintf(verb, target.Keys.OpenAI))
	}
	for _, text := range texts {
		low := strings.ToLower(text)
		if strings.Contains(low, "verysecret") || strings.Contains(low, "766572") {
			t.Errorf("the key stands in %s", text)
		}
	}
	if string(target.Keys.OpenAI) != "sk-verysecret" {
		t.Error("the key itself is lost")
	}
}

func TestJoin(t *testing.T) {
	for _, row := range []struct{ base, path, want string }{
		{"http://h:1", "/v1/messages", "http://h:1/v1/messages"},
		{"http://h:1/", "/v1/messages", "http://h:1/v1/messages"},
		{"https://h/api", "/v1/chat/completions", "https://h/api/v1/chat/completions"},
		{"https://h/api/v1", "/v1/chat/completions", "https://h/api/v1/chat/completions"},
		{"https://h/api/v3/", "/v1/chat/completions", "https://h/api/v3/chat/completions"},
		{"http://h/s/rag/v1", "/v1/responses", "http://h/s/rag/v1/responses"},
		{"http://h", "/v1beta/models/m:streamGenerateContent?alt=sse", "http://h/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"http://h/v1beta", "/v1beta/models/m:generateContent", "http://h/v1beta/models/m:generateContent"},
		{"http://h/vault", "/v1/messages", "http://h/vault/v1/messages"},
	} {
		target := Target{BaseURL: row.base}
		base, err := target.parse()
		if err != nil {
			t.Fatal(err)
		}
		if got := join(base, row.path).String(); got != row.want {
			t.Errorf("%s + %s = %s, want %s", row.base, row.path, got, row.want)
		}
	}
	for _, bad := range []string{"", "h:1", "ftp://h", "http://", "http://h:x y"} {
		if _, err := (&Target{BaseURL: bad}).parse(); err == nil || !strings.Contains(err.Error(), "target") {
			t.Errorf("base URL %q: %v, want an error that names the target", bad, err)
		}
	}
}
