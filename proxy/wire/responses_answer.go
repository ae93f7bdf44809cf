package wire

import "strconv"

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
	doc, err := object(body, "answer")
	if err != nil {
		return err
	}
	a.openAI(doc)
	output := doc.Get("output")
	a.Malformed = !output.IsArray()
	for _, item := range elements(output) {
		role, parts := responsesItem(item)
		if role != Assistant {
			continue
		}
		for _, p := range parts {
			if p.Kind&Output != 0 {
				a.Parts = append(a.Parts, p)
			}
		}
	}
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
