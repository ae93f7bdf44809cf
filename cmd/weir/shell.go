package main

import (
	"strings"

	"weir/proxy/client"
)

// shellWords are words as a shell takes them one by one: next commands are there
// to be pasted.
func shellWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = client.Quoted(word)
	}
	return strings.Join(quoted, " ")
}
