package wire

func (gemini) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) { // some gateways end this stream as they end OpenAI's
		return nil
	}
	c, err := walkEvent(f)
	if err != nil {
		return err
	}
	geminiChunk(ev, &c, false)
	return c.end("event")
}

// geminiChunk reads a chunk; inner says that it stands inside another object,
// as Code Assist sends them.
func geminiChunk(ev *Event, c *cursor, inner bool) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "responseId":
			ev.ID = c.text(ev)
		case "modelVersion":
			ev.Model = c.text(ev)
		case "usageMetadata":
			ev.Usage = geminiUsage(c)
		case "error":
			ev.Err = errorIn(c.value())
		case "promptFeedback":
			// A blocked prompt gets no candidate, and nothing follows.
			for c.object(); c.field(); {
				if string(c.name) == "blockReason" {
					ev.geminiFinish(c)
				} else {
					c.skip()
				}
			}
		case "candidates":
			for c.array(); c.element(); {
				geminiCandidate(ev, c)
			}
		case "response":
			if inner {
				c.skip()
			} else {
				geminiChunk(ev, c, true)
			}
		default:
			c.skip()
		}
	}
}

func (ev *Event) geminiFinish(c *cursor) {
	if s := c.text(ev); len(s) > 0 {
		ev.Finish, ev.Terminal = s, true
	}
}

func geminiCandidate(ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "finishReason":
			ev.geminiFinish(c)
		case "content":
			for c.object(); c.field(); {
				if string(c.name) != "parts" {
					c.skip()
					continue
				}
				for c.array(); c.element(); {
					geminiPart(ev, c)
				}
			}
		default:
			c.skip()
		}
	}
}

func geminiPart(ev *Event, c *cursor) {
	var text []byte
	thought := false
	for c.object(); c.field(); {
		switch string(c.name) {
		case "text":
			text = c.text(ev)
		case "thought":
			thought, _ = c.truth()
		case "functionCall":
			ev.geminiCall(c)
		case "executableCode": // the model writes it as it would a tool's arguments
			for c.object(); c.field(); {
				if string(c.name) != "code" {
					c.skip()
				} else if code := c.text(ev); len(code) > 0 {
					ev.Tools = append(ev.Tools, ToolDelta{Index: -1, Arguments: code})
				}
			}
		default:
			c.skip()
		}
	}
	if thought {
		ev.addReasoning(text)
	} else {
		ev.addText(text)
	}
}

// geminiCall reads a call, which comes whole, or whose arguments come in
// pieces when that was asked for.
func (ev *Event) geminiCall(c *cursor) {
	d := ToolDelta{Index: -1}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "id":
			d.ID = c.text(ev)
		case "name":
			d.Name = c.text(ev)
		case "args", "partialArgs":
			if v := c.value(); string(v) != "null" {
				d.Arguments = v
			}
		default:
			c.skip()
		}
	}
	if len(d.Name) > 0 || len(d.Arguments) > 0 {
		ev.Tools = append(ev.Tools, d)
	}
}

func (f gemini) AppendEvent(dst []byte, ev *Event) []byte {
	dst = append(dst, "data: "...)
	dst = f.appendChunk(dst, ev)
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
