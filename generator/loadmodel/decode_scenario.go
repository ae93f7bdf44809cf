package loadmodel

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"weir/shaper"
)

func (r *reader) scenarios(n node, m *Model) {
	if n.kind != "array" || len(n.items) == 0 {
		r.fail(n.at, "scenarios is %s; want a list of at least one scenario", describe(n))
		return
	}
	var sum float64
	seen := map[string]bool{}
	for _, item := range n.items {
		var s Scenario
		r.scenario(item, m, &s)
		if r.err != nil {
			return
		}
		if seen[s.ID] {
			at := slices.IndexFunc(item.members, func(m member) bool { return m.name == "id" })
			r.fail(item.members[at].value.at, "scenario %q stands twice; ids are unique: rename one", s.ID)
			return
		}
		seen[s.ID] = true
		sum += s.Weight
		m.Scenarios = append(m.Scenarios, s)
	}
	if !isOne(sum) {
		r.fail(n.at, "the scenarios' weights sum to %v; want 1", sum)
	}
}

func describe(n node) string {
	if n.kind == "array" && len(n.items) == 0 || n.value == "" {
		return "empty"
	}
	return article(n.kind)
}

// isOne says whether shares sum to 1, as near as people round them: 0.333 three
// times will do.
func isOne(sum float64) bool { return math.Abs(sum-1) <= 0.001+1e-9 }

var idPattern = regexp.MustCompile(`^[a-z0-9_.-]+$`)

func (r *reader) scenario(n node, m *Model, s *Scenario) {
	*s = Scenario{Turns: Constant(1), ThinkSeconds: Constant(0), Stream: true, Language: "en"}
	what := "scenario"
	for _, m := range n.members {
		if m.name == "id" && m.value.kind == "string" {
			what = fmt.Sprintf("scenario %q", m.value.value)
		}
	}
	in := func(field string) string { return what + ": " + field }
	given := r.object(n, what, setters{
		"id": func(v node) {
			if s.ID = r.string(v, "id"); !idPattern.MatchString(s.ID) {
				r.fail(v.at, "id %q: want small letters, digits, dots, dashes and underscores", s.ID)
			}
		},
		"description": func(v node) { s.Description = r.string(v, in("description")) },
		"weight": func(v node) {
			if s.Weight = r.number(v, in("weight")); s.Weight < 0 || s.Weight > 1 {
				r.fail(v.at, "%s %v: want 0 to 1", in("weight"), s.Weight)
			}
		},
		"input_tokens":  func(v node) { s.InputTokens = r.dist(v, in("input_tokens"), tokens) },
		"output_tokens": func(v node) { s.OutputTokens = r.dist(v, in("output_tokens"), tokens) },
		"turns":         func(v node) { s.Turns = r.dist(v, in("turns"), turns) },
		"think_seconds": func(v node) { s.ThinkSeconds = r.dist(v, in("think_seconds"), thinking) },
		"api":           func(v node) { s.API = r.api(v) },
		"model":         func(v node) { s.Model = r.string(v, in("model")) },
		"session":       func(v node) { s.Flattened = r.oneOf(v, in("session"), "live", "flattened") == "flattened" },
		"corpus":        func(v node) { s.Corpus = r.oneOf(v, in("corpus"), "prose", "rag", "agent", "code") },
		"language":      func(v node) { s.Language = r.oneOf(v, in("language"), "en", "zh", "mixed") },
		"tools":         func(v node) { s.Tools = r.whole(v, in("tools"), 0) },
		"stream":        func(v node) { s.Stream = r.boolean(v, in("stream")) },
		"match":         func(v node) { r.match(v, in("match"), s) },
		"limit":         func(v node) { s.Limit = r.limit(v, in("limit")) },
		"impair":        func(v node) { s.Impair = r.impair(v, in("impair")) },
		"joint":         func(v node) { s.Joint = r.joint(v, in("joint")) },
		"prefix":        func(v node) { s.Prefix = r.prefix(v, in("prefix")) },
		"want":          func(v node) { s.Want = r.wants(v, in("want")) },
	})
	r.need(n, what, given, "id", "weight")
	switch {
	case s.Joint != nil:
		r.jointly(given, what, s)
	case m.Trace == nil:
		r.need(n, what, given, "input_tokens", "output_tokens")
	}
	if v, ok := given["prefix"]; ok && r.err == nil {
		r.room(v, what, s)
	}
	if _, limited := given["limit"]; limited && s.ID == shaper.Each {
		r.fail(given["id"].at, "%s: in a limit, %s is every scenario by itself; give the scenario another id", what, shaper.Each)
	}
	for i := range s.Impair {
		s.Impair[i].Select.Scenario = s.ID
	}
	if r.err == nil && s.Corpus == "" {
		s.Corpus = guessCorpus(s.ID)
	}
}

// jointly checks that a scenario with rows says nothing twice.
func (r *reader) jointly(given map[string]node, what string, s *Scenario) {
	said := []string{"input_tokens", "output_tokens"}
	if s.Joint.HasTurns {
		said, s.Turns = append(said, "turns"), Dist{}
	}
	if s.Joint.HasThink {
		said, s.ThinkSeconds = append(said, "think_seconds"), Dist{}
	}
	for _, name := range said {
		if v, both := given[name]; both {
			r.fail(v.at, "%s: %s and joint are both given; the rows of joint say it: keep one", what, name)
		}
	}
}

// widestPool is how many groups of prefixes there can be.
const widestPool = 1_000_000

// prefix reads {"tokens": 2000, "pool": 5}.
func (r *reader) prefix(n node, what string) Prefix {
	p := Prefix{Pool: 1}
	given := r.object(n, what, setters{
		"tokens": func(v node) { p.Tokens = int(r.value(v, what+": tokens", tokens)) },
		"pool":   func(v node) { p.Pool = int(r.value(v, what+": pool", quantity{1, widestPool, true})) },
	})
	r.need(n, what, given, "tokens")
	return p
}

// OwnText is how many tokens of a prompt with a shared prefix are its own, at
// least.
const OwnText = 16

// room checks that every prompt of a scenario has room for its prefix.
func (r *reader) room(prefix node, what string, s *Scenario) {
	least, from := s.InputTokens.QuantileInt(0), "the least of input_tokens"
	if s.Joint != nil {
		shortest := slices.MinFunc(s.Joint.Rows, func(a, b JointRow) int { return a.Input - b.Input })
		least, from = shortest.Input, "the least input of joint"
	}
	if s.Prefix.Tokens+OwnText > least {
		r.fail(prefix.at, "%s: prefix: its %d tokens and at least %d of the prompt's own do not fit into %d, %s; raise that, or shorten the prefix", what, s.Prefix.Tokens, OwnText, least, from)
	}
}

// guessCorpus reads a scenario's id for what its prompts are like, where the
// file does not say.
func guessCorpus(id string) string {
	for _, word := range []struct{ part, corpus string }{
		{"rag", "rag"}, {"retriev", "rag"}, {"agent", "agent"}, {"tool", "agent"}, {"code", "code"},
	} {
		if strings.Contains(id, word.part) {
			return word.corpus
		}
	}
	return "prose"
}

func (r *reader) match(v node, what string, s *Scenario) {
	s.Match = r.string(v, what)
	if r.err != nil {
		return
	}
	compiled, err := compile(s.Match)
	if err != nil {
		r.fail(v.at, "%s: %v", what, err)
		return
	}
	s.match = compiled
}
