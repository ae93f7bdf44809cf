package proxy

import (
	"bytes"

	"weir/proxy/wire"
)

// sight cuts a body into pieces that can be held, changed and broken: its
// events, each with the bytes before it that belong to none, and what else may
// go on at once, such as comments. All pieces together are the body.
type sight struct {
	contentType string
	asked       bool // for a stream
	dark        bool // events are not looked for, or not any more

	chosen  bool
	framing wire.Framing
	split   *wire.Splitter
	held    []byte // of the piece under way
}

// feed takes the next bytes and yields the pieces that they complete; f is nil
// for what is no event. Neither slice is used again but for f's, which is lent.
func (s *sight) feed(p []byte, yield func(raw []byte, f *wire.Frame) error) error {
	if !s.dark && !s.chosen {
		if p = append(s.held, p...); !s.choose(p) {
			s.held = p
			return nil
		}
		s.held = nil
	}
	switch {
	case s.dark:
		return yield(p, nil)
	case s.framing == wire.Whole:
		s.held = append(s.held, p...)
		return s.bound(yield)
	}
	ends := "\n\r" // of an event comes at the end of a line
	if s.framing == wire.JSONArray {
		ends = "}]"
	}
	for len(p) > 0 {
		n := bytes.IndexAny(p, ends) + 1
		if n > 0 && p[n-1] == '\r' && n < len(p) && p[n] == '\n' {
			n++
		}
		ended := n > 0
		if !ended {
			n = len(p)
		}
		var frame *wire.Frame
		s.split.Feed(p[:n], func(f wire.Frame) { frame = &f })
		s.held = append(s.held, p[:n]...)
		p = p[n:]
		if frame == nil && (!ended || s.split.Partial()) {
			continue
		}
		raw := s.held
		s.held = nil
		if err := yield(raw, frame); err != nil {
			return err
		}
	}
	return s.bound(yield)
}

// choose finds the framing once a byte has come that says it.
func (s *sight) choose(p []byte) bool {
	rest := bytes.TrimLeft(p, " \t\r\n")
	if len(rest) == 0 {
		return false
	}
	s.chosen = true
	s.framing = wire.ChooseFraming(s.contentType, s.asked, rest[0])
	s.split = wire.NewSplitter(s.framing, inspectedBody)
	return true
}

// bound gives up on a piece that is too long to be held.
func (s *sight) bound(yield func(raw []byte, f *wire.Frame) error) error {
	if len(s.held) <= inspectedBody {
		return nil
	}
	s.dark = true
	raw := s.held
	s.held = nil
	return yield(raw, nil)
}

// close yields what is left at the body's end, which is clean where whole is
// set: then a document is whole.
func (s *sight) close(whole bool, yield func(raw []byte, f *wire.Frame) error) error {
	raw := s.held
	s.held = nil
	switch {
	case len(raw) == 0:
		return nil
	case whole && s.chosen && !s.dark && s.framing == wire.Whole:
		return yield(raw, &wire.Frame{Data: raw})
	}
	return yield(raw, nil)
}
