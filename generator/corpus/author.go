package corpus

import "math/rand/v2"

// Author writes texts. One Author is used by one goroutine; equal seeds write
// equal texts, different seeds differ from the first words on.
type Author struct {
	tok  Counter
	lang Language
	rng  *rand.Rand
	buf  []byte // what is being written
	ids  int    // of the calls made up so far
}

// NewAuthor gives an author who counts with c. The two words of the seed may be
// a run's and a session's.
func NewAuthor(c Counter, language Language, run, session uint64) *Author {
	return &Author{tok: c, lang: language, rng: rand.New(rand.NewPCG(run, session))}
}

// voice writes the next stretch of some text: a sentence, a paragraph's end, a
// function. It writes at least one byte, and ends between words.
type voice func(dst []byte) []byte

// Text writes prose (for Code: source text; for RAG: documents; for Agent: what
// tools answer) of exactly n tokens, n ≥ 1, counted alone.
func (a *Author) Text(kind Kind, n int) string {
	return a.compose("", a.voice(kind), n, "")
}

func (a *Author) voice(kind Kind) voice {
	switch kind {
	case RAG:
		return a.documents()
	case Agent:
		return a.findings()
	case Code:
		return a.source()
	}
	return a.prose()
}

// compose writes opening, as much of the voice as is needed, and ending, of n
// tokens together. Openings and endings that are longer are kept whole. Endings
// begin as the texts of Block do, so that they cost what they cost alone.
func (a *Author) compose(opening string, next voice, n int, ending string) string {
	room := n
	if ending != "" {
		room -= a.tok.Count(ending)
	}
	a.buf = append(a.buf[:0], opening...)
	// Texts have some 3 to 5 bytes a token: rather once too much than twice too little.
	for more := 5*room + 96; ; more = len(a.buf) + len(a.buf)/4 + 96 {
		for len(a.buf) < more {
			a.buf = next(a.buf)
		}
		text, ok := a.tok.exactly(string(a.buf), room)
		if !ok {
			continue
		}
		if len(text) < len(opening) {
			text = opening
		}
		return text + ending
	}
}

// opening begins a prompt in words that no other begins with, so that no cache
// of prefixes can know it.
func (a *Author) opening() string {
	dst := appendReference(nil, a.rng)
	switch a.lang {
	case Chinese:
		dst = append(dst, "（"...)
		dst = append(dst, pick(a.rng, chineseWords['w'])...)
		dst = append(dst, "）："...)
	default:
		dst = append(dst, ' ')
		dst = appendName(dst, a.rng)
		dst = append(dst, ": "...)
	}
	return string(dst)
}

// prose is paragraphs of sentences.
func (a *Author) prose() voice {
	left := 3 + a.rng.IntN(5)
	return func(dst []byte) []byte {
		dst = a.sentence(dst)
		if left--; left > 0 {
			return a.gap(dst)
		}
		left = 2 + a.rng.IntN(7)
		return append(dst, "\n\n"...)
	}
}

// sentence writes one sentence in the author's language.
func (a *Author) sentence(dst []byte) []byte {
	if a.chinese() {
		return chineseWords.write(dst, a.rng, pick(a.rng, chineseSentences))
	}
	return englishWords.write(dst, a.rng, pick(a.rng, englishSentences))
}

// question writes one question in the author's language.
func (a *Author) question() string {
	if a.chinese() {
		return string(chineseWords.write(nil, a.rng, pick(a.rng, chineseQuestions)))
	}
	return string(englishWords.write(nil, a.rng, pick(a.rng, englishQuestions)))
}

// chinese says whether the next sentence is Chinese: in a mixed text it is a
// matter of chance.
func (a *Author) chinese() bool {
	return a.lang == Chinese || a.lang == Mixed && a.rng.IntN(2) == 0
}

// gap is what stands between two sentences: nothing in Chinese.
func (a *Author) gap(dst []byte) []byte {
	if a.lang == Chinese {
		return dst
	}
	return append(dst, ' ')
}

// say chooses a fixed text in the author's language.
func (a *Author) say(english, chinese string) string {
	if a.lang == Chinese {
		return chinese
	}
	return english
}
