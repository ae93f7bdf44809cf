package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
)

// passed is what went through a connection: the two heads apart from what
// followed the switch.
type passed struct {
	extensions     string
	client, server []byte
}

// tee is a listener that joins each caller to the address behind it and keeps
// a copy of what passes. The copies are whole when wait returns.
type tee struct {
	net.Listener
	behind         string
	client, server bytes.Buffer
	joins          sync.WaitGroup
}

func newTee(t *testing.T, behind string) *tee {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	e := &tee{Listener: l, behind: behind}
	e.joins.Go(func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", e.behind)
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		var ways sync.WaitGroup
		way := func(dst, src net.Conn, keep *bytes.Buffer) {
			_, _ = io.Copy(io.MultiWriter(keep, dst), src) // either end may go first
			dst.Close()
			src.Close()
		}
		ways.Go(func() { way(far, near, &e.client) })
		ways.Go(func() { way(near, far, &e.server) })
		ways.Wait()
	})
	return e
}

func (e *tee) wait(t *testing.T) passed {
	t.Helper()
	e.joins.Wait()
	_, client, _ := bytes.Cut(e.client.Bytes(), []byte("\r\n\r\n"))
	head, server, ok := bytes.Cut(e.server.Bytes(), []byte("\r\n\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(append(head, "\r\n\r\n"...))), nil)
	if !ok || err != nil {
		t.Fatalf("the answer to the upgrade is %q: %v", head, err)
	}
	return passed{resp.Header.Get("Sec-WebSocket-Extensions"), client, server}
}

// readWebSocket feeds b in pieces of step bytes and gives all messages.
func readWebSocket(w *WebSocket, b []byte, step int) (messages []WebSocketMessage, err error) {
	for len(b) > 0 && err == nil {
		n := min(step, len(b))
		piece := bytes.Clone(b[:n]) // what is lent must not be kept
		err = w.Feed(piece, func(m WebSocketMessage) {
			m.Data = bytes.Clone(m.Data)
			if m.Data == nil {
				m.Data = []byte{}
			}
			messages = append(messages, m)
		})
		clear(piece)
		b = b[n:]
	}
	w.Close()
	return messages, err
}

// spoken are messages with what is hard in them: lengths around the borders of
// the head's forms, words that repeat, pieces, and none.
func spoken() []WebSocketMessage {
	event := `{"type":"response.output_text.delta","sequence_number":17,"item_id":"msg_0","output_index":0,"content_index":0,"delta":" 堰 weir"}`
	list := []WebSocketMessage{{Opcode: TextMessage, Data: []byte{}}}
	for _, n := range []int{1, 125, 126, 127, 4096, 65535, 65536, 200_000} {
		list = append(list, WebSocketMessage{Opcode: TextMessage, Data: []byte(strings.Repeat(event, n/len(event)+1)[:n])})
	}
	for range 40 {
		list = append(list, WebSocketMessage{Opcode: TextMessage, Data: []byte(event)})
	}
	noise := make([]byte, 70_000)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	return append(list, WebSocketMessage{Opcode: BinaryMessage, Data: noise}, WebSocketMessage{Opcode: TextMessage, Data: []byte(event)})
}

// say sends the messages, each third in pieces, with pings between them.
func say(ctx context.Context, c *websocket.Conn, messages []WebSocketMessage) error {
	for i, m := range messages {
		if i%3 != 0 {
			if err := c.Write(ctx, websocket.MessageType(m.Opcode), m.Data); err != nil {
				return err
			}
			continue
		}
		w, err := c.Writer(ctx, websocket.MessageType(m.Opcode))
		if err != nil {
			return err
		}
		half := len(m.Data) / 2
		if _, err := w.Write(m.Data[:half]); err != nil {
			return err
		}
		if i%6 == 0 { // within the message
			if err := c.Ping(ctx); err != nil {
				return err
			}
		}
		if _, err := w.Write(m.Data[half:]); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// converse lets two ends of a real library speak through a tee, both at the
// same time, and gives what passed and what each heard. Both read until the
// close, since who reads also answers pings.
func converse(t *testing.T, client, server websocket.CompressionMode) (p passed, byServer, byClient []WebSocketMessage) {
	t.Helper()
	ctx := t.Context()
	words := spoken()
	listen := func(c *websocket.Conn, heardAll chan<- struct{}) (heard []WebSocketMessage, err error) {
		c.SetReadLimit(-1)
		for {
			kind, data, err := c.Read(ctx)
			if err != nil {
				return heard, err
			}
			if heard = append(heard, WebSocketMessage{Opcode: Opcode(kind), Data: data}); len(heard) == len(words) {
				close(heardAll)
			}
		}
	}
	served := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served <- func() error {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: server, CompressionThreshold: 16})
			if err != nil {
				return err
			}
			defer c.CloseNow()
			said := make(chan error, 1)
			go func() { said <- say(ctx, c, words) }()
			var closed error
			if byServer, closed = listen(c, make(chan struct{})); websocket.CloseStatus(closed) != 4001 {
				err = closed
			}
			return errors.Join(err, <-said)
		}()
	}))
	defer s.Close()
	e := newTee(t, s.Listener.Addr().String())
	c, _, err := websocket.Dial(ctx, "ws://"+e.Addr().String(), &websocket.DialOptions{CompressionMode: client, CompressionThreshold: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	heardAll, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		byClient, _ = listen(c, heardAll) // its error is the close
	}()
	if err := say(ctx, c, words); err != nil {
		t.Errorf("client: %v", err)
	}
	select {
	case <-heardAll:
	case <-ended:
		t.Error("the client did not hear all")
	}
	if err := c.Close(4001, "done"); err != nil {
		t.Errorf("close: %v", err)
	}
	<-ended
	if err := <-served; err != nil {
		t.Errorf("server: %v", err)
	}
	return e.wait(t), byServer, byClient
}

