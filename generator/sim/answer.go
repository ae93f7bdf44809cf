package sim

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"time"

	"weir/proxy/wire"
)

// stopAfter is how long an answer is that nobody limits, at the least and
// beside a random part twice as long.
const stopAfter = 100

// plan is what an answer will be.
type plan struct {
	tokens    int
	reasoning int // of them, at the beginning, in whole steps
	call      int // of them, at the end: a tool call
	finish    string
}

// drawn draws the answer and who says it, unless the prompt has a script; room
// is how many tokens the engine can hold.
func (x *exchange) drawn(room int) (plan, *speaker) {
	if x.script != nil {
		return x.scripted(room)
	}
	p := plan{tokens: stopAfter + x.rng.IntN(2*stopAfter), finish: "stop"}
	if x.req.MaxTokens.Known {
		// The whole budget is used, so that a load model's answers are as long
		// as it says.
		p.tokens, p.finish = int(max(x.req.MaxTokens.N, 1)), "length"
		if share := x.s.c.StopShare; share > 0 && x.rng.Float64() < share {
			p.tokens, p.finish = 1+x.rng.IntN(p.tokens), "stop"
		}
	}
	if p.tokens > room {
		p.tokens, p.finish = room, "length"
	}
	if share := x.s.c.Reasoning; share > 0 && x.route.API != wire.Completions {
		step := x.s.engine.TokensPerStep
		p.reasoning = min((int(float64(p.tokens)*share)+step-1)/step*step, p.tokens)
	}
	if n := len(x.req.Tools); n > 0 && x.rng.Float64() < x.s.c.ToolShare && x.route.API != wire.Completions {
		p.call = min(max((p.tokens-p.reasoning)/2, 1), 64)
		p.finish = "tool"
	}
	return p, x.s.words.speaker(chinese(&x.req), x.rng.Uint64())
}

// generate answers a request for tokens.
func (x *exchange) generate() {
	x.readPrompt()
	input := x.input
	room := x.s.engine.KVTokens - input
	if room < 1 {
		x.fail(http.StatusBadRequest, "invalid_request_error", "context_length_exceeded",
			fmt.Sprintf("the prompt has %d tokens; this endpoint holds %d together with the answer", input, x.s.engine.KVTokens))
		return
	}
	p, speaker := x.drawn(room)
	d := demand{input: input, output: p.tokens, prompt: x.prompt}
	switch x.rec.Fault {
	case "slow":
		d.rest = rest{0, x.fault.Wait}
	case "stall":
		d.rest = rest{(p.tokens + 1) / 2, x.fault.Wait}
	}
	seq := x.s.engine.submit(d)
	defer x.s.engine.cancel(seq)

	usage := wire.Usage{Input: wire.N(int64(input)), CacheRead: wire.N(0)}
	if x.route.API == wire.Messages {
		usage.CacheWrite = wire.N(0)
	}
	a := &answer{x: x, seq: seq, plan: p, usage: usage, speaker: speaker}
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

	// Of a stream.
	w    *wire.Writer
	gz   *gzip.Writer // nil without compression
	buf  []byte
	head bool // sent
}

// place waits for a place in the batch; false when the client left first.
func (a *answer) place() bool {
	select {
	case at := <-a.seq.admitted:
		a.x.rec.Admitted = at.at
		a.usage.CacheRead = wire.N(int64(at.cached))
		a.x.settleInput(at.cached)
		a.x.rec.Usage = a.counted()
		return true
	case <-a.x.r.Context().Done():
		a.x.rec.Cancelled = time.Now()
	case <-a.x.s.engine.stopped:
		a.x.breakOff()
	}
	return false
}

