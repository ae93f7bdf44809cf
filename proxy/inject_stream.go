package proxy

import (
	"bytes"
	"io"

	"github.com/tidwall/gjson"
)

// unasked passes an event stream on without what stands in it only because weir
// asked for usage: the event whose chunk has empty choices and usage, and in
// other chunks the field "usage": null. Every other byte passes as it came, and
// each event with the read that ended the last line of its data. What is held
// back is the beginning of an event that may be the one, up to heldUnasked
// bytes: no client can do anything with it before the rest comes. What it does
// depends on the bytes alone and not on how they come cut.
//
// Usage in a chunk with choices stays: to take it out would be to touch what
// the client did ask for. So does the null of JSON in several lines. An endpoint
// that says "usage": null, or usage at the end, unasked too cannot be told from
// one that does not: its clients miss that.
type unasked struct {
	to io.Writer

	event fate   // of the lines of the event under way
	line  fate   // of the bytes of the line under way
	ended fate   // of the line before, and so of a LF behind its CR
	begun []byte // of the line under way, while that is open
	held  []byte // lines before it, while the event is open
	data  []byte // of those lines
	lines int    // that have data, of those
	cr    bool   // the last byte was a CR
	out   []byte // of the write under way
}

// heldUnasked is how long an event may be, up to the end of its data, and be
// looked at. One that has only usage is far shorter.
const heldUnasked = 64 << 10

const blank = " \t\r\n" // what JSON has between its parts

// fate is what becomes of bytes.
type fate uint8

const (
	isOpen fate = iota // they are held
	passes
	isDropped
)

// Write passes on what of p is known to be the client's.
func (u *unasked) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if u.cr && rest[0] == '\n' {
			u.cr = false
			u.lineFeed()
			rest = rest[1:]
			continue
		}
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			u.cr = false
			u.part(rest)
			break
		}
		u.part(rest[:end])
		u.endLine(rest[end : end+1])
		u.cr = rest[end] == '\r'
		rest = rest[end+1:]
	}
	return len(p), u.flush()
}

// Close passes on what was held when the stream ended.
func (u *unasked) Close() error {
	if len(u.begun) > 0 {
		u.endLine(nil)
	}
	u.emit(u.held)
	u.held = nil
	return u.flush()
}

func (u *unasked) flush() error {
	if len(u.out) == 0 {
		return nil
	}
	_, err := u.to.Write(u.out)
	u.out = u.out[:0]
	return err
}

func (u *unasked) emit(b []byte) { u.out = append(u.out, b...) }

// part takes bytes of a line.
func (u *unasked) part(b []byte) {
	switch u.line {
	case passes:
		u.emit(b)
		return
	case isDropped:
		return
	}
	if len(b) == 0 {
		return
	}
	u.begun = append(u.begun, b...)
	comment := u.begun[0] == ':'
	switch {
	case comment && len(u.held) == 0, u.event == passes:
		u.line = passes
	case comment:
	case u.event == isDropped:
		u.line = isDropped
	case !mayBeField(u.begun):
		u.letPass()
	}
	if u.line == isOpen && len(u.held)+len(u.begun) > heldUnasked {
		u.letPass()
	}
	switch u.line {
	case passes:
		u.emit(u.begun)
		fallthrough
	case isDropped:
		u.begun = u.begun[:0]
	}
}

// letPass lets the rest of the event pass, and what is held of it.
func (u *unasked) letPass() {
	u.emit(u.held)
	u.held = u.held[:0]
	u.event, u.line = passes, passes
}

// lineFeed takes the LF behind a CR.
func (u *unasked) lineFeed() {
	switch u.ended {
	case isOpen:
		u.held = append(u.held, '\n')
	case passes:
		u.emit([]byte{'\n'})
	}
}

// endLine takes the end of a line: a CR, a LF, or none where the stream ended.
func (u *unasked) endLine(end []byte) {
	line := u.begun
	u.begun = u.begun[:0]
	u.ended, u.line = u.line, isOpen
	switch {
	case u.ended == passes:
		u.emit(end)
	case u.ended == isDropped:
	case len(line) == 0:
		u.endEvent(end)
	default:
		u.endOpen(line, end)
	}
}

