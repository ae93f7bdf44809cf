package generator

import (
	"fmt"
	"testing"

	"weir/generator/corpus"
	"weir/proxy/wire"
)

// Prompts of one group begin with the same text of so many tokens, tools
// included, in the order in which endpoints read them; those of two groups, and
// what comes behind a prefix, begin like no other.
func TestPromptsBeginWithTheirGroupsPrefix(t *testing.T) {
	for _, api := range []wire.API{wire.Chat, wire.Completions, wire.Responses, wire.Messages, wire.Gemini} {
		for _, kind := range []string{"prose", "rag", "agent", "code"} {
			for _, language := range []string{"en", "zh"} {
				name := fmt.Sprintf("%s, %s, %s", api, kind, language)
				p := &Plan{Seed: 3, Model: decode(t, fmt.Sprintf(`{"load_model": {"target_qps": 40, "duration_seconds": 1, "model": "gpt-4o", "api": %q, "scenarios": [
					{"id": "a", "weight": 1, "input_tokens": {"min": 2700, "max": 3500}, "output_tokens": 5, "corpus": %q, "language": %q,
					 "prefix": {"tokens": 1500, "pool": 2}}]}}`, api, kind, language))}
				prefixes := map[int]string{}
				own := map[string]bool{}
				for _, s := range collect(t, p) {
					c, err := p.compose(s)
					if err != nil {
						t.Fatal(err)
					}
					tokens := c.tok.Count(c.request.System)
					prefix := c.request.System
					for _, tool := range c.request.Tools {
						tool := corpus.Tool(tool)
						tokens += tool.Count(c.tok)
						prefix += tool.Name + tool.Description + string(tool.Parameters)
					}
					if tokens != 1500 {
						t.Fatalf("%s: a prefix of %d tokens", name, tokens)
					}
					if of, ok := prefixes[s.Prefix.Group]; ok && of != prefix {
						t.Fatalf("%s: two sessions of group %d begin unlike each other", name, s.Prefix.Group)
					}
					prefixes[s.Prefix.Group] = prefix
					text := c.request.Messages[0].Parts[0].Text
					begin := text[:min(len(text), 24)]
					if own[begin] {
						t.Errorf("%s: two prompts go on with %q", name, begin)
					}
					own[begin] = true
					if want := s.Turns[0].Input; c.counted < want-max(4, want/100) || c.counted > want+max(4, want/100) {
						t.Errorf("%s: a prompt of %d tokens has %d", name, want, c.counted)
					}
				}
				if len(prefixes) != 2 || prefixes[0] == prefixes[1] {
					t.Errorf("%s: want 2 groups that begin unlike each other, got %d", name, len(prefixes))
				}
			}
		}
	}
}
