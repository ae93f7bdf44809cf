package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// cursor walks one JSON document forwards, in one pass and without allocating:
// what nobody asks for is stepped over, and of that only the strings and
// brackets are looked at. It serves the two places that are on the way of
// every call, events and request heads; all else is read with gjson.
//
//	for c.object(); c.field(); {
//		switch string(c.name) {
//		case "id":
//			id = c.text(ev)
//		default:
//			c.skip()
//		}
//	}
//
// Each turn of a loop consumes exactly one value. A loop over a value of
// another kind has no turns, and steps over it. Once the document turns out
// to be broken, all loops end; end tells.
type cursor struct {
	b    []byte
	i    int
	name []byte // of the field that field moved to; its escapes are not undone
	none bool   // the loop that begins has no turns
	bad  bool
	at   int // where it is broken
}

// walkObject starts at a document, which must be an object.
func walkObject(b []byte, what string) (cursor, error) {
	c := cursor{b: b}
	switch first := c.peek(); first {
	case '{':
		return c, nil
	case 0:
		return c, fmt.Errorf("read %s: it is empty", what)
	default:
		return c, fmt.Errorf("read %s: want a JSON object, and it begins with %q", what, first)
	}
}

// walkEvent starts at a frame's data. A frame that was cut at the inspection
// limit cannot be read.
func walkEvent(f Frame) (cursor, error) {
	if f.Oversize {
		return cursor{}, errors.New("read event: it is longer than what is inspected")
	}
	return walkObject(f.Data, "event")
}

// end tells whether the document was whole.
func (c *cursor) end(what string) error {
	if !c.bad && c.peek() != 0 {
		c.fail()
	}
	if c.bad {
		return fmt.Errorf("read %s: it is not JSON: broken at byte %d of %d", what, c.at, len(c.b))
	}
	return nil
}

func (c *cursor) fail() {
	if !c.bad {
		c.bad, c.at = true, c.i
	}
	c.i = len(c.b)
}

// peek steps over white space and gives the next byte; 0 at the end.
func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; ch {
		case ' ', '\t', '\n', '\r':
			c.i++
		case 0:
			c.fail()
		default:
			return ch
		}
	}
	return 0
}

func (c *cursor) object() { c.open('{') }
func (c *cursor) array()  { c.open('[') }

func (c *cursor) open(bracket byte) {
	if c.peek() == bracket {
		c.i++
		return
	}
	c.skip()
	c.none = true
}

// field moves to the value of the object's next field.
func (c *cursor) field() bool {
	if c.ended('}') {
		return false
	}
	if c.peek() != '"' {
		c.fail()
		return false
	}
	c.name = c.raw()
	if c.peek() != ':' {
		c.fail()
		return false
	}
	c.i++
	return true
}

// element moves to the array's next element.
func (c *cursor) element() bool { return !c.ended(']') }

func (c *cursor) ended(bracket byte) bool {
	if c.none {
		c.none = false
		return true
	}
	ch := c.peek()
	if ch == ',' {
		c.i++
		ch = c.peek()
	}
	switch ch {
	case 0:
		c.fail()
		return true
	case bracket:
		c.i++
		return true
	}
	return false
}

// skip steps over the next value.
func (c *cursor) skip() {
	switch c.peek() {
	case '"':
		c.raw()
	case '{', '[':
		c.skipNested()
	default:
		c.scalar()
	}
}

// maxDepth is how deep a value may nest, as in encoding/json: gjson checks by
// recursion, and nobody shall make it fill the stack.
const maxDepth = 10000

func (c *cursor) skipNested() {
	depth := 0
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '"':
			c.raw()
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				c.fail()
				return
			}
		case '}', ']':
			depth--
			if depth == 0 {
				c.i++
				return
			}
		}
		c.i++
	}
	c.fail()
}

// scalar steps over a number, true, false or null and gives its bytes.
func (c *cursor) scalar() []byte {
	c.peek()
	from := c.i
	for c.i < len(c.b) && isScalar[c.b[c.i]] {
		c.i++
	}
	s := c.b[from:c.i]
	switch {
	case len(s) == 0:
	case s[0] == '-' || '0' <= s[0] && s[0] <= '9':
		return s
	case string(s) == "true" || string(s) == "false" || string(s) == "null":
		return s
	}
	c.i = from
	c.fail()
	return nil
}