// endEvent takes the end of an empty line, which ends an event.
func (u *unasked) endEvent(end []byte) {
	u.ended = passes
	if u.event == isDropped {
		u.ended, end = isDropped, nil
	}
	u.emit(u.held)
	u.emit(end)
	u.event, u.held, u.data, u.lines = isOpen, u.held[:0], u.data[:0], 0
}

// endOpen decides what becomes of a line that is whole, and of its event.
func (u *unasked) endOpen(line, end []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	from, to := 0, 0 // of the line, what does not pass
	switch string(name) {
	case "data":
		value = bytes.TrimPrefix(value, []byte{' '})
		if u.lines++; u.lines > 1 {
			u.data = append(u.data, '\n')
		}
		u.data = append(u.data, value...)
		what, nullFrom, nullTo := judge(u.data)
		u.ended = what
		if u.lines == 1 {
			from, to = len(line)-len(value)+nullFrom, len(line)-len(value)+nullTo
		}
	case "event", "id", "retry", "": // which has a comment behind it
	default:
		u.ended = passes
	}
	switch u.ended {
	case isOpen:
		u.held = append(append(u.held, line...), end...)
		return
	case passes:
		u.emit(u.held)
		u.emit(line[:from])
		u.emit(line[to:])
		u.emit(end)
	case isDropped:
		u.emit(comments(u.held))
	}
	u.event, u.held = u.ended, u.held[:0]
}

// mayBeField says whether a line that begins so can be one of those that an
// event has.
func mayBeField(begun []byte) bool {
	for _, name := range []string{"data", "event", "id", "retry"} {
		if n := min(len(name), len(begun)); string(begun[:n]) == name[:n] {
			return true
		}
	}
	return false
}

// comments are the comments among lines.
func comments(lines []byte) (all []byte) {
	for len(lines) > 0 {
		end := bytes.IndexAny(lines, "\r\n") + 1
		if bytes.HasPrefix(lines[end:], []byte{'\n'}) && lines[end-1] == '\r' {
			end++
		}
		if lines[0] == ':' {
			all = append(all, lines[:end]...)
		}
		lines = lines[end:]
	}
	return all
}

// judge says what becomes of an event by its data so far. Of one that passes,
// data[from:to] is what must be taken out: nothing, or "usage": null.
func judge(data []byte) (what fate, from, to int) {
	text := bytes.Trim(data, blank)
	switch {
	case len(text) == 0:
		return isOpen, 0, 0
	case text[0] != '{': // as [DONE]
		return passes, 0, 0
	case !gjson.ValidBytes(text): // more lines may make it whole
		return isOpen, 0, 0
	case !bytes.Contains(text, []byte(`"usage"`)):
		return passes, 0, 0
	}
	chunk := gjson.ParseBytes(data)
	usage, several := member(chunk, "usage")
	choices, alsoSeveral := member(chunk, "choices")
	failure, _ := member(chunk, "error")
	switch {
	case several || alsoSeveral:
	case usage.IsObject() && isEmpty(choices) && failure.Type == gjson.Null:
		return isDropped, 0, 0
	case usage.Exists() && usage.Type == gjson.Null:
		from, to = nullField(data, usage.Index, "usage")
	}
	return passes, from, to
}

// isEmpty says whether a chunk's choices are there, and hold nothing.
func isEmpty(choices gjson.Result) bool {
	return choices.Exists() && (choices.Type == gjson.Null ||
		choices.IsArray() && len(bytes.TrimSpace([]byte(choices.Raw[1:len(choices.Raw)-1]))) == 0)
}

// nullField finds the member of an object whose value is the null at an index,
// with the comma that must go with it; nothing where its name is spelled in
// another way.
func nullField(b []byte, at int, name string) (from, to int) {

	before := bytes.TrimRight(b[:at], blank)
	before, colon := bytes.CutSuffix(before, []byte{':'})
	before, named := bytes.CutSuffix(bytes.TrimRight(before, blank), []byte(`"`+name+`"`))
	if !colon || !named {
		return 0, 0
	}
	from, to = len(before), at+len("null")
	if rest, follows := bytes.CutSuffix(bytes.TrimRight(before, blank), []byte{','}); follows {
		return len(rest), to
	}
	if rest, more := bytes.CutPrefix(bytes.TrimLeft(b[to:], blank), []byte{','}); more {
		to = len(b) - len(bytes.TrimLeft(rest, blank))
	}
	return from, to
}
