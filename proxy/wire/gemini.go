package wire

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// gemini is Google's generateContent and streamGenerateContent.
type gemini struct{}

func (gemini) API() API { return Gemini }

func (gemini) Path(r *Request) string {
	model := "/v1beta/models/" + strings.TrimPrefix(r.Model, "models/")
	if r.Stream {
		return model + ":streamGenerateContent?alt=sse"
	}
	return model + ":generateContent"
}

// ParseHead reads a body. Model and stream stand in the path: see Find.
func (gemini) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "generationConfig", "generation_config":
			geminiConfig(h, v)
		case "contents":
			v.ForEach(func(_, c gjson.Result) bool {
				h.MessageCount++
				if role := c.Get("role").Str; (role == "user" || role == "") && !c.Get("parts.0.functionResponse").Exists() {
					h.TurnCount++
				}
				return true
			})
		case "tools":
			v.ForEach(func(_, t gjson.Result) bool {
				h.ToolCount += arrayLen(geminiDeclarations(t))
				return true
			})
		}
		return true
	})
	return nil
}

func geminiDeclarations(t gjson.Result) gjson.Result {
	if d := t.Get("functionDeclarations"); d.Exists() {
		return d
	}
	return t.Get("function_declarations")
}

func geminiConfig(h *Head, config gjson.Result) {
	config.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "maxOutputTokens":
			h.MaxTokens = count(v)
		case "temperature":
			h.Temperature = number(v)
		case "topP":
			h.TopP = number(v)
		case "topK":
			h.TopK = number(v)
		case "frequencyPenalty":
			h.FrequencyPenalty = number(v)
		case "presencePenalty":
			h.PresencePenalty = number(v)
		case "seed":
			h.Seed = count(v)
		case "candidateCount":
			h.Choices = count(v)
		case "stopSequences":
			h.Stop = stringList(v)
		case "thinkingConfig":
			h.ReasoningLevel = strings.ToLower(stringOf(v.Get("thinkingLevel")))
		case "responseMimeType":
			switch v.Str {
			case "text/plain":
				h.OutputType = "text"
			case "application/json":
				h.OutputType = "json"
			}
		}
		return true
	})
}

func (f gemini) ParseRequest(r *Request, body []byte) error {
	var head Head
	if err := f.ParseHead(&head, body); err != nil {
		return err
	}
	*r = Request{Head: head}
	doc := parse(body)
	system := doc.Get("systemInstruction")
	if !system.Exists() {
		system = doc.Get("system_instruction")
	}
	for _, p := range geminiParts(system.Get("parts")) {
		r.System = joinLines(r.System, p.Text)
	}
	doc.Get("contents").ForEach(func(_, c gjson.Result) bool {
		m := Message{Role: User, Parts: geminiParts(c.Get("parts"))}
		if c.Get("role").Str == "model" {
			m.Role = Assistant
		}
		if len(m.Parts) > 0 && m.Parts[0].Kind == KindToolResult {
			m.Role = ToolRole
		}
		r.Messages = append(r.Messages, m)
		return true
	})
	doc.Get("tools").ForEach(func(_, t gjson.Result) bool {
		geminiDeclarations(t).ForEach(func(_, d gjson.Result) bool {
			parameters := "parameters"
			if d.Get("parametersJsonSchema").Exists() {
				parameters = "parametersJsonSchema"
			}
			r.Tools = append(r.Tools, toolOf(d, parameters))
			return true
		})
		return true
	})
	return nil
}

func geminiParts(v gjson.Result) []Part {
	var parts []Part
	v.ForEach(func(_, p gjson.Result) bool {
		switch {
		case p.Get("functionCall").Exists():
			c := p.Get("functionCall")
			parts = append(parts, Part{Kind: KindTool, ID: stringOf(c.Get("id")), Name: stringOf(c.Get("name")), Arguments: c.Get("args").Raw})
		case p.Get("functionResponse").Exists():
			c := p.Get("functionResponse")
			parts = append(parts, Part{Kind: KindToolResult, ID: stringOf(c.Get("id")), Name: stringOf(c.Get("name")), Text: geminiResult(c.Get("response"))})
		case p.Get("text").Type == gjson.String:
			kind := KindText
			if p.Get("thought").Bool() {
				kind = KindReasoning
			}
			parts = append(parts, Part{Kind: kind, Text: stringOf(p.Get("text"))})
		default:
			parts = append(parts, Part{Kind: KindOther, Raw: json.RawMessage(p.Raw)})
		}
		return true
	})
	return parts
}

