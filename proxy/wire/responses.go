package wire

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) API() API { return Responses }

func (responses) Path(*Request) string { return "/v1/responses" }

func (responses) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	c, err := walkObject(body, "request")
	if err != nil {
		return err
	}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "max_output_tokens":
			h.MaxTokens = c.count()
		case "previous_response_id":
			h.PreviousResponse = c.string()
		case "reasoning":
			h.ReasoningLevel = stringAt(&c, "effort")
		case "text":
			for c.object(); c.field(); {
				if string(c.name) == "format" {
					h.OutputType = outputType(&c)
				} else {
					c.skip()
				}
			}
		case "input":
			if c.peek() == '"' {
				h.MessageCount, h.TurnCount = 1, 1
			}
			for c.array(); c.element(); {
				h.MessageCount++
				if roleIs(&c, "user") {
					h.TurnCount++
				}
			}
		case "max_tokens", "max_completion_tokens", "stream_options", "reasoning_effort", "response_format":
			c.skip() // other APIs' names
		default:
			openAIHead(h, &c)
		}
	}
	return c.end("request")
}

func (f responses) ParseRequest(r *Request, body []byte) error {
	*r = Request{}
	if err := f.ParseHead(&r.Head, body); err != nil {
		return err
	}
	doc, err := object(body, "request")
	if err != nil {
		return err
	}
	r.System = stringOf(doc.Get("instructions"))
	var system lines
	system.add(r.System)
	for _, t := range elements(doc.Get("tools")) {
		r.Tools = append(r.Tools, toolOf(t, "parameters"))
	}
	input := doc.Get("input")
	if input.Type == gjson.String {
		r.Messages = []Message{{Role: User, Parts: contentParts(input)}}
		return nil
	}
	for _, item := range elements(input) {
		role, parts := responsesItem(item)
		if role == "system" {
			if len(r.Messages) == 0 {
				for _, p := range parts {
					system.add(p.Text)
				}
				continue
			}
			role = User
		}
		// The API lists what one message of the assistant holds as items of
		// their own: they are put together again.
		if n := len(r.Messages); n > 0 && role != User && r.Messages[n-1].Role == role {
			r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, parts...)
			continue
		}
		r.Messages = append(r.Messages, Message{Role: role, Parts: parts})
	}
	r.System = system.joined()
	return nil
}

func responsesItem(item gjson.Result) (Role, []Part) {
	switch item.Get("type").Str {
	case "function_call", "custom_tool_call":
		arguments := item.Get("arguments")
		if !arguments.Exists() {
			arguments = item.Get("input")
		}
		return Assistant, []Part{{Kind: KindTool, ID: stringOf(item.Get("call_id")), Name: stringOf(item.Get("name")), Arguments: stringOf(arguments)}}
	case "function_call_output", "custom_tool_call_output":
		return ToolRole, []Part{{Kind: KindToolResult, ID: stringOf(item.Get("call_id")), Text: contentText(item.Get("output"))}}
	case "reasoning":
		text := contentText(item.Get("content"))
		if text == "" {
			text = contentText(item.Get("summary"))
		}
		return Assistant, []Part{{Kind: KindReasoning, Text: text}}
	case "message", "":
		role := User
		switch item.Get("role").Str {
		case "assistant":
			role = Assistant
		case "system", "developer":
			role = "system"
		}
		return role, responsesContent(item.Get("content"))
	}
	return Assistant, []Part{{Kind: KindOther, Raw: json.RawMessage(item.Raw)}}
}

func responsesContent(v gjson.Result) []Part {
	if v.Type == gjson.String {
		return contentParts(v)
	}
	var parts []Part
	for _, p := range elements(v) {
		switch p.Get("type").Str {
		case "refusal":
			parts = append(parts, Part{Kind: KindRefusal, Text: stringOf(p.Get("refusal"))})
		case "input_text", "output_text", "text":
			parts = append(parts, Part{Kind: KindText, Text: stringOf(p.Get("text"))})
		default:
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(p.Raw)})
		}
	}
	return parts
}

func (responses) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	f := newFields(r)
	f.string("model", r.Model)
	f.string("instructions", r.System)
	input := []byte{'['}
	for i := range r.Messages {
		input = appendResponsesItems(input, &r.Messages[i])
	}
	f.set("input", json.RawMessage(append(input, ']')))
	if len(r.Tools) > 0 {
		type tool struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
		}
		tools := make([]tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = tool{"function", t.Name, t.Description, t.Parameters}
		}
		f.set("tools", tools)
	}
	f.count("max_output_tokens", r.MaxTokens)
	f.string("previous_response_id", r.PreviousResponse)
	if r.ReasoningLevel != "" {
		f.set("reasoning", map[string]string{"effort": r.ReasoningLevel})
	}
	if r.OutputType != "" {
		format := map[string]any{"type": "text"}
		if r.OutputType == "json" {
			format["type"] = "json_object"
		}
		f.set("text", map[string]any{"format": format})
	}
	h := r.Head
	h.Model, h.MaxTokens, h.ReasoningLevel, h.OutputType, h.IncludeUsage = "", Count{}, "", "", nil
	f.openAI(&h)
	return f.append(dst)
}

func appendResponsesItems(dst []byte, m *Message) []byte {
	item := func() {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
	}
	var content []Part
	flush := func() {
		if len(content) == 0 {
			return
		}
		item()
		dst = appendResponsesMessage(dst, m.Role, content)
		content = nil
	}
	for _, p := range m.Parts {
		switch p.Kind {
		case KindReasoning:
			flush()
			item()
			dst = append(dst, `{"type":"reasoning","summary":[{"type":"summary_text","text":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, "}]}"...)
		case KindTool:
			flush()
			item()
			dst = append(dst, `{"type":"function_call","call_id":`...)
			dst = quote(dst, p.ID)
			dst = append(dst, `,"name":`...)
			dst = quote(dst, p.Name)
			dst = append(dst, `,"arguments":`...)
			dst = quote(dst, p.Arguments)
			dst = append(dst, '}')
		case KindToolResult:
			flush()
			item()
			dst = append(dst, `{"type":"function_call_output","call_id":`...)
			dst = quote(dst, p.ID)
			dst = append(dst, `,"output":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		default:
			content = append(content, p)
		}
	}
	flush()
	return dst
}

func appendResponsesMessage(dst []byte, role Role, parts []Part) []byte {
	kind := "input_text"
	if role == Assistant {
		kind = "output_text"
	}
	dst = append(dst, `{"type":"message","role":`...)
	dst = quote(dst, string(role))
	dst = append(dst, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch p.Kind {
		case KindRefusal:
			dst = append(dst, `{"type":"refusal","refusal":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		case KindOther:
			dst = append(dst, p.Raw...)
		default:
			dst = append(dst, `{"type":"`+kind+`","text":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		}
	}
	return append(dst, "]}"...)
}
