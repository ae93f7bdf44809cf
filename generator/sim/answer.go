package sim

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"time"

	"weir/proxy/wire"
)

// stopAfter is how long an answer is that nobody limits, at the least and
// beside a random part as long.
const stopAfter = 100

// plan is what an answer will be.
type plan struct {
	tokens    int
	reasoning int // of them, at the beginning
	call      int // of them, at the end: a tool call
	finish    string
}

func (x *exchange) plan() plan {
	p := plan{tokens: stopAfter + x.rng.IntN(2*stopAfter), finish: "stop"}
	if x.req.MaxTokens.Known {
		// The whole budget is used, so that a load model's answers are as long
		// as it says.
		p.tokens, p.finish = int(max(x.req.MaxTokens.N, 1)), "length"
	}
	if x.s.c.Reasoning > 0 && x.route.API != wire.Completions {
		p.reasoning = int(float64(p.tokens) * x.s.c.Reasoning)
	}
	if n := len(x.req.Tools); n > 0 && x.rng.Float64() < x.s.c.ToolShare && x.route.API != wire.Completions {
		p.call = min(max((p.tokens-p.reasoning)/2, 1), 64)
		p.finish = "tool"
	}
	return p
}

// generate answers a request for tokens.
func (x *exchange) generate() {
	p := x.plan()
	input := max(countPrompt(&x.req), 1)
	seq := x.s.engine.submit(input, p.tokens, blocks(promptBytes(&x.req)))
	defer x.s.engine.cancel(seq)

	usage := wire.Usage{Input: wire.N(int64(input)), CacheRead: wire.N(0)}
	if x.route.API == wire.Messages {
		usage.CacheWrite = wire.N(0)
	}
	a := &answer{x: x, seq: seq, plan: p, usage: usage, speaker: x.s.words.speaker(chinese(&x.req), x.rng.Uint64())}
	if x.req.Stream {
		a.stream()
	} else {
		a.collect()
	}
}

// answer is an answer under way.
type answer struct {
	x       *exchange
	seq     *sequence
	plan    plan
	usage   wire.Usage
	speaker *speaker
	said    int // tokens so far

	w    *wire.Writer
	sink io.Writer
	gz   *gzip.Writer
	buf  []byte
	head bool
}

// place waits for a place in the batch; false when the client left first.
func (a *answer) place() bool {
	select {
	case at := <-a.seq.admitted:
		a.x.rec.Admitted = at.at
		a.usage.CacheRead = wire.N(int64(at.cached))
		return true
	case <-a.x.r.Context().Done():
		a.x.rec.Cancelled = time.Now()
		return false
	}
}

// next waits for the tokens of a step; 0 when there are no more, or the client
// left.
func (a *answer) next(idle func() bool) int {
	var ping <-chan time.Time
	for {
		if every := a.x.s.c.Pings; every > 0 && idle != nil {
			ping = time.After(every)
		}
		select {
		case n := <-a.seq.steps:
			a.said += n
			return n
		case <-ping:
			if !idle() {
				return 0
			}
		case <-a.x.r.Context().Done():
			a.x.rec.Cancelled = time.Now()
			return 0
		case <-a.x.s.engine.stopped:
			return 0
		}
	}
}

// pause waits as a fault wants it; false when the client left.
func (a *answer) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-a.x.r.Context().Done():
		a.x.rec.Cancelled = time.Now()
		return false
	}
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

func (a *answer) stream() {
	x := a.x
	framing := wire.SSE
	kind := "text/event-stream; charset=utf-8"
	if x.route.API == wire.Gemini && !strings.Contains(x.r.URL.RawQuery, "alt=sse") {
		framing, kind = wire.JSONArray, "application/json; charset=utf-8"
	}
	h := x.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	a.sink = x.w
	if x.s.c.Compress && strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		a.gz = gzip.NewWriter(x.w)
		a.sink = a.gz
	}
	if !x.s.c.HoldHead {
		x.head(http.StatusOK)
		a.head = true
	}
	if !a.place() {
		return
	}
	a.w = wire.NewWriter(wire.For(x.route.API), x.rec.ID, x.req.Model, a.usage, wire.WriterOptions{Framing: framing, Usage: a.reports()})
	if !a.emit(0, a.w.Open(nil)) {
		return
	}
	if x.rec.Fault == "slow" && !a.pause(x.fault.Wait) {
		return
	}
	middle := a.plan.tokens / 2
	for a.said < a.plan.tokens {
		n := a.next(func() bool { return a.emit(0, a.w.Ping(nil)) })
		if n == 0 {
			return
		}
		output, b := a.piece(n)
		if a.said > middle && a.said-n <= middle && !a.spoil(b) {
			return
		}
		if !a.emit(output, b) {
			return
		}
	}
	if x.rec.Fault == "end" {
		a.finishCoding()
		return
	}
	x.rec.Usage = a.counted()
	var last wire.Kind
	if x.route.API == wire.Gemini && a.plan.call > 0 {
		last = wire.KindTool
	}
	if a.emit(last, a.w.Close(nil, a.plan.finish, x.rec.Usage)) {
		a.finishCoding()
	}
}

