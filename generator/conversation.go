package generator

import (
	"encoding/json"
	"fmt"

	"weir/generator/corpus"
	"weir/proxy/wire"
	"weir/store/call"
)

// A turn adds at least this much new text to its session.
const leastNewText = 16

// conversation is a session as it is spoken: it writes each turn's request,
// the later ones from what the model answered.
type conversation struct {
	Session
	format  wire.Format
	tok     corpus.Counter
	author  *corpus.Author
	request wire.Request
	gauged  bool                       // what its first prompt is made of is told, to learn the model's tokens from
	drafts  []string                   // new text of the turns to come, as much as each could need
	counted int                        // tokens of the request as we count them
	extra   map[string]json.RawMessage // the model's, for every body
}

// prepared is a request ready to be sent.
type prepared struct {
	path string
	head wire.Head
	body []byte
	turn Turn
	text call.Text // of first turns where weir lacks the model's tokenizer; zero: not known
}

// converse writes the first request of a session, and drafts what the later
// ones will say: nothing is left to write between an answer and the next turn
// but to cut a draft to its size.
func (p *Plan) converse(s Session) (*conversation, *prepared, error) {
	c, err := p.compose(s)
	if err != nil {
		return nil, nil, err
	}
	prepared, err := c.prepare(0)
	if err == nil && c.gauged {
		prepared.text = c.text()
	}
	return c, prepared, err
}

// compose writes what is said in a session.
func (p *Plan) compose(s Session) (*conversation, error) {
	tok, public := p.counter(s.Model)
	c := &conversation{Session: s, format: wire.For(s.API), tok: tok, gauged: !public && s.Messages == nil}
	if c.format == nil {
		return nil, fmt.Errorf("scenario %q: no API %q", s.Scenario, s.API)
	}
	c.author = corpus.NewAuthor(tok, corpus.Language(s.Language), p.Seed, mix(streamText<<56^uint64(s.Index)))
	if p.Model != nil {
		c.extra = p.Model.ExtraBody
	}
	if s.Messages != nil {
		return c, c.quote()
	}
	c.request.Extra = c.extra
	if first := s.Turns[0]; len(s.Blocks) > 0 {
		c.openBlocks(p.Seed, first.Input)
	} else {
		c.open(p.Seed, first.Input)
	}
	for i := 1; i < len(s.Turns); i++ {
		c.drafts = append(c.drafts, c.author.FollowUp(corpus.Kind(s.Corpus), max(s.Turns[i].Input-s.Turns[i-1].Input, leastNewText)))
	}
	c.shape()
	return c, nil
}

// shape sets what all requests of the session share. Usage is asked for where
// the API gives none in streams otherwise.
func (c *conversation) shape() {
	c.request.Model, c.request.Stream = c.Model, c.Stream
	if c.Stream && (c.API == wire.Chat || c.API == wire.Completions) {
		yes := true
		c.request.IncludeUsage = &yes
	}
}

// open writes the first prompt of n tokens, which begins as all of its group do
// where the session has a prefix.
func (c *conversation) open(seed uint64, n int) {
	write := func(n int) corpus.Prompt {
		kind, tools := corpus.Kind(c.Corpus), c.Tools
		if c.API == wire.Completions {
			tools = 0 // it has neither tools nor messages, and none of what they cost
			if kind == corpus.Agent {
				kind = corpus.Code
			}
		}
		if c.Prefix.Tokens == 0 {
			return c.author.History(kind, n, tools, c.Flattened)
		}
		group := corpus.NewAuthor(c.tok, corpus.Language(c.Language), seed, mix(streamPrefix<<56^uint64(c.Prefix.Group)))
		return c.author.Continue(group.Shared(kind, c.Prefix.Tokens, tools), kind, n, c.Flattened)
	}
	p := write(n)
	if c.API == wire.Completions {
		c.counted = 0
		p = write(n + p.Count(c.tok) - textTokens(&p, c.tok))
		c.counted = textTokens(&p, c.tok)
	} else {
		c.counted = p.Count(c.tok)
	}
	c.request.System = p.System
	for i := range p.Tools {
		c.request.Tools = append(c.request.Tools, wire.Tool(p.Tools[i]))
	}
	for i := range p.Messages {
		c.request.Messages = append(c.request.Messages, message(&p.Messages[i]))
	}
}

// textTokens counts the texts of a prompt without what messages cost.
func textTokens(p *corpus.Prompt, t corpus.TextCounter) int {
	n := t.Count(p.System)
	for i := range p.Messages {
		n += t.Count(p.Messages[i].Text)
	}
	return n
}

