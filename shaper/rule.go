package shaper

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Rule gives calls a lane and the lane its limit. A call passes the lanes of
// all rules that speak of it, and holds what it takes from each to its end.
type Rule struct {
	Select Selector
	Limit  Limit
}

// Selector names the calls of a lane. What is empty is not asked; the zero
// Selector is all calls. A value is a glob (gpt-*), whose * may stand for
// slashes too: the calls that it fits share one lane. The value each gives every value a lane of its own.
type Selector struct {
	Scenario, Upstream, Model, Key, Session string
}

// Each is the value of a Selector that gives every value a lane of its own.
const Each = "each"

// all is the name of the lane of all calls.
const all = "all"

// facet is something by which calls are told apart.
type facet struct {
	name string
	want func(*Selector) *string
	got  func(*Ask) string
}

var facets = []facet{
	{"scenario", func(s *Selector) *string { return &s.Scenario }, func(a *Ask) string { return a.Scenario }},
	{"upstream", func(s *Selector) *string { return &s.Upstream }, func(a *Ask) string { return a.Upstream }},
	{"model", func(s *Selector) *string { return &s.Model }, func(a *Ask) string { return a.Model }},
	{"key", func(s *Selector) *string { return &s.Key }, func(a *Ask) string { return a.Key }},
	{"session", func(s *Selector) *string { return &s.Session }, func(a *Ask) string { return a.Session }},
}

func selectorNames() []string {
	var names []string
	for _, f := range facets {
		names = append(names, f.name)
	}
	return names
}

// lane names the lane that a call has by the selector; ok is false when the
// selector does not speak of it. A call without a session has no lane of its
// own among each session's, and so for the others.
func (s *Selector) lane(a *Ask) (name string, ok bool) {
	var parts []string
	for _, f := range facets {
		want, got := *f.want(s), f.got(a)
		switch {
		case want == "":
			continue
		case want == Each && got == "":
			return "", false
		case want == Each:
			want = got
		default:
			if ok, err := fits(want, got); err != nil || !ok {
				return "", false
			}
		}
		parts = append(parts, f.name+"="+inQuotes(want))
	}
	if len(parts) == 0 {
		return all, true
	}
	return strings.Join(parts, " "), true
}

// noSlash puts something else in the place of slashes, which are nothing special
// in names: gpt-4o* is as true of gpt-4o/latest as *gpt-4o is of openai/gpt-4o.
var noSlash = strings.NewReplacer("/", "\x00")

// fits says whether a glob is true of a name. It fails on a glob that is none.
func fits(glob, name string) (bool, error) {
	return path.Match(noSlash.Replace(glob), noSlash.Replace(name))
}

// each says whether the selector makes lanes as calls come.
func (s *Selector) each() bool {
	return slices.ContainsFunc(facets, func(f facet) bool { return *f.want(s) == Each })
}

// String is the selector as it is written: "scenario=rag key=each"; "all" for
// the zero Selector.
func (s Selector) String() string {
	var parts []string
	for _, f := range facets {
		if v := *f.want(&s); v != "" {
			parts = append(parts, f.name+"="+inQuotes(v))
		}
	}
	if len(parts) == 0 {
		return all
	}
	return strings.Join(parts, " ")
}

// String is the rule as ParseRule reads it: "scenario=rag rps=2".
func (r Rule) String() string {
	return strings.TrimSpace(r.Select.String() + " " + r.Limit.String())
}

// inQuotes is a name as a rule writes it: in double quotes where it has a space or
// a quote in it, as Go writes them.
func inQuotes(name string) string {
	if strings.ContainsFunc(name, unicode.IsSpace) || strings.Contains(name, `"`) {
		return strconv.Quote(name)
	}
	return name
}

// Words are the words of a rule, without quotes: of session="a b" rps=2 they are
// "session=a b" and "rps=2". It fails on quotes that do not match.
func Words(text string) ([]string, error) {
	var words []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(word, name+`="`) {
			quote, err := strconv.QuotedPrefix(value)
			rest := strings.TrimPrefix(value, quote)
			if err != nil || rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n") {
				return nil, errors.New(`limit: quotes do not match; want something like session="a b" rps=2`)
			}
			if value, err = strconv.Unquote(quote); err != nil {
				return nil, errors.New(`limit: quotes do not match; want something like session="a b" rps=2`)
			}
			word, end = name+"="+value, len(text)-len(rest)
		}
		words, text = append(words, word), text[end:]
	}
	return words, nil
}

// ParseRule reads "scenario=rag rps=2 concurrency=8": who is limited, and how. A
// name with a space in it stands in double quotes: session="a b".
// Without the former, or with the word all, it is every call.
func ParseRule(text string) (Rule, error) {
	r, _, err := parseRule(text)
	return r, err
}

// looksSecret says whether the value of a key's selector can be no fingerprint,
// 8 hex digits, and no pattern of them: it may be a key, which must not be shown.
func looksSecret(key string) bool {
	if key == Each {
		return false
	}
	const digits, glob = "0123456789abcdef", "*?[]^-\\"
	return strings.Trim(key, digits+glob) != "" || len(key) > 8 && !strings.ContainsAny(key, glob)
}

// parseRule also gives the settings that the text names, in their order.
func parseRule(text string) (r Rule, set [][2]string, err error) {
	fail := func(format string, args ...any) (Rule, [][2]string, error) {
		return Rule{}, nil, fmt.Errorf("limit %q: %w", text, fmt.Errorf(format, args...))
	}
	words, err := Words(text)
	if err != nil {
		return Rule{}, nil, err
	}
	if len(words) == 0 {
		return fail("want something like scenario=rag rps=2")
	}
	for _, word := range words {
		if key, ok := strings.CutPrefix(word, "key="); ok && looksSecret(key) {
			return Rule{}, nil, errors.New("limit: key= wants the key's fingerprint, which weir report --by key shows, or each; not the key itself")
		}
	}
	seen := map[string]bool{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok && word != all {
			return fail("%q: want NAME=VALUE, as in rps=2", word)
		}
		if seen[name] {
			return fail("%s stands twice", name)
		}
		seen[name] = true
		if word == all {
			continue
		}
		if i := slices.IndexFunc(facets, func(f facet) bool { return f.name == name }); i >= 0 {
			if _, err := fits(value, ""); err != nil || value == "" {
				return fail("%s: %q is no name or pattern", name, value)
			}
			*facets[i].want(&r.Select) = value
			continue
		}
		if !slices.Contains(LimitNames(), name) {
			return fail("%w", &UnknownName{name, append(selectorNames(), LimitNames()...)})
		}
		if err := r.Limit.Set(name, value); err != nil {
			return fail("%w", err)
		}
		set = append(set, [2]string{name, value})
	}
	switch {
	case seen[all] && r.Select != Selector{}:
		return fail("%s is every call, and %s is some; keep one", all, r.Select)
	case seen["rps"] && seen["rpm"]:
		return fail("rps and rpm are one limit; keep one")
	}
	return r, set, nil
}
