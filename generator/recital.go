package generator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// quote opens a session of a dataset, and takes down what its later turns say.
func (c *conversation) quote() error {
	if err := c.recite(0); err != nil || !c.live() {
		return err
	}
	for turn := 1; turn < len(c.Turns); turn++ {
		text, err := c.newText(turn)
		if err != nil {
			return err
		}
		c.drafts = append(c.drafts, text)
	}
	return nil
}

// recite fills the request with what a turn of a dataset says.
func (c *conversation) recite(turn int) error {
	said := c.Messages[turn]
	fields := rawFields(said.Body)
	dialect := wire.Chat
	if said.Raw {
		dialect = c.API
	}
	var r wire.Request
	if err := wire.For(dialect).ParseRequest(&r, said.Body); err != nil {
		return fmt.Errorf("scenario %q, session %d, turn %d: %w", c.Scenario, c.Index, turn+1, err)
	}
	if c.counted = min(c.Turns[turn].Input, len(said.Body)); len(c.Turns) > 1 && c.live() {
		c.counted = c.countRequest(&r, c.tok) // the next turns are cut by it
	}
	c.request = wire.Request{System: r.System, Messages: r.Messages, Tools: r.Tools, Extra: map[string]json.RawMessage{}}
	c.shape()
	switch {
	case said.Raw:
		delete(fields, "model")
		delete(fields, "stream")
	default:
		// In chat's own form the words reach the endpoint as they stand in the
		// file; the other APIs get what can be said in both. A live session goes on
		// from here, so its words must be ones that can be added to.
		keep := c.API == wire.Chat && !c.live()
		for _, name := range written {
			if !keep || name != "messages" && name != "tools" {
				delete(fields, name)
			}
		}
		for _, name := range steering {
			delete(fields, name)
		}
	}
	for name, raw := range fields {
		c.request.Extra[name] = raw
	}
	for name, raw := range c.extra {
		c.request.Extra[name] = raw
	}
	return nil
}

// live says whether the session's later turns carry the model's real answers.
func (c *conversation) live() bool {
	return len(c.Messages) == 0 || len(c.Messages) > 1 && c.Messages[1].Live
}

// newText is what a later turn of a live session adds.
func (c *conversation) newText(turn int) (string, error) {
	var r wire.Request
	if err := wire.For(wire.Chat).ParseRequest(&r, c.Messages[turn].Body); err != nil {
		return "", fmt.Errorf("scenario %q, session %d, turn %d: %w", c.Scenario, c.Index, turn+1, err)
	}
	var texts []string
	for i := range r.Messages {
		for _, p := range r.Messages[i].Parts {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// filler writes n tokens that a draft was too short by. It depends on nothing
// but the draft, so that a model and the dataset made of it say the same.
func (c *conversation) filler(draft string, n int) string {
	return corpus.NewAuthor(c.tok, corpus.English, xxhash.Sum64String(draft), streamText).Text(corpus.Prose, n)
}

// countRequest counts a whole request as the corpus counts a prompt.
func (c *conversation) countRequest(r *wire.Request, counter corpus.TextCounter) int {
	n := 0
	if c.API != wire.Completions { // which has only text
		n += corpus.TokensPerPrompt
	}
	if r.System != "" {
		n += corpus.TokensPerMessage + counter.Count(r.System)
	}
	for i := range r.Messages {
		n += c.countMessage(&r.Messages[i], counter)
	}
	for i := range r.Tools {
		t := corpus.Tool(r.Tools[i])
		n += t.Count(counter)
	}
	return n
}
