package call

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A model writes a key in pieces; wherever they are cut, the key is not kept,
// and what is kept is the same events.
func TestRedactStreamFindsKeysInPieces(t *testing.T) {
	for _, row := range []struct{ sentence, event, said, want string }{
		{"a chat's text", `data: {"choices":[{"index":0,"delta":{"content":%s}}]}`, "use sk-proj-abcDEF123456 here", "use sk-[redacted] here"},
		{"a tool's arguments", `data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%s}}`,
			`{"env":{"API_KEY":"hunter 2, or so"},"n":1}`, `{"env":{"API_KEY":"[redacted]"},"n":1}`},
		{"a private key", `data: {"type":"response.output_text.delta","output_index":0,"delta":%s}`,
			"-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0\n-----END PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----[redacted]-----END PRIVATE KEY-----\n"},
		{"nothing secret", `data: {"choices":[{"index":0,"delta":{"content":%s}}]}`, "only words: a = b - c", "only words: a = b - c"},
	} {
		for size := 1; size <= len(row.said); size++ {
			var body strings.Builder
			events := 0
			for at := 0; at < len(row.said); at += size {
				literal, err := json.Marshal(row.said[at:min(len(row.said), at+size)])
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&body, row.event+"\n\n", literal)
				events++
			}
			got := RedactStream(body.String())
			var said strings.Builder
			for _, line := range strings.Split(got, "\n") {
				event, ok := strings.CutPrefix(line, "data: ")
				if !ok {
					continue
				}
				events--
				var v any
				if err := json.Unmarshal([]byte(event), &v); err != nil {
					t.Fatalf("%s, %d bytes a piece: %v in %s", row.sentence, size, err, event)
				}
				said.WriteString(words(v))
			}
			if events != 0 || said.String() != row.want {
				t.Fatalf("%s, %d bytes a piece: %d events missing, said %q, want %q", row.sentence, size, events, said.String(), row.want)
			}
		}
	}
}

// words are the strings of an event that are not its type.
func words(v any) string {
	s := ""
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, e := range v {
			s += words(e)
		}
	case map[string]any:
		for k, e := range v {
			if k != "type" {
				s += words(e)
			}
		}
	}
	return s
}

func TestRedactStreamKeepsChoicesApart(t *testing.T) {
	line := `{"index":%d,"delta":{"content":"%s"}}` + "\n"
	var body string
	for i, piece := range []string{"sk-", "words", "abc", " that ", "DEF", "are"} {
		body += fmt.Sprintf(line, i%2, piece)
	}
	got := RedactStream(body)
	if strings.Contains(got, "abc") || strings.Contains(got, "DEF") || !strings.Contains(got, "words") || !strings.Contains(got, " that ") {
		t.Errorf("got %s", got)
	}
}

func TestRedactStreamReadsBodiesThatAreNoStreams(t *testing.T) {
	for in, want := range map[string]string{
		`{"error":{"message":"Incorrect API key provided: sk-abcdef123"}}`: `{"error":{"message":"Incorrect API key provided: [redacted]"}}`,
		`x-api-key: abc "broken` + "\n" + `"sk-abcdef`:                     `x-api-key: [redacted] "broken` + "\n" + `"sk-[redacted]`,
		"": "",
	} {
		if got := RedactStream(in); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzRedactStream(f *testing.F) {
	f.Add(`data: {"index":0,"a":"sk-"}` + "\n" + `data: {"index":0,"a":"abcdef\"\\"}`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := RedactStream(s); Redact(got) != got {
			t.Errorf("%q → %q, in which there is still a secret", s, got)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	request := strings.Repeat(`{"role":"user","content":"The quick brown fox: a_b = c-d, see https://x.y/z?q=1 and basic things\nfunc main() { fmt.Println(\"hi\") }"},`, 8000)[:1<<20]
	stream := strings.Repeat(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`+"\n\n", 7000)[:1<<20]
	for _, row := range []struct {
		name, body string
		redact     func(string) string
	}{{"request", request, Redact}, {"stream", stream, RedactStream}} {
		b.Run(row.name, func(b *testing.B) {
			b.SetBytes(int64(len(row.body)))
			for b.Loop() {
				row.redact(row.body)
			}
		})
	}
}
