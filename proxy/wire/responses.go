package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) API() API { return Responses }

func (responses) Path(*Request) string { return "/v1/responses" }

func (responses) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "max_output_tokens":
			h.MaxTokens = count(v)
		case "max_tokens":
		case "previous_response_id":
			h.PreviousResponse = stringOf(v)
		case "reasoning":
			h.ReasoningLevel = stringOf(v.Get("effort"))
		case "text":
			h.OutputType = outputType(v.Get("format.type").Str)
		case "input":
			if v.Type == gjson.String {
				h.MessageCount, h.TurnCount = 1, 1
				return true
			}
			v.ForEach(func(_, item gjson.Result) bool {
				h.MessageCount++
				if item.Get("role").Str == "user" {
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

func (f responses) ParseRequest(r *Request, body []byte) error {
	var head Head
	if err := f.ParseHead(&head, body); err != nil {
		return err
	}
	*r = Request{Head: head}
	doc := parse(body)
	r.System = stringOf(doc.Get("instructions"))
	doc.Get("tools").ForEach(func(_, t gjson.Result) bool {
		r.Tools = append(r.Tools, toolOf(t, "parameters"))
		return true
	})
	input := doc.Get("input")
	if input.Type == gjson.String {
		r.Messages = []Message{{Role: User, Parts: contentParts(input)}}
		return nil
	}
	input.ForEach(func(_, item gjson.Result) bool {
		role, parts := responsesItem(item)
		if role == "system" {
			if len(r.Messages) == 0 {
				for _, p := range parts {
					r.System = joinLines(r.System, p.Text)
				}
				return true
			}
			role = User
		}
		// The API lists what one message of the assistant holds as items of
		// their own: they are put together again.
		if n := len(r.Messages); n > 0 && role != User && r.Messages[n-1].Role == role {
			r.Messages[n-1].Parts = append(r.Messages[n-1].Parts, parts...)
			return true
		}
		r.Messages = append(r.Messages, Message{Role: role, Parts: parts})
		return true
	})
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
		role := Role(item.Get("role").Str)
		switch role {
		case Assistant:
		case "system", "developer":
			role = "system"
		default:
			role = User
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
	v.ForEach(func(_, p gjson.Result) bool {
		switch p.Get("type").Str {
		case "refusal":
			parts = append(parts, Part{Kind: KindRefusal, Text: stringOf(p.Get("refusal"))})
		case "input_text", "output_text", "text":
			parts = append(parts, Part{Kind: KindText, Text: stringOf(p.Get("text"))})
		default:
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(p.Raw)})
		}
		return true
	})
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

func (responses) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) { // some gateways end this stream as they end the others
		return nil
	}
	doc, err := eventObject(f)
	if err != nil {
		return err
	}
	ev.Type = f.Event
	if t := text(doc.Get("type")); len(t) > 0 {
		ev.Type = t
	}
	kind := string(ev.Type)
	switch kind {
	case "response.output_text.delta":
		ev.Text = text(doc.Get("delta"))
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta":
		ev.Reasoning = text(doc.Get("delta"))
	case "response.refusal.delta":
		ev.Refusal = text(doc.Get("delta"))
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta":
		if s := text(doc.Get("delta")); len(s) > 0 {
			ev.Tools = append(ev.Tools, ToolDelta{Index: outputIndex(doc), Arguments: s})
		}
	case "response.output_item.added":
		item := doc.Get("item")
		if name := text(item.Get("name")); len(name) > 0 {
			ev.Tools = append(ev.Tools, ToolDelta{Index: outputIndex(doc), ID: text(item.Get("call_id")), Name: name})
		}
	case "response.created", "response.in_progress", "response.queued":
		ev.response(doc.Get("response"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		r := doc.Get("response")
		ev.response(r)
		ev.Terminal = true
		ev.Finish = alias(strings.TrimPrefix(kind, "response."))
		if reason := text(r.Get("incomplete_details.reason")); len(reason) > 0 {
			ev.Finish = reason
		}
		if kind == "response.failed" {
			if ev.Err = errorOf(r.Get("error")); ev.Err == nil {
				ev.Err = &Error{Message: "the response failed without a reason"}
			}
		}
	case "error":
		if ev.Err = errorOf(doc.Get("error")); ev.Err == nil {
			ev.Err = errorOf(doc)
			ev.Err.Type = ""
		}
	default:
		ev.Unknown = !strings.HasPrefix(kind, "response.") || !knownSuffix(kind)
	}
	return nil
}

// knownSuffix says whether an event without output is one of those that
// announce or close something.
func knownSuffix(kind string) bool {
	for _, s := range []string{".added", ".done", ".in_progress", ".searching", ".completed", ".interpreting", ".generating", ".failed", ".delta"} {
		if strings.HasSuffix(kind, s) {
			return true
		}
	}
	return false
}

func outputIndex(doc gjson.Result) int {
	if v := doc.Get("output_index"); v.Type == gjson.Number {
		return int(v.Int())
	}
	return -1
}

func (ev *Event) response(r gjson.Result) {
	ev.ID = text(r.Get("id"))
	ev.Model = text(r.Get("model"))
	ev.ServiceTier = text(r.Get("service_tier"))
	ev.Usage = openAIUsage(r.Get("usage"))
}

// AppendEvent writes the event that ev.Type names. What a real stream has
// beside it (sequence numbers, item ids) the Writer adds.
func (responses) AppendEvent(dst []byte, ev *Event) []byte {
	kind := string(ev.Type)
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: {\"type\":"...)
	dst = quote(dst, kind)
	switch {
	case kind == "error":
		dst = append(dst, `,"error":`...)
		dst = appendResponsesError(dst, ev.Err)
	case ev.Terminal || kind == "response.created" || kind == "response.in_progress":
		dst = append(dst, `,"response":`...)
		a := Answer{ID: string(ev.ID), Model: string(ev.Model), Finish: string(ev.Finish), Usage: ev.Usage, ServiceTier: string(ev.ServiceTier)}
		dst = appendResponse(dst, &a, strings.TrimPrefix(kind, "response."), ev.Err)
	case len(ev.Tools) > 0:
		t := &ev.Tools[0]
		if t.Index >= 0 {
			dst = append(dst, `,"output_index":`...)
			dst = strconv.AppendInt(dst, int64(t.Index), 10)
		}
		if kind == "response.output_item.added" {
			dst = append(dst, `,"item":{"type":"function_call","status":"in_progress","arguments":"","call_id":`...)
			dst = quoteBytes(dst, t.ID)
			dst = append(dst, `,"name":`...)
			dst = quoteBytes(dst, t.Name)
			dst = append(dst, '}')
		} else {
			dst = appendStringField(dst, "delta", t.Arguments)
		}
	default:
		for _, s := range [][]byte{ev.Text, ev.Reasoning, ev.Refusal} {
			dst = appendStringField(dst, "delta", s)
		}
	}
	return append(dst, "}\n\n"...)
}

func appendResponsesError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"code":`...)
	dst = quote(dst, e.Code)
	dst = append(dst, `,"message":`...)
	dst = quote(dst, e.Message)
	return append(dst, '}')
}

// appendResponse writes the response object with its output. status is that of
// the event that carries it: created is "in_progress".
func appendResponse(dst []byte, a *Answer, status string, failure *Error) []byte {
	if status == "created" {
		status = "in_progress"
	}
	dst = append(dst, `{"id":`...)
	dst = quote(dst, a.ID)
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, created, 10)
	dst = append(dst, `,"status":`...)
	dst = quote(dst, status)
	dst = append(dst, `,"error":`...)
	if failure == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendResponsesError(dst, failure)
	}
	dst = append(dst, `,"incomplete_details":`...)
	if status == "incomplete" {
		dst = append(dst, `{"reason":`...)
		dst = quote(dst, a.Finish)
		dst = append(dst, '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"model":`...)
	dst = quote(dst, a.Model)
	dst = appendStringField(dst, "service_tier", alias(a.ServiceTier))
	dst = append(dst, `,"output":[`...)
	for i := range a.Parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOutputItem(dst, &a.Parts[i], i, "completed")
	}
	dst = append(dst, `],"usage":`...)
	if a.Usage.Known() {
		dst = appendOpenAIUsage(dst, a.Usage, "input", "output")
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, '}')
}

// appendOutputItem writes one item of a response's output.
func appendOutputItem(dst []byte, p *Part, index int, status string) []byte {
	n := strconv.Itoa(index)
	switch p.Kind {
	case KindReasoning:
		dst = append(dst, `{"id":"rs_`+n+`","type":"reasoning","summary":[`...)
		if p.Text != "" {
			dst = append(dst, `{"type":"summary_text","text":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		}
		return append(dst, "]}"...)
	case KindTool:
		dst = append(dst, `{"id":"fc_`+n+`","type":"function_call","status":"`+status+`","arguments":`...)
		dst = quote(dst, p.Arguments)
		dst = append(dst, `,"call_id":`...)
		dst = quote(dst, p.ID)
		dst = append(dst, `,"name":`...)
		dst = quote(dst, p.Name)
		return append(dst, '}')
	}
	dst = append(dst, `{"id":"msg_`+n+`","type":"message","status":"`+status+`","role":"assistant","content":[`...)
	switch {
	case p.Kind == KindRefusal:
		dst = append(dst, `{"type":"refusal","refusal":`...)
		dst = quote(dst, p.Text)
		dst = append(dst, '}')
	case p.Text != "" || status == "completed":
		dst = append(dst, `{"type":"output_text","annotations":[],"text":`...)
		dst = quote(dst, p.Text)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func (responses) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	a.openAI(doc)
	output := doc.Get("output")
	a.Malformed = !output.IsArray()
	output.ForEach(func(_, item gjson.Result) bool {
		role, parts := responsesItem(item)
		if role == Assistant {
			for _, p := range parts {
				if p.Kind&Output != 0 {
					a.Parts = append(a.Parts, p)
				}
			}
		}
		return true
	})
	a.Finish = stringOf(doc.Get("status"))
	if reason := stringOf(doc.Get("incomplete_details.reason")); reason != "" {
		a.Finish = reason
	}
	return nil
}

func (responses) AppendAnswer(dst []byte, a *Answer) []byte {
	status := "completed"
	if a.Finish != "" && a.Finish != "completed" {
		status = "incomplete"
	}
	if a.Malformed {
		return append(dst, `{"object":"response"}`...)
	}
	return appendResponse(dst, a, status, nil)
}

func (responses) ParseError(body []byte) (Error, bool)    { return parseError(body) }
func (responses) AppendError(dst []byte, e *Error) []byte { return appendOpenAIError(dst, e) }
