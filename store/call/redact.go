package call

import (
	"strings"
	"unicode/utf8"
)

const redacted = "[redacted]"

// Redact removes what looks like a key from text that is to be stored or
// shown: sk-… and its kin, Bearer and Basic credentials, values of x-api-key,
// password and the like, AIza…, ghp_…, AKIA…, key= query values, JWTs, private
// keys. The beginning that says what it was stays. It reads plain text and
// JSON, whose strings it leaves whole. What it gives is not changed by a second
// time.
func Redact(s string) string { return redactAll(s, nextSecret) }

// finder finds the first secret at or behind from, up to which all has been
// dealt with; start is -1 when there is none.
type finder func(s string, from int) (start, end int)

func redactAll(s string, next finder) string {
	var b strings.Builder
	from := 0
	for {
		start, end := next(s, from)
		if start < 0 {
			break
		}
		b.WriteString(s[from:start])
		b.WriteString(redacted)
		from = end
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// storable makes text fit to be stored: secrets redacted, valid UTF-8, at most
// limit bytes.
func storable(s string, limit int) string {
	s = strings.ToValidUTF8(Redact(s), "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
