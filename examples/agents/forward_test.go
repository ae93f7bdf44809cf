package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// testForward lets the client do what it does through the reverse door, with
// nothing but HTTPS_PROXY and weir's certificate between it and the host that it
// believes to call.
func (a *agent) testForward(t *testing.T) {
	t.Parallel()
	speak := "Speak. [[say " + words + "]]"
	t.Run("speaks", func(t *testing.T) {
		e := newEndpoint(t)
		got, calls := a.forward(t, e.url, place{key: rightKey, prompt: speak}, nil)
		if got.failed || !strings.Contains(got.out, words) {
			t.Errorf("it got no answer: %v", got)
		}
		a.checkForward(t, e, calls, call.OK)
	})
	t.Run("runs a tool", func(t *testing.T) {
		e := newEndpoint(t)
		got, calls := a.forward(t, e.url, place{key: rightKey, prompt: a.toolPrompt()}, nil)
		wantToolResult(t, got)
		a.checkForward(t, e, calls, call.OK, call.OK)
		for i, c := range calls {
			if tools := i == 1; tools != (c.ThinkFor == "tools") {
				t.Errorf("call %d came after %v for %q", i+1, c.Think, c.ThinkFor)
			}
		}
	})
	t.Run("tries again after 500", func(t *testing.T) {
		e := newEndpoint(t)
		got, calls := a.forward(t, e.url, place{key: rightKey, prompt: "Speak. [[fault 500 1]] [[say " + words + "]]"}, nil)
		if got.failed || !strings.Contains(got.out, words) {
			t.Errorf("it gave up: %v", got)
		}
		a.checkForward(t, e, calls, call.ServerError, call.OK)
	})
	t.Run("is killed", func(t *testing.T) {
		e := newEndpoint(t)
		e.plain = true
		url, seen := relay(t, strings.TrimPrefix(e.url, "http://"), "Reservoirs")
		_, calls := a.forward(t, url, place{key: rightKey, prompt: "Speak. [[fault stall:10m]] [[say Reservoirs hold " + strings.Repeat("much water, ", 20) + "]]"}, seen)
		a.checkForward(t, e, calls, call.ClientGone)
		for _, c := range calls {
			if !c.FirstToken.Reached() || c.Done < c.FirstToken.Received {
				t.Errorf("first token %v, done %v", c.FirstToken, c.Done)
			}
		}
	})
}

// forward runs the client behind weir exec, and gives its main calls.
func (a *agent) forward(t *testing.T, upstream string, p place, stop <-chan struct{}) (ended, []*call.Call) {
	t.Helper()
	db := filepath.Join(t.TempDir(), "weir.db")
	behind := *a
	behind.start = func(p place) start {
		s := a.start(p)
		s.argv = slices.Concat([]string{os.Getenv("WEIR"), "exec", "--door", "forward", "--scenario", scenario, "--upstream", upstream, "--db", db, "--"}, s.argv)
		return s
	}
	p.behind = true
	got := behind.run(t, p, stop)
	var calls []*call.Call
	for _, c := range generating(recorded(t, db)) {
		if c.Door != "connect" {
			t.Errorf("call %v came by the door %q", c, c.Door)
		}
		if c.Purpose == "main" {
			calls = append(calls, c)
		}
	}
	return got, calls
}

// checkForward wants calls with these outcomes, all of one turn.
func (a *agent) checkForward(t *testing.T, e *endpoint, calls []*call.Call, want ...call.Outcome) {
	t.Helper()
	var got []call.Outcome
	for _, c := range calls {
		got = append(got, c.Outcome)
		if c.ClientName != a.client || c.Scenario != scenario || c.ScenarioFrom != "proxy" || c.Session == "" || c.Session != calls[0].Session || c.Turn != 1 {
			t.Errorf("client %q, scenario %q from %q, session %q, turn %d", c.ClientName, c.Scenario, c.ScenarioFrom, c.Session, c.Turn)
		}
		if c.Outcome == call.OK {
			a.checkAnswer(t, c, e.record(c.ResponseID))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\n%v", diff, calls)
	}
}
