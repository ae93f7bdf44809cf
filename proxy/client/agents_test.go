package client

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

const (
	ms = time.Millisecond
	s1 = time.Second
)

func TestClaudeCode(t *testing.T) {
	session := "x-claude-code-session-id: c1"
	agent := []string{session, "x-claude-code-agent-id: a1", "x-claude-code-parent-agent-id: p1"}
	const (
		tools = "tool Bash\ntool Read\nsystem LONG\n"
		first = tools + "user fix it\n+ <reminder>\n"
	)
	main := func(turn int, think time.Duration, who string) Place {
		return Place{Session: "c1", From: "header", Turn: turn, Purpose: Main, Think: think, ThinkFor: who}
	}
	side := func(turn int, purpose string) Place {
		return Place{Session: "c1", From: "header", Turn: turn, Purpose: purpose}
	}
	steps := []step{
		{sentence: "greeting of the host", op: wire.OpOther, header: []string{session}, want: side(0, Other)},
		{sentence: "models", op: wire.OpModels, header: []string{session}, want: side(0, Models)},
		{sentence: "quota probe", at: 1 * s1, header: []string{session}, head: wire.Head{MaxTokens: wire.N(1)}, says: "user quota", want: side(0, Probe)},
		{sentence: "title", at: 2 * s1, header: []string{session}, says: "system name it\nuser fix it", want: side(1, Title)},
		{sentence: "first call, beside the title", at: 2 * s1, takes: 3 * s1, header: []string{session}, says: first, want: main(1, 0, "")},
		{sentence: "result of a tool with a reminder", at: 8 * s1, header: []string{session},
			says: first + "think hm\ncall ls\nresult a.go\n+ <reminder>", want: main(1, 3*s1, "tools")},
		{sentence: "reasoning dropped, next tool", at: 9500 * ms, header: []string{session},
			says: first + "call ls\nresult a.go\n+ <reminder>\ncall cat\nresult package a", want: main(1, 500*ms, "tools")},
		{sentence: "a sub agent beside it", at: 9600 * ms, takes: s1, header: agent, says: tools + "user look around",
			want: Place{Session: "c1", From: "header", Turn: 1, Purpose: Subagent, Agent: "a1", Parent: "p1"}},
		{sentence: "the sub agent's tool", at: 10650 * ms, takes: s1, header: agent, says: tools + "user look around\ncall ls\nresult b.go",
			want: Place{Session: "c1", From: "header", Turn: 1, Purpose: Subagent, Agent: "a1", Parent: "p1", Think: 50 * ms, ThinkFor: "tools"}},
		{sentence: "counting tokens", at: 11 * s1, op: wire.OpCountTokens, header: []string{session}, says: first, want: side(1, CountTokens)},
		{sentence: "the user again; what was said before spelt as the shape does not see", at: 20 * s1, takes: s1, fails: true, header: []string{session},
			says: first + "call ls\nresult a.go\n+ <reminder>\ncall cat\nresult package a\nassistant done\nuser and test it\n+ <reminder>",
			want: main(2, 9500*ms, "user")},
		{sentence: "the same again after an error", at: 21500 * ms, header: []string{session},
			says: first + "call ls\nresult a.go\n+ <reminder>\ncall cat\nresult package a\nassistant done\nuser and test it\n+ <reminder>",
			want: Place{Session: "c1", From: "header", Turn: 2, Purpose: Main, Retry: true}},
		{sentence: "counting the tokens of the next question", at: 22600 * ms, takes: 100 * ms, op: wire.OpCountTokens, header: []string{session},
			says: first + "call ls\nresult a.go\n+ <reminder>\ncall cat\nresult package a\nassistant done\nuser and test it\n+ <reminder>\ncall t\nresult ok\nuser stop", want: side(2, CountTokens)},
		{sentence: "which stands behind a result", at: 22750 * ms, takes: 100 * ms, header: []string{session},
			says: first + "call ls\nresult a.go\n+ <reminder>\ncall cat\nresult package a\nassistant done\nuser and test it\n+ <reminder>\ncall t\nresult ok\nuser stop", want: main(3, 250*ms, "user")},
		{sentence: "the page that a tool has fetched, without tools", at: 23 * s1, header: []string{session}, says: "user LONG", want: side(3, Other)},
		{sentence: "a look back, without tools", at: 23 * s1, header: []string{session}, says: "user fix it\nassistant done\nuser what was done?", want: side(3, Summary)},
	}
	for i := range steps {
		steps[i].client = "claude-code"
	}
	check(t, steps)
}

