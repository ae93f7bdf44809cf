package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Shape is a request without its words: what it is made of, in order, and a
// hash of each part by which the same part is known again. The order is that
// of a prefix cache: definitions of tools, the system prompt, the messages.
type Shape struct {
	Blocks []Block

	// Media counts the pictures, sounds and files that stand in it; MediaBytes
	// are those of their base64, which are no text.
	Media      int
	MediaBytes int
}

// Block is one part of a request: a tool's definition, a piece of the system
// prompt, or a part of a message. Text that is empty makes no block.
type Block struct {
	Role  Role   // who speaks; the system prompt and definitions have roles of their own
	Kind  Kind   // 0 for the definition of a tool
	Name  string // of the tool that is defined, called, or has answered
	Bytes int    // of its text, arguments or raw form
	// Hash tells what the block says, not how it is spelled: a string and an
	// array of one text are the same, and cache marks, ids of calls and the
	// order of keys do not count.
	Hash uint64
	Call uint64 // a hash of the id under which a tool is called; 0: none, or no call
}

// The roles of blocks that are no messages.
const (
	System     Role = "system"
	Definition Role = "definition" // of a tool
)

// ReadShape reads the shape of a request body, whatever the order of its keys.
// It copies what it keeps. A system message in the midst of a conversation
// stays in its place. A body that breaks off gives the parts that stood whole
// before the break, and an error.
func ReadShape(api API, body []byte) (Shape, error) {
	c, err := walkObject(body, "request")
	if err != nil {
		return Shape{}, err
	}
	s := shapers.Get().(*shaper)
	defer s.free()
	s.cursor = c
	switch api {
	case Chat:
		s.chat()
	case Completions:
		s.completions()
	case Responses:
		s.responses()
	case Messages:
		s.anthropic()
	case Gemini:
		s.gemini(false)
	default:
		return Shape{}, fmt.Errorf("read request: the API %q has no shape", api)
	}
	return s.shape(), s.end("request")
}

// shaper reads a shape in one pass: each field is hashed as it comes, as its
// name says. Only what decides who speaks is looked for ahead.
type shaper struct {
	cursor
	definitions, system, messages []Block

	into    *[]Block // the list that is being filled
	calls   []toolCall
	names   map[string]string // of tools, each copied once
	scratch []byte
	depth   int

	pictures, pictureBytes int
}

// toolCall is a call that a result may name by its id.
type toolCall struct {
	id   uint64 // hash of it
	name string
}

var shapers = sync.Pool{New: func() any { return &shaper{names: map[string]string{}} }}

// free gives the memory back, without what it held.
func (s *shaper) free() {
	clear(s.definitions)
	clear(s.system)
	clear(s.messages)
	clear(s.calls)
	clear(s.names)
	*s = shaper{
		definitions: s.definitions[:0], system: s.system[:0], messages: s.messages[:0],
		calls: s.calls[:0], names: s.names, scratch: s.scratch[:0],
	}
	shapers.Put(s)
}

func (s *shaper) shape() Shape {
	n := len(s.definitions) + len(s.system) + len(s.messages)
	if n == 0 {
		return Shape{}
	}
	all := append(make([]Block, 0, n), s.definitions...)
	all = append(all, s.system...)
	return Shape{Blocks: append(all, s.messages...), Media: s.pictures, MediaBytes: s.pictureBytes}
}

// saying is what a value says, without its words.
type saying struct {
	hash  uint64
	bytes int
	words bool // it is a string, though it may be empty
}

// add adds a block, unless the body broke off within it.
func (s *shaper) add(role Role, kind Kind, name string, what saying) {
	if s.bad {
		return
	}
	from := len(s.scratch)
	b := identity(s.scratch, role, kind, name, what.hash)
	*s.into = append(*s.into, Block{Role: role, Kind: kind, Name: name, Bytes: what.bytes, Hash: xxhash.Sum64(b[from:])})
	s.scratch = b[:from]
}

// identity appends what the hash of a block is of.
func identity(b []byte, role Role, kind Kind, name string, says uint64) []byte {
	b = append(b, role...)
	b = append(b, 0, byte(kind))
	b = append(b, name...)
	return binary.LittleEndian.AppendUint64(append(b, 0), says)
}

