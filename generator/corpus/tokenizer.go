package corpus

import (
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	tiktoken "github.com/tiktoken-go/tokenizer"
)

// Tokenizer counts and cuts tokens. It is safe for concurrent use.
//
// It gives what the tiktoken encodings give, with their vocabularies out of
// tiktoken-go; the work is done here, since splitting by a regular expression
// and rebuilding every token cost several times as much.
type Tokenizer struct {
	name  string
	split splitter
	ranks map[uint64]uint32 // by a token's hash: without pointers, it costs the garbage collector nothing
	pairs [1 << 16]uint32   // ranks of two bytes, with which every merge begins
	codec tiktoken.Codec
	known [1 << 16]atomic.Uint64 // counts of pieces met before, see countPiece
}

var (
	o200k  = sync.OnceValue(func() *Tokenizer { return load(tiktoken.O200kBase, 200_000, true) })
	cl100k = sync.OnceValue(func() *Tokenizer { return load(tiktoken.Cl100kBase, 100_256, false) })
)

// load reads an encoding's vocabulary of at most size tokens.
func load(encoding tiktoken.Encoding, size uint, cased bool) *Tokenizer {
	codec, err := tiktoken.Get(encoding)
	if err != nil { // the library is built with both encodings
		panic("tokenizer " + string(encoding) + ": " + err.Error())
	}
	t := &Tokenizer{name: string(encoding), split: splitter{planes(), cased}, ranks: make(map[uint64]uint32, size), codec: codec}
	for i := range t.pairs {
		t.pairs[i] = noRank
	}
	one := make([]uint, 1)
	for one[0] = range size {
		if s, err := codec.Decode(one); err == nil {
			t.ranks[xxhash.Sum64String(s)] = uint32(one[0])
			if len(s) == 2 {
				t.pairs[int(s[0])<<8|int(s[1])] = uint32(one[0])
			}
		}
	}
	return t
}

// ForModel gives the tokenizer of a model by its name: cl100k_base for the GPT-4
// and GPT-3.5 families and the completions models, o200k_base for all later OpenAI models and for every
// model whose tokenizer weir lacks (known is false then: counts are an
// estimate, which the endpoint's own usage corrects).
func ForModel(model string) (t *Tokenizer, known bool) {
	model = strings.ToLower(model)
	if i := strings.LastIndexByte(model, '/'); i >= 0 { // "openai/gpt-4o"
		model = model[i+1:]
	}
	for _, family := range []struct {
		prefix string
		load   func() *Tokenizer
	}{
		{"gpt-4o", o200k}, {"chatgpt-4o", o200k}, {"gpt-4.1", o200k}, {"gpt-4.5", o200k},
		{"gpt-5", o200k}, {"gpt-oss", o200k}, {"o1", o200k}, {"o3", o200k}, {"o4", o200k},
		{"gpt-4", cl100k}, {"gpt-3.5", cl100k}, {"gpt-35", cl100k}, {"text-embedding-", cl100k},
		{"davinci-002", cl100k}, {"babbage-002", cl100k},
	} {
		if rest, ok := strings.CutPrefix(model, family.prefix); ok && (rest == "" || strings.HasSuffix(family.prefix, "-") || strings.ContainsRune("-.:@", rune(rest[0]))) {
			return family.load(), true
		}
	}
	return o200k(), false
}

// Name is "o200k_base" or "cl100k_base".
func (t *Tokenizer) Name() string { return t.name }

// Count gives the number of tokens of a text.
func (t *Tokenizer) Count(text string) int {
	n := 0
	for len(text) > 0 {
		end := t.split.next(text)
		n += t.countPiece(text[:end])
		text = text[end:]
	}
	return n
}

// Cut gives the longest beginning of a text that has at most n tokens and ends
// between words, and its count. The count is exact for the beginning alone.
func (t *Tokenizer) Cut(text string, n int) (string, int) {
	at, count := 0, 0
	for at < len(text) {
		end := at + t.split.next(text[at:])
		more := t.countPiece(text[at:end])
		if count+more > n {
			break
		}
		at, count = end, count+more
	}
	return text[:at], count
}

