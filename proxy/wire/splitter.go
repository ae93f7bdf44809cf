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

// ChooseFraming also looks at the body's first byte that is not white space.
// The Content-Type is not believed against it: gateways send events as JSON,
// JSON as events, and answer a request for a stream with one document.
func ChooseFraming(contentType string, stream bool, first byte) Framing {
	framing := FramingOf(contentType, stream)
	switch first {
	case '{':
		return Whole
	case '[':
		if stream {
			return JSONArray
		}
		return Whole
	case ':', 'd', 'e', 'i', 'r': // data, event, id, retry, a comment
		if stream {
			return SSE
		}
	default:
		if framing == JSONArray {
			return Whole
		}
	}
	return framing
}

const defaultFrameLimit = 8 << 20

// Splitter cuts a body into frames, whatever the split of the bytes it is fed.
// A frame that lies within one feed is not copied.
type Splitter struct {
	framing Framing
	limit   int

	held []byte // the unfinished line (SSE) or value (others)
	cut  bool   // held lacks its end: it was longer than may be held

	// SSE: the event under way.
	started   bool // the first line has ended, so no byte order mark may come
	lastCR    bool // the line before ended in a CR: skip an LF
	fields    bool // it has fields
	lines     int  // of data
	data      []byte
	event     []byte
	over      bool   // data was cut at the limit
	own       []byte // keeps data that outlives one feed or has several lines
	ownEvent  []byte
	dataIsOwn bool
	nameIsOwn bool

	// JSONArray
	depth    int
	inString bool
	escaped  bool
	plain    bool // the body is one document, not an array
}

// NewSplitter makes a splitter that inspects at most limit bytes of one frame;
// of longer ones it gives the beginning, marked Oversize. A limit of 0 is
// 8 MiB.
func NewSplitter(f Framing, limit int) *Splitter {
	if limit <= 0 {
		limit = defaultFrameLimit
	}
	return &Splitter{framing: f, limit: limit}
}

// Feed takes the next bytes and yields the frames that they complete.
func (s *Splitter) Feed(p []byte, yield func(Frame)) {
	switch {
	case s.framing == SSE:
		s.feedSSE(p, yield)
	case s.framing == JSONArray && !s.plain:
		s.feedArray(p, yield)
	default:
		s.hold(p, s.limit)
	}
}

// Close ends the body. A Whole body is yielded here; an SSE event without its
// blank line is not an event and is dropped, which Partial tells.
func (s *Splitter) Close(yield func(Frame)) {
	if (s.framing == Whole || s.plain) && len(s.held) > 0 {
		yield(Frame{Data: s.held, Oversize: s.cut})
		s.held = nil
	}
}

// Partial says that bytes of an unfinished frame are held.
func (s *Splitter) Partial() bool {
	return len(s.held) > 0 || s.fields || s.depth > 0
}

// hold keeps bytes of an unfinished line or value, up to limit of them.
func (s *Splitter) hold(p []byte, limit int) {
	if room := limit - len(s.held); len(p) > room {
		p = p[:max(room, 0)]
		s.cut = true
	}
	s.held = append(s.held, p...)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// lineOverhead is what a line may have beside its data: a byte order mark,
// the field's name, a colon and a space.
const lineOverhead = 16

func (s *Splitter) feedSSE(p []byte, yield func(Frame)) {
	// A stream that ends its lines in CR alone has no LF, and is not searched
	// for one line by line.
	lf := bytes.IndexByte(p, '\n')
	for from := 0; from < len(p); {
		if lf >= 0 && lf < from {
			if lf = bytes.IndexByte(p[from:], '\n'); lf >= 0 {
				lf += from
			}
		}
		if s.lastCR {
			s.lastCR = false
			if p[from] == '\n' {
				from++
				continue
			}
		}
		rest := p[from:]
		if lf >= 0 {
			rest = p[from:lf]
		}
		end := lf
		if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
			end = from + cr
		}
		if end < 0 {
			s.keep()
			s.hold(p[from:], s.limit+lineOverhead)
			return
		}
		line := p[from:end]
		s.lastCR = p[end] == '\r'
		from = end + 1
		if len(s.held) > 0 {
			s.hold(line, s.limit+lineOverhead)
			line = s.held
		}
		s.line(line, yield)
		s.held, s.cut = s.held[:0], false
	}
	s.keep()
}

