package wire

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"
)

// chat is OpenAI's chat completions API, which most other servers speak too.
type chat struct{}

func (chat) API() API { return Chat }

func (chat) Path(*Request) string { return "/v1/chat/completions" }

func (chat) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "messages":
			v.ForEach(func(_, m gjson.Result) bool {
				h.MessageCount++
				if m.Get("role").Str == "user" {
					h.TurnCount++
				}
				return true
			})
		default:
			openAIHead(h, key.Str, v)
		}
		return true
	})
	return nil
}

// openAIHead reads the fields that the two completions APIs share.
func openAIHead(h *Head, key string, v gjson.Result) {
	switch key {
	case "model":
		h.Model = stringOf(v)
	case "stream":
		h.Stream = v.Type == gjson.True
	case "max_tokens", "max_completion_tokens":
		if c := count(v); c.Known {
			h.MaxTokens = c
		}
	case "temperature":
		h.Temperature = number(v)
	case "top_p":
		h.TopP = number(v)
	case "top_k":
		h.TopK = number(v)
	case "frequency_penalty":
		h.FrequencyPenalty = number(v)
	case "presence_penalty":
		h.PresencePenalty = number(v)
	case "seed":
		h.Seed = count(v)
	case "n":
		h.Choices = count(v)
	case "stop":
		h.Stop = stringList(v)
	case "reasoning_effort":
		h.ReasoningLevel = stringOf(v)
	case "service_tier":
		h.ServiceTier = stringOf(v)
	case "user":
		h.User = stringOf(v)
	case "prompt_cache_key":
		h.PromptCacheKey = stringOf(v)
	case "stream_options":
		if u := v.Get("include_usage"); u.IsBool() {
			asked := u.Bool()
			h.IncludeUsage = &asked
		}
	case "response_format":
		h.OutputType = outputType(v.Get("type").Str)
	case "tools":
		h.ToolCount = arrayLen(v)
	}
}

func outputType(format string) string {
	switch format {
	case "":
		return ""
	case "text":
		return "text"
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
	var head Head
	if err := c.ParseHead(&head, body); err != nil {
		return err
	}
	*r = Request{Head: head}
	doc := parse(body)
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		role := m.Get("role").Str
		switch role {
		case "system", "developer":
			if len(r.Messages) == 0 {
				r.System = joinLines(r.System, contentText(m.Get("content")))
				return true
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
			m.Get("tool_calls").ForEach(func(_, t gjson.Result) bool {
				msg.Parts = append(msg.Parts, chatCallPart(t))
				return true
			})
			r.Messages = append(r.Messages, msg)
		default:
			r.Messages = append(r.Messages, Message{Role: User, Parts: contentParts(m.Get("content"))})
		}
		return true
	})
	doc.Get("tools").ForEach(func(_, t gjson.Result) bool {
		f := t.Get("function")
		r.Tools = append(r.Tools, toolOf(f, "parameters"))
		return true
	})
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
			tools[i] = chatTool{"function", chatToolFunction{t.Name, t.Description, t.Parameters}}
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
	if v.IsArray() {
		v.ForEach(func(_, p gjson.Result) bool {
			if t := p.Get("text"); t.Type == gjson.String {
				parts = append(parts, Part{Kind: KindText, Text: stringOf(t)})
			} else {
				parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(p.Raw)})
			}
			return true
		})
	}
	return parts
}

// contentText is the words of a content, whatever its form.
func contentText(v gjson.Result) string {
	var all string
	for _, p := range contentParts(v) {
		all = joinLines(all, p.Text)
	}
	return all
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return fmt.Sprintf("%s\n%s", a, b)
}

func (chat) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) {
		ev.Terminal = true
		return nil
	}
	doc, err := eventObject(f)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			ev.ID = text(v)
		case "model":
			ev.Model = text(v)
		case "service_tier":
			ev.ServiceTier = text(v)
		case "system_fingerprint":
			ev.SystemFingerprint = text(v)
		case "usage":
			ev.Usage = openAIUsage(v)
		case "error":
			ev.Err = errorOf(v)
		case "choices":
			v.ForEach(func(_, choice gjson.Result) bool {
				chatChoice(ev, choice)
				return true
			})
		}
		return true
	})
	return nil
}

