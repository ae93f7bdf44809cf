package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"weir/proxy/wire"
)

const (
	socketMessage = 64 << 20 // bytes of a client's message at most
	socketQueue   = 16       // messages that may wait behind the one being answered
)

// socket is a WebSocket on which the Responses API is spoken: a message for
// each response that the client wants, answered one after the other, each event
// of an answer a message. A lane that a message names (stream_id) is passed
// over.
type socket struct {
	s    *Sim
	conn *websocket.Conn
	r    *http.Request // the upgrade, with a context that ends with the connection

	// What the next message may go on from: the latest response. It is lost
	// when what goes on from it fails, as at OpenAI.
	latest string            // its id; empty for none
	items  []json.RawMessage // all input up to it, and its output

	pings sync.WaitGroup
}

// opensSocket says whether a request opens a WebSocket and may. One without the
// key is answered as any other is.
func (s *Sim) opensSocket(r *http.Request) bool {
	route := wire.Find(http.MethodPost, r.URL.Path)
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		route.API == wire.Responses && route.Operation == wire.OpChat &&
		(s.c.Key == "" || hasKey(r, s.c.Key))
}

// created is a client's message and when it began and ended.
type created struct {
	data            []byte
	accepted, whole time.Time
}

// serveSocket answers a connection's messages until either side ends it.
func (s *Sim) serveSocket(w http.ResponseWriter, r *http.Request) {
	s.sockets.Add(1)
	defer s.sockets.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return // it has been answered
	}
	conn.SetReadLimit(socketMessage)
	ctx, cancel := context.WithCancel(context.Background())
	k := &socket{s: s, conn: conn, r: r.Clone(ctx)}
	k.r.Method = http.MethodPost // what each message stands for
	k.r.Header.Del("Accept-Encoding")
	messages := make(chan created, socketQueue)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		k.read(ctx, messages)
	})
	defer func() {
		cancel()
		_ = conn.CloseNow() // it may be closed
		reading.Wait()
		k.pings.Wait()
	}()
	for {
		select {
		case m := <-messages:
			if !k.take(m) {
				return
			}
		case <-ctx.Done():
			return
		case <-s.engine.stopped:
			return
		}
	}
}

// read reads messages until the connection ends.
func (k *socket) read(ctx context.Context, messages chan<- created) {
	for {
		_, r, err := k.conn.Reader(ctx)
		if err != nil {
			return
		}
		m := created{accepted: time.Now()}
		if m.data, err = io.ReadAll(r); err != nil {
			return
		}
		m.whole = time.Now()
		select {
		case messages <- m:
		case <-ctx.Done():
			return
		}
	}
}

// take answers a message; false when the connection ends with it.
func (k *socket) take(m created) (open bool) {
	w := &socketWriter{k: k, header: http.Header{}}
	request, generate, ok := wire.ResponseCreate(m.data)
	if !ok {
		return k.other(w, m.data)
	}
	x := k.s.begin(w, k.r)
	x.silent = !generate
	x.rec.Accepted, x.rec.Body = m.accepted, m.whole
	defer func() {
		x.forgetTorn()
		x.end()
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			open = false
		}
	}()
	previous := gjson.GetBytes(request, "previous_response_id").Str
	body, items, err := k.whole(request, previous)
	switch {
	case previous != "" && previous != k.latest:
		x.fail(http.StatusBadRequest, "invalid_request_error", "previous_response_not_found", fmt.Sprintf("Previous response with id '%s' not found.", previous))
	case err != nil:
		x.fail(http.StatusBadRequest, "invalid_request_error", "", err.Error())
	default:
		x.handle(body)
	}
	switch {
	case w.ended:
		k.latest, k.items = x.rec.ID, append(items, w.output...)
	case previous == k.latest:
		k.latest, k.items = "", nil
	}
	if x.rec.Fault == "end" { // the stream ends cleanly without its last events
		_ = k.conn.Close(websocket.StatusNormalClosure, "") // the client may have left
		return false
	}
	return x.rec.Cancelled.IsZero()
}

// forgetTorn takes the beginning of an event out of the record: a message goes
// out whole or, when the connection breaks, not at all.
func (x *exchange) forgetTorn() {
	if n := len(x.rec.Events); n > 0 && x.rec.Events[n-1].What == Torn {
		x.rec.Events = x.rec.Events[:n-1]
	}
}

