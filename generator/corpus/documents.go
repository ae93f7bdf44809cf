package corpus

import "strconv"

// documents is a pile of documents, each with a title, a source and a date.
func (a *Author) documents() voice {
	number, left, paragraph := 0, 0, 0
	return func(dst []byte) []byte {
		if left == 0 {
			number++
			left, paragraph = 6+a.rng.IntN(18), 3+a.rng.IntN(4)
			return a.title(dst, number)
		}
		dst = a.sentence(dst)
		left--
		if paragraph--; paragraph > 0 && left > 0 {
			return a.gap(dst)
		}
		paragraph = 2 + a.rng.IntN(5)
		return append(dst, "\n\n"...)
	}
}

func (a *Author) title(dst []byte, number int) []byte {
	w := englishWords
	dst = append(dst, a.say("### Document ", "### 文档")...)
	dst = strconv.AppendInt(dst, int64(number), 10)
	if a.lang == Chinese {
		w = chineseWords
		dst = append(dst, "："...)
		dst = w.fill(dst, a.rng, 'w')
		dst = append(dst, "的"...)
		dst = w.fill(dst, a.rng, 'a')
		dst = w.fill(dst, a.rng, 'n')
		dst = append(dst, "与"...)
		dst = w.fill(dst, a.rng, 'n')
	} else {
		dst = append(dst, ": The "...)
		dst = w.fill(dst, a.rng, 'a')
		dst = append(dst, ' ')
		dst = w.fill(dst, a.rng, 'n')
		dst = append(dst, " of "...)
		dst = appendName(dst, a.rng)
	}
	dst = append(dst, a.say("\nSource: ", "\n来源：")...)
	dst = append(dst, "kb/"...)
	dst = appendIdentifier(dst, a.rng)
	dst = append(dst, '/')
	dst = appendReference(dst, a.rng)
	dst = append(dst, ".md, "...)
	dst = w.fill(dst, a.rng, 'y')
	return append(dst, "\n\n"...)
}

const (
	ragInstruction   = "You answer questions from the documents given, and from nothing else. Name the documents that an answer rests on by their numbers. When they do not hold the answer, say so."
	ragInstructionZh = "请仅依据给出的文档回答问题，不要使用其他来源。回答时注明所依据的文档编号；如果文档中没有答案，请直接说明。"
)

// ragPrompt adds an instruction, unless the prompt has its system prompt, and
// documents with a question about them.
func (a *Author) ragPrompt(p *Prompt, n int) int {
	spent := a.system(p, ragInstruction, ragInstructionZh, n/3)
	opening := ""
	if spent == 0 {
		opening = a.opening()
	}
	ending := border + a.say("…\n\nQuestion: ", "…\n\n问题：") + a.question()
	return spent + a.user(p, opening, a.documents(), n-spent, ending)
}

// system gives a prompt its system prompt and tells what it costs: 0 when there
// is one already, or when it would cost more than there is.
func (a *Author) system(p *Prompt, english, chinese string, most int) int {
	if p.System != "" {
		return 0
	}
	text := a.opening() + a.say(english, chinese)
	cost := TokensPerMessage + a.tok.Count(text)
	if cost > most {
		return 0
	}
	p.System = text
	return cost
}
