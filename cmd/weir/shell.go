package main

import "strings"

// shellWord writes a word so that a POSIX shell takes it for one word, as it is:
// next commands are there to be pasted.
func shellWord(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"\\`$&|;<>()[]{}*?!#", r)
	})
	if plain && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellWords writes words so, with spaces between them.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}