// spoil does what a fault does in the midst of a stream; false when the stream
// ends there.
func (a *answer) spoil(next []byte) bool {
	x := a.x
	switch x.rec.Fault {
	case "stall":
		return a.pause(x.fault.Wait)
	case "error":
		a.emit(0, a.w.Error(nil, &wire.Error{Status: 500, Type: "api_error", Message: "simulated: the model failed"}))
		a.finishCoding()
		return false
	case "cut":
		a.emit(0, next[:len(next)/2])
		panic(http.ErrAbortHandler)
	}
	return true
}

func (a *answer) finishCoding() {
	if a.gz != nil {
		_ = a.gz.Close() // a client that has left does not mind
	}
}

// piece is the event of one step's n tokens.
func (a *answer) piece(n int) (wire.Kind, []byte) {
	b := a.buf[:0]
	step := a.x.s.engine.TokensPerStep
	before := a.said - n
	callFrom := a.plan.tokens - a.plan.call
	switch {
	case before < a.plan.reasoning:
		b = a.w.Reasoning(b, a.speaker.next(n, step))
		a.buf = b
		return wire.KindReasoning, b
	case a.plan.call > 0 && a.said > callFrom:
		text := plain(a.speaker.next(n, step))
		id, name := "", ""
		if before <= callFrom {
			tool := a.x.req.Tools[a.x.rng.IntN(len(a.x.req.Tools))]
			id, name = "call_"+a.x.rec.ID, tool.Name
			text = `{"input":"` + text
		}
		if a.said == a.plan.tokens {
			text += `"}`
		}
		b = a.w.Tool(b, id, name, text)
		a.buf = b
		if len(b) == 0 {
			return 0, nil // Gemini sends a call whole, at its end
		}
		return wire.KindTool, b
	}
	b = a.w.Text(b, a.speaker.next(n, step))
	a.buf = b
	return wire.KindText, b
}

// emit writes one event and takes down when; false when the client left.
func (a *answer) emit(output wire.Kind, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	x := a.x
	w := Written{Before: time.Now(), Output: output, Bytes: len(b)}
	err := a.write(b)
	w.After = time.Now()
	if !a.head {
		a.head = true
		x.rec.Status, x.rec.Headers = http.StatusOK, w.After
	}
	x.rec.Events = append(x.rec.Events, w)
	if err != nil {
		x.rec.Cancelled = w.After
		return false
	}
	return true
}

func (a *answer) write(b []byte) error {
	size := len(b)
	if n := a.x.s.c.WriteSplit; n > 0 {
		size = n
	}
	for len(b) > 0 {
		n := min(size, len(b))
		if _, err := a.sink.Write(b[:n]); err != nil {
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

// counted is the usage at the answer's end.
func (a *answer) counted() wire.Usage {
	u := a.usage
	u.Output = wire.N(int64(a.said))
	if a.plan.reasoning > 0 {
		u.Reasoning = wire.N(int64(min(a.plan.reasoning, a.said)))
	}
	return u
}

// collect gives the answer as one document.
func (a *answer) collect() {
	x := a.x
	if !a.place() {
		return
	}
	answer := wire.Answer{ID: x.rec.ID, Model: x.req.Model, Finish: wire.FinishWord(x.route.API, a.plan.finish)}
	var reasoning, text, call strings.Builder
	step := x.s.engine.TokensPerStep
	for a.said < a.plan.tokens {
		n := a.next(nil)
		if n == 0 {
			return
		}
		switch piece := a.speaker.next(n, step); {
		case a.said-n < a.plan.reasoning:
			reasoning.WriteString(piece)
		case a.plan.call > 0 && a.said > a.plan.tokens-a.plan.call:
			call.WriteString(plain(piece))
		default:
			text.WriteString(piece)
		}
	}
	if x.rec.Fault == "slow" && !a.pause(x.fault.Wait) {
		return
	}
	for _, p := range []wire.Part{
		{Kind: wire.KindReasoning, Text: reasoning.String()}, {Kind: wire.KindText, Text: text.String()},
	} {
		if p.Text != "" {
			answer.Parts = append(answer.Parts, p)
		}
	}
	if call.Len() > 0 {
		tool := x.req.Tools[x.rng.IntN(len(x.req.Tools))]
		answer.Parts = append(answer.Parts, wire.Part{Kind: wire.KindTool, ID: "call_" + x.rec.ID, Name: tool.Name, Arguments: `{"input":"` + call.String() + `"}`})
	}
	x.rec.Usage = a.counted()
	if !x.s.c.NoUsage {
		answer.Usage = x.rec.Usage
	}
	body := x.format.AppendAnswer(nil, &answer)
	if x.rec.Fault == "cut" {
		x.w.Header().Set("Content-Type", "application/json")
		x.head(http.StatusOK)
		a.sink, a.head = x.w, true
		a.emit(0, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	if x.rec.Fault == "error" {
		body = x.format.AppendError(nil, &wire.Error{Status: 500, Type: "api_error", Message: "simulated: the model failed"})
	}
	x.whole(http.StatusOK, body)
}
