package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// responsesEvent is the fields of Responses' events, which are read before it
// is certain which event they belong to.
type responsesEvent struct {
	index  int
	delta  []byte
	callID []byte
	name   []byte
	reason []byte // incomplete_details.reason
	status Count  // of an error on a WebSocket, which has no other status
}

func (responses) ParseEvent(ev *Event, f Frame) error {
	ev.reset()
	if isDone(f.Data) { // some gateways end this stream as they end the others
		return nil
	}
	c, err := walkEvent(f)
	if err != nil {
		return err
	}
	ev.Type = f.Event
	e := responsesEvent{index: -1}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "type":
			if t := c.text(ev); len(t) > 0 {
				ev.Type = t
			}
		case "output_index":
			if n := c.count(); n.Known && n.N >= 0 {
				e.index = int(n.N)
			}
		case "delta":
			e.delta = c.text(ev)
		case "item":
			e.item(ev, &c)
		case "response":
			e.response(ev, &c)
		case "error":
			ev.Err = errorIn(c.value())
		case "status", "status_code":
			e.status = c.count()
		case "stream_id":
			ev.StreamID = c.text(ev)
		default:
			c.skip()
		}
	}
	if err := c.end("event"); err != nil {
		return err
	}
	ev.responses(&e, f.Data)
	return nil
}

func (e *responsesEvent) item(ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "call_id":
			e.callID = c.text(ev)
		case "name":
			e.name = c.text(ev)
		default:
			c.skip()
		}
	}
}

func (e *responsesEvent) response(ev *Event, c *cursor) {
	for c.object(); c.field(); {
		switch string(c.name) {
		case "id":
			ev.ID = c.text(ev)
		case "model":
			ev.Model = c.text(ev)
		case "service_tier":
			ev.ServiceTier = c.text(ev)
		case "usage":
			ev.Usage = openAIUsage(c)
		case "error":
			ev.Err = errorIn(c.value())
		case "incomplete_details":
			for c.object(); c.field(); {
				if string(c.name) == "reason" {
					e.reason = c.text(ev)
				} else {
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
}

// responses sorts the fields by the event's type.
func (ev *Event) responses(e *responsesEvent, data []byte) {
	failure := ev.Err
	ev.Err = nil
	switch string(ev.Type) {
	case "response.output_text.delta":
		ev.Text = e.delta
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta":
		ev.Reasoning = e.delta
	case "response.refusal.delta":
		ev.Refusal = e.delta
	case "response.output_item.added":
		if len(e.name) > 0 {
			ev.Tools = append(ev.Tools, ToolDelta{Index: e.index, ID: e.callID, Name: e.name})
		}
	case "response.created", "response.in_progress", "response.queued":
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		ev.Terminal = true
		ev.Finish = ev.Type[len("response."):]
		if len(e.reason) > 0 {
			ev.Finish = e.reason
		}
		if string(ev.Finish) == "failed" {
			if ev.Err = failure; ev.Err == nil {
				ev.Err = &Error{Message: "the response failed without a reason"}
			}
		}
	case "error":
		if ev.Err = failure; ev.Err == nil {
			// Its fields may stand beside its type.
			ev.Err = errorOf(parse(data))
			ev.Err.Type = ""
		}
		if e.status.N >= 400 && e.status.N < 600 {
			ev.Err.Status = int(e.status.N)
		}
	default:
		if len(e.delta) > 0 && isCallDelta(ev.Type) {
			ev.Tools = append(ev.Tools, ToolDelta{Index: e.index, Arguments: e.delta})
			return
		}
		// A gateway's error in the form of chat completions has no type.
		ev.Err = failure
		ev.Unknown = failure == nil && !announces(ev.Type)
	}
}

// isCallDelta says whether an event holds a piece of what the model writes for
// a tool, whichever the tool: "response.function_call_arguments.delta",
// "response.custom_tool_call_input.delta", "response.shell_call_command.delta".
func isCallDelta(kind []byte) bool {
	return bytes.HasSuffix(kind, []byte(".delta")) && bytes.Contains(kind, []byte("_call_"))
}

// announces says whether an event of Responses that has no output is one of
// those that tell of progress or close something.
func announces(kind []byte) bool {
	if !bytes.HasPrefix(kind, []byte("response.")) {
		return false
	}
	for _, s := range []string{".added", ".done", ".in_progress", ".searching", ".completed", ".interpreting", ".generating", ".failed", ".delta", ".partial_image"} {
		if strings.HasSuffix(view(kind), s) {
			return true
		}
	}
	return false
}

// AppendEvent writes the event that ev.Type names. What a real stream has
// beside it (sequence numbers, item ids) the Writer adds.
func (responses) AppendEvent(dst []byte, ev *Event) []byte {
	kind := string(ev.Type)
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: {\"type\":"...)
	dst = quote(dst, kind)
	dst = appendStringField(dst, "stream_id", ev.StreamID)
	switch {
	case kind == "error":
		if ev.Err.Status != 0 {
			dst = appendCount(dst, "status", N(int64(ev.Err.Status)))
		}
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
