package corpus

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class says what a character is to the tokenizers' patterns.
type class uint8

const (
	upper  class = 1 << iota // Lu, Lt
	lower                    // Ll
	letter                   // Lm, Lo: neither upper nor lower case
	mark                     // M
	digit                    // N
	space                    // \s but line ends
	line                     // \r, \n
	symbol                   // anything else

	anyLetter = upper | lower | letter
	anySpace  = space | line
	uppers    = upper | letter | mark // what a word may begin with
	lowers    = lower | letter | mark // what it may go on with
	sign      = mark | symbol         // neither letter, digit nor space
)

// planes holds the class of every character below U+10000.
var planes = sync.OnceValue(func() *[1 << 16]class {
	var t [1 << 16]class
	for i := range t {
		t[i] = symbol
	}
	for _, fill := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper}, {unicode.Lt, upper}, {unicode.Ll, lower}, {unicode.Lm, letter}, {unicode.Lo, letter},
		{unicode.M, mark}, {unicode.N, digit}, {unicode.White_Space, space},
	} {
		for _, r := range fill.table.R16 {
			for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
				t[c] = fill.class
			}
		}
	}
	t['\r'], t['\n'] = line, line
	return &t
})

// classOf tells the class and length of the first character of s, which is not
// empty.
func classOf(table *[1 << 16]class, s string) (class, int) {
	if c := s[0]; c < utf8.RuneSelf {
		return table[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r < 1<<16:
		return table[r], n
	case unicode.In(r, unicode.Lo, unicode.Lm):
		return letter, n
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper, n
	case unicode.Is(unicode.Ll, r):
		return lower, n
	case unicode.Is(unicode.M, r):
		return mark, n
	case unicode.Is(unicode.N, r):
		return digit, n
	}
	return symbol, n
}

// splitter cuts a text into the pieces within which byte pairs are merged. It
// does what the pattern of its encoding says, without a regular expression.
type splitter struct {
	table *[1 << 16]class
	cased bool // o200k: words end where upper case begins, and own their contractions
}

// next gives the length of the first piece of s, which is not empty.
func (p splitter) next(s string) int {
	first, n := classOf(p.table, s)
	if !p.cased && s[0] == '\'' {
		if c := contraction(s); c > 0 {
			return c
		}
	}
	// A word, with one character before it that is no letter, digit or line end.
	if first&(digit|line) == 0 {
		if end := p.word(s, first, n); end > 0 {
			return end
		}
	}
	switch {
	case first == digit:
		return p.digits(s, n)
	case first&sign != 0:
		return p.signs(s, n)
	case s[0] == ' ' && n < len(s):
		if c, m := classOf(p.table, s[n:]); c&sign != 0 {
			return p.signs(s, n+m)
		}
	}
	return p.spaces(s)
}

// word gives the end of a word at the beginning of s; 0 when there is none.
func (p splitter) word(s string, first class, n int) int {
	starts := [2]int{0, -1}
	if first&anyLetter == 0 { // the character may stand before the word, or be a mark in it
		starts = [2]int{n, 0}
	}
	if !p.cased {
		end := starts[0]
		for end < len(s) {
			c, m := classOf(p.table, s[end:])
			if c&anyLetter == 0 {
				break
			}
			end += m
		}
		if end > starts[0] {
			return end
		}
		return 0
	}
	for _, start := range starts {
		if start >= 0 {
			if end := p.lowerWord(s, start); end > 0 {
				return end + contraction(s[end:])
			}
		}
	}
	for _, start := range starts {
		if start >= 0 {
			if end := p.run(s, start, uppers); end > start {
				return end + contraction(s[end:])
			}
		}
	}
	return 0
}

// lowerWord matches uppers* lowers+ from start on; 0 when it does not.
func (p splitter) lowerWord(s string, start int) int {
	caseless := 0 // after the last character that both may hold
	end := start
	for end < len(s) {
		c, m := classOf(p.table, s[end:])
		if c&uppers == 0 {
			if c&lowers != 0 {
				return p.run(s, end, lowers)
			}
			break
		}
		end += m
		if c&lowers != 0 {
			caseless = end
		}
	}
	return caseless
}

// run gives the end of the characters of a class from start on.
func (p splitter) run(s string, start int, set class) int {
	for start < len(s) {
		c, m := classOf(p.table, s[start:])
		if c&set == 0 {
			break
		}
		start += m
	}
	return start
}

func (p splitter) digits(s string, end int) int {
	for range 2 {
		if end < len(s) {
			if c, m := classOf(p.table, s[end:]); c == digit {
				end += m
				continue
			}
		}
		break
	}
	return end
}

// signs are punctuation, and the line ends (o200k: and slashes) after it.
func (p splitter) signs(s string, end int) int {
	end = p.run(s, end, sign)
	for end < len(s) && (s[end] == '\r' || s[end] == '\n' || p.cased && s[end] == '/') {
		end++
	}
	return end
}

// spaces are white space up to its last line end; without one, all but the
// last character, which belongs to what follows.
func (p splitter) spaces(s string) int {
	end, last, lineEnd := 0, 0, 0
	for end < len(s) {
		c, m := classOf(p.table, s[end:])
		if c&anySpace == 0 {
			break
		}
		last = end
		end += m
		if c == line {
			lineEnd = end
		}
	}
	switch {
	case lineEnd > 0:
		return lineEnd
	case end < len(s) && last > 0:
		return last
	}
	return end
}

// contraction gives the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// beginning of s, in either case.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) > 2 {
		switch (string)([]byte{s[1] | 0x20, s[2] | 0x20}) {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}