// geminiResult is a tool's result: text under "output", or the object itself.
func geminiResult(v gjson.Result) string {
	if o := v.Get("output"); o.Type == gjson.String {
		return stringOf(o)
	}
	return v.Raw
}

func (gemini) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	f := newFields(r)
	if r.System != "" {
		f.set("systemInstruction", json.RawMessage(appendGeminiText(nil, r.System)))
	}
	list := []byte{'['}
	for i, m := range r.Messages {
		if i > 0 {
			list = append(list, ',')
		}
		role := "user"
		if m.Role == Assistant {
			role = "model"
		}
		list = append(list, `{"role":"`+role+`","parts":`...)
		list = appendGeminiParts(list, m.Parts)
		list = append(list, '}')
	}
	f.set("contents", json.RawMessage(append(list, ']')))
	if len(r.Tools) > 0 {
		f.set("tools", geminiTools(r.Tools))
	}
	if config := geminiConfigFields(&r.Head); len(config.names) > 0 {
		raw, err := config.append(nil)
		if err != nil {
			return dst, err
		}
		f.set("generationConfig", json.RawMessage(raw))
	}
	return f.append(dst)
}

func appendGeminiText(dst []byte, text string) []byte {
	dst = append(dst, `{"parts":[{"text":`...)
	dst = quote(dst, text)
	return append(dst, "}]}"...)
}

func geminiTools(tools []Tool) any {
	type declaration struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	list := make([]declaration, len(tools))
	for i, t := range tools {
		list[i] = declaration(t)
	}
	return []map[string]any{{"functionDeclarations": list}}
}

func geminiConfigFields(h *Head) *fields {
	f := newFields(&Request{})
	f.count("maxOutputTokens", h.MaxTokens)
	f.float("temperature", h.Temperature)
	f.float("topP", h.TopP)
	f.float("topK", h.TopK)
	f.float("frequencyPenalty", h.FrequencyPenalty)
	f.float("presencePenalty", h.PresencePenalty)
	f.count("seed", h.Seed)
	f.count("candidateCount", h.Choices)
	if len(h.Stop) > 0 {
		f.set("stopSequences", h.Stop)
	}
	if h.ReasoningLevel != "" {
		f.set("thinkingConfig", map[string]string{"thinkingLevel": h.ReasoningLevel})
	}
	switch h.OutputType {
	case "text":
		f.string("responseMimeType", "text/plain")
	case "json":
		f.string("responseMimeType", "application/json")
	}
	return f
}

func appendGeminiParts(dst []byte, parts []Part) []byte {
	dst = append(dst, '[')
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch p.Kind {
		case KindTool:
			dst = append(dst, `{"functionCall":{`...)
			if p.ID != "" {
				dst = append(dst, `"id":`...)
				dst = quote(dst, p.ID)
				dst = append(dst, ',')
			}
			dst = append(dst, `"name":`...)
			dst = quote(dst, p.Name)
			dst = append(dst, `,"args":`...)
			dst = append(dst, jsonObject(p.Arguments)...)
			dst = append(dst, "}}"...)
		case KindToolResult:
			dst = append(dst, `{"functionResponse":{`...)
			if p.ID != "" {
				dst = append(dst, `"id":`...)
				dst = quote(dst, p.ID)
				dst = append(dst, ',')
			}
			dst = append(dst, `"name":`...)
			dst = quote(dst, p.Name)
			dst = append(dst, `,"response":{"output":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, "}}}"...)
		case KindReasoning:
			dst = append(dst, `{"thought":true,"text":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		case KindOther:
			dst = append(dst, p.Raw...)
		default:
			dst = append(dst, `{"text":`...)
			dst = quote(dst, p.Text)
			dst = append(dst, '}')
		}
	}
	return append(dst, ']')
}

func (gemini) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	doc, err := eventObject(f)
	if err != nil {
		return err
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "responseId":
			ev.ID = text(v)
		case "modelVersion":
			ev.Model = text(v)
		case "usageMetadata":
			ev.Usage = geminiUsage(v)
		case "error":
			ev.Err = errorOf(v)
		case "promptFeedback":
			// A blocked prompt gets no candidate, and nothing follows.
			if reason := text(v.Get("blockReason")); len(reason) > 0 {
				ev.Finish, ev.Terminal = reason, true
			}
		case "candidates":
			v.ForEach(func(_, c gjson.Result) bool {
				geminiCandidate(ev, c)
				return true
			})
		}
		return true
	})
	return nil
}

