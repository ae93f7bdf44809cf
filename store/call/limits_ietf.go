package call

import (
	"net/http"
	"strings"
	"time"
)

// ietfLimits reads the two fields of draft-ietf-httpapi-ratelimit-headers, whose
// limits have names: RateLimit: "hour";r=0;t=30 and RateLimit-Policy:
// "hour";q=100;w=3600. Before its 8th version the former was limit=100,
// remaining=0, reset=30, of the only limit. A field that cannot be read says
// nothing, as structured fields want it.
func ietfLimits(h http.Header, now time.Time, of func(what string) *Limit) {
	for _, m := range structured(h["Ratelimit"]) {
		if m.value != "" {
			take(of, "", m.name, m.value, now)
			continue
		}
		take(of, m.name, "remaining", m.params["r"], now)
		take(of, m.name, "reset", m.params["t"], now)
	}
	for _, m := range structured(h["Ratelimit-Policy"]) {
		take(of, m.name, "limit", m.params["q"], now)
	}
}

// take takes a number down; what is none is passed over.
func take(of func(what string) *Limit, what, field, number string, now time.Time) {
	if _, ok := decimal(number); !ok {
		return
	}
	switch l := of(storable(what, nameLimit)); field {
	case "limit":
		l.Most = storable(number, nameLimit)
	case "remaining":
		l.Remaining = storable(number, nameLimit)
	case "reset":
		l.Reset, _ = resetIn(number, now)
	}
}

// member is one of a list of RFC 9651: a name with parameters, or with a value.
type member struct {
	name, value string
	params      map[string]string
}

// structured reads a list, or a dictionary; it gives nil where it is neither.
func structured(lines []string) []member {
	rest := strings.Join(lines, ",")
	var all []member
	for {
		var m member
		var ok bool
		if m.name, rest, ok = bare(strings.TrimLeft(rest, " \t")); !ok {
			return nil
		}
		if after, found := strings.CutPrefix(rest, "="); found {
			if m.value, rest, ok = bare(after); !ok {
				return nil
			}
		}
		m.params = map[string]string{}
		for rest = strings.TrimLeft(rest, " \t"); strings.HasPrefix(rest, ";"); rest = strings.TrimLeft(rest, " \t") {
			var key, value string
			if key, rest, ok = bare(strings.TrimLeft(rest[1:], " \t")); !ok {
				return nil
			}
			if after, found := strings.CutPrefix(rest, "="); found {
				if value, rest, ok = bare(after); !ok {
					return nil
				}
			}
			m.params[key] = value
		}
		all = append(all, m)
		if rest == "" {
			return all
		}
		if !strings.HasPrefix(rest, ",") {
			return nil
		}
		rest = rest[1:]
	}
}

// bare reads a string, a byte sequence, a token or a number, and gives what
// follows it.
func bare(text string) (value, rest string, ok bool) {
	switch {
	case strings.HasPrefix(text, `"`):
		var b strings.Builder
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '"':
				return b.String(), text[i+1:], true
			case '\\':
				if i++; i == len(text) {
					return "", "", false
				}
			}
			b.WriteByte(text[i])
		}
		return "", "", false
	case strings.HasPrefix(text, ":"):
		value, rest, ok = strings.Cut(text[1:], ":")
		return value, rest, ok
	}
	end := strings.IndexAny(text, " \t,;=\"")
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], end > 0
}
