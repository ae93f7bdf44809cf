package wire

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// chat is OpenAI's chat completions API, which most other servers speak too.
type chat struct{}

func (chat) API() API { return Chat }

func (chat) Path(*Request) string { return "/v1/chat/completions" }

func (chat) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	c, err := walkObject(body, "request")
	if err != nil {
		return err
	}
	for c.object(); c.field(); {
		if string(c.name) == "messages" {
			for c.array(); c.element(); {
				h.MessageCount++
				if roleIs(&c, "user") {
					h.TurnCount++
				}
			}
			continue
		}
		openAIHead(h, &c)
	}
	return c.end("request")
}

// roleIs steps over a message and says whether it has the role.
func roleIs(c *cursor, role string) bool {
	has := false
	for c.object(); c.field(); {
		if string(c.name) == "role" {
			has = c.is(role)
		} else {
			c.skip()
		}
	}
	return has
}

// openAIHead reads a field that OpenAI's APIs share, or steps over it.
func openAIHead(h *Head, c *cursor) {
	switch string(c.name) {
	case "model":
		h.Model = c.string()
	case "stream":
		h.Stream, _ = c.truth()
	case "max_tokens", "max_completion_tokens":
		h.MaxTokens.set(c.count())
	case "temperature":
		h.Temperature = c.float()
	case "top_p":
		h.TopP = c.float()
	case "top_k":
		h.TopK = c.float()
	case "frequency_penalty":
		h.FrequencyPenalty = c.float()
	case "presence_penalty":
		h.PresencePenalty = c.float()
	case "seed":
		h.Seed = c.count()
	case "n":
		h.Choices = c.count()
	case "stop":
		h.Stop = c.strings()
	case "reasoning_effort":
		h.ReasoningLevel = c.string()
	case "service_tier":
		h.ServiceTier = c.string()
	case "user":
		h.User = c.string()
	case "prompt_cache_key":
		h.PromptCacheKey = c.string()
	case "stream_options":
		for c.object(); c.field(); {
			if string(c.name) != "include_usage" {
				c.skip()
			} else if asked, said := c.truth(); said {
				h.IncludeUsage = &asked
			}
		}
	case "response_format":
		h.OutputType = outputType(c)
	case "tools":
		h.ToolCount = c.length()
	default:
		c.skip()
	}
}

