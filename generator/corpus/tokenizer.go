package corpus

import "iter"

// Tokenizer counts and cuts tokens. It is safe for concurrent use.
type Tokenizer struct {
}

// ForModel gives the tokenizer of a model by its name: cl100k_base for the GPT-4
// and GPT-3.5 families, o200k_base for all later OpenAI models and for every
// model whose tokenizer is not public (known is false then: counts are an
// estimate, which the endpoint's own usage corrects).
func ForModel(model string) (t *Tokenizer, known bool) { panic("not yet") }

// Name is "o200k_base" or "cl100k_base".
func (t *Tokenizer) Name() string { panic("not yet") }

// Count gives the number of tokens of a text.
func (t *Tokenizer) Count(text string) int { panic("not yet") }

// Pieces cuts a text into pieces of k tokens each, the last of what is left,
// and tells how many tokens each stands for. Pieces are whole characters: one
// that would end in the midst of a character takes more tokens until it does
// not. Joined, the pieces are the text.
func (t *Tokenizer) Pieces(text string, k int) iter.Seq2[string, int] { panic("not yet") }

// Cut gives the longest beginning of a text that has at most n tokens and ends
// between words, and its count. The count is exact for the beginning alone.
func (t *Tokenizer) Cut(text string, n int) (string, int) { panic("not yet") }
