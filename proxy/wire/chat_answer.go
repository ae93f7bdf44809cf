package wire

import (
	"strconv"

	"github.com/tidwall/gjson"
)

func (chat) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body, "answer")
	if err != nil {
		return err
	}
	a.openAI(doc)
	choice := doc.Get("choices.0")
	a.Malformed = !choice.IsObject()
	a.Finish = stringOf(choice.Get("finish_reason"))
	m := choice.Get("message")
	a.add(KindReasoning, reasoningOf(m))
	a.add(KindText, contentText(m.Get("content")))
	a.add(KindRefusal, stringOf(m.Get("refusal")))
	for _, t := range elements(m.Get("tool_calls")) {
		a.Parts = append(a.Parts, chatCallPart(t))
	}
	return nil
}

// openAI reads what the answers of OpenAI's APIs share.
func (a *Answer) openAI(doc gjson.Result) {
	a.ID = stringOf(doc.Get("id"))
	a.Model = stringOf(doc.Get("model"))
	a.ServiceTier = stringOf(doc.Get("service_tier"))
	a.SystemFingerprint = stringOf(doc.Get("system_fingerprint"))
	a.Usage = openAIUsage(walk(doc.Get("usage")))
}

// add adds a part of text unless it is empty.
func (a *Answer) add(k Kind, text string) {
	if text != "" {
		a.Parts = append(a.Parts, Part{Kind: k, Text: text})
	}
}

func (chat) AppendAnswer(dst []byte, a *Answer) []byte {
	dst = appendOpenAIAnswer(dst, a, "chat.completion")
	if !a.Malformed {
		dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		var text, reasoning, refusal string
		var calls []Part
		for _, p := range a.Parts {
			switch p.Kind {
			case KindText:
				text += p.Text
			case KindReasoning:
				reasoning += p.Text
			case KindRefusal:
				refusal += p.Text
			case KindTool:
				calls = append(calls, p)
			}
		}
		if text == "" {
			dst = append(dst, "null"...)
		} else {
			dst = quote(dst, text)
		}
		dst = appendStringField(dst, "reasoning_content", alias(reasoning))
		dst = appendStringField(dst, "refusal", alias(refusal))
		for i, p := range calls {
			if i == 0 {
				dst = append(dst, `,"tool_calls":[`...)
			} else {
				dst = append(dst, ',')
			}
			t := ToolDelta{Index: -1, ID: alias(p.ID), Name: alias(p.Name), Arguments: alias(p.Arguments)}
			dst = appendChatToolDelta(dst, &t)
			if i == len(calls)-1 {
				dst = append(dst, ']')
			}
		}
		dst = append(dst, `},"finish_reason":`...)
		dst = quote(dst, a.Finish)
		dst = append(dst, "}]"...)
	}
	return appendOpenAIAnswerEnd(dst, a)
}

func appendOpenAIAnswer(dst []byte, a *Answer, kind string) []byte {
	dst = append(dst, `{"id":`...)
	dst = quote(dst, a.ID)
	dst = append(dst, `,"object":`...)
	dst = quote(dst, kind)
	dst = append(dst, `,"created":`...)
	dst = strconv.AppendInt(dst, created, 10)
	dst = append(dst, `,"model":`...)
	dst = quote(dst, a.Model)
	dst = appendStringField(dst, "service_tier", alias(a.ServiceTier))
	return appendStringField(dst, "system_fingerprint", alias(a.SystemFingerprint))
}

func appendOpenAIAnswerEnd(dst []byte, a *Answer) []byte {
	if a.Usage.Known() {
		dst = append(dst, `,"usage":`...)
		dst = appendOpenAIUsage(dst, a.Usage, "prompt", "completion")
	}
	return append(dst, '}')
}

func (chat) ParseError(body []byte) (Error, bool)    { return parseError(body) }
func (chat) AppendError(dst []byte, e *Error) []byte { return appendOpenAIError(dst, e) }
