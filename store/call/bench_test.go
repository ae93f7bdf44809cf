package call

import (
	"strings"
	"testing"

	"weir/proxy/wire"
)

// BenchmarkMeter measures streams of 50 content events, an event a read:
// ns/op is of a stream, ns/event beside it.
func BenchmarkMeter(b *testing.B) {
	for _, row := range []struct {
		api         wire.API
		head, event string
		tail        string
	}{
		{wire.Chat, data(chatRole), data(chatHel), data(chatStop, chatUsage, done)},
		{wire.Messages, messageStart + blockStart, textDelta("Hello"), blockStop + messageDelta + messageStop},
		{wire.Responses, event("response.created", `{"type":"response.created","response":{"id":"r1","model":"g"}}`),
			event("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello","sequence_number":7}`),
			event("response.completed", `{"type":"response.completed","response":{"id":"r1","model":"g","usage":{"input_tokens":9,"output_tokens":50}}}`)},
		{wire.Gemini, "", data(`{"responseId":"g1","modelVersion":"gem","candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":1}}`),
			data(`{"candidates":[{"finishReason":"STOP"}]}`)},
	} {
		b.Run(string(row.api), func(b *testing.B) {
			reads := [][]byte{[]byte(row.head)}
			for range 50 {
				reads = append(reads, []byte(row.event))
			}
			reads = append(reads, []byte(row.tail))
			size := int64(0)
			for _, p := range reads {
				size += int64(len(p))
			}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c, m := (&script{api: row.api, request: wire.Head{Stream: true}}).start()
				m.Begin(200, sse, t0)
				at := t0
				for _, p := range reads {
					at += 20 * ms
					m.Observe(p, at, at)
				}
				m.End(EndClean, nil, at)
				if c.Outcome != OK {
					b.Fatal(c)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50, "ns/event")
		})
	}
}

// A content event allocates nothing of its own: only the timeline grows.
func TestAContentEventAllocatesNothing(t *testing.T) {
	_, m := (&script{api: wire.Chat, request: wire.Head{Stream: true}}).start()
	m.Begin(200, sse, t0)
	m.Observe([]byte(strings.Repeat(data(chatHel), 100)), t0+ms, t0+ms)
	m.call.Timeline = append(make(Timeline, 0, timelineLimit), m.call.Timeline...)
	p, at := []byte(data(chatLo)), t0+ms
	if n := testing.AllocsPerRun(1000, func() {
		at += 20 * ms
		m.Observe(p, at, at)
	}); n > 0 {
		t.Errorf("%v allocations a content event", n)
	}
}