// next waits for the tokens of a step, and calls idle, unless it is nil, when
// it has waited for as long as pings are apart. It gives 0 when the client left.
func (a *answer) next(idle func() bool) int {
	if n := a.take(); n > 0 {
		return n
	}
	var ping <-chan time.Time
	if every := a.x.s.c.Pings; every > 0 && idle != nil {
		t := time.NewTicker(every)
		defer t.Stop()
		ping = t.C
	}
	for {
		select {
		case <-a.seq.news:
			if n := a.take(); n > 0 {
				return n
			}
		case <-ping:
			if !idle() {
				return 0
			}
		case <-a.x.r.Context().Done():
			a.x.rec.Cancelled = time.Now()
			return 0
		case <-a.x.s.engine.stopped:
			a.x.breakOff()
		}
	}
}

// take gives the tokens of a step that has come; 0 when none has.
func (a *answer) take() int {
	n := a.seq.take(a.x.s.engine.TokensPerStep)
	if n > 0 {
		a.said += n
		a.x.settleOutput(n)
		a.x.rec.Usage = a.counted()
	}
	return n
}

// counted is the usage of what has been said.
func (a *answer) counted() wire.Usage {
	u := a.usage
	u.Output = wire.N(int64(a.said))
	if a.plan.reasoning > 0 {
		u.Reasoning = wire.N(int64(min(a.plan.reasoning, a.said)))
	}
	return u
}

// piece is what n tokens that were said last are, and their text: reasoning at
// the beginning, a tool call at the end, else text. The pieces of a call are
// one JSON object together; its first is told so.
func (a *answer) piece(n int) (what What, text string, begins bool) {
	before, callFrom := a.said-n, a.plan.tokens-a.plan.call
	text = a.speaker.next(n)
	switch {
	case before < a.plan.reasoning:
		return Reasoning, text, false
	case a.plan.call == 0 || a.said <= callFrom:
		return Text, text, false
	}
	begins = before <= callFrom
	if a.x.script != nil {
		return ToolCall, text, begins
	}
	text = plain(text)
	if begins {
		text = `{"input":"` + text
	}
	if a.said == a.plan.tokens {
		text += `"}`
	}
	return ToolCall, text, begins
}

// collect gives the answer as one document.
func (a *answer) collect() {
	x := a.x
	if !a.place() {
		return
	}
	var said [3]strings.Builder
	place := map[What]int{Reasoning: 0, Text: 1, ToolCall: 2}
	for a.said < a.plan.tokens {
		n := a.next(nil)
		if n == 0 {
			return
		}
		what, text, _ := a.piece(n)
		said[place[what]].WriteString(text)
	}
	if x.rec.Fault == "error" {
		x.whole(http.StatusOK, x.format.AppendError(nil, simulatedFailure))
		return
	}
	answer := wire.Answer{ID: x.rec.ID, Model: x.req.Model, Finish: wire.FinishWord(x.route.API, a.plan.finish)}
	for i, p := range []wire.Part{
		{Kind: wire.KindReasoning, Text: said[0].String()},
		{Kind: wire.KindText, Text: said[1].String()},
		{Kind: wire.KindTool, ID: "call_" + x.rec.ID, Arguments: said[2].String()},
	} {
		if said[i].Len() == 0 {
			continue
		}
		if p.Kind == wire.KindTool {
			p.Name = x.tool()
		}
		answer.Parts = append(answer.Parts, p)
	}
	if !x.s.c.NoUsage {
		answer.Usage = a.counted()
	}
	if x.thread != nil {
		x.thread.reply = answer.Parts
	}
	body := x.format.AppendAnswer(nil, &answer)
	if x.rec.Fault == "cut" {
		x.w.Header().Set("Content-Type", "application/json")
		x.head(http.StatusOK)
		_, _ = x.w.Write(body[:tear(body)]) // it breaks off in any case
		_ = x.out.Flush()
		x.breakOff()
	}
	x.keepThread()
	x.whole(http.StatusOK, body)
}

// tool draws the tool that is called.
func (x *exchange) tool() string {
	if x.script != nil {
		return x.script.tool
	}
	return x.req.Tools[x.rng.IntN(len(x.req.Tools))].Name
}

var simulatedFailure = &wire.Error{Status: 500, Type: "api_error", Message: "simulated: the model failed"}