// exactly cuts a text to exactly n tokens: as much of it as fits between words,
// and for what is missing then as much of the next word as makes up for it, or
// small words. False when the text may be too short to tell.
func (t *Tokenizer) exactly(text string, n int) (string, bool) {
	if n <= 0 {
		return "", true
	}
	begin, count := t.Cut(text, n)
	rest := text[len(begin):]
	size := 0
	if rest != "" {
		size = t.split.next(rest)
	}
	if size == len(rest) { // the last word may go on
		return "", false
	}
	missing := n - count
	if missing == 0 {
		return begin, true
	}
	word := rest[:size]
	for end := size; end > 0; {
		_, last := utf8.DecodeLastRuneInString(word[:end])
		end -= last
		if got := t.Count(word[:end]); got > 0 && got <= missing && unicode.IsLetter(lastRune(word[:end])) {
			begin += word[:end]
			missing -= got
			break
		}
	}
	return begin + strings.Repeat(" so", missing), true
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// Pieces cuts a text into pieces of k tokens each, the last of what is left,
// and tells how many tokens each stands for. Pieces are whole characters: one
// that would end in the midst of a character takes more tokens until it does
// not. Joined, the pieces are the text. k below 1 is 1.
func (t *Tokenizer) Pieces(text string, k int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		var room [64]int32
		start, at, n := 0, 0, 0
		for at < len(text) {
			piece := text[at : at+t.split.next(text[at:])]
			for _, size := range t.sizes(room[:0], piece) {
				at += int(size)
				n++
				if n < k || at < len(text) && !utf8.RuneStart(text[at]) {
					continue
				}
				if !yield(text[start:at], n) {
					return
				}
				start, n = at, 0
			}
		}
		if start < len(text) {
			yield(text[start:], n)
		}
	}
}

// longPiece is where merging by scanning costs more than the library's heap.
const longPiece = 160

// countPiece counts the tokens of one piece of a split.
func (t *Tokenizer) countPiece(piece string) int {
	if len(piece) == 1 {
		return 1
	}
	hash := xxhash.Sum64String(piece)
	if _, ok := t.ranks[hash]; ok {
		return 1
	}
	// A history is counted again with every turn, and by the simulator too:
	// what was merged once is remembered by 52 bits of its hash and its count.
	const counts = 1<<12 - 1
	slot := &t.known[hash>>16%uint64(len(t.known))]
	if entry := slot.Load(); entry&counts != 0 && (entry^hash)&^counts == 0 {
		return int(entry & counts)
	}
	var room [longPiece]int32
	n := len(t.sizes(room[:0], piece))
	if n <= counts {
		slot.Store(hash&^counts | uint64(n))
	}
	return n
}

// sizes appends the length of each token of one piece of a split.
func (t *Tokenizer) sizes(dst []int32, piece string) []int32 {
	if _, ok := t.ranks[xxhash.Sum64String(piece)]; ok {
		return append(dst, int32(len(piece)))
	}
	if len(piece) >= longPiece {
		return t.longSizes(dst, piece)
	}
	return t.merge(dst, piece)
}

// longSizes lets the library merge a long piece.
func (t *Tokenizer) longSizes(dst []int32, piece string) []int32 {
	_, tokens, err := t.codec.Encode(piece)
	size := 0
	for _, token := range tokens {
		size += len(token)
	}
	if err != nil || size != len(piece) { // not text: a token a byte is what it would cost
		for range len(piece) {
			dst = append(dst, 1)
		}
		return dst
	}
	for _, token := range tokens {
		dst = append(dst, int32(len(token)))
	}
	return dst
}

const noRank = ^uint32(0)

// merge merges byte pairs, the lowest rank first, the leftmost of equals.
func (t *Tokenizer) merge(dst []int32, piece string) []int32 {
	type part struct {
		start int32
		rank  uint32 // of this part together with the next
	}
	var room [longPiece + 1]part
	parts := room[:0]
	rank := func(from, to int32) uint32 {
		if r, ok := t.ranks[xxhash.Sum64String(piece[from:to])]; ok {
			return r
		}
		return noRank
	}
	n := int32(len(piece))
	for i := range n {
		r := noRank
		if i+2 <= n {
			r = t.pairs[int(piece[i])<<8|int(piece[i+1])]
		}
		parts = append(parts, part{i, r})
	}
	// end is where the part at i ends.
	end := func(i int) int32 {
		if i+1 < len(parts) {
			return parts[i+1].start
		}
		return n
	}
	for {
		best := 0
		for i := range parts {
			if parts[i].rank < parts[best].rank {
				best = i
			}
		}
		if parts[best].rank == noRank {
			break
		}
		parts = append(parts[:best+1], parts[best+2:]...)
		parts[best].rank = noRank
		if best+1 < len(parts) {
			parts[best].rank = rank(parts[best].start, end(best+1))
		}
		if best > 0 {
			parts[best-1].rank = rank(parts[best-1].start, end(best))
		}
	}
	for i := range parts {
		dst = append(dst, end(i)-parts[i].start)
	}
	return dst
}
