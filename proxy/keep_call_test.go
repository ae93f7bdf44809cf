package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"weir/proxy/wire"
)

// What is kept is what passed, whether it was compressed or not, and nothing
// that passes is changed by it.
func TestCallsContentIsKeptAsItPassed(t *testing.T) {
	stream := answerOf(wire.Messages, wire.SSE)
	path, request := requestOf(wire.Messages, true)
	for _, coding := range []string{"", "gzip", "zstd"} {
		sent := encode(coding, stream)
		up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write(sent)
		})
		var k kept
		s := start(t, up, func(p *Proxy) { p.Keep = &Keep{Bodies: true, To: k.to} })
		req, _ := http.NewRequest("POST", s.url+path, bytes.NewReader(encode(coding, request)))
		if coding != "" {
			req.Header.Set("Content-Encoding", coding)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Equal(got, sent) {
			t.Errorf("%q: the client got %d bytes, not the %d that were sent", coding, len(got), len(sent))
		}
		s.call(t, 1)
		k.mu.Lock()
		if len(k.all) != 1 {
			t.Fatalf("%q: %d contents are kept", coding, len(k.all))
		}
		c := k.all[0]
		k.mu.Unlock()
		asked, cut1 := c.Request.Plain(1 << 20)
		answered, cut2 := c.Response.Plain(1 << 20)
		if !bytes.Equal(asked, request) || !bytes.Equal(answered, stream) || cut1 || cut2 {
			t.Errorf("%q: kept %q (cut %v) and %q (cut %v)", coding, asked, cut1, answered, cut2)
		}
		if c.Shape == nil || len(c.Shape.Blocks) != 1 || c.Shape.Blocks[0].Role != wire.User {
			t.Errorf("%q: the shape is %+v", coding, c.Shape)
		}
	}
}

func TestResponseOverAWebSocketIsKept(t *testing.T) {
	up := socketUpstream(t, websocket.CompressionDisabled, func(_ string, say func(string)) bool {
		say(`{"type":"response.output_text.delta","delta":"x"}`)
		say(completed("r", 1, 1))
		return true
	})
	var k kept
	s := start(t, up, func(p *Proxy) { p.Keep = &Keep{Bodies: true, To: k.to} })
	conn := dialSocket(t, s.url, websocket.CompressionDisabled)
	const message = `{"type":"response.create","model":"m","input":"hello"}`
	ask(t, conn, message)
	hear(t, conn, "completed")
	conn.CloseNow()
	s.call(t, 2)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.all {
		if string(c.Request.Bytes) != message {
			continue
		}
		if n := strings.Count(string(c.Response.Bytes), "\n"); n != 2 || c.Shape == nil || len(c.Shape.Blocks) != 1 {
			t.Errorf("kept %q with the shape %+v", c.Response.Bytes, c.Shape)
		}
		return
	}
	t.Errorf("the response is not among the %d contents that are kept", len(k.all))
}
