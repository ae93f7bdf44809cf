package corpus

import "bytes"

// Prompt writes a whole prompt of exactly n tokens as Prompt.Count counts them.
// tools is the number of tool definitions; for Agent, 0 gives as many as suit n.
// A prompt too small for its overhead (with the tools asked for, or below some
// 10 tokens) is as small as can be.
func (a *Author) Prompt(kind Kind, n, tools int) Prompt {
	return a.History(kind, n, tools, 1)
}

// History writes a conversation of the kind as it might stand after a number of
// turns: question and answer in turns, the last question open; n tokens in all,
// as Prompt counts them.
func (a *Author) History(kind Kind, n, tools, turns int) Prompt {
	return a.Continue(Prompt{Tools: a.tools(kind, n, tools)}, kind, n, turns)
}

// Shared writes what the prompts of a pool's group have in common, for prefix
// caches: tool definitions as in Prompt and a system prompt, exactly n tokens
// together, n ≥ 1. An author seeded by the run and the group writes every
// session of the group the same. Tools that need more than n are all there is.
func (a *Author) Shared(kind Kind, n, tools int) Prompt {
	p := Prompt{Tools: a.tools(kind, n, tools)}
	for i := range p.Tools {
		n -= p.Tools[i].Count(a.tok)
	}
	if n < 1 {
		return p
	}
	opening, next := a.opening(), a.prose()
	switch kind {
	case RAG:
		opening, next = opening+a.say(ragInstruction, ragInstructionZh)+"\n\n", a.documents()
	case Agent:
		opening += a.say(agentRules, agentRulesZh) + "\n"
	case Code:
		next = a.source()
	}
	if a.tok.Count(opening) > n {
		opening = ""
	}
	p.System = a.compose(opening, next, n, "")
	return p
}

// Continue writes a session's own part behind what it shares with others: as
// History does, n tokens with the shared part. At least one message of a token
// comes behind a shared part that leaves no room.
func (a *Author) Continue(shared Prompt, kind Kind, n, turns int) Prompt {
	p := shared
	left := n - p.Count(a.tok)
	turns = max(turns, 1)
	first := left / turns
	switch kind {
	case RAG:
		first = a.ragPrompt(&p, first)
	case Agent:
		first = a.agentPrompt(&p, first)
	case Code:
		first = a.codePrompt(&p, first)
	default:
		first = a.chatPrompt(&p, first)
	}
	left -= first
	for t := 1; t < turns; t++ {
		share := left / (turns - t)
		answer := max(share/3, 1)
		ask := max(share-answer-2*TokensPerMessage, 1)
		p.Messages = append(p.Messages,
			Message{Role: Assistant, Text: a.compose("", a.prose(), answer, "")},
			Message{Role: User, Text: a.FollowUp(kind, ask)})
		left -= answer + ask + 2*TokensPerMessage
	}
	return p
}

// FollowUp writes the next words of a user in a conversation: a question, and
// what it is about in the manner of the kind. It has exactly n tokens, n ≥ 1.
func (a *Author) FollowUp(kind Kind, n int) string {
	opening := a.question() + "\n\n"
	if a.tok.Count(opening) >= n {
		opening = ""
	}
	return a.compose(opening, a.voice(kind), n, "")
}

// Block writes text of exactly n tokens, n ≥ 1, which joins with other blocks,
// and with any text before it, without a token's merging across the border:
// joined blocks have the sum of their tokens. An author seeded by the run and a
// block's id writes the same block wherever the id stands.
func (a *Author) Block(kind Kind, n int) string {
	opening := border
	if n >= 64 {
		opening += a.opening()
	}
	return a.compose(opening, a.voice(kind), n, "")
}

// border begins a text that joins: a single space and no space behind it is
// where every pattern ends a piece, whatever stands before.
const border = " "

// user adds the only message of a prompt that has no calls, of exactly n tokens
// (5 at least): what opens it, as much of the voice as fits, and its request,
// which is left out where it would be most of it. It gives the message's tokens.
func (a *Author) user(p *Prompt, opening string, next voice, n int, ending string) int {
	n = max(n-TokensPerMessage, 1)
	opened, asked := a.tok.Count(opening), a.tok.Count(ending)
	if opened+asked+12 > n {
		ending = ""
	}
	if opened > n {
		opening = ""
	}
	p.Messages = append(p.Messages, Message{Role: User, Text: a.compose(opening, next, n, ending)})
	return n + TokensPerMessage
}

// chatPrompt adds one message: a matter laid out, and a question about it.
func (a *Author) chatPrompt(p *Prompt, n int) int {
	return a.user(p, a.opening(), a.prose(), n, border+"…\n\n"+a.question())
}

// codePrompt adds a source file, and what is to be done with it.
func (a *Author) codePrompt(p *Prompt, n int) int {
	opening := a.opening() + a.say("here is the file.\n\n", "文件内容如下。\n\n")
	source := a.source()
	begun := source(nil)
	// What stands in the prompt for sure: a token of source has more than two
	// bytes, and the words around it take some tokens.
	sure := max(min(2*(n-60), 4000), 0)
	for len(begun) < sure {
		begun = source(begun)
	}
	next := func(dst []byte) []byte {
		if begun == nil {
			return source(dst)
		}
		dst, begun = append(dst, begun...), nil
		return dst
	}
	return a.user(p, opening, next, n, border+"…\n\n"+a.task(begun[:sure]))
}

// task asks for work on a file, of which it sees the beginning: on one of its
// functions, if one is there.
func (a *Author) task(file []byte) string {
	names := declared(file)
	if len(names) == 0 {
		return a.say("Find the fault in this file, explain it, and write the corrected part.", "请找出这个文件中的错误，说明原因，并写出修正后的部分。")
	}
	return a.say("Find the fault in ", "请找出函数 ") + pick(a.rng, names) +
		a.say(", explain it, and write the corrected function with a test.", " 中的错误，说明原因，并写出修正后的函数和测试。")
}

// declared are the functions that Go or Python declares at the left edge.
func declared(text []byte) (names []string) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		rest, isGo := bytes.CutPrefix(line, []byte("func "))
		rest, isPython := bytes.CutPrefix(rest, []byte("def "))
		name, _, whole := bytes.Cut(rest, []byte("("))
		if (isGo || isPython) && whole && len(name) > 0 && !bytes.ContainsAny(name, "[ ") {
			names = append(names, string(name))
		}
	}
	return names
}
