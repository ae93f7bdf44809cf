package agents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/store/call"
)

// forwards are clients that call their provider's own host, which they are told
// nothing about: weir exec lets them find it as their proxy.
var forwards = map[string]func(p place) start{
	"claude-code": func(p place) start {
		return start{
			argv: []string{npm(p, "claude", "claude"), "--allowedTools", "Bash", "-p", p.prompt},
			env:  []string{"ANTHROPIC_API_KEY=" + p.key, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=2"},
		}
	},
	// Codex's own provider, over a WebSocket.
	"codex": func(p place) start {
		return start{
			argv: []string{npm(p, "codex", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "sim", p.prompt},
			env:  []string{"OPENAI_API_KEY=" + p.key, "CODEX_API_KEY=" + p.key},
		}
	},
	// Its own providers are looked up at a site that is not there.
	"opencode": func(p place) start {
		return opencode(p, "https://api.openai.com/v1")
	},
	"gemini-cli": func(p place) start {
		return start{
			argv:  []string{npm(p, "gemini", "gemini"), "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", p.prompt},
			env:   []string{"GEMINI_API_KEY=" + p.key},
			files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
		}
	},
	"openai-node-chat":      func(p place) start { return keyAlone(p, node(p, "openai.mjs", "chat", p.prompt)) },
	"openai-node-responses": func(p place) start { return keyAlone(p, node(p, "openai.mjs", "responses", p.prompt)) },
	"anthropic-node":        func(p place) start { return keyAlone(p, node(p, "anthropic.mjs", p.prompt)) },
	"ai-sdk-openai":         func(p place) start { return keyAlone(p, node(p, "ai.mjs", "openai", p.prompt)) },
	"ai-sdk-anthropic":      func(p place) start { return keyAlone(p, node(p, "ai.mjs", "anthropic", p.prompt)) },
	"openai-python":         func(p place) start { return keyAlone(p, python(p, "openai_sdk.py", p.prompt)) },
	"anthropic-python":      func(p place) start { return keyAlone(p, python(p, "anthropic_sdk.py", p.prompt)) },
}

// keyAlone starts an SDK with no base URL.
func keyAlone(p place, s start) start {
	s.env = []string{"OPENAI_API_KEY=" + p.key, "ANTHROPIC_API_KEY=" + p.key}
	return s
}

func TestForward(t *testing.T) {
	if os.Getenv("AGENTS") == "" {
		t.Skip("no clients are installed: run examples/agents/run.sh")
	}
	byFolder(t, func(t *testing.T, a agent) {
		if begin, ok := forwards[a.name]; ok {
			a.start = begin
			t.Run(a.name, a.testForward)
		}
	})
}

// testForward lets the client run a tool, with nothing but HTTPS_PROXY and
// weir's certificate between it and the host that it believes to call.
func (a *agent) testForward(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	db := filepath.Join(t.TempDir(), "weir.db")
	begin := a.start
	a.start = func(p place) start {
		s := begin(p)
		s.argv = slices.Concat([]string{os.Getenv("WEIR"), "exec", "--door", "forward", "--scenario", scenario, "--upstream", e.url, "--db", db, "--"}, s.argv)
		return s
	}
	got := a.run(t, place{key: rightKey, prompt: a.toolPrompt()}, nil)
	wantToolResult(t, got)
	var turns []*call.Call
	for _, c := range generating(recorded(t, db)) {
		if c.Door != "connect" {
			t.Errorf("call %v came by the door %q", c, c.Door)
		}
		if c.Purpose == "main" {
			turns = append(turns, c)
		}
	}
	if len(turns) != 2 || turns[0].Outcome != call.OK || turns[1].Outcome != call.OK {
		t.Fatalf("calls %v, want two that are ok; %v", turns, got)
	}
	for i, c := range turns {
		a.checkAnswer(t, c, e.record(c.ResponseID))
		if c.ClientName != a.client || c.Scenario != scenario || c.ScenarioFrom != "proxy" || c.Session == "" || c.Session != turns[0].Session || c.Turn != 1 {
			t.Errorf("client %q, scenario %q from %q, session %q, turn %d", c.ClientName, c.Scenario, c.ScenarioFrom, c.Session, c.Turn)
		}
		if tools := i == 1; tools != (c.ThinkFor == "tools") {
			t.Errorf("call %d came after %v for %q", i+1, c.Think, c.ThinkFor)
		}
	}
}
