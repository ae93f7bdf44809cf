package wire

// On a WebSocket the client of the Responses API sends a message for each
// response that it wants, and the server answers with a message for each event
// of its stream: For(Responses).ParseEvent reads Frame{Data: message}, since
// the type that SSE has in a field of its own stands in the event too.

// ResponseCreate finds the request in a client's message of the type
// response.create: its fields stand beside the type, or in an object
// "response". generate is false when the client only wants the prompt to be
// made ready, and no output. ok is false for any other message. Of a message
// that breaks off, request is what came of it.
func ResponseCreate(msg []byte) (request []byte, generate, ok bool) {
	c, err := walkObject(msg, "message")
	if err != nil {
		return nil, false, false
	}
	request, generate = msg, true
	field := func() {
		if string(c.name) != "generate" {
			c.skip()
		} else if value, said := c.truth(); said {
			generate = value
		}
	}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "type":
			ok = c.is("response.create")
		case "response":
			nested, from := c.peek() == '{', c.i
			for c.object(); c.field(); {
				field()
			}
			if nested {
				request = msg[from:c.i]
			}
		default:
			field()
		}
	}
	if !ok {
		return nil, false, false
	}
	return request, generate, true
}

// ReadResponseCreate reads the head of the request in a client's message, as
// ResponseCreate finds it. Stream is set whatever the message says, since the
// answer is always a stream. Of a message that breaks off, h has what came
// before the break; of another message it has nothing.
func ReadResponseCreate(msg []byte, h *Head) (generate, ok bool) {
	request, generate, ok := ResponseCreate(msg)
	if !ok {
		*h = Head{}
		return false, false
	}
	_ = responses{}.ParseHead(h, request) // it may break off
	h.Stream = true
	return generate, true
}

// ResponseLane is the lane that a client's message names, beside its type or in
// its object "response"; empty for the lane without a name. Lanes run at the
// same time, each in order; an event's StreamID names its own.
func ResponseLane(msg []byte) (lane string) {
	c, err := walkObject(msg, "message")
	if err != nil {
		return ""
	}
	for c.object(); c.field(); {
		switch string(c.name) {
		case "stream_id":
			lane = c.string()
		case "response":
			for c.object(); c.field(); {
				if string(c.name) == "stream_id" {
					lane = c.string()
				} else {
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
	return lane
}

// EndsResponse says whether an event on a WebSocket ends the response under way
// in its lane: its last event, or an error. An error while no response is under
// way there is the connection's own, such as its age limit. It may also stand
// before any event of the response that it refuses; its Status is what HTTP
// would have answered. Servers may send response.failed after an error: it ends
// nothing more.
func (ev *Event) EndsResponse() bool { return ev.Terminal || ev.Err != nil }
