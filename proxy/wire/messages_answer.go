package wire

func (messages) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body, "answer")
	if err != nil {
		return err
	}
	a.ID = stringOf(doc.Get("id"))
	a.Model = stringOf(doc.Get("model"))
	a.Finish = stringOf(doc.Get("stop_reason"))
	usage, tier := anthropicUsage(walk(doc.Get("usage")))
	a.Usage, a.ServiceTier = usage, string(tier)
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
