package call

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limit is one limit of a rate as a response's headers state it. Texts are the
// server's own, empty where it does not say.
type Limit struct {
	What      string // "requests", "input-tokens"; empty for the only one
	Most      string // that may be used in a period
	Remaining string
	Reset     time.Duration // until it is full again; 0 when unsaid, or now

	fills    bool // evenly until then; else nothing comes back before it
	rejected bool // it says in a word that nothing is left
}

// usedUp says whether nothing is left of it.
func (l *Limit) usedUp() bool { return l.rejected || l.Remaining == "0" }

// String is the limit in a few words: "requests: 0 of 60 left, resets in 12s".
func (l Limit) String() string {
	name := l.What
	if name == "" {
		name = "limit"
	}
	var parts []string
	switch {
	case l.Remaining != "" && l.Most != "":
		parts = append(parts, l.Remaining+" of "+l.Most+" left")
	case l.Remaining != "":
		parts = append(parts, l.Remaining+" left")
	case l.Most != "":
		parts = append(parts, l.Most)
	}
	if l.rejected {
		parts = append(parts, "used up")
	}
	if l.Reset > 0 {
		parts = append(parts, "resets in "+spell(l.Reset))
	}
	return name + ": " + strings.Join(parts, ", ")
}

// Limits reads x-ratelimit-limit-<what> with its remaining and reset, likewise
// without the x-, anthropic-ratelimit-<what>-limit and its, and the fields of
// the IETF's draft. They come by name. What the server asks to wait is a call's
// RetryAfter.
//
// A subscription of Anthropic's says of all its windows together whether they
// let a call pass, and when they do again: unified-status and unified-reset.
// "rejected" is said with an answer, too, by which the last of it was used up;
// unless it is followed by paid overage, the next call is refused.
func Limits(h http.Header, now time.Time) []Limit {
	all := map[string]*Limit{}
	of := func(what string) *Limit {
		if all[what] == nil {
			all[what] = &Limit{What: what}
		}
		return all[what]
	}
	ietfLimits(h, now, of)
	for _, name := range slices.Sorted(maps.Keys(h)) { // where one is said in two ways, the older is not the draft's
		value := h[name][0]
		field, what, ok := limitHeader(strings.ToLower(name))
		if !ok {
			continue
		}
		l := of(what)
		switch field {
		case "limit":
			value, _, _ = strings.Cut(value, ",") // policies may follow
			l.Most = storable(strings.TrimSpace(value), nameLimit)
		case "remaining":
			l.Remaining = storable(value, nameLimit)
		case "reset":
			l.Reset, _ = resetIn(value, now)
			l.fills = fills(name, value)
		}
	}
	if h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" && !strings.HasPrefix(h.Get("Anthropic-Ratelimit-Unified-Overage-Status"), "allowed") {
		of("unified").rejected = true
	}
	limits := make([]Limit, 0, len(all))
	for _, l := range all {
		limits = append(limits, *l)
	}
	slices.SortFunc(limits, func(a, b Limit) int { return strings.Compare(a.What, b.What) })
	return limits
}

// limitHeader takes the name of a header, in lower case, apart.
func limitHeader(name string) (field, what string, ok bool) {
	if rest, found := strings.CutPrefix(strings.TrimPrefix(name, "x-"), "ratelimit-"); found {
		field, what, _ = strings.Cut(rest, "-")
	} else if rest, found := strings.CutPrefix(name, "anthropic-ratelimit-"); found {
		i := strings.LastIndexByte(rest, '-')
		if i < 0 {
			return "", "", false
		}
		field, what = rest[i+1:], rest[:i]
	}
	return field, what, field == "limit" || field == "remaining" || field == "reset"
}
