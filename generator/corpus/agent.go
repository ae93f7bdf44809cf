package corpus

import (
	"strconv"
	"strings"
)

const agentRules = `You are an engineering agent that works in a repository with the tools given.

Rules:
- Read before you write: look at a file and at its callers before you change it.
- Make the smallest change that solves the task, in the style of the code around it.
- Run the tests after every change, and read the whole output when they fail.
- Never invent the result of a tool. When a tool fails, say so and try another way.
- Ask only when the task cannot be understood; otherwise decide, and say what you decided.
- End with a short summary: what was wrong, what you changed, how it was proved.
`

const agentRulesZh = `你是一名工程代理，使用所提供的工具在代码仓库中工作。

规则：
- 先读后写：修改文件之前，先查看该文件及其调用者。
- 只做解决任务所需的最小改动，并保持周围代码的风格。
- 每次修改后运行测试；测试失败时阅读完整输出。
- 不要编造工具的结果。工具失败时如实说明，并换一种方法。
- 只有任务无法理解时才提问，否则自行决定并说明理由。
- 最后给出简短总结：问题是什么，改了什么，如何验证。
`

// agentPrompt adds the history of an agent at work: rules, unless the prompt has
// its system prompt, a task, and calls with their results, the last result open
// for the model to go on from.
func (a *Author) agentPrompt(p *Prompt, n int) int {
	left := n
	add := func(m Message) {
		p.Messages = append(p.Messages, m)
		left -= m.Count(a.tok)
	}
	opening := ""
	if spent := a.system(p, agentRules, agentRulesZh, n/2); spent > 0 {
		left -= spent
	} else {
		opening = a.opening()
	}
	if left < 120 || len(p.Tools) == 0 {
		return n - left + a.user(p, opening, a.prose(), left, "")
	}
	add(Message{Role: User, Text: a.compose(opening, a.prose(), min(left/8, 160), "")})
	for {
		call := a.ToolCall(p.Tools)
		thought := Message{Role: Assistant, Calls: []Call{call}}
		if a.rng.IntN(3) > 0 {
			thought.Text = string(a.sentence(nil))
		}
		add(thought)
		size := 60 + skewed(a.rng, 1400)
		// What is left must hold another call with a result worth reading, or
		// goes into this one, which is the last even where it comes out a token short.
		rest := left - TokensPerMessage
		last := rest < size+200
		if last {
			size = max(rest, 1)
		}
		add(Message{Role: Result, CallID: call.ID, Tool: call.Name, Text: a.ToolResult(call, size)})
		if last {
			return n - left
		}
	}
}

// ToolResult writes what a tool would answer to a call, in n tokens: a file for
// what reads, a log for what runs, JSON for what asks.
func (a *Author) ToolResult(c Call, n int) string {
	var next voice
	switch name := c.Name; {
	case strings.Contains(name, "file"), strings.Contains(name, "patch"), strings.Contains(name, "search_text"):
		next = a.source()
	case strings.HasPrefix(name, "run_"), strings.Contains(name, "log"), strings.Contains(name, "directory"):
		next = a.log
	case strings.Contains(name, "query"), strings.Contains(name, "metric"), strings.Contains(name, "request"), strings.Contains(name, "customer"), strings.Contains(name, "ticket"):
		next = a.record
	default:
		next = a.findings()
	}
	return a.compose("", next, max(n, 1), "")
}

// findings are results of different tools, one after another.
func (a *Author) findings() voice {
	kinds := []voice{a.source(), a.log, a.record, a.prose()}
	now, left := a.rng.IntN(len(kinds)), 4
	return func(dst []byte) []byte {
		if left--; left == 0 {
			now, left = a.rng.IntN(len(kinds)), 3+a.rng.IntN(8)
			dst = append(dst, '\n')
		}
		return kinds[now](dst)
	}
}

var logMessages = parseTemplates(`
{i} accepted {m} requests from {W}, {k} in flight
{i}: retry {k} of 30 after {m} ms: connection reset by peer
{i} finished in {m} ms with {k} warnings
cache miss for {i}, loaded {m} rows
{i}: limit reached, {x} of the quota used
started {i} on node {W}, version {k}.{k}.{k}
{i} timed out waiting for {i}; giving it {m} ms more
checkpoint of {i} written, {m} KB
--- PASS: {i} ({m} ms)
--- FAIL: {i}: got {m}, want {m}
`)

// log writes one line of a log.
func (a *Author) log(dst []byte) []byte {
	dst = a.instant(dst)
	dst = append(dst, ' ')
	dst = append(dst, pick(a.rng, []string{"INFO ", "INFO ", "INFO ", "WARN ", "DEBUG", "ERROR"})...)
	dst = append(dst, ' ')
	dst = englishWords.write(dst, a.rng, pick(a.rng, logMessages))
	return append(dst, '\n')
}

// record writes one line of JSON.
func (a *Author) record(dst []byte) []byte {
	dst = append(dst, `{"id":"`...)
	dst = appendReference(dst, a.rng)
	dst = append(dst, `","`...)
	dst = appendIdentifier(dst, a.rng)
	dst = append(dst, `":`...)
	dst = strconv.AppendInt(dst, a.rng.Int64N(100_000), 10)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, pick(a.rng, englishWords['a'])...)
	dst = append(dst, `","owner":"`...)
	dst = appendName(dst, a.rng)
	dst = append(dst, `","updated_at":"`...)
	dst = a.instant(dst)
	dst = append(dst, `","note":"`...)
	dst = append(dst, pick(a.rng, englishWords['c'])...)
	dst = append(dst, ", the "...)
	dst = append(dst, pick(a.rng, englishWords['n'])...)
	dst = append(dst, ' ')
	dst = append(dst, pick(a.rng, englishWords['p'])...)
	dst = append(dst, " early\",\"tags\":[\""...)
	dst = append(dst, pick(a.rng, idParts)...)
	dst = append(dst, `","`...)
	dst = append(dst, pick(a.rng, idParts)...)
	return append(dst, "\"]}\n"...)
}