func geminiCandidate(ev *Event, c gjson.Result) {
	c.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "finishReason":
			if s := text(v); len(s) > 0 {
				ev.Finish, ev.Terminal = s, true
			}
		case "content":
			v.Get("parts").ForEach(func(_, p gjson.Result) bool {
				if call := p.Get("functionCall"); call.Exists() {
					ev.Tools = append(ev.Tools, ToolDelta{Index: -1, ID: text(call.Get("id")), Name: text(call.Get("name")), Arguments: alias(call.Get("args").Raw)})
					return true
				}
				if s := text(p.Get("text")); p.Get("thought").Bool() {
					ev.Reasoning = joinBytes(ev.Reasoning, s)
				} else {
					ev.addText(s)
				}
				return true
			})
		}
		return true
	})
}

func (g gemini) AppendEvent(dst []byte, ev *Event) []byte {
	dst = append(dst, "data: "...)
	dst = g.appendChunk(dst, ev)
	return append(dst, "\r\n\r\n"...)
}

// appendChunk writes an event without framing: it is an element of the JSON
// array that the stream is without alt=sse.
func (gemini) appendChunk(dst []byte, ev *Event) []byte {
	if ev.Err != nil {
		return appendGeminiError(dst, ev.Err)
	}
	a := Answer{ID: string(ev.ID), Model: string(ev.Model), Finish: string(ev.Finish), Usage: ev.Usage}
	a.add(KindReasoning, string(ev.Reasoning))
	a.add(KindText, string(ev.Text))
	for _, t := range ev.Tools {
		a.Parts = append(a.Parts, Part{Kind: KindTool, ID: string(t.ID), Name: string(t.Name), Arguments: string(t.Arguments)})
	}
	return gemini{}.AppendAnswer(dst, &a)
}

func (gemini) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body)
	if err != nil {
		return err
	}
	a.ID = stringOf(doc.Get("responseId"))
	a.Model = stringOf(doc.Get("modelVersion"))
	a.Usage = geminiUsage(doc.Get("usageMetadata"))
	c := doc.Get("candidates.0")
	a.Finish = stringOf(c.Get("finishReason"))
	if block := stringOf(doc.Get("promptFeedback.blockReason")); block != "" {
		a.Finish = block
	}
	a.Malformed = !c.IsObject() && a.Finish == ""
	for _, p := range geminiParts(c.Get("content.parts")) {
		if p.Kind&Output != 0 {
			a.Parts = append(a.Parts, p)
		}
	}
	return nil
}

func (gemini) AppendAnswer(dst []byte, a *Answer) []byte {
	dst = append(dst, '{')
	if !a.Malformed {
		dst = append(dst, `"candidates":[{"content":{"parts":`...)
		dst = appendGeminiParts(dst, a.Parts)
		dst = append(dst, `,"role":"model"}`...)
		dst = appendStringField(dst, "finishReason", alias(a.Finish))
		dst = append(dst, `,"index":0}],`...)
	}
	if a.Usage.Known() {
		dst = append(dst, `"usageMetadata":`...)
		dst = appendGeminiUsage(dst, a.Usage)
		dst = append(dst, ',')
	}
	dst = append(dst, `"modelVersion":`...)
	dst = quote(dst, a.Model)
	dst = append(dst, `,"responseId":`...)
	dst = quote(dst, a.ID)
	return append(dst, '}')
}

func (gemini) ParseError(body []byte) (Error, bool)    { return parseError(body) }
func (gemini) AppendError(dst []byte, e *Error) []byte { return appendGeminiError(dst, e) }
