package wire

import "strconv"

// completions is OpenAI's legacy completions API: a prompt, and text that goes
// on from it.
type completions struct{}

func (completions) API() API { return Completions }

func (completions) Path(*Request) string { return "/v1/completions" }

func (completions) ParseHead(h *Head, body []byte) error {
	*h = Head{}
	c, err := walkObject(body, "request")
	if err != nil {
		return err
	}
	for c.object(); c.field(); {
		if string(c.name) == "prompt" {
			h.MessageCount, h.TurnCount = 1, 1
		}
		openAIHead(h, &c)
	}
	return c.end("request")
}

// ParseRequest reads the prompt as one message of the user.
func (c completions) ParseRequest(r *Request, body []byte) error {
	*r = Request{}
	if err := c.ParseHead(&r.Head, body); err != nil {
		return err
	}
	doc, err := object(body, "request")
	if err != nil {
		return err
	}
	if prompt := doc.Get("prompt"); prompt.Exists() {
		var text lines
		for _, s := range stringList(prompt) {
			text.add(s)
		}
		r.Messages = []Message{{Role: User, Parts: []Part{{Kind: KindText, Text: text.joined()}}}}
	}
	return nil
}

// AppendRequest writes a whole conversation as one prompt, since the API has
// no messages.
func (completions) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	var prompt lines
	prompt.add(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			prompt.add(p.Text)
			if p.Kind == KindTool {
				prompt.add(p.Name + " " + p.Arguments)
			}
		}
	}
	f := newFields(r)
	f.string("prompt", prompt.joined())
	f.openAI(&r.Head)
	return f.append(dst)
}

func (completions) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) {
		ev.Terminal = true
		return nil
	}
	c, err := walkEvent(f)
	if err != nil {
		return err
	}
	for c.object(); c.field(); {
		if string(c.name) != "choices" {
			ev.openAI(&c)
			continue
		}
		for c.array(); c.element(); {
			for c.object(); c.field(); {
				switch string(c.name) {
				case "text":
					ev.addText(c.text(ev))
				case "finish_reason":
					if s := c.text(ev); len(s) > 0 {
						ev.Finish = s
					}
				default:
					c.skip()
				}
			}
		}
	}
	return openAIEventEnd(ev, &c, f)
}

func (completions) AppendEvent(dst []byte, ev *Event) []byte {
	if ev.Terminal {
		return append(dst, "data: [DONE]\n\n"...)
	}
	dst = append(dst, "data: "...)
	if ev.Err != nil {
		return append(appendOpenAIError(dst, ev.Err), "\n\n"...)
	}
	dst = append(dst, `{"id":`...)
	dst = quoteBytes(dst, ev.ID)
	dst = append(dst, `,"object":"text_completion","created":`...)
	dst = strconv.AppendInt(dst, created, 10)
	dst = append(dst, `,"model":`...)
	dst = quoteBytes(dst, ev.Model)
	dst = appendStringField(dst, "service_tier", ev.ServiceTier)
	dst = appendStringField(dst, "system_fingerprint", ev.SystemFingerprint)
	if ev.Usage.Known() && len(ev.Text) == 0 && len(ev.Finish) == 0 {
		dst = append(dst, `,"choices":[]`...)
	} else {
		dst = append(dst, `,"choices":[{"index":0,"text":`...)
		dst = quoteBytes(dst, ev.Text)
		dst = append(dst, `,"logprobs":null,"finish_reason":`...)
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

func (completions) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body, "answer")
	if err != nil {
		return err
	}
	a.openAI(doc)
	choice := doc.Get("choices.0")
	a.Malformed = !choice.IsObject()
	a.Finish = stringOf(choice.Get("finish_reason"))
	a.add(KindText, stringOf(choice.Get("text")))
	return nil
}

func (completions) AppendAnswer(dst []byte, a *Answer) []byte {
	dst = appendOpenAIAnswer(dst, a, "text_completion")
	if !a.Malformed {
		var text string
		for _, p := range a.Parts {
			text += p.Text
		}
		dst = append(dst, `,"choices":[{"index":0,"text":`...)
		dst = quote(dst, text)
		dst = append(dst, `,"logprobs":null,"finish_reason":`...)
		dst = quote(dst, a.Finish)
		dst = append(dst, "}]"...)
	}
	return appendOpenAIAnswerEnd(dst, a)
}

func (completions) ParseError(body []byte) (Error, bool)    { return parseError(body) }
func (completions) AppendError(dst []byte, e *Error) []byte { return appendOpenAIError(dst, e) }
