package sim

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"weir/proxy/wire"
)

// outputs are the kinds of the purposes of writes that hold tokens.
var outputs = map[What]wire.Kind{Text: wire.KindText, Reasoning: wire.KindReasoning, ToolCall: wire.KindTool}

// stream gives the answer event by event: one for each step of the engine.
func (a *answer) stream() {
	framing := a.begin()
	if !a.x.s.c.HoldHead {
		a.x.head(http.StatusOK)
		a.head = true
	}
	if !a.place() {
		return
	}
	a.w = wire.NewWriter(a.x.format, a.x.rec.ID, a.x.req.Model, a.usage, wire.WriterOptions{Framing: framing, Usage: a.reports()})
	if a.head && !a.emit(Opening, 0, a.w.Open(a.buf[:0])) {
		return
	}
	idle := func() bool { return !a.head || a.emit(Ping, 0, a.w.Ping(a.buf[:0])) }
	for middle := a.plan.tokens / 2; a.said < a.plan.tokens; {
		n := a.next(idle)
		if n == 0 {
			return
		}
		if !a.head && !a.emit(Opening, 0, a.w.Open(a.buf[:0])) {
			return
		}
		what, b := a.event(n)
		if a.said > middle && a.said-n <= middle && a.spoiled(b) {
			return
		}
		if !a.emit(what, outputs[what], b) {
			return
		}
	}
	if a.x.rec.Fault == "end" {
		a.finish()
		return
	}
	var held wire.Kind
	if a.x.route.API == wire.Gemini && a.plan.call > 0 {
		held = wire.KindTool // a call is told whole, at its end
	}
	a.x.keepThread() // first: the client may go on from it at once
	if a.emit(Closing, held, a.w.Close(a.buf[:0], a.plan.finish, a.counted())) {
		a.finish()
	}
}

// begin chooses framing and compression.
func (a *answer) begin() wire.Framing {
	x := a.x
	framing, kind := wire.SSE, "text/event-stream; charset=utf-8"
	if x.route.API == wire.Gemini && !strings.Contains(x.r.URL.RawQuery, "alt=sse") {
		framing, kind = wire.JSONArray, "application/json; charset=utf-8"
	}
	h := x.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	if x.compresses() {
		h.Set("Content-Encoding", "gzip")
		a.gz = gzip.NewWriter(x.w)
	}
	return framing
}

// reports says whether usage is told in this stream.
func (a *answer) reports() bool {
	if a.x.s.c.NoUsage {
		return false
	}
	if api := a.x.route.API; api == wire.Chat || api == wire.Completions {
		return a.x.req.IncludeUsage != nil && *a.x.req.IncludeUsage
	}
	return true
}

// event is what is written for the n tokens of a step.
func (a *answer) event(n int) (What, []byte) {
	what, text, begins := a.piece(n)
	id, name := "", ""
	if begins {
		id, name = "call_"+a.x.rec.ID, a.x.tool()
	}
	a.x.thread.hear(outputs[what], id, name, text)
	switch what {
	case Reasoning:
		a.buf = a.w.Reasoning(a.buf[:0], text)
	case ToolCall:
		a.buf = a.w.Tool(a.buf[:0], id, name, text)
	default:
		a.buf = a.w.Text(a.buf[:0], text)
	}
	return what, a.buf
}

// spoiled does what a fault does in the midst of a stream; true when the
// stream ends there.
func (a *answer) spoiled(next []byte) bool {
	switch a.x.rec.Fault {
	case "error":
		a.emit(Failure, 0, a.w.Error(nil, simulatedFailure))
		a.finish()
		return true
	case "cut":
		a.emit(Torn, 0, next[:tear(next)])
		a.x.breakOff()
	}
	return false
}

// tear gives a place in the midst of an event: inside a character where there
// is one to be torn.
func tear(event []byte) int {
	half := len(event) / 2
	for i := half; i < len(event); i++ {
		if !utf8.RuneStart(event[i]) {
			return i
		}
	}
	return half
}

// finish ends a compressed stream.
func (a *answer) finish() {
	if a.gz != nil {
		_ = a.gz.Close() // a client that has left does not mind
	}
}

// emit writes one event and takes down when; false when the client left. An
// empty event is none.
func (a *answer) emit(what What, output wire.Kind, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	w := Written{Before: time.Now(), What: what, Output: output, Bytes: len(b)}
	err := a.write(b)
	w.After = time.Now()
	if !a.head {
		a.head = true
		a.x.rec.Status, a.x.rec.Headers = http.StatusOK, w.After
	}
	if a.x.s.c.Log != nil {
		a.x.rec.Events = append(a.x.rec.Events, w)
	}
	if err != nil {
		a.x.rec.Cancelled = w.After
	}
	return err == nil
}

// write writes and flushes b, in pieces where they are asked for.
func (a *answer) write(b []byte) error {
	size := len(b)
	if n := a.x.s.c.WriteSplit; n > 0 {
		size = n
	}
	var sink io.Writer = a.x.w
	if a.gz != nil {
		sink = a.gz
	}
	for len(b) > 0 {
		n := min(size, len(b))
		if _, err := sink.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		if a.gz != nil {
			if err := a.gz.Flush(); err != nil {
				return err
			}
		}
		if err := a.x.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
