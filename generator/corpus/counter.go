package corpus

// TextCounter counts texts.
type TextCounter interface {
	// Count gives the number of tokens of a text.
	Count(text string) int
}

// Counter counts the tokens of texts: a Tokenizer exactly, Rates by their
// characters. Counters are safe for concurrent use.
type Counter interface {
	// Name says what counts, as a result shows it.
	Name() string
	TextCounter
	// Cut gives the longest beginning of a text that has at most n tokens, and
	// its count.
	Cut(text string, n int) (string, int)
	// exactly cuts a text to exactly n tokens; false when the text is too short.
	exactly(text string, n int) (string, bool)
}