func TestClaudeCodeWithHints(t *testing.T) {
	said := func(class, prompt string) []string {
		return []string{"x-claude-code-session-id: c1", "x-claude-code-request-class: " + class, "x-claude-code-prompt-id: " + prompt}
	}
	place := func(turn int, purpose string, think time.Duration, who string) Place {
		return Place{Session: "c1", From: "header", Turn: turn, Purpose: purpose, Think: think, ThinkFor: who}
	}
	const long = "tool Bash\nsystem LONG\nuser a\nassistant b\nuser c\nassistant d\nuser e"
	steps := []step{
		{sentence: "a resumed session begins at its third turn", header: said("main", "p3"), says: long, want: place(3, Main, 0, "")},
		{sentence: "the user broke a tool off: the prompt's id tells what the messages do not", at: 3 * s1, header: said("main", "p4"),
			says: long + "\ncall ls\nresult broken off\n+ do it otherwise", want: place(4, Main, 2*s1, "user")},
		{sentence: "compaction", at: 5 * s1, header: said("compaction", "p4"),
			says: long + "\ncall ls\nresult broken off\n+ do it otherwise\nassistant f\nuser summarise", want: place(4, Compaction, 0, "")},
		{sentence: "the shorter history stays in the turn", at: 7 * s1, header: said("main", "p4"), says: "tool Bash\nuser all that was", want: place(4, Main, 3*s1, "user")},
		{sentence: "and the next turn is the next", at: 9 * s1, header: said("main", "p5"), says: "tool Bash\nuser all that was\nassistant g\nuser h", want: place(5, Main, s1, "user")},
		{sentence: "without tools, and yet the main call", at: 11 * s1, header: said("main", "p6"), says: "user x", want: place(6, Main, s1, "user")},
		{sentence: "a sub agent by its class alone", at: 13 * s1, header: said("subagent", "p6"), says: "user y", want: place(6, Subagent, s1, "user")},
	}
	for i := range steps {
		steps[i].client = "claude-code"
	}
	check(t, steps)
}

func TestAgentsOutOfTheOrdinary(t *testing.T) {
	check(t, []step{
		{sentence: "a gateway took the headers", client: "claude-code", head: wire.Head{User: `{"device_id":"d","session_id":"c2"}`}, says: "tool Bash\nuser a",
			want: Place{Session: "c2", From: "body", Turn: 1, Purpose: Main}},
		{sentence: "a run without tools is no title", client: "claude-code", header: []string{"x-claude-code-session-id: c3"}, says: "system LONG\nuser a",
			want: Place{Session: "c3", From: "header", Turn: 1, Purpose: Main}},
		{sentence: "nor is one with a history a summary", client: "claude-code", at: 2 * s1, header: []string{"x-claude-code-session-id: c3"}, says: "system LONG\nuser a\nassistant b\nuser c",
			want: Place{Session: "c3", From: "header", Turn: 2, Purpose: Main, Think: s1, ThinkFor: "user"}},
		{sentence: "an opencode agent without tools neither", client: "opencode", header: []string{"x-session-id: o1"}, says: "system LONG\nuser a",
			want: Place{Session: "o1", From: "header", Turn: 1, Purpose: Main}},
	})
}

func codexHeader(session, thread, turn, kind string) []string {
	return []string{"session-id: " + session, "thread-id: " + thread, "x-codex-turn-metadata: " +
		`{"turn_id":"` + turn + `","request_kind":"` + kind + `","workspaces":{"/w":{"has_changes":true}}}`}
}