var isScalar = func() (t [256]bool) {
	for _, ch := range []byte("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[ch] = true
	}
	return t
}()

// raw steps over the string that the cursor stands on and gives what is
// between its quotes.
func (c *cursor) raw() []byte {
	from := c.i + 1
	for i := from; ; i++ {
		n := bytes.IndexByte(c.b[i:], '"')
		if n < 0 {
			c.fail()
			return nil
		}
		i += n
		if !escapes(c.b[from:i]) {
			c.i = i + 1
			return c.b[from:i]
		}
	}
}

// value steps over the next value and gives its JSON.
func (c *cursor) value() []byte {
	c.peek()
	from := c.i
	c.skip()
	if c.bad {
		return nil
	}
	return c.b[from:c.i]
}

// text gives the bytes of a string, nil when it is empty or the value is of
// another kind. They alias the document, or ev's own memory where escapes had
// to be undone.
func (c *cursor) text(ev *Event) []byte {
	if c.peek() != '"' {
		c.skip()
		return nil
	}
	raw := c.raw()
	if len(raw) == 0 {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return ev.keep(raw)
}

// keep undoes raw's escapes into memory that ev keeps for its next use.
func (ev *Event) keep(raw []byte) []byte {
	from := len(ev.scratch)
	ev.scratch = unescape(ev.scratch, raw)
	return ev.scratch[from:len(ev.scratch):len(ev.scratch)]
}

// string copies a string out; it is empty for a value of another kind.
func (c *cursor) string() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	raw := c.raw()
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	return string(unescape(nil, raw))
}

// strings reads an array of strings, or one string in its place.
func (c *cursor) strings() []string {
	if c.peek() == '"' {
		return []string{c.string()}
	}
	var list []string
	for c.array(); c.element(); {
		list = append(list, c.string())
	}
	return list
}

// is says whether the next value is the string want.
func (c *cursor) is(want string) bool {
	if c.peek() != '"' {
		c.skip()
		return false
	}
	return string(c.raw()) == want
}

// truth reads true or false; said is false for any other value.
func (c *cursor) truth() (value, said bool) {
	switch c.peek() {
	case 't', 'f':
		s := string(c.scalar())
		return s == "true", s != ""
	}
	c.skip()
	return false, false
}

// count reads a number that counts things; unknown for any other value.
func (c *cursor) count() Count {
	if ch := c.peek(); ch != '-' && (ch < '0' || ch > '9') {
		c.skip()
		return Count{}
	}
	s := c.scalar()
	if n, err := strconv.ParseInt(view(s), 10, 64); err == nil {
		return N(n)
	}
	if f, err := strconv.ParseFloat(view(s), 64); err == nil && f > -1<<53 && f < 1<<53 {
		return N(int64(f))
	}
	return Count{}
}

// float reads a number; unsaid for any other value.
func (c *cursor) float() Float {
	if ch := c.peek(); ch != '-' && (ch < '0' || ch > '9') {
		c.skip()
		return Float{}
	}
	if f, err := strconv.ParseFloat(view(c.scalar()), 64); err == nil {
		return F(f)
	}
	return Float{}
}

// length counts an array's elements.
func (c *cursor) length() int {
	n := 0
	for c.array(); c.element(); c.skip() {
		n++
	}
	return n
}

// view reads bytes as a string without copying them.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unescape appends the bytes that a JSON string stands for. Half of a
// surrogate pair becomes U+FFFD; an escape that JSON does not have stays.
func unescape(dst, s []byte) []byte {
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 || n+1 == len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:n]...)
		ch := s[n+1]
		s = s[n+2:]
		switch ch {
		case '"', '\\', '/':
			dst = append(dst, ch)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(s)
			if !ok {
				dst = append(dst, '\\', 'u')
				continue
			}
			s = s[4:]
			if utf16.IsSurrogate(r) && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				if low, ok := hex4(s[2:]); ok {
					if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
						r, s = both, s[6:]
					}
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, '\\', ch)
		}
	}
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, ch := range s[:4] {
		switch {
		case '0' <= ch && ch <= '9':
			r = r<<4 | rune(ch-'0')
		case 'a' <= ch|0x20 && ch|0x20 <= 'f':
			r = r<<4 | rune(ch|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
