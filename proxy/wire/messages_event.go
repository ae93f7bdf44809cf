package wire

import "strconv"

// anthropicEvent is the fields of Messages' events, which are read before it
// is certain which event they belong to.
type anthropicEvent struct {
	index int
	kind  []byte // of the delta or block: "text_delta", "tool_use"
	text  []byte // text, thinking or partial_json
	id    []byte
	name  []byte
}

func (messages) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) { // some gateways end this stream as they end OpenAI's
		return nil
	}
	c, err := walkEvent(f)
	if err != nil {
		return err
	}
	ev.Type = f.Event
	e := anthropicEvent{index: -1}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "type":
			if t := c.text(ev); len(t) > 0 {
				ev.Type = t
			}
		case "index":
			if n := c.count(); n.Known && n.N >= 0 {
				e.index = int(n.N)
			}
		case "delta", "content_block":
			e.content(ev, &c)
		case "message":
			ev.anthropicMessage(&c)
		case "usage":
			ev.Usage, ev.ServiceTier = anthropicUsage(&c)
		case "error":
			ev.Err = errorIn(c.value())
		default:
			c.skip()
		}
	}
	ev.anthropic(&e)
	return c.end("event")
}

// content reads a delta or a content block; of message_delta's delta it takes
// the stop reason.
func (e *anthropicEvent) content(ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "type":
			e.kind = c.text(ev)
		case "text", "thinking", "partial_json":
			e.text = c.text(ev)
		case "id":
			e.id = c.text(ev)
		case "name":
			e.name = c.text(ev)
		case "stop_reason":
			ev.Finish = c.text(ev)
		default:
			c.skip()
		}
	}
}

func (ev *Event) anthropicMessage(c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "id":
			ev.ID = c.text(ev)
		case "model":
			ev.Model = c.text(ev)
		case "usage":
			ev.Usage, ev.ServiceTier = anthropicUsage(c)
		default:
			c.skip()
		}
	}
}

// anthropic sorts the fields by the event's type.
func (ev *Event) anthropic(e *anthropicEvent) {
	failure := ev.Err
	ev.Err = nil
	switch string(ev.Type) {
	case "content_block_start", "content_block_delta":
		switch string(e.kind) {
		case "text", "text_delta":
			ev.Text = e.text
		case "thinking", "thinking_delta":
			ev.Reasoning = e.text
		case "tool_use", "server_tool_use", "mcp_tool_use", "input_json_delta":
			if len(e.name) > 0 || len(e.text) > 0 {
				ev.Tools = append(ev.Tools, ToolDelta{Index: e.index, ID: e.id, Name: e.name, Arguments: e.text})
			}
		}
	case "message_stop":
		ev.Terminal = true
	case "error":
		if ev.Err = failure; ev.Err == nil {
			ev.Err = &Error{Message: "the stream broke off with an error event that gives no reason"}
		}
	case "message_start", "message_delta", "ping", "content_block_stop":
	default:
		// A gateway's error in OpenAI's form has no type.
		ev.Err, ev.Unknown = failure, failure == nil
	}
}

func (messages) AppendEvent(dst []byte, ev *Event) []byte {
	kind := string(ev.Type)
	if kind == "" {
		kind = "ping"
	}
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: "...)
	switch kind {
	case "message_start":
		dst = append(dst, `{"type":"message_start","message":{"id":`...)
		dst = quoteBytes(dst, ev.ID)
		dst = append(dst, `,"type":"message","role":"assistant","model":`...)
		dst = quoteBytes(dst, ev.Model)
		dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null`...)
		if ev.Usage.Known() {
			dst = append(dst, `,"usage":`...)
			dst = appendAnthropicUsage(dst, ev.Usage)
		}
		dst = append(dst, "}}"...)
	case "error":
		dst = appendAnthropicError(dst, ev.Err)
	case "message_delta":
		dst = append(dst, `{"type":"message_delta","delta":{"stop_reason":`...)
		dst = quoteBytes(dst, ev.Finish)
		dst = append(dst, `,"stop_sequence":null}`...)
		if ev.Usage.Known() {
			dst = append(dst, `,"usage":`...)
			dst = appendAnthropicUsage(dst, ev.Usage)
		}
		dst = append(dst, '}')
	case "content_block_start", "content_block_delta":
		dst = appendAnthropicBlock(dst, kind, ev)
	default:
		dst = append(dst, `{"type":`...)
		dst = quote(dst, kind)
		dst = append(dst, '}')
	}
	return append(dst, "\n\n"...)
}

// appendAnthropicBlock writes the start or a piece of a content block; text and
// thinking carry no number in an Event, and are numbered by the Writer.
func appendAnthropicBlock(dst []byte, event string, ev *Event) []byte {
	switch {
	case len(ev.Tools) > 0:
		return appendBlock(dst, event, KindTool, ev.Tools[0].Index, ev)
	case len(ev.Reasoning) > 0:
		return appendBlock(dst, event, KindReasoning, 0, ev)
	}
	return appendBlock(dst, event, KindText, 0, ev)
}

func appendBlock(dst []byte, event string, kind Kind, index int, ev *Event) []byte {
	dst = append(dst, `{"type":`...)
	dst = quote(dst, event)
	if index >= 0 {
		dst = append(dst, `,"index":`...)
		dst = strconv.AppendInt(dst, int64(index), 10)
	}
	start := event == "content_block_start"
	if start {
		dst = append(dst, `,"content_block":{"type":`...)
	} else {
		dst = append(dst, `,"delta":{"type":`...)
	}
	switch {
	case kind == KindTool && start:
		dst = append(dst, `"tool_use","id":`...)
		dst = quoteBytes(dst, ev.Tools[0].ID)
		dst = append(dst, `,"name":`...)
		dst = quoteBytes(dst, ev.Tools[0].Name)
		dst = append(dst, `,"input":{}`...)
	case kind == KindTool:
		dst = append(dst, `"input_json_delta","partial_json":`...)
		dst = quoteBytes(dst, ev.Tools[0].Arguments)
	case kind == KindReasoning && start:
		dst = append(dst, `"thinking","thinking":`...)
		dst = quoteBytes(dst, ev.Reasoning)
		dst = append(dst, `,"signature":""`...)
	case kind == KindReasoning:
		dst = append(dst, `"thinking_delta","thinking":`...)
		dst = quoteBytes(dst, ev.Reasoning)
	case start:
		dst = append(dst, `"text","text":`...)
		dst = quoteBytes(dst, ev.Text)
	default:
		dst = append(dst, `"text_delta","text":`...)
		dst = quoteBytes(dst, ev.Text)
	}
	return append(dst, "}}"...)
}
