package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
	"weir/store/call"
)

// socketUpstream speaks Responses over WebSockets: answer gets each message of
// a client, and what it says is sent as it is.
func socketUpstream(t *testing.T, mode websocket.CompressionMode, answer func(message string, say func(string)) (goOn bool)) string {
	return upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode})
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(-1)
		for {
			_, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if !answer(string(message), func(s string) {
				if err := conn.Write(r.Context(), websocket.MessageText, []byte(s)); err != nil && r.Context().Err() == nil {
					t.Log(err)
				}
			}) {
				return
			}
		}
	})
}

func dialSocket(t *testing.T, base string, mode websocket.CompressionMode) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), base+"/s/codex/v1/responses", &websocket.DialOptions{
		CompressionMode: mode,
		HTTPHeader:      http.Header{"User-Agent": {"codex_exec/0.171.0 (Debian)"}, "Session-Id": {"s-1"}, "Authorization": {"Bearer k"}, "Openai-Beta": {"responses_websockets=2026-02-06"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { conn.CloseNow() })
	return conn
}

func ask(t *testing.T, conn *websocket.Conn, message string) {
	t.Helper()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// hear reads messages up to one that holds last, and gives all.
func hear(t *testing.T, conn *websocket.Conn, last string) (all []string) {
	t.Helper()
	for {
		_, message, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(message))
		if strings.Contains(string(message), last) {
			return all
		}
	}
}

func completed(id string, input, output int) string {
	return fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"model":"gpt-x","status":"completed","output":[],"usage":{"input_tokens":%d,"output_tokens":%d}}}`, id, input, output)
}

// turnsOf waits until n calls were recorded, and gives the turns among them.
func turnsOf(t *testing.T, s *sidecar, n int) (turns []*call.Call) {
	t.Helper()
	s.call(t, n)
	for i := range n {
		if c := s.call(t, i+1); c.Purpose != "connection" {
			turns = append(turns, c)
		}
	}
	return turns
}

func TestCodexWebSocketIsTunnelledAndEachResponseIsACall(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		var said []string
		n := 0
		up := socketUpstream(t, mode, func(message string, say func(string)) bool {
			n++
			id := fmt.Sprint("resp_", n)
			events := []string{
				fmt.Sprintf(`{"type":"response.created","response":{"id":%q,"model":"gpt-x"}}`, id),
				fmt.Sprintf(`{"type":"response.output_text.delta","delta":"hello %d"}`, n),
				completed(id, 100*n, 7),
			}
			if strings.Contains(message, `"generate":false`) {
				events = slices.Delete(events, 1, 2)
			}
			for _, e := range events {
				said = append(said, e)
				say(e)
			}
			return true
		})
		s := start(t, up, nil)
		conn := dialSocket(t, s.url, mode)
		var heard []string
		ask(t, conn, `{"type":"response.create","model":"gpt-x","generate":false,"input":[]}`)
		heard = append(heard, hear(t, conn, "completed")...)
		ask(t, conn, `{"type":"response.create","model":"gpt-x","input":[{"role":"user","content":"a"}],"tools":[{"type":"function","name":"f"}]}`)
		heard = append(heard, hear(t, conn, "completed")...)
		ask(t, conn, `{"type":"response.create","model":"gpt-x","previous_response_id":"resp_2","input":[{"role":"user","content":"`+strings.Repeat("long ", 20_000)+`"}]}`)
		heard = append(heard, hear(t, conn, "completed")...)
		conn.Close(websocket.StatusNormalClosure, "")
		if diff := cmp.Diff(said, heard); diff != "" {
			t.Errorf("mode %d: what the client heard (-said +heard):\n%s", mode, diff)
		}
		turns := turnsOf(t, s, 4)
		if len(turns) != 3 {
			t.Fatalf("mode %d: %d turns", mode, len(turns))
		}
		for i, c := range turns {
			if c.Outcome != call.OK || c.Usage.Input != wire.N(int64(100*(i+1))) || c.UsageSource != call.UsageReported || c.ResponseID != fmt.Sprint("resp_", i+1) ||
				c.Scenario != "codex" || c.Session != "s-1" || c.ClientName != "codex" || c.Request.Model != "gpt-x" || !c.Streamed || c.Operation != wire.OpChat {
				t.Errorf("mode %d, turn %d: recorded %v: %+v", mode, i, c, c)
			}
			if c.Body < c.Arrived || c.Sent < c.Body || c.Headers < c.Sent || c.Done < c.Headers {
				t.Errorf("mode %d, turn %d: instants out of order: %+v", mode, i, c.Instants)
			}
			if prewarm := i == 0; prewarm != (c.Purpose == "prewarm") || prewarm == c.FirstToken.Reached() {
				t.Errorf("mode %d, turn %d: purpose %q, first token %v", mode, i, c.Purpose, c.FirstToken)
			}
		}
		if c := turns[2]; c.Request.PreviousResponse != "resp_2" || c.RequestBytes < 100_000 || c.Request.ToolCount != 0 || turns[1].Request.ToolCount != 1 {
			t.Errorf("mode %d: the last request is %+v of %d bytes", mode, c.Request, c.RequestBytes)
		}
		connection := s.call(t, 1)
		if connection.Purpose != "connection" || connection.Status != 101 || connection.FirstToken.Reached() || connection.Outcome != call.OK {
			t.Errorf("mode %d: the connection is recorded as %v for %q", mode, connection, connection.Purpose)
		}
		for _, c := range turns {
			if c.ParentSpan != connection.SpanID || c.TraceID != connection.TraceID {
				t.Errorf("mode %d: a turn does not stand below its connection", mode)
			}
		}
	}
}

func TestResponseOverAWebSocketThatFailsSaysHow(t *testing.T) {
	created := `{"type":"response.created","response":{"id":"r","model":"m"}}`
	token := `{"type":"response.output_text.delta","delta":"x"}`
	for _, row := range []struct {
		sentence string
		events   []string
		leave    bool // the client, after the first event
		want     call.Outcome
	}{
		{"an error with a status", []string{`{"type":"error","status":429,"error":{"type":"rate_limit_exceeded","message":"slow down"}}`}, false, call.RateLimited},
		{"an error in its midst", []string{created, token, `{"type":"error","error":{"type":"server_error","message":"broke"}}`}, false, call.StreamError},
		{"failed, after an error", []string{created, `{"type":"error","error":{"type":"server_error","message":"broke"}}`, `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"broke"}}}`}, false, call.StreamError},
		{"the connection breaks", []string{created, token, "BREAK"}, false, call.Truncated},
		{"before any answer", []string{"BREAK"}, false, call.Truncated},
		{"the client leaves", []string{created, token}, true, call.ClientGone},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			up := socketUpstream(t, websocket.CompressionDisabled, func(_ string, say func(string)) bool {
				for _, e := range row.events {
					if e == "BREAK" {
						return false
					}
					say(e)
				}
				return true
			})
			s := start(t, up, nil)
			conn := dialSocket(t, s.url, websocket.CompressionDisabled)
			ask(t, conn, `{"type":"response.create","model":"m","input":"a"}`)
			for range row.events {
				if _, _, err := conn.Read(t.Context()); err != nil || row.leave {
					break
				}
			}
			conn.CloseNow()
			turns := turnsOf(t, s, 2)
			if len(turns) != 1 || turns[0].Outcome != row.want || turns[0].ErrorMessage == "" {
				t.Errorf("recorded %v, want %s", turns, row.want)
			}
		})
	}
}

func TestLastWordOnAFailedResponseIsNotTheNextOnes(t *testing.T) {
	n := 0
	up := socketUpstream(t, websocket.CompressionDisabled, func(_ string, say func(string)) bool {
		if n++; n == 1 {
			say(`{"type":"response.created","response":{"id":"r1","model":"m"}}`)
			say(`{"type":"error","error":{"type":"server_error","message":"broke"}}`)
			return true
		}
		say(`{"type":"response.failed","response":{"id":"r1","status":"failed"}}`)
		say(`{"type":"response.created","response":{"id":"r2","model":"m"}}`)
		say(`{"type":"response.output_text.delta","delta":"x"}`)
		say(completed("r2", 5, 1))
		return true
	})
	s := start(t, up, nil)
	conn := dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, conn, `{"type":"response.create","model":"m","input":"a"}`)
	hear(t, conn, `"error"`)
	ask(t, conn, `{"type":"response.create","model":"m","input":"b"}`)
	hear(t, conn, "completed")
	conn.CloseNow()
	turns := turnsOf(t, s, 3)
	if len(turns) != 2 || turns[0].Outcome != call.StreamError || turns[1].Outcome != call.OK || turns[1].ResponseID != "r2" {
		t.Errorf("recorded %v", turns)
	}
}

func TestStreamsOfOneWebSocketAreToldApart(t *testing.T) {
	asked := 0
	up := socketUpstream(t, websocket.CompressionDisabled, func(_ string, say func(string)) bool {
		if asked++; asked < 2 {
			return true
		}
		for _, e := range []string{
			`{"type":"response.created","stream_id":"b","response":{"id":"rb","model":"m"}}`,
			`{"type":"response.created","stream_id":"a","response":{"id":"ra","model":"m"}}`,
			`{"type":"response.output_text.delta","stream_id":"b","delta":"x"}`,
			`{"type":"response.output_text.delta","stream_id":"a","delta":"x"}`,
			`{"type":"response.completed","stream_id":"b","response":{"id":"rb","status":"completed","usage":{"input_tokens":2,"output_tokens":1}}}`,
			`{"type":"response.completed","stream_id":"a","response":{"id":"ra","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}`,
		} {
			say(e)
		}
		return true
	})
	s := start(t, up, nil)
	conn := dialSocket(t, s.url, websocket.CompressionDisabled)
	ask(t, conn, `{"type":"response.create","stream_id":"a","model":"m","input":"a"}`)
	ask(t, conn, `{"type":"response.create","stream_id":"b","model":"m","input":"b"}`)
	hear(t, conn, `"status":"completed","usage":{"input_tokens":1`)
	conn.CloseNow()
	got := map[string]string{}
	for _, c := range turnsOf(t, s, 3) {
		got[c.ResponseID] = fmt.Sprint(c.Usage.Input.N, c.Outcome)
	}
	if diff := cmp.Diff(map[string]string{"ra": "1ok", "rb": "2ok"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is no WebSocket after all passes too.
func TestBytesThatAreNoFramesPass(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		io.CopyN(conn, rw, 9)
	})
	s := start(t, up, nil)
	req, _ := http.NewRequestWithContext(context.Background(), "GET", s.url+"/v1/responses", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := resp.Body.(io.ReadWriter)
	io.WriteString(body, "\xff\xff\xffno way")
	got, err := io.ReadAll(body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != "\xff\xff\xffno way" {
		t.Errorf("through came %q, %v", got, err)
	}
	if c := s.call(t, 1); c.Outcome != call.OK {
		t.Errorf("recorded %v", c)
	}
}
