package wire

import "strconv"

// Writer writes one streamed answer as its dialect does it: the events that
// open and close a stream around the generated ones. Each method appends the
// frames to dst and returns it.
type Writer struct {
	f     Format
	o     WriterOptions
	input Usage
	ev    Event
	id    string
	model string

	parts    []Part // what was begun; with its words where the dialect repeats them
	said     []byte // the words of the part under way, until it ends
	open     Kind   // kind of the block or item under way; zero when none is
	calls    int    // tool calls begun
	sequence int    // Responses numbers its events
	first    bool   // JSON array: the next element is the first
}

// WriterOptions shape what a Writer writes beside the generated output.
type WriterOptions struct {
	Framing Framing // SSE, or JSONArray for Gemini
	Usage   bool    // report usage where the dialect reports it in streams
}

// NewWriter makes a writer of one answer with the id and model given. input is
// the usage of the prompt, which Anthropic's first event states.
func NewWriter(f Format, id, model string, input Usage, o WriterOptions) *Writer {
	return &Writer{f: f, o: o, input: input, id: id, model: model, first: true}
}

// event starts the next event with what the dialect repeats in each.
func (w *Writer) event(kind string) *Event {
	w.ev.reset()
	w.ev.Type = alias(kind)
	switch w.f.API() {
	case Chat, Completions, Gemini:
		w.ev.ID, w.ev.Model = alias(w.id), alias(w.model)
	}
	return &w.ev
}

func (w *Writer) emit(dst []byte) []byte {
	if w.o.Framing == JSONArray {
		if w.first {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ",\r\n"...)
		}
		w.first = false
		return gemini{}.appendChunk(dst, &w.ev)
	}
	return w.f.AppendEvent(dst, &w.ev)
}

// Open writes what comes before the first token.
func (w *Writer) Open(dst []byte) []byte {
	switch w.f.API() {
	case Chat:
		w.event("")
		return w.emit(dst)
	case Messages:
		ev := w.event("message_start")
		ev.ID, ev.Model = alias(w.id), alias(w.model)
		if w.o.Usage {
			ev.Usage = w.input
			ev.Usage.Output = N(1)
		}
		dst = w.emit(dst)
		w.event("ping")
		return w.emit(dst)
	case Responses:
		for _, kind := range []string{"response.created", "response.in_progress"} {
			dst = w.responseEvent(dst, kind, nil)
		}
	}
	return dst
}

// Text writes a piece of the answer's text.
func (w *Writer) Text(dst []byte, text string) []byte { return w.piece(dst, KindText, text) }

// Reasoning writes a piece of the model's reasoning. Legacy completions have
// none, and drop it.
func (w *Writer) Reasoning(dst []byte, text string) []byte { return w.piece(dst, KindReasoning, text) }

func (w *Writer) piece(dst []byte, kind Kind, s string) []byte {
	if s == "" || (kind == KindReasoning && w.f.API() == Completions) {
		return dst
	}
	dst = w.begin(dst, kind, "", "")
	switch w.f.API() {
	case Messages:
		return w.block(dst, "content_block_delta", kind, s, ToolDelta{})
	case Responses:
		name := "response.output_text.delta"
		if kind == KindReasoning {
			name = "response.reasoning_summary_text.delta"
		}
		w.said = append(w.said, s...)
		return w.itemEvent(dst, name, "delta", s)
	}
	ev := w.event("")
	if kind == KindReasoning {
		ev.Reasoning = alias(s)
	} else {
		ev.Text = alias(s)
	}
	return w.emit(dst)
}

// Tool writes a piece of a tool call. The first piece has an id and a name,
// later ones only arguments; a new id begins a new call, and without a call
// under way arguments are dropped. Gemini sends a call whole, so its pieces
// are held until it is complete.
func (w *Writer) Tool(dst []byte, id, name, arguments string) []byte {
	if w.f.API() == Completions {
		return dst
	}
	begins := id != ""
	if begins {
		dst = w.begin(dst, KindTool, id, name)
	}
	if w.open != KindTool {
		return dst
	}
	switch w.f.API() {
	case Messages:
		if arguments == "" {
			return dst
		}
		return w.block(dst, "content_block_delta", KindTool, "", ToolDelta{Arguments: alias(arguments)})
	case Responses:
		if arguments == "" {
			return dst
		}
		w.said = append(w.said, arguments...)
		return w.itemEvent(dst, "response.function_call_arguments.delta", "delta", arguments)
	case Gemini:
		w.said = append(w.said, arguments...)
		return dst
	}
	ev := w.event("")
	d := ToolDelta{Index: w.calls - 1, Arguments: alias(arguments)}
	if begins {
		d.ID, d.Name = alias(id), alias(name)
	}
	ev.Tools = append(ev.Tools, d)
	return w.emit(dst)
}

