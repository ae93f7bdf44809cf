package call

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

// Whatever an upstream sends, the meter does not fail, the split of the bytes
// changes no figure, and the call is judged and adds up.
func FuzzMeter(f *testing.F) {
	apis := []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini, ""}
	for i := range complete {
		var body string
		for _, r := range complete[i].script.reads {
			body += r.body
		}
		f.Add([]byte(body), uint8(i), uint8(3), uint8(0), uint16(200))
	}
	f.Add([]byte(`{"error":{"message":"x"}}`), uint8(0), uint8(1), uint8(1), uint16(429))
	f.Fuzz(func(t *testing.T, body []byte, api, size, how uint8, status uint16) {
		headers := []http.Header{sse, document, {}, {"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}}
		measure := func(step int) *Call {
			c, m := (&script{api: apis[int(api)%len(apis)], request: wire.Head{Stream: how&8 == 0}}).start()
			m.Begin(int(status), headers[int(how>>4)%len(headers)], t0+8*ms)
			for b := body; len(b) > 0; b = b[min(step, len(b)):] {
				m.Observe(b[:min(step, len(b))], t0+9*ms, t0+10*ms)
			}
			m.End(End(how%6), nil, t0+11*ms)
			return c
		}
		whole, split := measure(len(body)+1), measure(int(size)+1)
		if diff := cmp.Diff(whole, split); diff != "" {
			t.Fatalf("the split changed the figures:\n%s", diff)
		}
		if whole.Outcome == "" || (whole.NoFirstToken == "") != whole.FirstToken.Reached() {
			t.Fatalf("not judged: %v, no first token because %q", whole, whole.NoFirstToken)
		}
		if _, ok := whole.Account(); !ok {
			t.Fatal("no account")
		}
	})
}
