package call

import "strings"

// A secret is told by what stands before it. Regular expressions for all its
// forms take a third of a second for a megabyte, which is what an agent sends
// in a minute; so one pass stops at the few characters that a form has, looks
// back at its beginning, and only then reads on.

// anchors are those characters.
var anchors = set(":=-_.AJbB")

// set is a table of the characters of s.
func set(s string) (t [256]bool) {
	for i := range len(s) {
		t[s[i]] = true
	}
	return t
}

const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "0123456789"

// The characters of which secrets are made. Stars and dots: providers quote
// keys back with their middle masked, and the ends are still secret.
var (
	word       = set(letters + digits + "_")
	dashed     = set(letters + digits + "_-*.")
	underlined = set(letters + digits + "_*")
	google     = set(letters + digits + "_*-")
	amazon     = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits)
	base64URL  = set(letters + digits + "_-")
	credential = set(letters + digits + "._~+/*=|-")
	value      = not(set(" \t\r\n\v\f\"'`\\&,;<>()[]{}"))
	armour     = armourSet()
)

func not(t [256]bool) [256]bool {
	for i := range t {
		t[i] = !t[i]
	}
	return t
}

// armourSet is what the lines of a private key are made of, and what editors
// and diffs put before them.
func armourSet() [256]bool {
	t := set(letters + digits + "+/=:,.|-\\ \t\r\n")
	for c := 0x80; c < len(t); c++ {
		t[c] = true
	}
	return t
}

// run is how many characters from i on are of a set.
func run(s string, i int, of *[256]bool) int {
	n := 0
	for i+n < len(s) && of[s[i+n]] {
		n++
	}
	return n
}

// nextSecret finds the first secret at or behind from, up to which all has been
// dealt with; start is -1 when there is none.
func nextSecret(s string, from int) (start, end int) {
	for i := from; i < len(s); i++ {
		if !anchors[s[i]] {
			continue
		}
		switch s[i] {
		case ':', '=':
			start, end = named(s, from, i)
		case '-':
			if start, end = privateKey(s, i); start < 0 {
				start, end = token(s, from, i)
			}
		case '_':
			start, end = token(s, from, i)
		case '.':
			start, end = after(s, from, i, "ya29", &dashed, 8)
		case 'A':
			start, end = capital(s, from, i)
		case 'J':
			start, end = jwt(s, from, i)
		default:
			start, end = scheme(s, from, i)
		}
		if start >= 0 {
			return start, end
		}
	}
	return -1, -1
}

// beginsWord says whether a word can begin at i: nothing of a word stands
// before it, or only the end of an escape such as \n, as in raw JSON.
func beginsWord(s string, from, i int) bool {
	if i <= from || !word[s[i-1]] {
		return true
	}
	if i-from >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf", s[i-1]) >= 0 {
		return true
	}
	return i-from >= 6 && s[i-6] == '\\' && s[i-5] == 'u'
}

// after is a secret behind a prefix that ends before i, of at least so many
// characters of a set.
func after(s string, from, i int, prefix string, of *[256]bool, least int) (start, end int) {
	at := i - len(prefix)
	if at < from || s[at:i] != prefix || !beginsWord(s, from, at) {
		return -1, -1
	}
	if n := run(s, i+1, of); n >= least {
		return i + 1, i + 1 + n
	}
	return -1, -1
}

var (
	dashPrefixes  = []string{"sk", "pk", "rk", "xai", "pplx", "nvapi", "glpat", "xoxb", "xoxp", "xoxa", "xoxs", "xapp"}
	underPrefixes = []string{"gsk", "hf", "r8", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "fw", "npm", "sk_live", "sk_test", "rk_live", "rk_test"}
)

