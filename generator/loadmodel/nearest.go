package loadmodel

import "strings"

// Nearest is the known name that a word was probably meant to be: one that it
// begins, or one that a few slips make of it, fewer than half the letters of the
// longer. It is empty when none is near, and the first of several that are equally so.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 1+max(len(word)/3, 2)
	for _, k := range known {
		d := Slips(word, k)
		if len(word) >= 3 && strings.HasPrefix(k, word) {
			d = min(d, 1)
		}
		if d < least && 2*d < max(len(word), len(k)) {
			best, least = k, d
		}
	}
	return best
}

// Slips is how many letters must be put in, taken out, changed or swapped with
// the next to make b of a: the optimal string alignment distance.
func Slips(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			changed := 0
			if a[i-1] != b[j-1] {
				changed = 1
			}
			d[i][j] = min(d[i-1][j-1]+changed, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
