package generator

import (
	"github.com/cespare/xxhash/v2"

	"weir/proxy/wire"
)

// prefixes are what a model's perfect prefix cache would hold: everything that
// was ever said to it, and answered, from a prompt's first token on.
type prefixes struct {
	groups map[int]int      // tokens of each shared prefix's group
	blocks map[int64]uint64 // a trace's blocks: a bit for each of 64 ids
	said   recent[struct{}] // hashes of prompts of a dataset, up to the end of each stretch
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
	held := 0
	if s.Prefix.Tokens > 0 {
		held = p.groups[s.Prefix.Group]
		p.groups[s.Prefix.Group] = s.Prefix.Tokens
	}
	if len(s.Blocks) > 0 {
		held = max(held, p.begun(s.Blocks)*s.BlockTokens)
	}
	return min(held, input)
}

// begun is how many blocks, from the first on, were there before.
func (p *prefixes) begun(blocks []int64) int {
	begun, whole := 0, true
	for _, id := range blocks {
		at, bit := id>>6, uint64(1)<<(id&63)
		if whole = whole && p.blocks[at]&bit != 0; whole {
			begun++
		}
		p.blocks[at] |= bit
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
	held, all, whole := 0, 0, true
	// What a text is, and that it has an end, is part of what is said.
	note := func(what, text string) {
		_, _ = h.WriteString(what + "\x00") // it never fails
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

// recent remembers what was last kept under a hash, of the last half a million
// hashes at least, and twice as many at most. The zero recent is empty.
type recent[V any] struct{ young, old map[uint64]V }

const recentHashes = 500_000

// get finds what is kept. What was found is not soon forgotten.
func (r *recent[V]) get(h uint64) (V, bool) {
	v, ok := r.young[h]
	if ok {
		return v, true
	}
	if v, ok = r.old[h]; ok {
		r.put(h, v)
	}
	return v, ok
}

func (r *recent[V]) put(h uint64, v V) {
	if r.young == nil || len(r.young) >= recentHashes {
		r.young, r.old = map[uint64]V{}, r.young
	}
	r.young[h] = v
}
