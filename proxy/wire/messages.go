package wire

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"
)

// messages is Anthropic's Messages API.
type messages struct{}

func (messages) API() API { return Messages }

func (messages) Path(*Request) string { return "/v1/messages" }

func (messages) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			h.Model = stringOf(v)
		case "stream":
			h.Stream = v.Type == gjson.True
		case "max_tokens":
			h.MaxTokens = count(v)
		case "temperature":
			h.Temperature = number(v)
		case "top_p":
			h.TopP = number(v)
		case "top_k":
			h.TopK = number(v)
		case "stop_sequences":
			h.Stop = stringList(v)
		case "service_tier":
			h.ServiceTier = stringOf(v)
		case "metadata":
			h.User = stringOf(v.Get("user_id"))
		case "output_config":
			h.ReasoningLevel = stringOf(v.Get("effort"))
		case "tools":
			h.ToolCount = arrayLen(v)
		case "messages":
			v.ForEach(func(_, m gjson.Result) bool {
				h.MessageCount++
				if m.Get("role").Str == "user" && m.Get("content.0.type").Str != "tool_result" {
					h.TurnCount++
				}
				return true
			})
		}
		return true
	})
	return nil
}

func (f messages) ParseRequest(r *Request, body []byte) error {
	var head Head
	if err := f.ParseHead(&head, body); err != nil {
		return err
	}
	*r = Request{Head: head}
	doc := parse(body)
	r.System = contentText(doc.Get("system"))
	doc.Get("tools").ForEach(func(_, t gjson.Result) bool {
		r.Tools = append(r.Tools, toolOf(t, "input_schema"))
		return true
	})
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		msg := Message{Role: User}
		switch m.Get("role").Str {
		case "assistant":
			msg.Role = Assistant
		case "system":
			if len(r.Messages) == 0 {
				r.System = joinLines(r.System, contentText(m.Get("content")))
				return true
			}
		}
		msg.Parts = anthropicParts(m.Get("content"))
		if len(msg.Parts) > 0 && msg.Parts[0].Kind == KindToolResult {
			msg.Role = ToolRole
		}
		r.Messages = append(r.Messages, msg)
		return true
	})
	return nil
}

func anthropicParts(content gjson.Result) []Part {
	if content.Type == gjson.String {
		return []Part{{Kind: KindText, Text: stringOf(content)}}
	}
	var parts []Part
	content.ForEach(func(_, b gjson.Result) bool {
		switch b.Get("type").Str {
		case "text":
			parts = append(parts, Part{Kind: KindText, Text: stringOf(b.Get("text"))})
		case "thinking":
			parts = append(parts, Part{Kind: KindReasoning, Text: stringOf(b.Get("thinking"))})
		case "tool_use", "server_tool_use":
			parts = append(parts, Part{Kind: KindTool, ID: stringOf(b.Get("id")), Name: stringOf(b.Get("name")), Arguments: b.Get("input").Raw})
		case "tool_result":
			parts = append(parts, Part{Kind: KindToolResult, ID: stringOf(b.Get("tool_use_id")), Text: contentText(b.Get("content"))})
		default:
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(b.Raw)})
		}
		return true
	})
	return parts
}

