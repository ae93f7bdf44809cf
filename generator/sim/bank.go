package sim

import (
	"strings"
	"sync"
	"unicode/utf8"

	"weir/generator/corpus"
)

// bankTokens is how much text is written ahead; answers begin anywhere in it.
const bankTokens = 16_384

// bank holds text cut into pieces of a step's tokens, so that no answer must
// be written while tokens are due.
type bank struct {
	english, chinese func() []string
}

func newBank(seed uint64, k int) *bank {
	write := func(language corpus.Language) func() []string {
		return sync.OnceValue(func() []string {
			tok, _ := corpus.ForModel("")
			text := corpus.NewAuthor(tok, language, seed, ^uint64(0)).Text(corpus.Prose, bankTokens)
			var pieces []string
			for piece, n := range tok.Pieces(text, k) {
				if n == k || len(pieces) == 0 {
					pieces = append(pieces, piece)
				}
			}
			return pieces
		})
	}
	return &bank{write(corpus.English), write(corpus.Chinese)}
}

// speaker reads text out of the bank, piece by piece, from some place on.
type speaker struct {
	pieces []string
	at     int
}

func (b *bank) speaker(chinese bool, offset uint64) *speaker {
	pieces := b.english()
	if chinese {
		pieces = b.chinese()
	}
	return &speaker{pieces, int(offset % uint64(len(pieces)))}
}

// next gives the next piece: of a whole step's tokens, or, at an answer's end,
// its beginning in proportion.
func (s *speaker) next(n, step int) string {
	piece := s.pieces[s.at]
	s.at = (s.at + 1) % len(s.pieces)
	if n >= step {
		return piece
	}
	cut := max(len(piece)*n/step, 1)
	for cut < len(piece) && !utf8.RuneStart(piece[cut]) {
		cut++
	}
	return piece[:cut]
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
