package wire

import (
	"bytes"
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// The hash of a JSON value tells what it says: the order of keys, white space,
// the spelling of strings and numbers, and fields that are null do not count.
// The fields of an object are hashed each by itself and summed, which gives
// the same for any order without sorting them.

// Seeds keep values of different kinds apart.
const (
	objectSeed = 0x9e3779b97f4a7c15 * (iota + 1) & (1<<64 - 1)
	arraySeed
	scalarSeed
	contentSeed
)

// fold gives a hash of two in their order.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return high ^ low
}

func escaped(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// hashed gives the hash and length of what a JSON string stands for.
func (s *shaper) hashed(raw []byte) (hash uint64, n int) {
	if !escaped(raw) {
		return xxhash.Sum64(raw), len(raw)
	}
	from := len(s.scratch)
	s.scratch = unescape(s.scratch, raw)
	words := s.scratch[from:]
	s.scratch = s.scratch[:from]
	return xxhash.Sum64(words), len(words)
}

// text hashes a string; a value of another kind says nothing.
func (s *shaper) text() saying {
	if s.peek() != '"' {
		s.skip()
		return saying{}
	}
	hash, n := s.hashed(s.raw())
	return saying{hash, n, true}
}

// canonical hashes the next value.
func (s *shaper) canonical() (hash uint64) {
	first := s.peek()
	switch first {
	case '"':
		return s.text().hash
	case '{', '[':
	default:
		return scalarHash(s.scalar())
	}
	if s.depth++; s.depth > maxDepth {
		s.fail()
		return 0
	}
	if first == '[' {
		hash = arraySeed
		for s.array(); s.element(); {
			hash = fold(hash, s.canonical())
		}
	} else {
		for s.object(); s.field(); {
			hash += s.fieldHash()
		}
		hash = fold(objectSeed, hash)
	}
	s.depth--
	return hash
}

// fieldHash hashes the field that the cursor moved to; 0 when it is null.
func (s *shaper) fieldHash() uint64 {
	name := s.name
	if s.peek() == 'n' {
		s.skip()
		return 0
	}
	key, _ := s.hashed(name)
	from := s.i
	hash := s.canonical()
	if s.b[from] == '"' && !s.bad {
		s.media(name, s.b[from+1:s.i-1])
	}
	return fold(key, hash)
}

// scalarHash is of a number, true, false or null. Numbers that are equal are
// the same, and whole ones are told apart to the last digit.
func scalarHash(b []byte) uint64 {
	var room [32]byte
	if !plain(b) {
		if f, err := strconv.ParseFloat(view(b), 64); err == nil {
			if f > -1<<53 && f < 1<<53 && f == float64(int64(f)) {
				b = strconv.AppendInt(room[:0], int64(f), 10)
			} else {
				b = strconv.AppendFloat(room[:0], f, 'g', -1, 64)
			}
		}
	}
	return fold(scalarSeed, xxhash.Sum64(b))
}

// plain says whether a scalar has but one spelling: it is a word, or a whole
// number in digits that is not -0.
func plain(b []byte) bool {
	if len(b) == 0 || b[0] >= 'a' {
		return true
	}
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	for _, ch := range digits {
		if ch < '0' || ch > '9' {
			return false
		}
	}
	return string(b) != "-0"
}

// whole hashes a tool's definition, a part or an item without what is no part
// of what it says: cache marks, signatures, ids and the state of a call. It
// gives the name of the tool that it defines, and where it has none, its type.
func (s *shaper) whole() (what saying, name []byte) {
	first := s.peek()
	from := s.i
	if first != '{' {
		return saying{hash: s.canonical(), bytes: s.i - from}, nil
	}
	var sum uint64
	var kind []byte
	for s.object(); s.field(); {
		switch field := s.name; string(field) {
		case "cache_control", "id", "call_id", "tool_use_id", "status", "signature", "thoughtSignature", "thought_signature":
			s.skip()
		case "type":
			kind = s.next()
			sum += s.fieldHash()
		case "name":
			name = s.next()
			sum += s.fieldHash()
		case "function", "custom": // Chat puts the definition one deeper
			own := s.cursor
			sum += s.fieldHash()
			if !s.bad && name == nil {
				name, _ = own.ahead("name")
			}
		default:
			sum += s.fieldHash()
		}
	}
	if name == nil {
		name = kind
	}
	return saying{hash: fold(objectSeed, sum), bytes: s.i - from}, name
}

// next gives the string that stands next without passing it.
func (s *shaper) next() []byte {
	look := s.cursor
	return look.word()
}

// noArguments are the same as an empty object.
var noArguments = saying{hash: fold(objectSeed, 0)}

// arguments hashes what a tool is called with: JSON, or a string of it.
func (s *shaper) arguments() saying {
	pictures, size := s.pictures, s.pictureBytes
	defer func() { s.pictures, s.pictureBytes = pictures, size }() // the model wrote it, token by token
	switch s.peek() {
	case 'n':
		s.skip()
		return noArguments
	case '"':
	default:
		from := s.i
		return saying{hash: s.canonical(), bytes: s.i - from}
	}
	from := len(s.scratch)
	s.scratch = unescape(s.scratch, s.raw())
	words := s.scratch[from:]
	if len(bytes.TrimSpace(words)) == 0 {
		s.scratch = s.scratch[:from]
		return noArguments
	}
	body := s.cursor
	s.cursor = cursor{b: words}
	hash := s.canonical()
	if s.end("arguments") != nil { // the model broke off, or the tool takes words
		hash = xxhash.Sum64(words)
	}
	s.cursor, s.depth, s.scratch = body, 0, s.scratch[:from]
	return saying{hash: hash, bytes: len(words)}
}

// content hashes a content in any of its forms: a string, an array of one
// text, or parts of all kinds.
func (s *shaper) content() saying {
	all := saying{hash: contentSeed}
	switch s.peek() {
	case 'n':
		s.skip()
	case '[':
		for s.array(); s.element(); {
			all.join(s.piece())
		}
	case '"':
		all.join(s.text())
	default:
		what, _ := s.whole()
		all.join(what)
	}
	return all
}

func (all *saying) join(more saying) {
	if more.bytes > 0 {
		all.hash, all.bytes = fold(all.hash, more.hash), all.bytes+more.bytes
	}
}

// piece hashes the text of a part, or the part itself where it has none.
func (s *shaper) piece() saying {
	if s.peek() == '"' {
		return s.text()
	}
	from := s.i
	var text saying
	for s.object(); s.field(); {
		if string(s.name) == "text" {
			text = s.text()
		} else {
			s.skip()
		}
	}
	if !text.words && !s.bad {
		s.i = from
		text, _ = s.whole()
	}
	return text
}
