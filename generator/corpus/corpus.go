// Package corpus writes prompts of exactly as many tokens as wanted: prose,
// questions over documents, histories of agents with their tools, code; in
// English, Chinese or both. It also counts the tokens of any text, and cuts
// texts into tokens, faster than a prompt needs to be sent.
//
// Every text is composed from parts by a seeded Author, so that equal seeds
// give equal bytes, and no two texts begin alike, which would let an endpoint's
// prefix cache answer for its engine.
package corpus

import "encoding/json"

// Kind is a sort of prompt.
type Kind string

// The kinds of prompts. The empty Kind is prose.
const (
	Prose Kind = "prose"
	RAG   Kind = "rag"   // instruction, documents with titles, a question
	Agent Kind = "agent" // system prompt, tools, calls and their results
	Code  Kind = "code"  // a source file and a request about it
)

// Language is what a prompt is written in. The empty Language is English.
type Language string

// The languages.
const (
	English Language = "en"
	Chinese Language = "zh"
	Mixed   Language = "mixed"
)

// Prompt is a whole prompt before any API's dialect.
type Prompt struct {
	System   string // empty: none
	Messages []Message
	Tools    []Tool
}

// Role says who speaks in a message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Result    Role = "tool" // the result of a tool
)

// Message is one message of a prompt: text; or, of the assistant, calls of
// tools beside it; or, of a tool, the result that answers the call CallID.
type Message struct {
	Role   Role
	Text   string
	Calls  []Call
	CallID string
	Tool   string // the name of the tool whose result this is
}

// Call is one call of a tool. Arguments is a JSON object.
type Call struct{ ID, Name, Arguments string }

// Tool is the definition of a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema
}

// What a prompt costs beside its texts, as OpenAI documents it for its chat
// models. Providers differ and do not all say; the usage that an endpoint
// reports corrects it.
const (
	TokensPerPrompt  = 3 // that prime the answer
	TokensPerMessage = 4 // of role and separators; the system prompt is a message
	TokensPerCall    = 4 // beside a tool call's name and arguments
	TokensPerTool    = 8 // beside a definition's name, description and schema
)

// Count gives the tokens of a prompt: TokensPerPrompt, and for each message its
// texts and TokensPerMessage, for each call its name, arguments and
// TokensPerCall, for each tool its name, description, schema and TokensPerTool.
// Ids are not counted.
func (p *Prompt) Count(t TextCounter) int {
	n := TokensPerPrompt
	if p.System != "" {
		n += TokensPerMessage + t.Count(p.System)
	}
	for i := range p.Messages {
		n += p.Messages[i].Count(t)
	}
	for i := range p.Tools {
		n += p.Tools[i].Count(t)
	}
	return n
}

// Count gives the tokens of a message, as Prompt.Count counts them.
func (m *Message) Count(t TextCounter) int {
	n := TokensPerMessage + t.Count(m.Text)
	for _, c := range m.Calls {
		n += TokensPerCall + t.Count(c.Name) + t.Count(c.Arguments)
	}
	return n
}

// Count gives the tokens of a tool's definition, as Prompt.Count counts them.
func (d *Tool) Count(t TextCounter) int {
	return TokensPerTool + t.Count(d.Name) + t.Count(d.Description) + t.Count(string(d.Parameters))
}
