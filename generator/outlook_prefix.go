package generator

import (
	"github.com/cespare/xxhash/v2"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// prefixes are what a perfect prefix cache would hold: everything that was ever
// said to it, and answered, from a prompt's first token on.
type prefixes struct {
	said seenSet // hashes of prompts of a dataset, up to the end of each message
}

// held is how many tokens of a turn's prompt the cache would hold, and lets it
// hold all of it from now on.
func (p *prefixes) held(s *Session, turn int) int {
	input := s.Turns[turn].Input
	if turn > 0 && (s.Messages == nil || s.Messages[turn].Live) {
		before := s.Turns[turn-1]
		return min(before.Input+before.Output, input)
	}
	if s.Messages != nil {
		return min(p.quoted(s, turn), input)
	}
	return 0
}

// quoted is of a prompt that stands in a dataset. It is compared message by
// message: a message that only begins as another does counts as new.
func (p *prefixes) quoted(s *Session, turn int) int {
	said := &s.Messages[turn]
	dialect := wire.Chat
	if said.Raw {
		dialect = s.API
	}
	var r wire.Request
	if wire.For(dialect).ParseRequest(&r, said.Body) != nil {
		return 0
	}
	tok, _ := corpus.ForModel(s.Model)
	c := &conversation{tok: tok}
	h := xxhash.New()
	held, whole := 0, true
	note := func(tokens func() int, texts ...string) {
		for _, t := range texts {
			_, _ = h.WriteString(t) // it never fails
			_, _ = h.Write([]byte{0})
		}
		if seen := p.said.add(h.Sum64()); seen && whole {
			held += tokens()
		} else {
			whole = false
		}
	}
	for i := range r.Tools {
		t := corpus.Tool(r.Tools[i])
		note(func() int { return t.Count(tok) }, t.Name, t.Description, string(t.Parameters))
	}
	if r.System != "" {
		note(func() int { return corpus.TokensPerMessage + tok.Count(r.System) }, "system", r.System)
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		texts := []string{string(m.Role)}
		for _, part := range m.Parts {
			texts = append(texts, part.Text, part.Name, part.Arguments, string(part.Raw))
		}
		note(func() int { return c.countMessage(m) }, texts...)
	}
	return held
}

// seenSet remembers the last half a million hashes at least, and twice as many
// at most. The zero seenSet is empty.
type seenSet struct{ young, old map[uint64]struct{} }

const seenHashes = 500_000

// add says whether a hash was there, and lets it be there.
func (s *seenSet) add(h uint64) bool {
	_, seen := s.young[h]
	if seen {
		return true
	}
	_, seen = s.old[h]
	if s.young == nil || len(s.young) >= seenHashes {
		s.young, s.old = map[uint64]struct{}{}, s.young
	}
	s.young[h] = struct{}{}
	return seen
}