// message puts a message of the corpus into wire's form.
func message(m *corpus.Message) wire.Message {
	if m.Role == corpus.Result {
		return wire.Message{Role: wire.ToolRole, Parts: []wire.Part{{Kind: wire.KindToolResult, ID: m.CallID, Name: m.Tool, Text: m.Text}}}
	}
	out := wire.Message{Role: wire.Role(m.Role)}
	if m.Text != "" {
		out.Parts = append(out.Parts, wire.Part{Kind: wire.KindText, Text: m.Text})
	}
	for _, call := range m.Calls {
		out.Parts = append(out.Parts, wire.Part{Kind: wire.KindTool, ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	return out
}

// prepare writes the bytes of the turn at an index, from 0.
func (c *conversation) prepare(turn int) (*prepared, error) {
	c.request.MaxTokens = wire.Count{}
	if n := c.Turns[turn].Output; n > 0 && (c.Messages == nil || !c.Messages[turn].Raw) {
		c.request.MaxTokens = wire.N(int64(n))
	}
	body, err := c.format.AppendRequest(make([]byte, 0, 6*c.counted+1024), &c.request)
	if err != nil {
		return nil, fmt.Errorf("scenario %q, session %d, turn %d: %w", c.Scenario, c.Index, turn+1, err)
	}
	p := &prepared{path: c.format.Path(&c.request), body: body, turn: c.Turns[turn]}
	if err := c.format.ParseHead(&p.head, body); err != nil {
		return nil, fmt.Errorf("scenario %q, session %d, turn %d: %w", c.Scenario, c.Index, turn+1, err)
	}
	p.head.Model, p.head.Stream = c.Model, c.Stream
	return p, nil
}

// next writes the request of the turn at an index, from 1: the history with the
// model's real answer, and new text that fills the difference to the turn's
// target, at least leastNewText. The size of the history is what the endpoint
// reported of the turn before, where it reported it.
func (c *conversation) next(turn int, a *answer, reported wire.Usage) (*prepared, error) {
	if !c.live() {
		if err := c.recite(turn); err != nil {
			return nil, err
		}
		return c.prepare(turn)
	}
	said := a.message()
	if len(said.Parts) > 0 {
		c.request.Messages = append(c.request.Messages, said)
	}
	history := c.counted + c.countMessage(&said, c.tok)
	if reported.Input.Known && reported.Input.N > 0 && reported.Output.Known {
		history = int(reported.Input.N + max(reported.Output.N-reported.Reasoning.N, 0))
	}
	calls := a.toolCalls()
	cost := corpus.TokensPerMessage * max(len(calls), 1)
	if c.API == wire.Completions {
		cost = 0
	}
	text := c.draft(turn, max(c.Turns[turn].Input-history-cost, leastNewText))
	fresh := c.reply(calls, text)
	c.counted = history
	for i := range fresh {
		c.counted += c.countMessage(&fresh[i], c.tok)
	}
	c.request.Messages = append(c.request.Messages, fresh...)
	return c.prepare(turn)
}

// draft cuts the turn's draft to n tokens, or writes on where it is short.
func (c *conversation) draft(turn, n int) string {
	if c.Messages != nil && !c.Messages[turn].Cut {
		return c.drafts[turn-1]
	}
	draft := c.drafts[turn-1]
	text, have := c.tok.Cut(draft, n)
	c.drafts[turn-1] = ""
	if have < n && n-have >= leastNewText {
		text += c.filler(draft, n-have)
	}
	return text
}

// reply answers the model's tool calls with a text, or, when it called none,
// lets the user say it.
func (c *conversation) reply(calls []wire.Part, text string) []wire.Message {
	if len(calls) == 0 {
		return []wire.Message{{Role: wire.User, Parts: []wire.Part{{Kind: wire.KindText, Text: text}}}}
	}
	results := wire.Message{Role: wire.ToolRole}
	for i, call := range calls {
		part := wire.Part{Kind: wire.KindToolResult, ID: call.ID, Name: call.Name, Text: text}
		if i > 0 {
			part.Text = "ok"
		}
		results.Parts = append(results.Parts, part)
	}
	return []wire.Message{results}
}

// text says what the request is made of, as the corpus counts it.
func (c *conversation) text() call.Text {
	var g corpus.Gauge
	overhead := c.countRequest(&c.request, &g)
	return call.Text{Words: g.Words, Letters: g.Letters, Digits: g.Digits, Ideographs: g.Ideographs, Others: g.Others, Overhead: overhead}
}

// countMessage counts a message as the corpus does.
func (c *conversation) countMessage(m *wire.Message, t corpus.TextCounter) int {
	n := 0
	for i, p := range m.Parts {
		if c.API != wire.Completions && (i == 0 || p.Kind == wire.KindToolResult) {
			n += corpus.TokensPerMessage
		}
		n += t.Count(p.Text)
		if p.Kind == wire.KindTool {
			n += corpus.TokensPerCall + t.Count(p.Name) + t.Count(p.Arguments)
		}
	}
	return n
}
