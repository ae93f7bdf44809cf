package corpus

// Prompt writes a whole prompt of n tokens as Prompt.Count counts them, within
// 2 % or 4 tokens. tools is the number of tool definitions; for Agent, 0 gives as
// many as suit n. A prompt too small to hold its overhead is as small as can be.
func (a *Author) Prompt(kind Kind, n, tools int) Prompt {
	var defs []Tool
	if tools > 0 || kind == Agent {
		defs = a.tools(tools, n)
		for i := range defs {
			n -= defs[i].Count(a.tok)
		}
	}
	var p Prompt
	switch kind {
	case RAG:
		p = a.ragPrompt(n)
	case Agent:
		p = a.agentPrompt(n, defs)
	case Code:
		p = a.codePrompt(n)
	default:
		p = a.chatPrompt(n)
	}
	p.Tools = defs
	return p
}

// chatPrompt is one message: a matter laid out, and a question about it.
func (a *Author) chatPrompt(n int) Prompt {
	n = max(n-TokensPerPrompt-TokensPerMessage, 1)
	opening, ending := a.opening(), a.question()
	switch asked := a.tok.Count(opening) + a.tok.Count(ending); {
	case asked+12 <= n:
		ending = "\n\n" + ending
	default:
		ending = ""
	}
	return Prompt{Messages: []Message{{Role: User, Text: a.compose(opening, a.prose(), n, ending)}}}
}

// codePrompt is a source file, and what is to be done with it.
func (a *Author) codePrompt(n int) Prompt {
	n = max(n-TokensPerPrompt-TokensPerMessage, 1)
	opening := a.opening() + a.say("here is the file.\n\n", "文件内容如下。\n\n")
	ending := a.say("\n\nFind the fault in ", "\n\n请找出以下函数中的错误：") + string(appendIdentifier(nil, a.rng)) +
		a.say(", explain it, and write the corrected function with a test.", "，说明原因，并写出修正后的函数和测试。")
	if a.tok.Count(opening)+a.tok.Count(ending)+12 > n {
		ending = ""
	}
	return Prompt{Messages: []Message{{Role: User, Text: a.compose(opening, a.source(), n, ending)}}}
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

// History writes a conversation of the kind as it might stand after a number of
// turns: question and answer in turns, the last question open; n tokens in all,
// as Prompt counts them.
func (a *Author) History(kind Kind, n, tools, turns int) Prompt {
	if turns < 2 {
		return a.Prompt(kind, n, tools)
	}
	first := a.Prompt(kind, max(n/turns, 1), tools)
	left := n - first.Count(a.tok)
	for t := 1; t < turns; t++ {
		share := left / (turns - t)
		answer := max(share/3, 1)
		ask := max(share-answer-2*TokensPerMessage, 1)
		first.Messages = append(first.Messages,
			Message{Role: Assistant, Text: a.compose("", a.prose(), answer, "")},
			Message{Role: User, Text: a.FollowUp(kind, ask)})
		left -= answer + ask + 2*TokensPerMessage
	}
	return first
}
