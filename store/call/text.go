package call

import (
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// How many bytes are kept of what clients and endpoints say, of which anybody
// may say megabytes: a span that no collector takes would be worth nothing.
// Names have nameLimit, an error's words messageLimit and bodyLimit.
const (
	pathLimit  = 1 << 10
	stateLimit = 17 << 10 // what a tracestate may have, which is worth nothing when cut
	listLimit  = 64       // texts of a list, and labels
)

// cutMark ends a text that was longer.
const cutMark = "…"

// Attribute is one whose value is a name that others gave: valid UTF-8 of at
// most 256 bytes, with "…" at the end where it was longer. No other kind of
// text may enter a metric's attributes.
func Attribute(key, name string) attribute.KeyValue {
	return attribute.String(key, fittingName(name))
}

func fittingName(s string) string { return Shorten(s, nameLimit) }

// Shorten gives text that is valid UTF-8 and of at most so many bytes, with "…"
// at the end where it was longer. One invalid byte would make exporters drop a
// whole batch.
func Shorten(s string, limit int) string {
	whole := len(s) <= limit
	if !whole {
		s = s[:limit]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if whole && len(s) <= limit {
		return s
	}
	end := min(len(s), limit-len(cutMark))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cutMark
}

// fittingNames is a list of names, of which the last one is the mark where there
// were more.
func fittingNames(list []string) []string {
	out := make([]string, 0, min(len(list), listLimit))
	for _, s := range list {
		if len(out) == listLimit-1 && len(list) > listLimit {
			return append(out, cutMark)
		}
		out = append(out, fittingName(s))
	}
	return out
}