func TestCodexOverHTTP(t *testing.T) {
	const context = "tool shell\nsystem LONG\nuser <instructions>\nuser <environment>\n"
	place := func(turn int, purpose string, think time.Duration, who string) Place {
		return Place{Session: "s1", From: "header", Turn: turn, Purpose: purpose, Think: think, ThinkFor: who}
	}
	agent := append(codexHeader("s1", "th2", "x1", "turn"), "x-codex-parent-thread-id: s1", "x-openai-subagent: collab_spawn")
	steps := []step{
		{sentence: "the first turn, though three messages are the user's", header: codexHeader("s1", "s1", "t1", "turn"), says: context + "user fix it",
			want: place(1, Main, 0, "")},
		{sentence: "its tool", at: 1200 * ms, header: codexHeader("s1", "s1", "t1", "turn"), says: context + "user fix it\nthink hm\ncall ls\nresult a.go",
			want: place(1, Main, 200*ms, "tools")},
		{sentence: "a sub agent has a thread of its own", at: 2 * s1, header: agent, says: context + "user look around",
			want: Place{Session: "s1", From: "header", Turn: 1, Purpose: Subagent, Agent: "th2", Parent: "s1"}},
		{sentence: "the second turn", at: 10 * s1, header: codexHeader("s1", "s1", "t2", "turn"),
			says: context + "user fix it\ncall ls\nresult a.go\nassistant done\nuser <environment2>\nuser test it", want: place(2, Main, 7800*ms, "user")},
		{sentence: "the sub agent works for it", at: 11 * s1, header: agent, says: context + "user look around\ncall ls\nresult b.go",
			want: Place{Session: "s1", From: "header", Turn: 2, Purpose: Subagent, Agent: "th2", Parent: "s1", Think: 8 * s1, ThinkFor: "tools"}},
		{sentence: "the user steers a turn that is under way", at: 12 * s1, header: codexHeader("s1", "s1", "t2", "turn"),
			says: context + "user fix it\ncall ls\nresult a.go\nassistant done\nuser <environment2>\nuser test it\ncall t\nresult ok\nuser faster", want: place(2, Main, s1, "tools")},
		{sentence: "compaction", at: 14 * s1, header: codexHeader("s1", "s1", "t3", "compaction"), says: context + "user fix it\nassistant done\nuser summarise",
			want: place(2, Compaction, 0, "")},
		{sentence: "compaction at a path of its own", at: 14 * s1, op: wire.OpOther, header: codexHeader("s1", "s1", "t3", "compaction"), want: place(2, Compaction, 0, "")},
		{sentence: "after it", at: 16 * s1, header: codexHeader("s1", "s1", "t4", "turn"), says: context + "user summary\nuser go on", want: place(3, Main, 3*s1, "user")},
		{sentence: "memories", at: 17 * s1, header: append(codexHeader("s1", "s1", "", "memory"), "x-openai-subagent: memory_consolidation"), says: "user remember",
			want: place(3, Summary, 0, "")},
		{sentence: "an agent that compacts", at: 17 * s1, header: append(codexHeader("s1", "th2", "x9", ""), "x-openai-subagent: compact"), says: "user shorten",
			want: Place{Session: "s1", From: "header", Turn: 3, Purpose: Compaction, Agent: "th2"}},
		{sentence: "models", at: 18 * s1, op: wire.OpModels, want: Place{Purpose: Models}},
		{sentence: "an old version names only the session", at: 20 * s1, header: []string{"session_id: s0"}, says: context + "user fix it\nassistant done\nuser test it",
			want: Place{Session: "s0", From: "header", Turn: 2, Purpose: Main}},
	}
	for i := range steps {
		steps[i].client = "codex"
	}
	check(t, steps)
}

