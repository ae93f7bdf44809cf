package call

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"weir/proxy/wire"
)

// Keys of figures that follow from the properties of a call. Nothing is read
// back from them.
const (
	keyFirstChunk   attribute.Key = "gen_ai.response.time_to_first_chunk" // s; no first token
	keyChoiceCount  attribute.Key = "gen_ai.request.choice.count"         // unless it is 1
	keyOpenAIType   attribute.Key = "openai.api.type"
	keyTTFTUpstream attribute.Key = "weir.ttft.upstream_ns"
	keyTTFTFelt     attribute.Key = "weir.ttft.felt_ns"
	keyTTFTResponse attribute.Key = "weir.ttft.response_ns"
	keyTPOT         attribute.Key = "weir.tpot_ns"
	keyPartRead     attribute.Key = "weir.part.read_ns"
	keyPartQueue    attribute.Key = "weir.part.queue_ns"
	keyPartAttempts attribute.Key = "weir.part.attempts_ns" // where the first was refused
	keyPartConnect  attribute.Key = "weir.part.connect_ns"
	keyPartSend     attribute.Key = "weir.part.send_ns"
	keyPartWait     attribute.Key = "weir.part.wait_ns"
	keyPartGenerate attribute.Key = "weir.part.generate_ns"
	keyPartTail     attribute.Key = "weir.part.tail_ns"
)

func (c *Call) appendFigures(list []attribute.KeyValue) []attribute.KeyValue {
	if d, ok := c.FirstChunk(); ok {
		list = append(list, keyFirstChunk.Float64(d.Seconds()))
	}
	if n := c.Request.Choices; n.Known && n.N != 1 {
		list = append(list, keyChoiceCount.Int64(n.N))
	}
	switch c.API {
	case wire.Chat:
		list = append(list, keyOpenAIType.String("chat_completions"))
	case wire.Responses:
		list = append(list, keyOpenAIType.String("responses"))
	}
	figure := func(key attribute.Key, d time.Duration, ok bool) {
		if ok {
			list = append(list, key.Int64(int64(d)))
		}
	}
	d, ok := c.TTFTUpstream()
	figure(keyTTFTUpstream, d, ok)
	d, ok = c.TTFTFelt()
	figure(keyTTFTFelt, d, ok)
	d, ok = c.TTFTResponse()
	figure(keyTTFTResponse, d, ok)
	d, ok = c.TPOT()
	figure(keyTPOT, d, ok)
	p, ok := c.Account()
	figure(keyPartRead, p.Read, ok)
	figure(keyPartQueue, p.Queue, ok)
	figure(keyPartAttempts, p.Attempts, ok && p.Attempts > 0)
	figure(keyPartConnect, p.Connect, ok)
	figure(keyPartSend, p.Send, ok)
	figure(keyPartWait, p.Wait, ok)
	figure(keyPartGenerate, p.Generate, ok)
	figure(keyPartTail, p.Tail, ok)
	return list
}
