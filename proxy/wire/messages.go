package wire

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// messages is Anthropic's Messages API.
type messages struct{}

func (messages) API() API { return Messages }

func (messages) Path(*Request) string { return "/v1/messages" }

func (messages) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	c, err := walkObject(body, "request")
	if err != nil {
		return err
	}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "model":
			h.Model = c.string()
		case "stream":
			h.Stream, _ = c.truth()
		case "max_tokens":
			h.MaxTokens = c.count()
		case "temperature":
			h.Temperature = c.float()
		case "top_p":
			h.TopP = c.float()
		case "top_k":
			h.TopK = c.float()
		case "stop_sequences":
			h.Stop = c.strings()
		case "service_tier":
			h.ServiceTier = c.string()
		case "metadata":
			h.User = stringAt(&c, "user_id")
		case "thread":
			h.PreviousResponse = stringAt(&c, "previous_message_id")
		case "output_config":
			h.ReasoningLevel = stringAt(&c, "effort")
		case "tools":
			h.ToolCount = c.length()
		case "messages":
			for c.array(); c.element(); {
				h.MessageCount++
				if anthropicTurn(&c) {
					h.TurnCount++
				}
			}
		default:
			c.skip()
		}
	}
	return c.end("request")
}

// stringAt reads the string under one name of an object.
func stringAt(c *cursor, name string) (s string) {
	for c.object(); c.field(); {
		if string(c.name) == name {
			s = c.string()
		} else {
			c.skip()
		}
	}
	return s
}

// anthropicTurn steps over a message and says whether the user speaks in it.
// Results of tools have the user's role too, and always stand first.
func anthropicTurn(c *cursor) bool {
	user, result := false, false
	for c.object(); c.field(); {
		switch string(c.name) {
		case "role":
			user = c.is("user")
		case "content":
			first := true
			for c.array(); c.element(); first = false {
				if !first {
					c.skip()
					continue
				}
				for c.object(); c.field(); {
					if string(c.name) == "type" {
						result = c.is("tool_result")
					} else {
						c.skip()
					}
				}
			}
		default:
			c.skip()
		}
	}
	return user && !result
}

func (f messages) ParseRequest(r *Request, body []byte) error {
	*r = Request{}
	if err := f.ParseHead(&r.Head, body); err != nil {
		return err
	}
	doc, err := object(body, "request")
	if err != nil {
		return err
	}
	var system lines
	system.add(contentText(doc.Get("system")))
	for _, t := range elements(doc.Get("tools")) {
		r.Tools = append(r.Tools, toolOf(t, "input_schema"))
	}
	for _, m := range elements(doc.Get("messages")) {
		msg := Message{Role: User}
		switch m.Get("role").Str {
		case "assistant":
			msg.Role = Assistant
		case "system":
			if len(r.Messages) == 0 {
				system.add(contentText(m.Get("content")))
				continue
			}
		}
		msg.Parts = anthropicParts(m.Get("content"))
		if len(msg.Parts) > 0 && msg.Parts[0].Kind == KindToolResult {
			msg.Role = ToolRole
		}
		r.Messages = append(r.Messages, msg)
	}
	r.System = system.joined()
	return nil
}

func anthropicParts(content gjson.Result) []Part {
	if content.Type == gjson.String {
		return []Part{{Kind: KindText, Text: stringOf(content)}}
	}
	var parts []Part
	for _, b := range elements(content) {
		switch b.Get("type").Str {
		case "text":
			parts = append(parts, Part{Kind: KindText, Text: stringOf(b.Get("text"))})
		case "thinking":
			parts = append(parts, Part{Kind: KindReasoning, Text: stringOf(b.Get("thinking"))})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			parts = append(parts, Part{Kind: KindTool, ID: stringOf(b.Get("id")), Name: stringOf(b.Get("name")), Arguments: rawOf(b.Get("input"))})
		case "tool_result":
			parts = append(parts, Part{Kind: KindToolResult, ID: stringOf(b.Get("tool_use_id")), Text: contentText(b.Get("content"))})
		default:
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(b.Raw)})
		}
	}
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
	if r.PreviousResponse != "" {
		f.set("thread", map[string]string{"type": "continue", "previous_message_id": r.PreviousResponse})
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