func TestCodexOverWebSocket(t *testing.T) {
	upgrade := http.Header{}
	for _, line := range codexHeader("s1", "s1", "t0", "prewarm") {
		name, value, _ := strings.Cut(line, ": ")
		upgrade.Add(name, value)
	}
	frame := func(turn, kind, more string) []byte {
		return []byte(`{"type":"response.create",` + more + `"client_metadata":{"session_id":"s1","thread_id":"s1","x-codex-turn-metadata":"{\"turn_id\":\"` + turn + `\",\"request_kind\":\"` + kind + `\"}"}}`)
	}
	header := func(frame []byte) (lines []string) {
		h, _ := FrameHeader(upgrade, frame)
		for name := range h {
			lines = append(lines, name+": "+h.Get(name))
		}
		return lines
	}
	place := func(turn int, purpose string, think time.Duration, who string) Place {
		return Place{Session: "s1", From: "header", Turn: turn, Purpose: purpose, Think: think, ThinkFor: who}
	}
	const context = "tool shell\nsystem LONG\nuser <instructions>\nuser <environment>\n"
	steps := []step{
		{sentence: "a prewarm is no turn", header: header(frame("", "turn", "")), prewarm: true, says: context, response: "r0", want: place(0, Prewarm, 0, "")},
		{sentence: "a prewarm by its kind", header: header(frame("", "prewarm", "")), says: context, want: place(0, Prewarm, 0, "")},
		{sentence: "the first turn sends only what is new", at: 2 * s1, header: header(frame("t1", "turn", "")), head: wire.Head{PreviousResponse: "r0"}, says: "tool shell\nuser fix it", response: "r1",
			want: place(1, Main, 0, "")},
		{sentence: "the result of its tool", at: 4 * s1, header: header(frame("t1", "turn", "")), head: wire.Head{PreviousResponse: "r1"}, says: "tool shell\nresult a.go", response: "r2",
			want: place(1, Main, s1, "tools")},
		{sentence: "the second turn, cut off", at: 8 * s1, fails: true, header: header(frame("t2", "turn", "")), head: wire.Head{PreviousResponse: "r2"}, says: "tool shell\nuser test it",
			want: place(2, Main, 3*s1, "user")},
		{sentence: "tried again on a new socket, with all of the history", at: 9200 * ms, fails: true, header: header(frame("t2", "turn", "")),
			says: context + "user fix it\ncall ls\nresult a.go\nassistant done\nuser test it",
			want: Place{Session: "s1", From: "header", Turn: 2, Purpose: Main, Retry: true}},
		{sentence: "and by HTTP at last", at: 10500 * ms, header: header(frame("t2", "turn", "")),
			says: context + "user fix it\ncall ls\nresult a.go\nassistant done\nuser test it",
			want: Place{Session: "s1", From: "header", Turn: 2, Purpose: Main, Retry: true}},
	}
	for i := range steps {
		steps[i].client = "codex"
	}
	check(t, steps)
}

func TestCodexResumedOverWebSocket(t *testing.T) {
	header := []string{"session-id: s1", "thread-id: s1"}
	steps := []step{
		{sentence: "the prewarm holds two turns", header: header, prewarm: true, says: "tool shell\nuser a\nassistant b\nuser c\nassistant d", response: "r0",
			want: Place{Session: "s1", From: "header", Turn: 2, Purpose: Prewarm}},
		{sentence: "so this is the third", at: 2 * s1, header: header, head: wire.Head{PreviousResponse: "r0"}, says: "tool shell\nuser e", want: Place{Session: "s1", From: "header", Turn: 3, Purpose: Main}},
		{sentence: "nobody saw how another session began", at: 2 * s1, header: []string{"session-id: s2"}, head: wire.Head{PreviousResponse: "r77"}, says: "tool shell\nuser e", response: "r78",
			want: Place{Session: "s2", From: "header", Purpose: Main}},
		{sentence: "nor can its next turn be counted", at: 4 * s1, header: []string{"session-id: s2"}, head: wire.Head{PreviousResponse: "r78"}, says: "tool shell\nuser f",
			want: Place{Session: "s2", From: "header", Purpose: Main, Think: s1, ThinkFor: "user"}},
		{sentence: "until it sends all of it", at: 6 * s1, header: []string{"session-id: s2"}, says: "tool shell\nuser a\nassistant b\nuser e\nassistant x\nuser f\nassistant y\nuser g",
			want: Place{Session: "s2", From: "header", Turn: 4, Purpose: Main, Think: s1, ThinkFor: "user"}},
	}
	for i := range steps {
		steps[i].client = "codex"
	}
	check(t, steps)
}

