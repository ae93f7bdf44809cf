package generator

import (
	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// prefixes are what each model's perfect prefix cache would hold: everything
// that was ever said to it, and answered, from a prompt's first token on. What
// the prompts of a file hold is forgotten after much else; the zero prefixes are
// empty.
type prefixes struct {
	groups map[group]int    // tokens of each shared prefix's group
	blocks recent[uint64]   // a trace's blocks: a bit for each of 64 ids
	said   recent[struct{}] // hashes of prompts of a dataset, up to the end of each stretch
}

type group struct {
	model  string
	number int
}

// forgot says whether something was forgotten: what is held is then at least so
// much.
func (p *prefixes) forgot() bool { return p.blocks.forgot || p.said.forgot }

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
	held := 0
	if s.Prefix.Tokens > 0 {
		of := group{s.Model, s.Prefix.Group}
		held = p.groups[of]
		if p.groups == nil {
			p.groups = map[group]int{}
		}
		p.groups[of] = s.Prefix.Tokens
	}
	if len(s.Blocks) > 0 {
		held = max(held, p.begun(s)*s.BlockTokens)
	}
	return min(held, input)
}

// begun is how many of a session's blocks, from the first on, were there before.
func (p *prefixes) begun(s *Session) int {
	model := xxhash.Sum64String(s.Model)
	begun, whole := 0, true
	for rest := s.Blocks; len(rest) > 0; {
		// Ids that stand together are looked up together.
		at := rest[0] >> 6
		key := uint64(at) ^ model //nolint:gosec // any bits will do
		there, _ := p.blocks.get(key)
		now := there
		for len(rest) > 0 && rest[0]>>6 == at {
			bit := uint64(1) << (rest[0] & 63)
			if whole = whole && now&bit != 0; whole {
				begun++
			}
			now |= bit
			rest = rest[1:]
		}
		if now != there {
			p.blocks.put(key, now)
		}
	}
	return begun
}

// stretch is how many bytes of a dataset's prompts are compared together: some
// 128 tokens, which is what providers' caches count in.
const stretch = 512

// quoted is of a prompt that stands in a dataset. What was there before is held
// by its share of the prompt's bytes.
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
	h := xxhash.New()
	_, _ = h.WriteString(s.Model + "\x00") // it never fails
	held, all, whole := 0, 0, true
	// What a text is, and that it has an end, is part of what is said.
	note := func(what, text string) {
		_, _ = h.WriteString(what + "\x00")
		for all += len(text); len(text) > 0; {
			piece := text[:min(len(text), stretch)]
			text = text[len(piece):]
			_, _ = h.WriteString(piece)
			_, seen := p.said.get(h.Sum64())
			if !seen {
				p.said.put(h.Sum64(), struct{}{})
			}
			if whole = whole && seen; whole {
				held += len(piece)
			}
		}
	}
	for i := range r.Tools {
		note("tool", r.Tools[i].Name)
		note("description", r.Tools[i].Description)
		note("parameters", string(r.Tools[i].Parameters))
	}
	note("system", r.System)
	for i := range r.Messages {
		m := &r.Messages[i]
		for _, part := range m.Parts {
			note(string(m.Role), part.Text)
			note("name", part.Name)
			note("arguments", part.Arguments)
			note("raw", string(part.Raw))
		}
	}
	return int(int64(s.Turns[turn].Input) * int64(held) / int64(max(all, 1)))
}
