package wire

import (
	"bytes"
	"mime"
	"strings"
)

// Framing is how a body is cut into frames.
type Framing uint8

// The framings.
const (
	Whole     Framing = iota // one JSON document
	SSE                      // text/event-stream
	JSONArray                // Gemini's stream without alt=sse: one array, an element a frame
)

// FramingOf reads a response's Content-Type. stream says that the request
// asked for a stream: JSON is then taken for an array of frames if it starts
// like one.
func FramingOf(contentType string, stream bool) Framing {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	switch {
	case mediaType == "text/event-stream":
		return SSE
	case mediaType == "application/json" && stream:
		return JSONArray
	}
	return Whole
}

const defaultFrameLimit = 8 << 20

// Splitter cuts a body into frames, whatever the split of the bytes it is fed.
type Splitter struct {
	framing Framing
	limit   int

	held []byte // the unfinished line (SSE) or value (others)
	over bool   // held was cut at the limit

	// SSE
	started bool // the first line has begun, so no byte order mark may come
	lastCR  bool // the line before ended in a CR: skip an LF
	event   []byte
	data    []byte // of the event under way; aliases the bytes fed until own is needed
	lines   int    // data lines of the event under way
	fields  bool   // the event under way has fields
	own     []byte // keeps data that outlives one feed, or has several lines
	ownName []byte

	// JSONArray
	depth    int
	inString bool
	escaped  bool
	plain    bool // the body is one document, not an array
}

// NewSplitter makes a splitter that inspects at most limit bytes of one frame;
// longer frames are passed with their beginning and marked Oversize. A limit of
// 0 is 8 MiB.
func NewSplitter(f Framing, limit int) *Splitter {
	if limit <= 0 {
		limit = defaultFrameLimit
	}
	return &Splitter{framing: f, limit: limit}
}

// Feed takes the next bytes and yields the frames that they complete.
func (s *Splitter) Feed(p []byte, yield func(Frame)) {
	switch s.framing {
	case SSE:
		s.feedSSE(p, yield)
	case JSONArray:
		s.feedArray(p, yield)
	default:
		s.hold(p)
	}
}

// Close ends the body. A Whole body is yielded here; an SSE event without its
// blank line is not an event and is dropped, which Partial tells.
func (s *Splitter) Close(yield func(Frame)) {
	if (s.framing == Whole || s.plain) && len(s.held) > 0 {
		yield(Frame{Data: s.held, Oversize: s.over})
		s.held = nil
	}
}

// Partial says that bytes of an unfinished frame are held.
func (s *Splitter) Partial() bool {
	return len(s.held) > 0 || s.fields || s.depth > 0
}

// hold keeps bytes of an unfinished line or value, up to the limit.
func (s *Splitter) hold(p []byte) {
	if room := s.limit - len(s.held); len(p) > room {
		p = p[:max(room, 0)]
		s.over = true
	}
	s.held = append(s.held, p...)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func (s *Splitter) feedSSE(p []byte, yield func(Frame)) {
	for len(p) > 0 {
		if s.lastCR {
			s.lastCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		if end < 0 {
			s.keep()
			s.hold(p)
			return
		}
		line := p[:end]
		s.lastCR = p[end] == '\r'
		p = p[end+1:]
		if len(s.held) > 0 {
			s.hold(line)
			line = s.held
		}
		if !s.started {
			s.started = true
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		s.line(line, yield)
		s.held = s.held[:0]
	}
	s.keep()
}

// lineEnd finds the first CR or LF. Carriage returns are rare, so they are
// looked for only before the line feed.
func lineEnd(p []byte) int {
	lf := bytes.IndexByte(p, '\n')
	head := p
	if lf >= 0 {
		head = p[:lf]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func (s *Splitter) line(line []byte, yield func(Frame)) {
	if len(line) == 0 {
		if s.lines > 0 {
			yield(Frame{Event: s.event, Data: s.data, Oversize: s.over})
		}
		s.event, s.data, s.lines, s.fields, s.over = nil, nil, 0, false, false
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		s.fields = true
		s.addData(value)
	case "event":
		s.fields = true
		s.event = value
	case "id", "retry":
		s.fields = true
	}
}

func (s *Splitter) addData(value []byte) {
	s.lines++
	if s.lines == 1 {
		s.data = value
		return
	}
	if s.lines == 2 || len(s.own) == 0 {
		s.own = append(s.own[:0], s.data...)
	}
	s.own = append(s.own, '\n')
	if room := s.limit - len(s.own); len(value) > room {
		value = value[:max(room, 0)]
		s.over = true
	}
	s.own = append(s.own, value...)
	s.data = s.own
}

// keep copies what the event under way has from bytes that are only lent.
func (s *Splitter) keep() {
	if s.lines == 1 {
		s.own = append(s.own[:0], s.data...)
		s.data = s.own
	}
	if len(s.event) > 0 {
		s.ownName = append(s.ownName[:0], s.event...)
		s.event = s.ownName
	}
}

// feedArray yields the elements of one JSON array as they close. A body that
// is not an array is one frame, yielded by Close.
func (s *Splitter) feedArray(p []byte, yield func(Frame)) {
	if s.plain {
		s.hold(p)
		return
	}
	start := -1 // of the element under way, in p
	if s.depth > 1 {
		start = 0
	}
	for i, c := range p {
		switch {
		case s.escaped:
			s.escaped = false
		case s.inString:
			switch c {
			case '\\':
				s.escaped = true
			case '"':
				s.inString = false
			}
		case c == '"' && s.depth > 1:
			s.inString = true
		case c == '{' || c == '[':
			if s.depth == 0 && c == '{' {
				s.plain = true
				s.hold(p[i:])
				return
			}
			s.depth++
			if s.depth == 2 {
				start = i
			}
		case c == '}' || c == ']':
			s.depth = max(s.depth-1, 0)
			if s.depth == 1 && start >= 0 {
				element := p[start : i+1]
				if len(s.held) > 0 {
					s.hold(element)
					element = s.held
				}
				yield(Frame{Data: element, Oversize: s.over})
				s.held, s.over, start = s.held[:0], false, -1
			}
		}
	}
	if start >= 0 {
		s.hold(p[start:])
	}
}
