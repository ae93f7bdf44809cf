package call

import "strings"

// secretNames are the ends of names whose values are secret, in small letters;
// a dash may be one of "-_ ", or nothing.
var secretNames = []string{
	"api-key", "api-key-provided", "access-token", "auth-token", "refresh-token", "client-secret", "secret-key",
	"secret-access-key", "private-key", "password", "passwd",
}

// queryNames are those of query values that are secret; as words of prose they
// are not.
var queryNames = []string{"key", "token", "sig", "signature"}

// named is the value of a header, a JSON field, an assignment or a query value
// whose name ends before the : or = at i.
func named(s string, from, i int) (start, end int) {
	if s[i] == '=' && queryValue(s, from, i) {
		if n := run(s, i+1, &value); n > 0 {
			return i + 1, i + 1 + n
		}
		return -1, -1
	}
	e := i
	for e > from && blank(s[e-1]) {
		e--
	}
	if e > from && quote(s[e-1]) {
		for e--; e > from && s[e-1] == '\\'; e-- {
		}
	}
	if !secretName(s[from:e]) {
		return -1, -1
	}
	start = i + 1
	if start < len(s) && (s[start] == '=' || s[start] == '>') { // := == =>
		start++
	}
	for start < len(s) && blank(s[start]) {
		start++
	}
	return assigned(s, start)
}

// queryValue says whether the = at i is that of a secret query value: any of
// them behind ? or &, and key= anywhere.
func queryValue(s string, from, i int) bool {
	for _, name := range queryNames {
		at := i - len(name)
		if at < from || !strings.EqualFold(s[at:i], name) {
			continue
		}
		if name == "key" && beginsWord(s, from, at) {
			return true
		}
		return at > from && (s[at-1] == '?' || s[at-1] == '&') || strings.HasSuffix(s[from:at], `\u0026`)
	}
	return false
}

// secretName says whether text ends with the name of a secret.
func secretName(s string) bool {
	if s == "" || strings.IndexByte("ydntYDNT", s[len(s)-1]) < 0 {
		return false
	}
	for _, name := range secretNames {
		if endsWith(s, name) {
			return true
		}
	}
	return false
}

func endsWith(s, name string) bool {
	j := len(s)
	for k := len(name) - 1; k >= 0; k-- {
		if name[k] == '-' {
			if j > 0 && strings.IndexByte("-_ ", s[j-1]) >= 0 {
				j--
			}
			continue
		}
		if j == 0 || s[j-1]|0x20 != name[k] { // in letters, 0x20 is the case
			return false
		}
		j--
	}
	return true
}

// assigned is the value that begins at i: what is quoted to the end of the
// quotes, else to the end of the word. Words that stand for no value are none.
func assigned(s string, i int) (start, end int) {
	q := i
	for q < len(s) && s[q] == '\\' {
		q++
	}
	if q < len(s) && quote(s[q]) {
		depth := q - i // of the JSON strings that the quotes are in
		start = q + 1
		if end = closing(s, start, s[q], depth); end >= 0 {
			if end == start || s[start:end] == redacted {
				return -1, -1
			}
			return start, end
		}
		i = start
	}
	n := run(s, i, &value)
	switch s[i : i+n] {
	case "", "null", "true", "false", "None", "nil", "undefined":
		return -1, -1
	}
	return i, i + n
}

// closing is the end of what quotes hold, -1 where the line ends before: at a
// quote with no more backslashes of its own before it than the first one had.
func closing(s string, i int, q byte, depth int) int {
	slashes := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '\n':
			return -1
		case '\\':
			slashes++
		case q:
			if own := slashes % (2*depth + 2); own <= depth { // the others are escaped themselves
				return i - own
			}
			slashes = 0
		default:
			slashes = 0
		}
	}
	return -1
}

func blank(c byte) bool { return c == ' ' || c == '\t' }
func quote(c byte) bool { return c == '"' || c == '\'' || c == '`' }
