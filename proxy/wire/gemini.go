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
	c, err := walkObject(body, "request")
	if err != nil {
		return err
	}
	geminiHead(h, &c, false)
	return c.end("request")
}

// geminiHead reads a request; inner says that it stands inside another object,
// as Code Assist sends it, with the model beside it.
func geminiHead(h *Head, c *cursor, inner bool) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "generationConfig", "generation_config":
			geminiConfig(h, c)
		case "contents":
			for c.array(); c.element(); {
				h.MessageCount++
				if geminiTurn(c) {
					h.TurnCount++
				}
			}
		case "tools":
			for c.array(); c.element(); {
				for c.object(); c.field(); {
					if n := string(c.name); n == "functionDeclarations" || n == "function_declarations" {
						h.ToolCount += c.length()
					} else {
						c.skip()
					}
				}
			}
		case "model":
			h.Model = c.string()
		case "request":
			if inner {
				c.skip()
			} else {
				geminiHead(h, c, true)
			}
		default:
			c.skip()
		}
	}
}

// geminiTurn steps over a content and says whether the user speaks in it.
func geminiTurn(c *cursor) bool {
	user, result := true, false
	for c.object(); c.field(); {
		switch string(c.name) {
		case "role":
			user = c.is("user")
		case "parts":
			first := true
			for c.array(); c.element(); first = false {
				for c.object(); c.field(); c.skip() {
					if n := string(c.name); first && (n == "functionResponse" || n == "function_response") {
						result = true
					}
				}
			}
		default:
			c.skip()
		}
	}
	return user && !result
}

func geminiDeclarations(t gjson.Result) gjson.Result {
	if d := t.Get("functionDeclarations"); d.Exists() {
		return d
	}
	return t.Get("function_declarations")
}

func geminiConfig(h *Head, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "maxOutputTokens":
			h.MaxTokens = c.count()
		case "temperature":
			h.Temperature = c.float()
		case "topP":
			h.TopP = c.float()
		case "topK":
			h.TopK = c.float()
		case "frequencyPenalty":
			h.FrequencyPenalty = c.float()
		case "presencePenalty":
			h.PresencePenalty = c.float()
		case "seed":
			h.Seed = c.count()
		case "candidateCount":
			h.Choices = c.count()
		case "stopSequences":
			h.Stop = c.strings()
		case "thinkingConfig":
			h.ReasoningLevel = strings.ToLower(stringAt(c, "thinkingLevel"))
		case "responseMimeType":
			switch c.string() {
			case "text/plain":
				h.OutputType = "text"
			case "application/json":
				h.OutputType = "json"
			}
		default:
			c.skip()
		}
	}
}

func (f gemini) ParseRequest(r *Request, body []byte) error {
	*r = Request{}
	if err := f.ParseHead(&r.Head, body); err != nil {
		return err
	}
	doc, err := object(body, "request")
	if err != nil {
		return err
	}
	if wrapped := doc.Get("request"); wrapped.IsObject() {
		doc = wrapped
	}
	system := doc.Get("systemInstruction")
	if !system.Exists() {
		system = doc.Get("system_instruction")
	}
	var texts lines
	for _, p := range geminiParts(system.Get("parts")) {
		texts.add(p.Text)
	}
	r.System = texts.joined()
	for _, c := range elements(doc.Get("contents")) {
		m := Message{Role: User, Parts: geminiParts(c.Get("parts"))}
		if c.Get("role").Str == "model" {
			m.Role = Assistant
		}
		if len(m.Parts) > 0 && m.Parts[0].Kind == KindToolResult {
			m.Role = ToolRole
		}
		r.Messages = append(r.Messages, m)
	}
	for _, t := range elements(doc.Get("tools")) {
		for _, d := range elements(geminiDeclarations(t)) {
			parameters := "parameters"
			if d.Get("parametersJsonSchema").Exists() {
				parameters = "parametersJsonSchema"
			}
			r.Tools = append(r.Tools, toolOf(d, parameters))
		}
	}
	return nil
}

func geminiParts(v gjson.Result) []Part {
	var parts []Part
	for _, p := range elements(v) {
		switch {
		case p.Get("functionCall").Exists():
			c := p.Get("functionCall")
			parts = append(parts, Part{Kind: KindTool, ID: stringOf(c.Get("id")), Name: stringOf(c.Get("name")), Arguments: rawOf(c.Get("args"))})
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
	}
	return parts
}

// geminiResult is a tool's result: text under "output", or the object itself.
func geminiResult(v gjson.Result) string {
	if o := v.Get("output"); o.Type == gjson.String {
		return stringOf(o)
	}
	return rawOf(v)
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
