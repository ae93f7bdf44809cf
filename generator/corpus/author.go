package corpus

// Author writes texts. One Author is used by one goroutine; equal seeds write
// equal texts, different seeds differ from the first words on.
type Author struct {
}

// NewAuthor gives an author who counts with t. The two words of the seed may be
// a run's and a session's.
func NewAuthor(t *Tokenizer, language Language, run, session uint64) *Author { panic("not yet") }

// Text writes prose (for Code: source text) of exactly n tokens, n ≥ 1, counted
// alone.
func (a *Author) Text(kind Kind, n int) string { panic("not yet") }

// Prompt writes a whole prompt of n tokens as Prompt.Count counts them, within
// 2 % or 4 tokens. tools is the number of tool definitions; for Agent, 0 gives as
// many as suit n. A prompt too small to hold its overhead is as small as can be.
func (a *Author) Prompt(kind Kind, n, tools int) Prompt { panic("not yet") }

// ToolResult writes what a tool would answer to a call, in n tokens: a file, a
// log, JSON.
func (a *Author) ToolResult(c Call, n int) string { panic("not yet") }

// ToolCall writes a call of one of the tools; its arguments fit the schema's
// property names.
func (a *Author) ToolCall(tools []Tool) Call { panic("not yet") }
