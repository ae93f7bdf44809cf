package call

import (
	"cmp"
	"slices"
	"strings"
)

// RedactStream is Redact for the body of an answer, which may be a stream of
// events: there a key that a model writes comes in pieces, and no piece looks
// like one. The strings that stand under one name are read as one text. The
// pieces of a secret become [redacted] and empty strings; the events stay.
func RedactStream(s string) string { return redactStream(s, nextSecret) }

func redactStream(s string, next finder) string {
	var cuts []cut
	for _, t := range textsOf(s) {
		cuts = t.cuts(cuts, next)
	}
	if len(cuts) == 0 {
		return redactAll(s, next)
	}
	slices.SortFunc(cuts, func(a, b cut) int { return cmp.Compare(a.start, b.start) })
	var b strings.Builder
	from := 0
	for _, c := range cuts {
		b.WriteString(s[from:c.start])
		b.WriteString(c.instead)
		from = c.end
	}
	b.WriteString(s[from:])
	return redactAll(b.String(), next)
}

// cut is a part of a body that something else stands instead of.
type cut struct {
	start, end int
	instead    string
}

// text is what the strings under one name say together.
type text struct {
	joined strings.Builder
	pieces []piece
}

// piece is one of those strings: where it begins in the text and in the body.
type piece struct{ at, body int }

// cuts appends where the text's secrets stand in the body.
func (t *text) cuts(list []cut, next finder) []cut {
	if len(t.pieces) < 2 {
		return list
	}
	s := t.joined.String()
	p := 0
	for start, end := next(s, 0); start >= 0; start, end = next(s, end) {
		instead := redacted
		for start < end {
			for p+1 < len(t.pieces) && t.pieces[p+1].at <= start {
				p++
			}
			stop := end
			if p+1 < len(t.pieces) {
				stop = min(end, t.pieces[p+1].at)
			}
			shift := t.pieces[p].body - t.pieces[p].at
			list = append(list, cut{start + shift, stop + shift, instead})
			start, instead = stop, ""
		}
	}
	return list
}

// place is what tells the texts of a stream apart: a name, and the index of the
// choice, block or call that it belongs to.
type place struct{ name, index string }

// textsOf gathers the JSON strings of a body by their places. It needs no whole
// document, and finds its way again at each line.
func textsOf(s string) map[place]*text {
	texts := map[place]*text{}
	var at place
	for i := 0; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		start := i + 1
		end := lineStringEnd(s, start)
		i = end
		if end == len(s) || s[end] == '\n' {
			continue // not a string
		}
		if !strings.HasPrefix(s[end+1:], ":") && !strings.HasPrefix(s[end+1:], " :") {
			if end > start {
				texts[at] = texts[at].with(s[start:end], start)
			}
			continue
		}
		at.name = s[start:end]
		if strings.HasSuffix(at.name, "index") {
			number := strings.TrimLeft(s[end+1:min(len(s), end+20)], " :")
			at.index = number[:run(number, 0, &word)]
		}
	}
	return texts
}

// lineStringEnd is where a string ends: at its quote, or with its line.
func lineStringEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"', '\n':
			return i
		}
	}
	return len(s)
}

func (t *text) with(s string, body int) *text {
	if t == nil {
		t = &text{}
	}
	t.pieces = append(t.pieces, piece{t.joined.Len(), body})
	t.joined.WriteString(s)
	return t
}
