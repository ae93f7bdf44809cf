package wire

func (gemini) ParseAnswer(a *Answer, body []byte) error {
	*a = Answer{}
	doc, err := object(body, "answer")
	if err != nil {
		return err
	}
	if wrapped := doc.Get("response"); wrapped.IsObject() {
		doc = wrapped
	}
	a.ID = stringOf(doc.Get("responseId"))
	a.Model = stringOf(doc.Get("modelVersion"))
	a.Usage = geminiUsage(walk(doc.Get("usageMetadata")))
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
