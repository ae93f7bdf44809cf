package wire

import "bytes"

// Skim reads a request of any length, piece by piece, and keeps what ParseHead
// needs of it: the fields of the top level whose values are short. Its memory is
// bounded, and its zero value is ready.
type Skim struct {
	Size       int64 // bytes that came
	MediaBytes int64 // of them, those of pictures, sounds and files in base64
	Media      int   // pictures, sounds and files

	doc     []byte
	field   int  // where in doc the field under way begins
	dropped bool // that field is too long to be kept
	depth   int
	words   bool // within a string
	escape  bool // behind a backslash
	over    bool // the object has ended, or it is none, or has too many fields

	length int  // of the string under way
	sealed bool // and it looks like base64 so far
}

const (
	longestField = 64 << 10 // that is kept
	longestSkim  = 1 << 20  // of all that is kept
)

// Whole says whether the object has ended.
func (s *Skim) Whole() bool { return s.over && s.depth == 0 }

// Head gives the object with its short fields alone. It breaks off where the
// body did.
func (s *Skim) Head() []byte { return s.doc }

// Feed takes the next piece.
func (s *Skim) Feed(p []byte) {
	s.Size += int64(len(p))
	for len(p) > 0 && !s.over {
		n := 1
		if s.words {
			n = s.string(p)
		} else {
			s.mark(p[0])
		}
		if s.over = s.over || len(s.doc) > longestSkim; s.over {
			return
		}
		p = p[n:]
	}
}

// mark takes a byte outside of strings.
func (s *Skim) mark(ch byte) {
	switch ch {
	case '"':
		s.words, s.length, s.sealed = true, 0, true
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
	switch {
	case s.depth == 0 && ch == '}':
		s.end()
		s.doc, s.over = append(s.doc, ch), true
	case s.depth == 0 && ch > ' ': // no object
		s.over, s.depth = true, 1
	case s.depth == 1 && ch == ',':
		s.end()
		s.doc = append(s.doc, ch)
		s.field = len(s.doc)
	case s.depth == 1 && ch == '{' && len(s.doc) == 0:
		s.doc = append(s.doc, ch)
		s.field = 1
	case s.depth > 0:
		s.keep([]byte{ch})
	}
}

// end ends the field under way. An empty one, behind a comma, is passed over.
func (s *Skim) end() {
	if s.dropped {
		s.doc, s.dropped = append(s.doc[:s.field], `"":0`...), false
	}
}

func (s *Skim) keep(p []byte) {
	if s.dropped {
		return
	}
	if s.doc = append(s.doc, p...); len(s.doc)-s.field > longestField {
		s.doc, s.dropped = s.doc[:s.field], true
	}
}

// string takes what comes of a string, and gives how much that is.
func (s *Skim) string(p []byte) (n int) {
	switch {
	case s.escape:
		n, s.escape = 1, false
	default:
		if n = bytes.IndexAny(p, `"\`); n < 0 {
			n = len(p)
		}
		if n == 0 {
			s.escape, s.words = p[0] == '\\', p[0] == '\\'
			s.keep(p[:1])
			if !s.words && s.sealed && s.length >= leastMedia {
				s.Media++
				s.MediaBytes += int64(s.length)
			}
			return 1
		}
		// The beginning of a data URI is not in base64.
		if s.length > longestMediaType || n > 2*longestMediaType {
			s.sealed = s.sealed && isBase64(p[max(0, longestMediaType-s.length):n])
		}
	}
	s.length += n
	s.keep(p[:min(n, longestField+1)])
	return n
}
