package wire

import "strconv"

func (chat) ParseEvent(ev *Event, f Frame) error {
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
		switch string(c.name) {
		case "choices":
			for c.array(); c.element(); {
				chatChoice(ev, &c)
			}
		default:
			ev.openAI(&c)
		}
	}
	return openAIEventEnd(ev, &c, f)
}

// openAI reads a field that the events of the two completions APIs share.
func (ev *Event) openAI(c *cursor) {
	switch string(c.name) {
	case "id":
		ev.ID = c.text(ev)
	case "model":
		ev.Model = c.text(ev)
	case "service_tier":
		ev.ServiceTier = c.text(ev)
	case "system_fingerprint":
		ev.SystemFingerprint = c.text(ev)
	case "usage":
		ev.Usage.Merge(openAIUsage(c))
	case "x_groq":
		for c.object(); c.field(); {
			if string(c.name) == "usage" {
				ev.Usage.Merge(openAIUsage(c))
			} else {
				c.skip()
			}
		}
	case "error":
		ev.Err = errorIn(c.value())
	default:
		c.skip()
	}
}

// openAIEventEnd takes what some servers send for an error: the error itself
// where a chunk should stand.
func openAIEventEnd(ev *Event, c *cursor, f Frame) error {
	if ev.Err == nil && ev.Output() == 0 && len(ev.Finish) == 0 {
		doc := parse(f.Data)
		if string(f.Event) == "error" || doc.Get("object").Str == "error" {
			ev.Err = errorOf(doc)
		}
	}
	return c.end("event")
}

func chatChoice(ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "finish_reason":
			if s := c.text(ev); len(s) > 0 {
				ev.Finish = s
			}
		case "usage": // Moonshot
			ev.Usage.Merge(openAIUsage(c))
		case "delta", "message":
			for c.object(); c.field(); {
				chatDelta(ev, c)
			}
		default:
			c.skip()
		}
	}
}

func chatDelta(ev *Event, c *cursor) {
	switch string(c.name) {
	case "content":
		if c.peek() == '[' {
			chatContent(ev, c)
		} else {
			ev.addText(c.text(ev))
		}
	case "reasoning_content", "reasoning":
		// Some servers send both, with the same words.
		if s := c.text(ev); len(ev.Reasoning) == 0 {
			ev.Reasoning = s
		}
	case "refusal":
		ev.Refusal = c.text(ev)
	case "tool_calls":
		for c.array(); c.element(); {
			ev.Tools = append(ev.Tools, chatToolDelta(ev, c))
		}
	case "function_call": // before there were tools
		d := ToolDelta{Index: -1}
		chatFunctionDelta(&d, ev, c)
		if len(d.Name) > 0 || len(d.Arguments) > 0 {
			ev.Tools = append(ev.Tools, d)
		}
	default:
		c.skip()
	}
}

// chatContent reads a content that is an array of parts, as Mistral's
// reasoning models send it.
func chatContent(ev *Event, c *cursor) {
	for c.array(); c.element(); {
		for c.object(); c.field(); {
			switch string(c.name) {
			case "text":
				ev.addText(c.text(ev))
			case "thinking":
				for c.array(); c.element(); {
					for c.object(); c.field(); {
						if string(c.name) == "text" {
							ev.addReasoning(c.text(ev))
						} else {
							c.skip()
						}
					}
				}
			default:
				c.skip()
			}
		}
	}
}

func chatToolDelta(ev *Event, c *cursor) ToolDelta {
	d := ToolDelta{Index: -1}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "index":
			if n := c.count(); n.Known && n.N >= 0 {
				d.Index = int(n.N)
			}
		case "id":
			d.ID = c.text(ev)
		case "function":
			chatFunctionDelta(&d, ev, c)
		default:
			c.skip()
		}
	}
	return d
}

func chatFunctionDelta(d *ToolDelta, ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "name":
			d.Name = c.text(ev)
		case "arguments":
			d.Arguments = c.text(ev)
		default:
			c.skip()
		}
	}
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