func TestFrameHeaderTakesATurnFromItsFrame(t *testing.T) {
	upgrade := http.Header{"User-Agent": {"codex_exec/0.171.0"}, "Session-Id": {"s1"}, "X-Codex-Turn-Metadata": {`{"turn_id":"old"}`}}
	h, prewarm := FrameHeader(upgrade, []byte(`{"generate":false,"client_metadata":{"thread_id":"th","x-openai-subagent":"review","session_id":7}}`))
	want := http.Header{"User-Agent": {"codex_exec/0.171.0"}, "Session-Id": {"s1"}, "Thread-Id": {"th"}, "X-Openai-Subagent": {"review"}}
	if diff := cmp.Diff(want, h); diff != "" || !prewarm {
		t.Errorf("prewarm %v (-want +got):\n%s", prewarm, diff)
	}
	if upgrade.Get("X-Codex-Turn-Metadata") == "" {
		t.Error("the upgrade's own headers were changed")
	}
	if _, prewarm := FrameHeader(nil, []byte(`{"generate":true}`)); prewarm {
		t.Error("a frame that asks for an answer is taken for a prewarm")
	}
}

func TestOpencode(t *testing.T) {
	session := []string{"x-session-id: ses_1", "x-session-affinity: ses_1"}
	child := []string{"x-session-id: ses_2", "x-session-affinity: ses_2", "x-parent-session-id: ses_1"}
	const tools = "tool bash\nsystem LONG\n"
	steps := []step{
		{sentence: "title first, of a long text", header: session, says: "system name it\nuser LONG", want: Place{Session: "ses_1", From: "header", Turn: 1, Purpose: Title}},
		{sentence: "main", at: 10 * ms, takes: s1, header: session, says: tools + "user LONG", want: Place{Session: "ses_1", From: "header", Turn: 1, Purpose: Main}},
		{sentence: "a sub agent has a session of its own", at: 2 * s1, header: child, says: tools + "user look",
			want: Place{Session: "ses_2", From: "header", Turn: 1, Purpose: Subagent, Parent: "ses_1"}},
		{sentence: "and tools", at: 3500 * ms, header: child, says: tools + "user look\ncall ls\nresult x",
			want: Place{Session: "ses_2", From: "header", Turn: 1, Purpose: Subagent, Parent: "ses_1", Think: 500 * ms, ThinkFor: "tools"}},
		{sentence: "main waits for it", at: 5010 * ms, header: session, says: tools + "user LONG\ncall task\nresult found",
			want: Place{Session: "ses_1", From: "header", Turn: 1, Purpose: Main, Think: 4 * s1, ThinkFor: "tools"}},
		{sentence: "compaction", at: 7 * s1, header: session, says: "system summarise\nuser LONG\nassistant done\nuser summarise",
			want: Place{Session: "ses_1", From: "header", Turn: 1, Purpose: Compaction}},
		{sentence: "the shorter history is no new turn", at: 9010 * ms, header: session, says: tools + "user summary", want: Place{
			Session: "ses_1", From: "header", Turn: 1, Purpose: Main, Think: 3 * s1, ThinkFor: "user"}},
		{sentence: "what follows is", at: 11010 * ms, header: session, says: tools + "user summary\nassistant ok\nuser more", want: Place{
			Session: "ses_1", From: "header", Turn: 2, Purpose: Main, Think: s1, ThinkFor: "user"}},
	}
	for i := range steps {
		steps[i].client = "opencode"
	}
	check(t, steps)
}

