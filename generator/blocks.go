package generator

import (
	"strings"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// openBlocks writes the first prompt, of n tokens, out of the session's blocks:
// one message, so that nothing stands before the first of them or between two.
// What the blocks do not fill is text of the session's own.
func (c *conversation) openBlocks(seed uint64, n int) {
	cost := corpus.TokensPerPrompt + corpus.TokensPerMessage
	if c.API == wire.Completions {
		cost = 0
	}
	left := max(n-cost, 1)
	c.counted = left + cost
	var text strings.Builder
	for _, id := range c.Blocks {
		if left == 0 {
			break
		}
		size := min(left, c.BlockTokens)
		text.WriteString(cutTo(c.tok, c.block(seed, id), size, c.BlockTokens))
		left -= size
	}
	if left > 0 {
		text.WriteString(c.author.Block(corpus.Kind(c.Corpus), left))
	}
	c.request.Messages = []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: text.String()}}}}
}

// block is the text of a block: the same for the same id, in a run.
func (c *conversation) block(seed uint64, id int64) string {
	author := corpus.NewAuthor(c.tok, corpus.Language(c.Language), seed, mix(streamBlock<<56^uint64(id))) //nolint:gosec // any bits will do
	return author.Block(corpus.Kind(c.Corpus), c.BlockTokens)
}

// cutTo cuts a text of have tokens between words, and makes up for what a whole
// word was too much: n tokens, the same for the same text.
func cutTo(tok corpus.Counter, text string, n, have int) string {
	if n == have {
		return text
	}
	text, have = tok.Cut(text, n)
	return text + strings.Repeat(" so", n-have)
}