// begin opens a block or item of the kind, and ends the one before it, where
// the kind changes or a new tool call begins.
func (w *Writer) begin(dst []byte, kind Kind, id, name string) []byte {
	if w.open == kind && kind != KindTool {
		return dst
	}
	dst = w.end(dst)
	w.open = kind
	w.parts = append(w.parts, Part{Kind: kind, ID: id, Name: name})
	if kind == KindTool {
		w.calls++
	}
	switch w.f.API() {
	case Messages:
		return w.block(dst, "content_block_start", kind, "", ToolDelta{ID: alias(id), Name: alias(name)})
	case Responses:
		dst = w.head(dst, "response.output_item.added")
		dst = append(dst, `,"item":`...)
		dst = appendOutputItem(dst, &w.parts[len(w.parts)-1], len(w.parts)-1, "in_progress")
		dst = append(dst, "}\n\n"...)
		switch kind {
		case KindText:
			dst = w.itemEvent(dst, "response.content_part.added", "", "")
		case KindReasoning:
			dst = w.itemEvent(dst, "response.reasoning_summary_part.added", "", "")
		}
	}
	return dst
}

// end closes the block or item under way.
func (w *Writer) end(dst []byte) []byte {
	if w.open == 0 {
		return dst
	}
	p := &w.parts[len(w.parts)-1]
	w.open = 0
	if p.Kind == KindTool {
		p.Arguments = string(w.said)
	} else {
		p.Text = string(w.said)
	}
	w.said = w.said[:0]
	switch w.f.API() {
	case Gemini:
		if p.Kind == KindTool {
			ev := w.event("")
			ev.Tools = append(ev.Tools, ToolDelta{Index: -1, ID: alias(p.ID), Name: alias(p.Name), Arguments: alias(jsonObject(p.Arguments))})
			return w.emit(dst)
		}
	case Messages:
		if p.Kind == KindReasoning { // clients send thinking back only when it is signed
			dst = append(dst, "event: content_block_delta\ndata: "+`{"type":"content_block_delta","index":`...)
			dst = strconv.AppendInt(dst, int64(len(w.parts)-1), 10)
			dst = append(dst, `,"delta":{"type":"signature_delta","signature":"d2Vpcg=="}}`+"\n\n"...)
		}
		dst = append(dst, `event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":`...)
		dst = strconv.AppendInt(dst, int64(len(w.parts)-1), 10)
		return append(dst, "}\n\n"...)
	case Responses:
		switch p.Kind {
		case KindText:
			dst = w.itemEvent(dst, "response.output_text.done", "text", p.Text)
			dst = w.itemEvent(dst, "response.content_part.done", "", p.Text)
		case KindReasoning:
			dst = w.itemEvent(dst, "response.reasoning_summary_text.done", "text", p.Text)
			dst = w.itemEvent(dst, "response.reasoning_summary_part.done", "", p.Text)
		case KindTool:
			dst = w.itemEvent(dst, "response.function_call_arguments.done", "arguments", p.Arguments)
		}
		dst = w.head(dst, "response.output_item.done")
		dst = append(dst, `,"item":`...)
		dst = appendOutputItem(dst, p, len(w.parts)-1, "completed")
		return append(dst, "}\n\n"...)
	}
	return dst
}

// block writes the start or a piece of one of Messages' content blocks.
func (w *Writer) block(dst []byte, event string, kind Kind, s string, tool ToolDelta) []byte {
	w.ev.reset()
	switch kind {
	case KindTool:
		w.ev.Tools = append(w.ev.Tools, tool)
	case KindReasoning:
		w.ev.Reasoning = alias(s)
	default:
		w.ev.Text = alias(s)
	}
	dst = append(dst, "event: "...)
	dst = append(dst, event...)
	dst = append(dst, "\ndata: "...)
	dst = appendBlock(dst, event, kind, len(w.parts)-1, &w.ev)
	return append(dst, "\n\n"...)
}

// head begins an event of Responses that speaks of the item under way.
func (w *Writer) head(dst []byte, kind string) []byte {
	dst = w.sequenced(dst, kind)
	dst = append(dst, `,"output_index":`...)
	return strconv.AppendInt(dst, int64(len(w.parts)-1), 10)
}

func (w *Writer) sequenced(dst []byte, kind string) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: {\"type\":"...)
	dst = quote(dst, kind)
	dst = append(dst, `,"sequence_number":`...)
	dst = strconv.AppendInt(dst, int64(w.sequence), 10)
	w.sequence++
	return dst
}