func chatChoice(ev *Event, choice gjson.Result) {
	choice.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "finish_reason":
			if s := text(v); len(s) > 0 {
				ev.Finish = s
			}
		case "delta", "message":
			v.ForEach(func(key, v gjson.Result) bool {
				switch key.Str {
				case "content":
					ev.addText(text(v))
				case "reasoning_content", "reasoning":
					if len(ev.Reasoning) == 0 {
						ev.Reasoning = text(v)
					}
				case "refusal":
					ev.Refusal = text(v)
				case "tool_calls":
					if !v.IsArray() { // null stands there too
						return true
					}
					v.ForEach(func(_, t gjson.Result) bool {
						ev.Tools = append(ev.Tools, chatToolDelta(t))
						return true
					})
				}
				return true
			})
		}
		return true
	})
}

func chatToolDelta(t gjson.Result) ToolDelta {
	d := ToolDelta{Index: -1}
	t.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
			if v.Type == gjson.Number {
				d.Index = int(v.Int())
			}
		case "id":
			d.ID = text(v)
		case "function":
			v.ForEach(func(key, v gjson.Result) bool {
				switch key.Str {
				case "name":
					d.Name = text(v)
				case "arguments":
					d.Arguments = text(v)
				}
				return true
			})
		}
		return true
	})
	return d
}

func (chat) AppendEvent(dst []byte, ev *Event) []byte {
	if ev.Terminal {
		return append(dst, "data: [DONE]\n\n"...)
	}
	dst = append(dst, "data: "...)
	if ev.Err != nil {
		return append(appendOpenAIError(dst, ev.Err), "\n\n"...)
	}
	dst = append(dst, `{"id":`...)
	dst = quoteBytes(dst, ev.ID)
	dst = append(dst, `,"object":"chat.completion.chunk","created":`...)
	dst = strconv.AppendInt(dst, created, 10)
	dst = append(dst, `,"model":`...)
	dst = quoteBytes(dst, ev.Model)
	dst = appendStringField(dst, "service_tier", ev.ServiceTier)
	dst = appendStringField(dst, "system_fingerprint", ev.SystemFingerprint)
	if ev.Usage.Known() && ev.Output() == 0 && len(ev.Finish) == 0 {
		dst = append(dst, `,"choices":[]`...)
	} else {
		dst = append(dst, `,"choices":[{"index":0,"delta":{`...)
		dst = appendChatDelta(dst, ev)
		dst = append(dst, `},"finish_reason":`...)
		if len(ev.Finish) == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = quoteBytes(dst, ev.Finish)
		}
		dst = append(dst, "}]"...)
	}
	if ev.Usage.Known() {
		dst = append(dst, `,"usage":`...)
		dst = appendOpenAIUsage(dst, ev.Usage, "prompt", "completion")
	}
	return append(dst, "}\n\n"...)
}

// appendChatDelta writes the fields of a delta. One without output is the
// chunk that names the role.
func appendChatDelta(dst []byte, ev *Event) []byte {
	start := len(dst)
	comma := func() {
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	if ev.Output() == 0 && len(ev.Finish) == 0 {
		dst = append(dst, `"role":"assistant","content":""`...)
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"reasoning_content", ev.Reasoning}, {"content", ev.Text}, {"refusal", ev.Refusal}} {
		if len(f.text) > 0 {
			comma()
			dst = quote(dst, f.name)
			dst = append(dst, ':')
			dst = quoteBytes(dst, f.text)
		}
	}
	if len(ev.Tools) > 0 {
		comma()
		dst = append(dst, `"tool_calls":[`...)
		for i := range ev.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendChatToolDelta(dst, &ev.Tools[i])
		}
		dst = append(dst, ']')
	}
	return dst
}

func appendChatToolDelta(dst []byte, t *ToolDelta) []byte {
	dst = append(dst, '{')
	if t.Index >= 0 {
		dst = append(dst, `"index":`...)
		dst = strconv.AppendInt(dst, int64(t.Index), 10)
		dst = append(dst, ',')
	}
	if len(t.ID) > 0 {
		dst = append(dst, `"id":`...)
		dst = quoteBytes(dst, t.ID)
		dst = append(dst, `,"type":"function",`...)
	}
	dst = append(dst, `"function":{`...)
	if len(t.Name) > 0 {
		dst = append(dst, `"name":`...)
		dst = quoteBytes(dst, t.Name)
		dst = append(dst, ',')
	}
	dst = append(dst, `"arguments":`...)
	dst = quoteBytes(dst, t.Arguments)
	return append(dst, "}}"...)
}
