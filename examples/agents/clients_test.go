package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// agent is a client, how it is pointed at an endpoint, and what weir shall make
// of its calls.
type agent struct {
	folder  string // in the cache, and in the file versions
	name    string // of the test
	client  string // as weir names it
	version string // package whose version weir shall name
	session bool   // it names its conversation; else weir knows it by what is said
	usage   bool   // its streams report usage
	tool    string // the directive that makes it run a tool, which gives RAN
	start   func(p place) start
}

// place is where a client is started and what it is to do.
type place struct {
	base   string // of the endpoint, with /s/agents when it is weir; no slash at its end
	key    string
	prompt string
	cache  string // where clients are installed
	home   string // its own, empty
	behind bool   // weir exec starts it, and is not to be killed with it
}

// start is how a client is started: in an empty folder, with these variables
// beside HOME and PATH.
type start struct {
	argv  []string
	env   []string
	stdin string
	files map[string]string // by path below HOME
}

// shellTool is the directive for the tools of agents that run commands. Gemini
// CLI refuses commands with substitutions in them.
func shellTool(name, argument string) string {
	arguments, _ := json.Marshal(map[string]string{argument: "echo ran | tr a-z A-Z", "description": "say so"})
	if argument == "cmd" { // Codex takes no description
		arguments = []byte(`{"cmd":"echo ran | tr a-z A-Z"}`)
	}
	return "[[tool " + name + " " + string(arguments) + "]]"
}

// ownTool is the directive for the function that the scripts in sdk have.
const ownTool = `[[tool upper {"text":"ran"}]]`

var agents = []agent{
	{
		folder: "claude", name: "claude-code", client: "claude-code", version: "@anthropic-ai/claude-code",
		session: true, usage: true, tool: shellTool("Bash", "command"),
		start: func(p place) start {
			return start{
				argv: []string{npm(p, "claude", "claude"), "--allowedTools", "Bash", "-p", p.prompt},
				env: []string{"ANTHROPIC_BASE_URL=" + p.base, "ANTHROPIC_API_KEY=" + p.key,
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=2"},
			}
		},
	},
	{
		folder: "codex", name: "codex", client: "codex", version: "@openai/codex",
		session: true, usage: true, tool: shellTool("exec_command", "cmd"),
		start: func(p place) start { return codex(p, "") },
	},
	{
		folder: "codex", name: "codex-websocket", client: "codex", version: "@openai/codex",
		session: true, usage: true, tool: shellTool("exec_command", "cmd"),
		start: func(p place) start { return codex(p, ",supports_websockets=true") },
	},
	{
		folder: "opencode", name: "opencode", client: "opencode", version: "opencode-ai",
		session: true, usage: true, tool: shellTool("bash", "command"),
		start: func(p place) start { return opencode(p, p.base+"/v1") },
	},
	{
		folder: "gemini", name: "gemini-cli", client: "gemini-cli", version: "@google/gemini-cli",
		usage: true, tool: shellTool("run_shell_command", "command"),
		start: func(p place) start {
			return start{
				argv: []string{npm(p, "gemini", "gemini"), "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", p.prompt},
				env:  []string{"GOOGLE_GEMINI_BASE_URL=" + p.base, "GEMINI_API_KEY=" + p.key},
				// With a base URL it else takes itself for the client of a gateway, and
				// then knows no way to log in.
				files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
			}
		},
	},
	{
		folder: "sdk", name: "openai-node-chat", client: "openai-node", version: "openai", tool: ownTool,
		start: func(p place) start { return node(p, "openai.mjs", "chat", p.prompt) },
	},
	{
		folder: "sdk", name: "openai-node-responses", client: "openai-node", version: "openai", usage: true, tool: ownTool,
		start: func(p place) start { return node(p, "openai.mjs", "responses", p.prompt) },
	},
	{
		folder: "sdk", name: "anthropic-node", client: "anthropic-node", version: "@anthropic-ai/sdk", usage: true, tool: ownTool,
		start: func(p place) start { return node(p, "anthropic.mjs", p.prompt) },
	},
	{
		folder: "sdk", name: "ai-sdk-openai", client: "ai-sdk", version: "@ai-sdk/openai", usage: true, tool: ownTool,
		start: func(p place) start { return node(p, "ai.mjs", "openai", p.prompt) },
	},
	{
		folder: "sdk", name: "ai-sdk-anthropic", client: "ai-sdk", version: "@ai-sdk/anthropic", usage: true, tool: ownTool,
		start: func(p place) start {
			s := node(p, "ai.mjs", "anthropic", p.prompt)
			s.env = append(s.env, "ANTHROPIC_BASE_URL="+p.base+"/v1") // alone among Anthropic's clients
			return s
		},
	},
	{
		folder: "python", name: "openai-python", client: "openai-python", version: "openai", tool: ownTool,
		start: func(p place) start { return python(p, "openai_sdk.py", p.prompt) },
	},
	{
		folder: "python", name: "anthropic-python", client: "anthropic-python", version: "anthropic", usage: true, tool: ownTool,
		start: func(p place) start { return python(p, "anthropic_sdk.py", p.prompt) },
	},
}

// npm is a program of an npm package.
func npm(p place, folder, program string) string {
	return filepath.Join(p.cache, folder, "node_modules", ".bin", program)
}

// opencode is opencode with a provider of its own.
func opencode(p place, base string) start {
	config, _ := json.Marshal(map[string]any{
		"model": "weir/sim",
		"provider": map[string]any{"weir": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "models": map[string]any{"sim": map[string]any{}},
			"options": map[string]string{"baseURL": base, "apiKey": p.key},
		}},
	})
	return start{
		// A prompt that is an argument gets its quotes escaped.
		argv:  []string{npm(p, "opencode", "opencode"), "run", "--title", "weir"},
		stdin: p.prompt,
		files: map[string]string{".config/opencode/opencode.json": string(config)},
	}
}

// codex is Codex with a provider of its own, and more said of that.
func codex(p place, more string) start {
	provider := `model_providers.weir={name="weir",base_url="` + p.base + `/v1",env_key="OPENAI_API_KEY",wire_api="responses"` + more + `}`
	return start{
		argv: []string{npm(p, "codex", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"-m", "sim", "-c", "model_provider=weir", "-c", provider, p.prompt},
		env: []string{"OPENAI_API_KEY=" + p.key},
	}
}

// node runs a script of the folder sdk.
func node(p place, words ...string) start {
	words[0] = filepath.Join(p.home, "work", words[0])
	return start{argv: append([]string{"node"}, words...), env: sdkVariables(p)}
}

// python runs a script of the folder sdk.
func python(p place, words ...string) start {
	words[0] = filepath.Join(p.home, "work", words[0])
	return start{argv: append([]string{filepath.Join(p.cache, "python", "bin", "python")}, words...), env: sdkVariables(p)}
}

// sdkVariables are read by OpenAI's and Anthropic's SDKs in every language.
func sdkVariables(p place) []string {
	return []string{
		"OPENAI_BASE_URL=" + p.base + "/v1", "OPENAI_API_KEY=" + p.key,
		"ANTHROPIC_BASE_URL=" + p.base, "ANTHROPIC_API_KEY=" + p.key,
	}
}

// pinned is the version of a package in the file versions.
func pinned(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "versions"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != folder {
			continue
		}
		for _, word := range words[2:] {
			for _, at := range []string{"@", "=="} {
				if version, found := strings.CutPrefix(word, name+at); found {
					return version
				}
			}
		}
	}
	t.Fatalf("versions has no package %s in %s", name, folder)
	return ""
}