func (s *Splitter) line(line []byte, yield func(Frame)) {
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		if s.lines > 0 {
			yield(Frame{Event: s.event, Data: s.data, Oversize: s.over})
		}
		s.data, s.event, s.lines, s.fields, s.over, s.dataIsOwn, s.nameIsOwn = nil, nil, 0, false, false, false, false
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.fields = true
		s.addData(value)
	case "event":
		s.fields = true
		s.event, s.nameIsOwn = value, false
	case "id", "retry":
		s.fields = true
	}
}

func (s *Splitter) addData(value []byte) {
	s.over = s.over || s.cut
	s.lines++
	if s.lines == 1 {
		s.data = s.within(value, 0)
		return
	}
	s.ownData()
	s.own = append(s.own, s.within([]byte{'\n'}, len(s.own))...)
	s.own = append(s.own, s.within(value, len(s.own))...)
	s.data = s.own
}

// within cuts p to what the limit leaves behind n bytes.
func (s *Splitter) within(p []byte, n int) []byte {
	if room := max(s.limit-n, 0); len(p) > room {
		s.over = true
		return p[:room]
	}
	return p
}

// keep copies what the event under way has from bytes that are only lent.
func (s *Splitter) keep() {
	if s.lines > 0 {
		s.ownData()
	}
	if len(s.event) > 0 && !s.nameIsOwn {
		s.ownEvent = append(s.ownEvent[:0], s.event...)
		s.event, s.nameIsOwn = s.ownEvent, true
	}
}

func (s *Splitter) ownData() {
	if !s.dataIsOwn {
		s.own = append(s.own[:0], s.data...)
		s.data, s.dataIsOwn = s.own, true
	}
}

// feedArray yields the elements of one JSON array as they close. A body that
// is not an array is one frame, yielded by Close.
func (s *Splitter) feedArray(p []byte, yield func(Frame)) {
	start := -1 // of the element under way, in p
	if s.depth > 1 {
		start = 0
	}
	for i := 0; i < len(p); i++ {
		if s.inString {
			if i = s.passString(p, i); i == len(p) {
				break
			}
			continue
		}
		switch p[i] {
		case '"':
			s.inString = s.depth > 0
		case '{', '[':
			if s.depth == 0 && p[i] == '{' {
				s.plain = true
				s.hold(p[i:], s.limit)
				return
			}
			s.depth++
			if s.depth == 2 {
				start = i
			}
		case '}', ']':
			s.depth = max(s.depth-1, 0)
			if s.depth == 1 && start >= 0 {
				s.element(p[start:i+1], yield)
				start = -1
			}
		}
	}
	if start >= 0 {
		s.hold(p[start:], s.limit)
	}
}

// passString gives the index of the quote that ends the string under way, or
// len(p).
func (s *Splitter) passString(p []byte, from int) int {
	if s.escaped {
		from++
		s.escaped = false
	}
	for i := from; i < len(p); i++ {
		n := bytes.IndexByte(p[i:], '"')
		if n < 0 {
			break
		}
		i += n
		if !escapes(p[from:i]) {
			s.inString = false
			return i
		}
	}
	s.escaped = from < len(p) && escapes(p[from:])
	return len(p)
}

// escapes says whether p ends in an odd number of backslashes, so that the
// byte behind it is escaped.
func escapes(p []byte) bool {
	n := len(p)
	for n > 0 && p[n-1] == '\\' {
		n--
	}
	return (len(p)-n)%2 == 1
}

func (s *Splitter) element(tail []byte, yield func(Frame)) {
	if len(s.held) > 0 {
		s.hold(tail, s.limit)
		tail = s.held
	} else if len(tail) > s.limit {
		tail, s.cut = tail[:s.limit], true
	}
	yield(Frame{Data: tail, Oversize: s.cut})
	s.held, s.cut = s.held[:0], false
}
