package corpus

import "strings"

// grammar is what source in one language is made of: rules that are chosen and
// filled again and again, until only text is left.
type grammar struct {
	rules map[string]*rule
	style style
}

// rule is several ways to write one thing, the commonest first. The first is
// also the one that ends: nothing in it leads back to the rule.
type rule struct {
	options [][]part
	slot    func(*file, []byte) []byte // writes it when there are no options
	scope   bool                       // names declared in it are forgotten behind it
}

// part is a line end or not, the text behind it, and what is to be written next.
type part struct {
	line   bool // begins on a new line, indented by depth beyond its rule
	depth  int
	text   string
	nested *rule // nil: nothing
}

// parseGrammar reads rules. "=name" begins one that has an option a line,
// "==name" one whose options are several lines, with lines of "|" between them.
// "$name" is a hole for a rule or a slot; "$." is nothing, and ends a name; "´"
// is a backquote. Tabs at the beginning of a line indent.
func parseGrammar(style style, texts ...string) *grammar {
	g := &grammar{rules: map[string]*rule{}, style: style}
	for name, slot := range slots {
		g.rules[name] = &rule{slot: slot}
	}
	// Rules may be used before they are read: those that are read first are named
	// first, and filled then.
	type source struct {
		r       *rule
		options []string
	}
	var sources []source
	for _, text := range texts {
		text = strings.TrimSuffix(strings.ReplaceAll(text, "´", "`"), "\n")
		for section := range strings.SplitSeq(text, "\n=") {
			name, body, _ := strings.Cut(section, "\n")
			if name == "" {
				continue
			}
			separator := "\n"
			if name[0] == '=' {
				name, separator = name[1:], "\n|\n"
			}
			r := &rule{scope: name == "body"}
			g.rules[name] = r
			sources = append(sources, source{r, strings.Split(body, separator)})
		}
	}
	for _, s := range sources {
		for _, option := range s.options {
			s.r.options = append(s.r.options, g.parts(option))
		}
	}
	return g
}

// parts reads one option. It panics where a hole has no rule: grammars are
// constants.
func (g *grammar) parts(option string) []part {
	var parts []part
	for i, line := range strings.Split(option, "\n") {
		text := strings.TrimLeft(line, "\t")
		p := part{line: i > 0, depth: len(line) - len(text)}
		for {
			before, after, hole := strings.Cut(text, "$")
			p.text = before
			if !hole {
				parts = append(parts, p)
				break
			}
			end := 0
			for end < len(after) && (after[end]|0x20 >= 'a' && after[end]|0x20 <= 'z') {
				end++
			}
			if end == 0 {
				end = strings.Index(after, ".") + 1
			} else if p.nested = g.rules[after[:end]]; p.nested == nil {
				panic("corpus: no rule for $" + after[:end])
			}
			parts = append(parts, p)
			text, p = after[end:], part{}
		}
	}
	return parts
}

// deepest is how many rules within rules are chosen freely.
const deepest = 13

// write writes a rule; base is how far the line that it stands in is indented,
// deep how many rules it is written within.
func (g *grammar) write(dst []byte, f *file, r *rule, base, deep int) []byte {
	if r.slot != nil {
		return r.slot(f, dst)
	}
	if r.scope {
		defer func(n int) { f.locals = f.locals[:n] }(len(f.locals))
	}
	choice := 0
	if deep < deepest {
		choice = skewed(f.a.rng, len(r.options))
	}
	depth := base
	for i := range r.options[choice] {
		p := &r.options[choice][i]
		if p.line {
			dst = append(dst, '\n')
			f.locals, f.coming = append(f.locals, f.coming...), f.coming[:0]
			depth = base + p.depth
			if p.text != "" || p.nested != nil {
				for range depth {
					dst = append(dst, g.style.indent...)
				}
			}
		}
		dst = append(dst, p.text...)
		if p.nested != nil {
			dst = g.write(dst, f, p.nested, depth, deep+1)
		}
	}
	return dst
}