// other answers what is not a response.create. Codex tells when it has done
// with a response, which wants no answer.
func (k *socket) other(w *socketWriter, msg []byte) (open bool) {
	kind := gjson.GetBytes(msg, "type")
	if kind.Str == "response.processed" {
		return true
	}
	w.status = http.StatusBadRequest
	_, err := w.Write(wire.For(wire.Responses).AppendError(nil, &wire.Error{Type: "invalid_request_error", Code: "invalid_event",
		Message: fmt.Sprintf("want a JSON object of the type response.create; the type is %.100q", kind.String())}))
	return err == nil
}

// whole makes the request that HTTP would have had: with all input so far. It
// gives the items of that input too.
func (k *socket) whole(request []byte, previous string) (body []byte, items []json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil {
		return nil, nil, fmt.Errorf("the request is not JSON: %w", err)
	}
	if previous != "" {
		items = k.items
	}
	var added []json.RawMessage
	if input := bytes.TrimSpace(fields["input"]); len(input) > 0 && input[0] == '"' {
		added = []json.RawMessage{[]byte(`{"type":"message","role":"user","content":` + string(input) + `}`)}
	} else if len(input) > 0 {
		if err := json.Unmarshal(input, &added); err != nil {
			return nil, nil, errors.New("input: want a text or a list of items")
		}
	}
	items = append(items[:len(items):len(items)], added...)
	if fields["input"], err = json.Marshal(items); err != nil {
		return nil, nil, err
	}
	fields["stream"] = json.RawMessage("true")
	body, err = json.Marshal(fields)
	return body, items, err
}

// prepare answers a request for which nothing shall be generated. It takes no
// place in the batch, and only the faults that refuse befall it.
func (x *exchange) prepare() {
	x.rec.Fault = ""
	u := wire.Usage{Input: wire.N(int64(countPrompt(&x.req))), Output: wire.N(0)}
	x.rec.Usage = u
	x.head(http.StatusOK)
	a := &answer{x: x, head: true}
	w := wire.NewWriter(x.format, x.rec.ID, x.req.Model, u, wire.WriterOptions{Usage: a.reports()})
	if a.emit(Opening, 0, w.Open(nil)) {
		a.emit(Closing, 0, w.Close(nil, "stop", u))
	}
}

// socketWriter is what an exchange writes its answer to: it makes each SSE
// event a message, a comment a ping, and the body of an error an error event.
type socketWriter struct {
	k       *socket
	header  http.Header
	status  int
	pending []byte // of an event under way

	ended  bool              // a response has ended with its last event
	output []json.RawMessage // what it put out
}

func (w *socketWriter) Header() http.Header    { return w.header }
func (w *socketWriter) WriteHeader(status int) { w.status = status }
func (w *socketWriter) FlushError() error      { return nil } // each message is flushed

func (w *socketWriter) Write(p []byte) (int, error) {
	if w.status >= 400 {
		return len(p), w.fail(p)
	}
	w.pending = append(w.pending, p...)
	rest := w.pending
	for {
		event, after, whole := bytes.Cut(rest, []byte("\n\n"))
		if !whole {
			break
		}
		rest = after
		_, data, says := bytes.Cut(event, []byte("data: "))
		if !says {
			w.k.ping()
			continue
		}
		if err := w.send(data); err != nil {
			return 0, err
		}
	}
	w.pending = append(w.pending[:0], rest...)
	return len(p), nil
}

func (w *socketWriter) send(data []byte) error {
	var ev struct {
		Type     string
		Response struct{ Output []json.RawMessage }
	}
	if bytes.Contains(data, []byte(`"output":[`)) && json.Unmarshal(data, &ev) == nil {
		w.ended = ev.Type == "response.completed" || ev.Type == "response.incomplete"
		w.output = ev.Response.Output
	}
	return w.k.conn.Write(w.k.r.Context(), websocket.MessageText, data)
}

// fail sends an error's body as OpenAI does on a WebSocket: with its status,
// and with its headers where a client needs them.
func (w *socketWriter) fail(body []byte) error {
	msg := strconv.AppendInt([]byte(`{"type":"error","status":`), int64(w.status), 10)
	if wait := w.header.Get("Retry-After"); wait != "" {
		msg = append(msg, `,"headers":{"retry-after":"`+wait+`"}`...)
	}
	msg = append(append(msg, ','), body[1:]...)
	return w.k.conn.Write(w.k.r.Context(), websocket.MessageText, msg)
}

// ping sends a ping and does not wait for its pong.
func (k *socket) ping() {
	k.pings.Go(func() { _ = k.conn.Ping(k.r.Context()) }) // a client that has left is noticed elsewhere
}
