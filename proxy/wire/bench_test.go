package wire

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
)

// contentEvents are one event of text a dialect, as the providers send them.
var contentEvents = map[API]string{
	Chat:        `data: {"id":"chatcmpl-9xKDn2Gxq","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-2024-11-20","service_tier":"default","system_fingerprint":"fp_07871e2ad8","choices":[{"index":0,"delta":{"content":" stream"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n",
	Completions: `data: {"id":"cmpl-9xKDn2Gxq","object":"text_completion","created":1750000000,"choices":[{"text":" stream","index":0,"logprobs":null,"finish_reason":null}],"model":"llama-3.3-70b"}` + "\n\n",
	Responses: `event: response.output_text.delta` + "\n" +
		`data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_68a1f0","output_index":0,"content_index":0,"delta":" stream","logprobs":[],"obfuscation":"9xKDn2Gxq"}` + "\n\n",
	Messages: `event: content_block_delta` + "\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" stream"}         }` + "\n\n",
	Gemini: `data: {"candidates": [{"content": {"parts": [{"text": " stream"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 812,"candidatesTokenCount": 23,"totalTokenCount": 835,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 812}]},"modelVersion": "gemini-2.5-pro","responseId": "x1u2aK3b"}` + "\r\n\r\n",
}

func BenchmarkEvent(b *testing.B) {
	for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		for _, kind := range []string{"plain", "escaped"} {
			b.Run(fmt.Sprintf("%s/%s", api, kind), func(b *testing.B) {
				frame := contentEvents[api]
				if kind == "escaped" {
					frame = strings.Replace(frame, " stream", `\n\t\"\u4f60\ud83c\udf0a`, 1)
				}
				format, split := For(api), NewSplitter(SSE, 0)
				var ev Event
				tokens := 0
				take := func(f Frame) {
					if format.ParseEvent(&ev, f) == nil && ev.Output() != 0 {
						tokens++
					}
				}
				body := []byte(frame)
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					split.Feed(body, take)
				}
				if tokens < b.N {
					b.Fatalf("%d tokens in %d events", tokens, b.N)
				}
			})
		}
	}
}

// BenchmarkWriter writes answers of 4,000 pieces; the figures are of one answer.
func BenchmarkWriter(b *testing.B) {
	for _, api := range []API{Chat, Responses, Messages, Gemini} {
		b.Run(string(api), func(b *testing.B) {
			var dst []byte
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				w := NewWriter(For(api), "id-1", "model-x", Usage{Input: N(9)}, WriterOptions{Framing: SSE, Usage: true})
				dst = w.Open(dst[:0])
				for range 4000 {
					dst = w.Text(dst, " stream")
				}
				dst = w.Close(dst, "stop", Usage{Input: N(9), Output: N(4000)})
				n = len(dst)
			}
			b.SetBytes(int64(n))
		})
	}
}

func BenchmarkSplitter(b *testing.B) {
	for _, size := range []int{32, 256, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("data-%d", size), func(b *testing.B) {
			frame := "data: " + strings.Repeat("x", size) + "\n\n"
			body := []byte(strings.Repeat(frame, max(1, (256<<10)/len(frame))))
			split := NewSplitter(SSE, 0)
			n := 0
			take := func(Frame) { n++ }
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				split.Feed(body, take)
			}
		})
	}
	b.Run("array", func(b *testing.B) {
		element := `{"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("word ", 40) + `"}]}}]},`
		body := []byte(strings.Repeat(element, 200))
		split := NewSplitter(JSONArray, 0)
		split.Feed([]byte("["), func(Frame) {})
		n := 0
		take := func(Frame) { n++ }
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			split.Feed(body, take)
		}
	})
}

// longBody is a request of about size bytes: an agent's history of tool calls
// whose arguments and results are full of escapes.
func longBody(tb testing.TB, api API, size int) []byte {
	tb.Helper()
	r := Request{Head: Head{Model: "m", Stream: true, MaxTokens: N(1024)}, System: strings.Repeat("Be exact. ", 800)}
	result := strings.Repeat("func main() {\n\tfmt.Println(\"hello\")\n}\n", 100)
	for i := 0; i*len(result) < size; i++ {
		id := fmt.Sprintf("call_%d", i)
		r.Messages = append(r.Messages,
			Message{Role: Assistant, Parts: []Part{{Kind: KindTool, ID: id, Name: "read", Arguments: `{"path":"main.go"}`}}},
			Message{Role: ToolRole, Parts: []Part{{Kind: KindToolResult, ID: id, Name: "read", Text: result}}})
	}
	body, err := For(api).AppendRequest(nil, &r)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func BenchmarkParseHead(b *testing.B) {
	for _, api := range []API{Chat, Responses, Messages, Gemini} {
		b.Run(string(api)+"/1MB", func(b *testing.B) {
			body := longBody(b, api, 1<<20)
			f := For(api)
			var h Head
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := f.ParseHead(&h, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecoder(b *testing.B) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	frame := []byte(contentEvents[Chat])
	for range 200 {
		_, _ = z.Write(frame)
		_ = z.Flush()
	}
	b.SetBytes(int64(200 * len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := NewDecoder("gzip")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.Decode(packed.Bytes()); err != nil {
			b.Fatal(err)
		}
		d.Close()
	}
}