// outputType reads the type of a response format.
func outputType(c *cursor) string {
	kind := ""
	for c.object(); c.field(); {
		if string(c.name) == "type" {
			kind = c.string()
		} else {
			c.skip()
		}
	}
	if kind == "" || kind == "text" {
		return kind
	}
	return "json"
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	Reasoning  string          `json:"reasoning_content,omitempty"`
	Refusal    string          `json:"refusal,omitempty"`
	ToolCalls  []chatToolCall  `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Name       string          `json:"name,omitempty"`
}

type chatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string           `json:"type"`
	Function chatToolFunction `json:"function"`
}

type chatToolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func (c chat) ParseRequest(r *Request, body []byte) error {
	*r = Request{}
	if err := c.ParseHead(&r.Head, body); err != nil {
		return err
	}
	doc, err := object(body, "request")
	if err != nil {
		return err
	}
	var system lines
	for _, m := range elements(doc.Get("messages")) {
		switch m.Get("role").Str {
		case "system", "developer":
			if len(r.Messages) == 0 {
				system.add(contentText(m.Get("content")))
				continue
			}
			r.Messages = append(r.Messages, Message{Role: User, Parts: contentParts(m.Get("content"))})
		case "tool", "function":
			r.Messages = append(r.Messages, Message{Role: ToolRole, Parts: []Part{{
				Kind: KindToolResult, ID: stringOf(m.Get("tool_call_id")), Name: stringOf(m.Get("name")), Text: contentText(m.Get("content")),
			}}})
		case "assistant":
			msg := Message{Role: Assistant}
			if s := reasoningOf(m); s != "" {
				msg.Parts = append(msg.Parts, Part{Kind: KindReasoning, Text: s})
			}
			msg.Parts = append(msg.Parts, contentParts(m.Get("content"))...)
			if s := stringOf(m.Get("refusal")); s != "" {
				msg.Parts = append(msg.Parts, Part{Kind: KindRefusal, Text: s})
			}
			for _, t := range elements(m.Get("tool_calls")) {
				msg.Parts = append(msg.Parts, chatCallPart(t))
			}
			r.Messages = append(r.Messages, msg)
		default:
			r.Messages = append(r.Messages, Message{Role: User, Parts: contentParts(m.Get("content"))})
		}
	}
	r.System = system.joined()
	for _, t := range elements(doc.Get("tools")) {
		r.Tools = append(r.Tools, toolOf(t.Get("function"), "parameters"))
	}
	return nil
}

func toolOf(v gjson.Result, parameters string) Tool {
	t := Tool{Name: stringOf(v.Get("name")), Description: stringOf(v.Get("description"))}
	if p := v.Get(parameters); p.Exists() {
		t.Parameters = json.RawMessage(p.Raw)
	}
	return t
}

func chatCallPart(t gjson.Result) Part {
	return Part{Kind: KindTool, ID: stringOf(t.Get("id")), Name: stringOf(t.Get("function.name")), Arguments: stringOf(t.Get("function.arguments"))}
}

// reasoningOf reads the reasoning of a message or delta: some servers call it
// reasoning, others reasoning_content, and some send both with the same words.
func reasoningOf(v gjson.Result) string {
	if s := stringOf(v.Get("reasoning_content")); s != "" {
		return s
	}
	return stringOf(v.Get("reasoning"))
}

func (c chat) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	var list []chatMessage
	if r.System != "" {
		list = append(list, chatMessage{Role: "system", Content: jsonString(r.System)})
	}
	for i := range r.Messages {
		list = appendChatMessages(list, &r.Messages[i])
	}
	fields := newFields(r)
	fields.set("messages", list)
	if len(r.Tools) > 0 {
		tools := make([]chatTool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = chatTool{"function", chatToolFunction(t)}
		}
		fields.set("tools", tools)
	}
	fields.openAI(&r.Head)
	return fields.append(dst)
}

func appendChatMessages(list []chatMessage, m *Message) []chatMessage {
	if m.Role == ToolRole {
		for _, p := range m.Parts {
			list = append(list, chatMessage{Role: "tool", ToolCallID: p.ID, Name: p.Name, Content: jsonString(p.Text)})
		}
		return list
	}
	out := chatMessage{Role: string(m.Role)}
	var content []Part
	for _, p := range m.Parts {
		switch p.Kind {
		case KindReasoning:
			out.Reasoning += p.Text
		case KindRefusal:
			out.Refusal += p.Text
		case KindTool:
			out.ToolCalls = append(out.ToolCalls, chatToolCall{p.ID, "function", chatFunction{p.Name, p.Arguments}})
		default:
			content = append(content, p)
		}
	}
	out.Content = openAIContent(content)
	return append(list, out)
}

// openAIContent writes one text as a string, anything else as an array.
func openAIContent(parts []Part) json.RawMessage {
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) == 1 && parts[0].Kind == KindText:
		return jsonString(parts[0].Text)
	}
	out := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if p.Kind == KindText {
			out = append(out, `{"type":"text","text":`...)
			out = quote(out, p.Text)
			out = append(out, '}')
			continue
		}
		out = append(out, p.Raw...)
	}
	return append(out, ']')
}

// contentParts reads a message's content: a string, or an array of parts.
func contentParts(v gjson.Result) []Part {
	if v.Type == gjson.String {
		return []Part{{Kind: KindText, Text: stringOf(v)}}
	}
	var parts []Part
	for _, p := range elements(v) {
		if t := p.Get("text"); t.Type == gjson.String {
			parts = append(parts, Part{Kind: KindText, Text: stringOf(t)})
		} else {
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(p.Raw)})
		}
	}
	return parts
}

// contentText is the words of a content, whatever its form.
func contentText(v gjson.Result) string {
	var all lines
	for _, p := range contentParts(v) {
		all.add(p.Text)
	}
	return all.joined()
}

// lines are texts that become one, a line break between them.
type lines []string

// add adds a text, unless it is empty.
func (l *lines) add(s string) {
	if s != "" {
		*l = append(*l, s)
	}
}

func (l lines) joined() string { return strings.Join(l, "\n") }
