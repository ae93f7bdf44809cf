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
		text.WriteString(apart(c.tok, c.author, corpus.Kind(c.Corpus), left))
	}
	c.request.Messages = []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: text.String()}}}}
}

// block is the text of a block: the same for the same id, in a run.
func (c *conversation) block(seed uint64, id int64) string {
	author := corpus.NewAuthor(c.tok, corpus.Language(c.Language), seed, mix(streamBlock<<56^uint64(id))) //nolint:gosec // any bits will do
	return apart(c.tok, author, corpus.Kind(c.Corpus), c.BlockTokens)
}

// apart writes n tokens that begin with a space: no token reaches from the text
// before into it, so that texts set one behind the other count what they count
// alone.
func apart(tok *corpus.Tokenizer, author *corpus.Author, kind corpus.Kind, n int) string {
	text := " " + author.Text(kind, n)
	if tok.Count(text) == n {
		return text
	}
	return cutTo(tok, text, n, n+1)
}

// cutTo cuts a text of have tokens between words, and makes up for what a whole
// word was too much: n tokens, the same for the same text.
func cutTo(tok *corpus.Tokenizer, text string, n, have int) string {
	if n == have {
		return text
	}
	text, have = tok.Cut(text, n)
	return text + strings.Repeat(" so", n-have)
}
