package corpus

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// template is a sentence with holes, ready to be filled.
type template []hole

// hole is a piece of fixed text and what comes behind it.
type hole struct {
	text string
	slot byte // a letter that the writer's words know; 0: nothing
}

// parseTemplates reads one template a line; "{n}" is the hole for slot n.
func parseTemplates(lines string) []template {
	var all []template
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var t template
		for {
			before, after, ok := strings.Cut(line, "{")
			if !ok {
				t = append(t, hole{text: line})
				break
			}
			t = append(t, hole{before, after[0]})
			line = after[2:]
		}
		all = append(all, t)
	}
	return all
}

// words fills slots: lists of words by letter. Slots that no list fills are
// numbers, names and the like, and the same in every language.
type words [256][]string

func wordLists(lists map[byte]string) *words {
	var w words
	for slot, list := range lists {
		if strings.Contains(list, "|") {
			for part := range strings.SplitSeq(list, "|") {
				w[slot] = append(w[slot], strings.TrimSpace(part))
			}
		} else {
			w[slot] = strings.Fields(list)
		}
	}
	return &w
}

// write fills a template.
func (w *words) write(dst []byte, rng *rand.Rand, t template) []byte {
	for i := range t {
		dst = append(dst, t[i].text...)
		if s := t[i].slot; s != 0 {
			dst = w.fill(dst, rng, s)
		}
	}
	return dst
}

func (w *words) fill(dst []byte, rng *rand.Rand, slot byte) []byte {
	if list := w[slot]; list != nil {
		return append(dst, list[skewed(rng, len(list))]...)
	}
	switch slot {
	case 'W':
		return appendName(dst, rng)
	case 'm':
		return appendNumber(dst, rng)
	case 'x':
		dst = strconv.AppendInt(dst, rng.Int64N(99)+1, 10)
		if rng.IntN(2) == 0 {
			dst = append(dst, '.')
			dst = strconv.AppendInt(dst, rng.Int64N(10), 10)
		}
		return append(dst, '%')
	case 'i':
		return appendIdentifier(dst, rng)
	case 'y':
		return strconv.AppendInt(dst, 1995+rng.Int64N(32), 10)
	case 'k':
		return strconv.AppendInt(dst, 2+rng.Int64N(28), 10)
	}
	return append(dst, '?')
}

// skewed draws an index below n, early ones more often: real texts repeat a few
// words much and most words little.
func skewed(rng *rand.Rand, n int) int {
	u := rng.Float64()
	return int(u * (0.35 + 0.65*u) * float64(n))
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func appendNumber(dst []byte, rng *rand.Rand) []byte {
	switch n := rng.Int64N(1 << 40); n & 3 {
	case 0:
		return strconv.AppendInt(dst, n>>4%90+10, 10)
	case 1:
		return strconv.AppendInt(dst, n>>4%9000+1000, 10)
	case 2:
		dst = strconv.AppendInt(dst, n>>4%900+1, 10)
		dst = append(dst, '.')
		return strconv.AppendInt(dst, n>>20%10, 10)
	default:
		dst = strconv.AppendInt(dst, n>>4%900+100, 10)
		dst = append(dst, ',')
		return append(dst, strconv.Itoa(int(n>>20%900+100))...)
	}
}

var (
	nameHeads = strings.Fields("Bel Cor Dan El Fair Gar Hal Ing Jor Kel Lan Mar Nor Os Pel Quin Ros Sal Tor Ul Ver Wes Yar Zan Ash Bran Cal Dor Est Fen")
	nameTails = strings.Fields("brook dale ford gate ham ington ley mont mere more ridge sen son stad ston thorpe ton vale ville wick wood wyn a o er in is us")
)

// appendName makes up a name of a person, place or firm.
func appendName(dst []byte, rng *rand.Rand) []byte {
	dst = append(dst, pick(rng, nameHeads)...)
	return append(dst, pick(rng, nameTails)...)
}

var idParts = strings.Fields("account alert batch billing cache cart catalog claim client cluster config cursor daemon event export feature feed file flag gateway group header import index invoice item job key ledger limit lock log merge meter node order packet page parser payment policy pool price probe profile queue quota record region replica report request retry route rule sample scan schema segment session shard signal sink socket stock stream sync table tag task tenant ticket timer token topic trace unit user vault vendor view volume watch worker zone")

// appendIdentifier makes up an identifier of two words in snake case.
func appendIdentifier(dst []byte, rng *rand.Rand) []byte {
	dst = append(dst, pick(rng, idParts)...)
	dst = append(dst, '_')
	return append(dst, pick(rng, idParts)...)
}

// appendCamel makes up an identifier of two words, the first in lower case or not.
func appendCamel(dst []byte, rng *rand.Rand, exported bool) []byte {
	for i := range 2 {
		at := len(dst)
		dst = append(dst, pick(rng, idParts)...)
		if i > 0 || exported {
			dst[at] -= 'a' - 'A'
		}
	}
	return dst
}

// appendReference makes up a reference that no other text is likely to have:
// six digits and two letters are 676 million of them, the name behind it a
// hundred times more.
func appendReference(dst []byte, rng *rand.Rand) []byte {
	dst = strconv.AppendInt(dst, 100_000+rng.Int64N(900_000), 10)
	return append(dst, '-', byte('A'+rng.IntN(26)), byte('A'+rng.IntN(26)))
}
