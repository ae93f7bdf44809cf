package shaper

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseImpairments reads "scenario=agent: first_token+800ms, cut:1%": whose
// calls, and what befalls each of them by itself, with its share. Without the
// former, or with the word all, it is every call. Without a share it is all of
// them.
func ParseImpairments(text string) ([]Impairment, error) {
	fail := func(err error) ([]Impairment, error) {
		return nil, fmt.Errorf("impairment %q: %w", text, err)
	}
	selector, rest, err := cutSelector(text)
	if err != nil {
		return fail(err)
	}
	var all []Impairment
	for _, entry := range splitOutside(rest) {
		m, err := parseImpairment(entry)
		if err != nil {
			return fail(err)
		}
		m.Select = selector
		all = append(all, m)
	}
	return all, nil
}

// cutSelector reads the words before the first colon that a space follows, if
// the text begins with who is meant. A model's name may hold colons.
func cutSelector(text string) (s Selector, rest string, err error) {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, " ")
	name, _, valued := strings.Cut(strings.TrimSuffix(first, ":"), "=")
	if name != all && !(valued && facetNamed(name) != nil) {
		return Selector{}, text, nil
	}
	words, rest, found := strings.Cut(text, ": ")
	if !found {
		return s, "", errors.New("want a colon and a space between whose calls are meant and what befalls them, as in scenario=agent: cut:1%")
	}
	if strings.TrimSpace(words) == all {
		return s, rest, nil
	}
	list, err := Words(words)
	if err != nil {
		return s, "", err
	}
	seen := map[string]bool{}
	for _, word := range list {
		name, value, _ := strings.Cut(word, "=")
		f := facetNamed(name)
		switch {
		case f == nil:
			return s, "", fmt.Errorf("%q: want NAME=VALUE before the colon, as in scenario=agent", word)
		case seen[name]:
			return s, "", fmt.Errorf("%s stands twice", name)
		case value == Each:
			return s, "", fmt.Errorf("%s: %s is for limits; want a name or a pattern", name, Each)
		}
		if _, err := fits(value, ""); err != nil || value == "" {
			return s, "", fmt.Errorf("%s: %q is no name or pattern", name, value)
		}
		seen[name] = true
		*f.want(&s) = value
	}
	return s, rest, nil
}

func facetNamed(name string) *facet {
	for i := range facets {
		if facets[i].name == name {
			return &facets[i]
		}
	}
	return nil
}

// splitOutside splits at commas that stand in no parentheses.
func splitOutside(text string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}

// parseImpairment reads KIND=NUMBER@EVENT+TIME:SHARE, of which a kind takes
// some.
func parseImpairment(entry string) (Impairment, error) {
	rest, share, shared := strings.Cut(entry, ":")
	end := strings.IndexAny(rest, "=@+")
	if end < 0 {
		end = len(rest)
	}
	k := kindNamed(rest[:end])
	if k == nil {
		return Impairment{}, fmt.Errorf("unknown kind %q; want one of %s", rest[:end], kindNames())
	}
	m := k.impairment
	m.Kind, m.Share = k.kind, 1
	fail := func(format string, args ...any) (Impairment, error) {
		return m, fmt.Errorf("%s: %w; want %s", entry, fmt.Errorf(format, args...), k.form)
	}
	rest, pause, waits := strings.Cut(rest[end:], "+")
	rest, event, at := strings.Cut(rest, "@")
	number, numbered := strings.CutPrefix(rest, "=")
	for _, p := range []struct {
		name  string
		takes taking
		given bool
	}{{"number", k.number, numbered}, {"event", k.event, at}, {"time", k.wait, waits}} {
		if p.given && p.takes == takesNone {
			return fail("it takes no %s", p.name)
		}
		if !p.given && p.takes == mustTake {
			return fail("it lacks its %s", p.name)
		}
	}
	var err error
	if numbered {
		m.Number, err = strconv.ParseFloat(strings.TrimSuffix(number, "/s"), 64)
		if err != nil || !(m.Number >= k.least && m.Number <= k.most) || k.kind == Coalesce && m.Number != float64(int(m.Number)) {
			return fail("number %q is not between %g and %g", number, k.least, k.most)
		}
	}
	if at {
		if m.Event, err = parseEvents(event); err != nil {
			return fail("%w", err)
		}
	}
	if waits {
		if m.Time, err = parseTimeDist(pause); err != nil {
			return fail("%w", err)
		}
	}
	if k.kind == Coalesce && !numbered && !waits {
		return fail("it lacks a number or a time")
	}
	if shared {
		if m.Share, err = parseShare(share); err != nil {
			return Impairment{}, fmt.Errorf("%s: %w", entry, err)
		}
	}
	return m, nil
}

func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("share %q: want 0%% to 100%%", text)
	}
	return share, nil
}

// parseEvents reads 7 and 3..40.
func parseEvents(text string) (EventRange, error) {
	low, high, several := strings.Cut(text, "..")
	if !several {
		high = low
	}
	first, err := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if errors.Join(err, err2) != nil || first < 1 || last < first || last > 1e6 {
		return EventRange{}, fmt.Errorf("event %q is neither like 7 nor like 3..40", text)
	}
	return EventRange{first, last}, nil
}

func (e EventRange) String() string {
	if e.First == e.Last {
		return strconv.Itoa(e.First)
	}
	return fmt.Sprintf("%d..%d", e.First, e.Last)
}
