package call

import (
	"fmt"
	"slices"
	"strings"
)

// Keys are secrets that are known, to be taken out of text that may quote them:
// gateways' keys look like nothing that Redact would find. Nil is none. They
// never print: fmt looks into fields without asking their types, so they are
// behind a pointer.
type Keys struct{ list *[]string }

// shortestKey is below which a key would take words with it. So much of a key is
// redacted, too, where text was cut in its midst.
const shortestKey = 8

// NewKeys takes keys; those of less than 8 bytes are passed over. It is nil
// where none is left.
func NewKeys(keys ...string) *Keys {
	var list []string
	for _, key := range keys {
		if len(key) >= shortestKey && !slices.Contains(list, key) {
			list = append(list, key)
			// What Redact makes of it, where it does not see its end.
			if rest := Redact(key); rest != key && !strings.HasSuffix(rest, redacted) {
				list = append(list, rest)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	// A key that begins as another one does is found whole.
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
	return &Keys{&list}
}

// Format keeps keys out of every text.
func (*Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalText keeps keys out of JSON and logs.
func (*Keys) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Redact takes the keys out of text, as they are or as JSON and URLs escape
// them, and then what else looks like a key.
func (k *Keys) Redact(s string) string { return Redact(k.scrub(s)) }

// RedactStream is Redact for the body of an answer, in which a key may come in
// pieces.
func (k *Keys) RedactStream(s string) string {
	if k != nil {
		s = redactStream(s, k.next)
	}
	return RedactStream(s)
}

// Scrub takes the keys out of what a call says of its failure.
func (k *Keys) Scrub(c *Call) {
	for _, text := range []*string{&c.ErrorType, &c.ErrorMessage, &c.ErrorBody} {
		*text = k.scrub(*text)
	}
}

func (k *Keys) scrub(s string) string {
	if k == nil {
		return s
	}
	return redactAll(s, k.next)
}

// next finds the first key at or behind from; start is -1 when there is none.
func (k *Keys) next(s string, from int) (start, end int) {
	for i := from; i < len(s); i++ {
		for _, key := range *k.list {
			if s[i] != key[0] && s[i] != '\\' && s[i] != '%' {
				continue
			}
			if n := spelled(s[i:], key); n > 0 {
				return i, i + n
			}
		}
	}
	return -1, -1
}

// spelled is how many bytes of s spell a key, each of its bytes as it is or
// escaped; 0 when s begins otherwise. Where s ends first, enough of the key will
// do.
func spelled(s, key string) int {
	at := 0
	for i := range len(key) {
		if at == len(s) && i >= shortestKey {
			return at
		}
		n := spelledByte(s[at:], key[i])
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// spelledByte is how many bytes at the beginning of s spell one.
func spelledByte(s string, c byte) int {
	if s == "" {
		return 0
	}
	if s[0] == '%' && len(s) >= 3 && isHex(s[1:3], c) {
		return 3
	}
	slashes := 0 // of JSON within JSON there are several
	for slashes < len(s) && s[slashes] == '\\' {
		slashes++
	}
	rest := s[slashes:]
	switch {
	case c == '\\' && slashes > 0:
		return min(slashes, 2)
	case slashes > 0 && len(rest) >= 5 && rest[0] == 'u' && rest[1:3] == "00" && isHex(rest[3:5], c):
		return slashes + 5
	case rest != "" && rest[0] == c && (slashes == 0 || strings.IndexByte(`/"'`, c) >= 0):
		return slashes + 1
	}
	return 0
}

func isHex(digits string, c byte) bool { return strings.EqualFold(digits, fmt.Sprintf("%02x", c)) }
