package sim

import (
	"strings"

	"weir/generator/corpus"
)

// bankTokens is how much text is written ahead; answers begin anywhere in it.
const bankTokens = 16_384

// bank holds text cut into pieces of a step's tokens, so that no answer must
// be written while tokens are due.
type bank struct {
	tok              *corpus.Tokenizer
	english, chinese []string
	step             int // tokens a piece
}

func newBank(seed uint64, step int) *bank {
	tok, _ := corpus.ForModel("")
	write := func(language corpus.Language) []string {
		text := corpus.NewAuthor(tok, language, seed, ^uint64(0)).Text(corpus.Prose, bankTokens)
		var pieces []string
		for piece, n := range tok.Pieces(text, step) {
			if n == step || len(pieces) == 0 {
				pieces = append(pieces, piece)
			}
		}
		return pieces
	}
	return &bank{tok: tok, english: write(corpus.English), chinese: write(corpus.Chinese), step: step}
}

// speaker reads text out of the bank, piece by piece, from some place on.
type speaker struct {
	bank   *bank
	pieces []string
	at     int
	whole  bool // pieces are never cut
}

func (b *bank) speaker(chinese bool, offset uint64) *speaker {
	pieces := b.english
	if chinese {
		pieces = b.chinese
	}
	return &speaker{bank: b, pieces: pieces, at: int(offset % uint64(len(pieces)))}
}

// reader reads exactly one text, and tells how many tokens it says so in.
func (b *bank) reader(text string) (*speaker, int) {
	s, tokens := &speaker{bank: b, whole: true}, 0
	for piece, n := range b.tok.Pieces(text, b.step) {
		s.pieces = append(s.pieces, piece)
		tokens += min(n, b.step)
	}
	return s, tokens
}

// next gives the next piece: of a whole step's tokens, or, at an answer's end,
// its first n; more where that would end in the midst of a character.
func (s *speaker) next(n int) string {
	piece := s.pieces[s.at]
	s.at = (s.at + 1) % len(s.pieces)
	if n >= s.bank.step || s.whole {
		return piece
	}
	for part := range s.bank.tok.Pieces(piece, n) {
		return part
	}
	return piece
}

// plain makes text fit into a JSON string as it is.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' {
			return ' '
		}
		return r
	}, s)
}