// addWords adds a text, unless it is empty.
func (s *shaper) addWords(role Role, kind Kind, what saying) {
	if what.bytes > 0 {
		s.add(role, kind, "", what)
	}
}

// addOther adds the value that stands next as it is: an image, a file, a part
// that weir does not know.
func (s *shaper) addOther(role Role) {
	what, _ := s.whole()
	s.add(role, KindOther, "", what)
}

// ahead gives a string field of the object that stands next, without passing
// it: where it is the first, as most write it, that costs nothing. whole is
// false when the body breaks off before it was found.
func (c *cursor) ahead(field string) (word []byte, whole bool) {
	look := *c
	for look.object(); word == nil && look.field(); {
		if string(look.name) == field {
			word = look.word()
		} else {
			look.skip()
		}
	}
	return word, !look.bad
}

// word reads a string without copying it where it need not: a role, a type, an
// id. It is nil for a value of another kind.
func (c *cursor) word() []byte {
	if c.peek() != '"' {
		c.skip()
		return nil
	}
	raw := c.raw()
	if escaped(raw) {
		return unescape(nil, raw)
	}
	return raw
}

// tool reads the name of a tool.
func (s *shaper) tool() string { return s.kept(s.word()) }

// kept copies a name out of the body.
func (s *shaper) kept(name []byte) string {
	if known, ok := s.names[string(name)]; ok {
		return known
	}
	n := string(name)
	s.names[n] = n
	return n
}

// says reads a content: a string, or an array of parts.
func (s *shaper) says(role Role) {
	if s.peek() == '"' {
		s.addWords(role, KindText, s.text())
		return
	}
	for s.array(); s.element(); {
		s.part(role)
	}
}

// part reads a part of a content. The dialects' words for its type do not
// contradict each other, so one reader serves them all.
func (s *shaper) part(role Role) {
	if s.peek() == '"' {
		s.addWords(role, KindText, s.text())
		return
	}
	from := s.i
	var kind, id []byte
	var name string
	var text, refusal, thought, result saying
	input := noArguments
	for s.object(); s.field(); {
		switch string(s.name) {
		case "type":
			kind = s.word()
		case "text":
			text = s.text()
		case "refusal":
			refusal = s.text()
		case "thinking", "data":
			thought = s.content()
		case "id", "tool_use_id":
			id = s.word()
		case "name":
			name = s.tool()
		case "input":
			input = s.arguments()
		case "content":
			result = s.content()
		default:
			s.skip()
		}
	}
	switch string(kind) {
	case "thinking", "redacted_thinking":
		s.add(role, KindReasoning, "", thought)
	case "refusal":
		s.addWords(role, KindRefusal, refusal)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		s.call(id, name, input)
	default:
		switch {
		case bytes.HasSuffix(kind, []byte("tool_result")): // a provider's own tools have longer types
			s.add(ToolRole, KindToolResult, s.caller(id), result)
		case text.words:
			s.addWords(role, KindText, text)
		case !s.bad:
			s.i = from
			before := s.pictures
			if s.addOther(role); s.pictures == before && isPicture(kind) { // by its address
				s.pictures++
			}
		}
	}
}

// call adds a tool's call, and remembers who was called.
func (s *shaper) call(id []byte, name string, arguments saying) {
	s.add(Assistant, KindTool, name, arguments)
	if len(id) > 0 && !s.bad {
		hash := xxhash.Sum64(id)
		(*s.into)[len(*s.into)-1].Call = hash
		s.calls = append(s.calls, toolCall{hash, name})
	}
}

// lookBack is among how many of the last calls a result's own is sought:
// results follow their calls at once.
const lookBack = 256

// caller gives the name of the tool that was called under an id; empty when
// it is not known.
func (s *shaper) caller(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	hash := xxhash.Sum64(id)
	for i := len(s.calls) - 1; i >= max(0, len(s.calls)-lookBack); i-- {
		if s.calls[i].id == hash {
			return s.calls[i].name
		}
	}
	return ""
}

// define adds the definition of a tool, whose name is given unless it stands
// in it.
func (s *shaper) define(name string) {
	s.into = &s.definitions
	what, own := s.whole()
	if len(own) > 0 {
		name = s.kept(own)
	}
	s.add(Definition, 0, name, what)
}

// defineAll adds the definitions in an array.
func (s *shaper) defineAll() {
	for s.array(); s.element(); {
		s.define("")
	}
}