func TestGeminiCLI(t *testing.T) {
	json := wire.Head{OutputType: "json"}
	const tools = "tool shell\nsystem LONG\n"
	main := func(session string, turn int, think time.Duration, who string) Place {
		return Place{Session: session, From: "conversation", Turn: turn, Purpose: Main, Think: think, ThinkFor: who}
	}
	side := func(session string, turn int, purpose string) Place {
		return Place{Session: session, From: "conversation", Turn: turn, Purpose: purpose}
	}
	steps := []step{
		{sentence: "routing comes first", head: json, says: "system choose\nuser fix it", want: side("A", 1, Routing)},
		{sentence: "main follows in the same session", at: 1010 * ms, says: tools + "user <context>\nuser fix it", want: main("A", 1, 0, "")},
		{sentence: "its tool", at: 3010 * ms, says: tools + "user <context>\nuser fix it\ncall ls\nresult x", want: main("A", 1, s1, "tools")},
		{sentence: "routing of the second turn holds the last messages", at: 10 * s1, takes: 10 * ms, head: json, says: "system choose\nuser fix it\nassistant done\nuser test it",
			want: side("A", 2, Routing)},
		{sentence: "the second turn", at: 10010 * ms, says: tools + "user <context>\nuser fix it\ncall ls\nresult x\nassistant done\nuser test it",
			want: main("A", 2, 6*s1, "user")},
		{sentence: "a large question for JSON is another kind", at: 12 * s1, head: json, says: "user LONG\nassistant done\nuser go on?", want: Place{Purpose: Other}},
		{sentence: "compression", at: 12 * s1, says: "system shorten\nuser <context>\nuser fix it\ncall ls\nresult x\nassistant done\nuser test it\nassistant ok\nuser shorten",
			want: side("A", 2, Compaction)},
		{sentence: "the shorter history stays in the session", at: 13500 * ms, says: tools + "user snapshot\nassistant ok\nuser and now", want: main("A", 2, 2490*ms, "user")},
		{sentence: "another run's routing begins another session", at: 20 * s1, head: json, says: "system choose\nuser what is it", want: side("B", 1, Routing)},
		{sentence: "routing that failed, again", at: 20 * s1, head: json, caller: "other", fails: true, says: "system choose\nuser what is it", want: side("C", 1, Routing)},
		{sentence: "is one session", at: 22 * s1, head: json, caller: "other", says: "system choose\nuser what is it",
			want: Place{Session: "C", From: "conversation", Turn: 1, Purpose: Routing, Retry: true}},
		{sentence: "what comes long after routing is not what was routed", at: 10 * time.Minute, caller: "other", says: tools + "user <context>\nuser what is it", want: main("D", 1, 0, "")},
		{sentence: "routing of a conversation that weir has not seen", at: 11 * time.Minute, head: json, says: "system choose\nuser x\nassistant y\nuser z", want: Place{Purpose: Routing}},
	}
	for i := range steps {
		steps[i].client, steps[i].op = "gemini-cli", "generate_content"
		steps[i].head.Stream = steps[i].want.Purpose == Main
	}
	check(t, steps)
}

func TestCline(t *testing.T) {
	const tools = "tool read\nsystem LONG\n"
	steps := []step{
		{sentence: "says no session", says: tools + "user fix it\n+ <environment>", want: Place{Session: "A", From: "conversation", Turn: 1, Purpose: Main}},
		{sentence: "its tool", at: 1500 * ms, says: tools + "user fix it\n+ <environment>\ncall ls\nresult x", want: Place{Session: "A", From: "conversation", Turn: 1, Purpose: Main, Think: 500 * ms, ThinkFor: "tools"}},
		{sentence: "its user", at: 9500 * ms, fails: true, says: tools + "user fix it\n+ <environment>\ncall ls\nresult x\nassistant done\nuser more",
			want: Place{Session: "A", From: "conversation", Turn: 2, Purpose: Main, Think: 7 * s1, ThinkFor: "user"}},
		{sentence: "its retry", at: 12500 * ms, says: tools + "user fix it\n+ <environment>\ncall ls\nresult x\nassistant done\nuser more",
			want: Place{Session: "A", From: "conversation", Turn: 2, Purpose: Main, Retry: true}},
		{sentence: "its next", at: 14 * s1, says: tools + "user fix it\n+ <environment>\ncall ls\nresult x\nassistant done\nuser more\ncall y\nresult z",
			want: Place{Session: "A", From: "conversation", Turn: 2, Purpose: Main, Think: 500 * ms, ThinkFor: "tools"}},
	}
	for i := range steps {
		steps[i].client = "ai-sdk"
	}
	check(t, steps)
}