// token is a key that says what it is: sk-…, ghp_….
func token(s string, from, i int) (start, end int) {
	if i == from {
		return -1, -1
	}
	if s[i] == '-' {
		for _, p := range dashPrefixes {
			if p[len(p)-1] == s[i-1] {
				if start, end = after(s, from, i, p, &dashed, 6); start >= 0 {
					return start, end
				}
			}
		}
		return -1, -1
	}
	for _, p := range underPrefixes {
		if p[len(p)-1] == s[i-1] {
			start, end = after(s, from, i, p, &underlined, 8)
			// hf_hub_download is a name in a program.
			if start >= 0 && strings.ContainsAny(s[start:end], "0123456789*ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				return start, end
			}
		}
	}
	return -1, -1
}

// capital is a key of Google's or Amazon's.
func capital(s string, from, i int) (start, end int) {
	if len(s)-i < 4 || !beginsWord(s, from, i) {
		return -1, -1
	}
	of := &amazon
	switch s[i : i+4] {
	case "AIza":
		of = &google
	case "AKIA", "ASIA":
	default:
		return -1, -1
	}
	if n := run(s, i+4, of); n >= 8 {
		return i + 4, i + 4 + n
	}
	return -1, -1
}

// jwt is a token of two or three parts, whose J is at i.
func jwt(s string, from, i int) (start, end int) {
	if i-2 < from || s[i-2:i] != "ey" || !beginsWord(s, from, i-2) {
		return -1, -1
	}
	head := run(s, i+1, &base64URL)
	dot := i + 1 + head
	if head < 4 || dot >= len(s) || s[dot] != '.' {
		return -1, -1
	}
	body := run(s, dot+1, &base64URL)
	if body == 0 {
		return -1, -1
	}
	end = dot + 1 + body
	if end < len(s) && s[end] == '.' {
		end += 1 + run(s, end+1, &base64URL)
	}
	return i + 1, end
}

// scheme is a credential behind a scheme of Authorization, which begins at i.
func scheme(s string, from, i int) (start, end int) {
	rest, basic := s[i:], false
	switch {
	case len(rest) > 6 && strings.EqualFold(rest[:6], "bearer"):
		start = i + 6
	case len(rest) > 5 && strings.EqualFold(rest[:5], "basic"):
		start, basic = i+5, true
	default:
		return -1, -1
	}
	if !beginsWord(s, from, i) {
		return -1, -1
	}
	gap := 0
	for start+gap < len(s) && (s[start+gap] == ' ' || s[start+gap] == '+') {
		gap++
	}
	start += gap
	n := run(s, start, &credential)
	if gap == 0 || n < 6 || basic && plainWord(s[start:start+n]) {
		return -1, -1
	}
	return start, start + n
}

// plainWord says that text is a word of prose: basic is an ordinary one before
// it.
func plainWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// privateKey is what stands between the marks of a private key that begins at
// i; where the second is missing, as in a body that was cut, what can be of it.
func privateKey(s string, i int) (start, end int) {
	const mark, longest = "-----BEGIN ", 64
	if !strings.HasPrefix(s[i:], mark) {
		return -1, -1
	}
	head := s[i+len(mark) : min(len(s), i+len(mark)+longest)]
	kind, _, ok := strings.Cut(head, "-----")
	if !ok || !strings.Contains(kind, "PRIVATE KEY") {
		return -1, -1
	}
	start = i + len(mark) + len(kind) + 5
	rest := s[start:stringEnd(s, start, min(len(s), start+longestKey))]
	if n := strings.Index(rest, "-----END "); n >= 0 {
		end = start + n
	} else {
		end = start + run(rest, 0, &armour)
		for end > start && s[end-1] == '\\' { // of the escape that follows
			end--
		}
	}
	// A mark alone, or one that was redacted.
	if end-start < 16 {
		return -1, -1
	}
	return start, end
}

// longestKey is far longer than a private key is.
const longestKey = 16 << 10

// stringEnd is where the JSON string that i is in ends, at the latest at most:
// no key has the quote that ends it.
func stringEnd(s string, i, most int) int {
	for ; i < most; i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return most
}