// itemEvent writes an event about the content of the item under way: a piece
// of it under field, or, without a field, the content part itself.
func (w *Writer) itemEvent(dst []byte, kind, field, s string) []byte {
	dst = w.head(dst, kind)
	p := &w.parts[len(w.parts)-1]
	n := strconv.Itoa(len(w.parts) - 1)
	part := `"output_text","annotations":[]`
	switch p.Kind {
	case KindTool:
		dst = append(dst, `,"item_id":"fc_`+n+`"`...)
	case KindReasoning:
		dst = append(dst, `,"item_id":"rs_`+n+`","summary_index":0`...)
		part = `"summary_text"`
	default:
		dst = append(dst, `,"item_id":"msg_`+n+`","content_index":0`...)
	}
	if field == "" {
		dst = append(dst, `,"part":{"type":`+part+`,"text":`...)
		dst = quote(dst, s)
		return append(dst, "}}\n\n"...)
	}
	dst = append(dst, ',')
	dst = quote(dst, field)
	dst = append(dst, ':')
	dst = quote(dst, s)
	return append(dst, "}\n\n"...)
}

// responseEvent writes an event that carries the response object.
func (w *Writer) responseEvent(dst []byte, kind string, a *Answer) []byte {
	dst = w.sequenced(dst, kind)
	dst = append(dst, `,"response":`...)
	if a == nil {
		a = &Answer{ID: w.id, Model: w.model}
	}
	dst = appendResponse(dst, a, kind[len("response."):], nil)
	return append(dst, "}\n\n"...)
}

// Ping writes what keeps a stream alive in the dialect: an event or a comment.
// A JSON array has nothing for it.
func (w *Writer) Ping(dst []byte) []byte {
	switch {
	case w.o.Framing == JSONArray:
		return dst
	case w.f.API() == Messages:
		w.event("ping")
		return w.emit(dst)
	}
	return append(dst, ": ping\n\n"...)
}

// Error writes an error event, after which the stream ends.
func (w *Writer) Error(dst []byte, e *Error) []byte {
	if w.f.API() == Responses {
		dst = w.sequenced(dst, "error")
		dst = append(dst, `,"error":`...)
		dst = appendResponsesError(dst, e)
		return append(dst, "}\n\n"...)
	}
	w.event("error").Err = e
	dst = w.emit(dst)
	return w.closeArray(dst)
}

func (w *Writer) closeArray(dst []byte) []byte {
	if w.o.Framing == JSONArray {
		dst = append(dst, ']')
	}
	return dst
}

// finishWords are the dialects' own words for why an answer ended.
var finishWords = map[API]map[string]string{
	Chat:        {"stop": "stop", "length": "length", "tool": "tool_calls"},
	Completions: {"stop": "stop", "length": "length", "tool": "stop"},
	Responses:   {"stop": "completed", "length": "max_output_tokens", "tool": "completed"},
	Messages:    {"stop": "end_turn", "length": "max_tokens", "tool": "tool_use"},
	Gemini:      {"stop": "STOP", "length": "MAX_TOKENS", "tool": "STOP"},
}

// FinishWord is the dialect's word for "stop", "length" or "tool".
func FinishWord(api API, finish string) string { return finishWords[api][finish] }

// Close writes the finish reason, usage and all that ends the stream. finish
// is "stop", "length" or "tool": the dialect's own word is written for it.
func (w *Writer) Close(dst []byte, finish string, u Usage) []byte {
	word := FinishWord(w.f.API(), finish)
	dst = w.end(dst)
	if !w.o.Usage {
		u = Usage{}
	}
	switch w.f.API() {
	case Responses:
		kind := "response.completed"
		if finish == "length" {
			kind = "response.incomplete"
		}
		return w.responseEvent(dst, kind, &Answer{ID: w.id, Model: w.model, Parts: w.parts, Finish: word, Usage: u})
	case Messages:
		ev := w.event("message_delta")
		ev.Finish, ev.Usage = alias(word), u
		dst = w.emit(dst)
		w.event("message_stop").Terminal = true
		return w.emit(dst)
	case Gemini:
		ev := w.event("")
		ev.Finish, ev.Usage = alias(word), u
		return w.closeArray(w.emit(dst))
	}
	w.event("").Finish = alias(word)
	dst = w.emit(dst)
	if u.Known() {
		w.event("").Usage = u
		dst = w.emit(dst)
	}
	w.event("").Terminal = true
	return w.emit(dst)
}