// What two ends of another implementation hear is what is read from a copy of
// the bytes, whatever the split.
func TestWebSocketHearsWhatTheEndsHear(t *testing.T) {
	for _, row := range []struct {
		name           string
		client, server websocket.CompressionMode
		extensions     string
	}{
		{"no compression", websocket.CompressionDisabled, websocket.CompressionContextTakeover, ""},
		{"windows kept from message to message", websocket.CompressionContextTakeover, websocket.CompressionContextTakeover, "permessage-deflate"},
		{"each message alone", websocket.CompressionNoContextTakeover, websocket.CompressionNoContextTakeover, "permessage-deflate; client_no_context_takeover; server_no_context_takeover"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, byServer, byClient := converse(t, row.client, row.server)
			if p.extensions != row.extensions {
				t.Errorf("the ends agreed on %q, want %q: the row tests another thing", p.extensions, row.extensions)
			}
			closed := WebSocketMessage{Opcode: CloseMessage, Code: 4001, Data: []byte("done")}
			for _, direction := range []struct {
				name       string
				fromClient bool
				bytes      []byte
				want       []WebSocketMessage
			}{
				{"client", true, p.client, append(byServer, closed)},
				{"server", false, p.server, append(byClient, closed)},
			} {
				for _, step := range []int{1, 2, 3, 7, 126, 4096, 65_000, len(direction.bytes)} {
					got, err := readWebSocket(NewWebSocket(p.extensions, direction.fromClient, 0), direction.bytes, step)
					if err != nil {
						t.Fatalf("%s, %d bytes at a time: %v", direction.name, step, err)
					}
					if diff := cmp.Diff(direction.want, got, cmp.Comparer(bytes.Equal)); diff != "" {
						t.Fatalf("%s, %d bytes at a time:\n%s", direction.name, step, diff)
					}
				}
			}
		})
	}
}