func (messages) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	f := newFields(r)
	f.string("model", r.Model)
	f.count("max_tokens", r.MaxTokens)
	if r.Stream {
		f.set("stream", true)
	}
	f.string("system", r.System)
	list := []byte{'['}
	for i := range r.Messages {
		if i > 0 {
			list = append(list, ',')
		}
		list = appendAnthropicMessage(list, &r.Messages[i])
	}
	f.set("messages", json.RawMessage(append(list, ']')))
	if len(r.Tools) > 0 {
		type tool struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"input_schema,omitempty"`
		}
		tools := make([]tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = tool{t.Name, t.Description, t.Parameters}
		}
		f.set("tools", tools)
	}
	f.float("temperature", r.Temperature)
	f.float("top_p", r.TopP)
	f.float("top_k", r.TopK)
	if len(r.Stop) > 0 {
		f.set("stop_sequences", r.Stop)
	}
	f.string("service_tier", r.ServiceTier)
	if r.User != "" {
		f.set("metadata", map[string]string{"user_id": r.User})
	}
	if r.ReasoningLevel != "" {
		f.set("output_config", map[string]string{"effort": r.ReasoningLevel})
	}
	return f.append(dst)
}

func appendAnthropicMessage(dst []byte, m *Message) []byte {
	role := "user"
	if m.Role == Assistant {
		role = "assistant"
	}
	dst = append(dst, `{"role":`...)
	dst = quote(dst, role)
	dst = append(dst, `,"content":`...)
	if len(m.Parts) == 1 && m.Parts[0].Kind == KindText {
		dst = quote(dst, m.Parts[0].Text)
		return append(dst, '}')
	}
	dst = append(dst, '[')
	for i := range m.Parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendAnthropicPart(dst, &m.Parts[i])
	}
	return append(dst, "]}"...)
}

func appendAnthropicPart(dst []byte, p *Part) []byte {
	switch p.Kind {
	case KindReasoning:
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = quote(dst, p.Text)
		return append(dst, `,"signature":""}`...)
	case KindTool:
		dst = append(dst, `{"type":"tool_use","id":`...)
		dst = quote(dst, p.ID)
		dst = append(dst, `,"name":`...)
		dst = quote(dst, p.Name)
		dst = append(dst, `,"input":`...)
		dst = append(dst, jsonObject(p.Arguments)...)
		return append(dst, '}')
	case KindToolResult:
		dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
		dst = quote(dst, p.ID)
		dst = append(dst, `,"content":`...)
		dst = quote(dst, p.Text)
		return append(dst, '}')
	case KindOther:
		return append(dst, p.Raw...)
	}
	dst = append(dst, `{"type":"text","text":`...)
	dst = quote(dst, p.Text)
	return append(dst, '}')
}

// jsonObject is a tool's arguments where an object must stand: a model may
// have broken off in the middle of them.
func jsonObject(arguments string) string {
	if gjson.Valid(arguments) && gjson.Parse(arguments).IsObject() {
		return arguments
	}
	return "{}"
}

func (messages) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	doc, err := eventObject(f)
	if err != nil {
		return err
	}
	ev.Type = f.Event
	if t := text(doc.Get("type")); len(t) > 0 {
		ev.Type = t
	}
	switch string(ev.Type) {
	case "message_start":
		m := doc.Get("message")
		ev.ID = text(m.Get("id"))
		ev.Model = text(m.Get("model"))
		ev.Usage = anthropicUsage(m.Get("usage"))
		ev.ServiceTier = text(m.Get("usage.service_tier"))
	case "content_block_start":
		block := doc.Get("content_block")
		switch block.Get("type").Str {
		case "text":
			ev.Text = text(block.Get("text"))
		case "thinking":
			ev.Reasoning = text(block.Get("thinking"))
		case "tool_use", "server_tool_use", "mcp_tool_use":
			ev.Tools = append(ev.Tools, ToolDelta{Index: blockIndex(doc), ID: text(block.Get("id")), Name: text(block.Get("name"))})
		}
	case "content_block_delta":
		delta := doc.Get("delta")
		switch delta.Get("type").Str {
		case "text_delta":
			ev.Text = text(delta.Get("text"))
		case "thinking_delta":
			ev.Reasoning = text(delta.Get("thinking"))
		case "input_json_delta":
			if s := text(delta.Get("partial_json")); len(s) > 0 {
				ev.Tools = append(ev.Tools, ToolDelta{Index: blockIndex(doc), Arguments: s})
			}
		}
	case "message_delta":
		ev.Finish = text(doc.Get("delta.stop_reason"))
		ev.Usage = anthropicUsage(doc.Get("usage"))
	case "message_stop":
		ev.Terminal = true
	case "error":
		ev.Err = errorOf(doc.Get("error"))
		if ev.Err == nil {
			ev.Err = &Error{}
		}
	case "ping", "content_block_stop":
	default:
		ev.Unknown = true
	}
	return nil
}

func blockIndex(doc gjson.Result) int {
	if v := doc.Get("index"); v.Type == gjson.Number {
		return int(v.Int())
	}
	return -1
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

func (messages) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	a.ID = stringOf(doc.Get("id"))
	a.Model = stringOf(doc.Get("model"))
	a.Finish = stringOf(doc.Get("stop_reason"))
	a.Usage = anthropicUsage(doc.Get("usage"))
	a.Malformed = !doc.Get("content").IsArray()
	for _, p := range anthropicParts(doc.Get("content")) {
		if p.Kind&Output != 0 {
			a.Parts = append(a.Parts, p)
		}
	}
	return nil
}

func (messages) AppendAnswer(dst []byte, a *Answer) []byte {
	dst = append(dst, `{"id":`...)
	dst = quote(dst, a.ID)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = quote(dst, a.Model)
	if !a.Malformed {
		dst = append(dst, `,"content":[`...)
		for i := range a.Parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendAnthropicPart(dst, &a.Parts[i])
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"stop_reason":`...)
	dst = quote(dst, a.Finish)
	dst = append(dst, `,"stop_sequence":null`...)
	if a.Usage.Known() {
		dst = append(dst, `,"usage":`...)
		dst = appendAnthropicUsage(dst, a.Usage)
	}
	return append(dst, '}')
}

func (messages) ParseError(body []byte) (Error, bool)    { return parseError(body) }
func (messages) AppendError(dst []byte, e *Error) []byte { return appendAnthropicError(dst, e) }
