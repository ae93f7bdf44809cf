package observability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// What Claude Code and Codex tell a collector of a session stands there beside
// what weir tells of its calls, under the same id.
func TestAgentsTelemetryJoinsWeirsBySession(t *testing.T) {
	cache := os.Getenv("AGENTS")
	if cache == "" {
		t.Skip("no clients are installed: run examples/agents/run.sh claude codex, then run.sh")
	}
	for _, agent := range []struct {
		name, session string // the key under which it names its session
		argv          func(proxy string) []string
		env           func(proxy, collector string) []string
		config        string // of its configuration; the collector's address is put in
	}{
		{
			name: "claude", session: "session.id",
			argv: func(string) []string { return []string{"-p", "[[say Hello]]"} },
			env: func(proxy, collector string) []string {
				return []string{
					"CLAUDE_CODE_ENABLE_TELEMETRY=1", "OTEL_METRICS_EXPORTER=otlp", "OTEL_LOGS_EXPORTER=otlp",
					"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector,
					"ANTHROPIC_BASE_URL=" + proxy + "/s/my-work", "ANTHROPIC_API_KEY=sk-none",
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				}
			},
		},
		{
			name: "codex", session: "conversation.id",
			argv: func(proxy string) []string {
				return []string{
					"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "sim", "-c", "model_provider=weir",
					"-c", `model_providers.weir={name="weir",base_url="` + proxy + `/s/my-work/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`, "[[say Hello]]",
				}
			},
			env:    func(string, string) []string { return []string{"OPENAI_API_KEY=sk-none"} },
			config: "[otel]\nenvironment = \"dev\"\nexporter = { otlp-grpc = { endpoint = \"http://%s\" } }\n",
		},
	} {
		t.Run(agent.name, func(t *testing.T) {
			program := filepath.Join(cache, agent.name, "node_modules", ".bin", agent.name)
			if _, err := os.Stat(program); err != nil {
				t.Skipf("%s is not installed: run examples/agents/run.sh %s", agent.name, agent.name)
			}
			s, folder, listen := withCollector(t, "grpc")
			home := t.TempDir()
			if agent.config != "" {
				if err := os.Mkdir(filepath.Join(home, "."+agent.name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, "."+agent.name, "config.toml"), fmt.Appendf(nil, agent.config, listen), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := exec.CommandContext(ctx, program, agent.argv(s.proxy)...)
			c.Dir, c.WaitDelay = home, 5*time.Second
			c.Env = append(agent.env(s.proxy, listen), "HOME="+home, "PATH="+os.Getenv("AGENTS_NODE")+":/usr/local/bin:/usr/bin:/bin", "NO_PROXY=127.0.0.1,localhost")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", agent.name, err, out)
			}
			s.until("one session in both", func() error {
				weirs := texts(filepath.Join(folder, "traces.jsonl"), "gen_ai.conversation.id")
				theirs := texts(filepath.Join(folder, "logs.jsonl"), agent.session)
				for id := range theirs {
					if weirs[id] {
						return nil
					}
				}
				return fmt.Errorf("weir tells of %v, and %s of %v", weirs, agent.name, theirs)
			})
		})
	}
}

// texts are the values of an attribute anywhere in a file of the collector's.
func texts(path, key string) map[string]bool {
	found := map[string]bool{}
	text, err := os.ReadFile(path)
	if err != nil {
		return found // nothing has come yet
	}
	for line := range bytes.Lines(text) {
		var batch any
		if json.Unmarshal(line, &batch) == nil { // else the rest of the last one is still to come
			gather(batch, key, found)
		}
	}
	return found
}

func gather(in any, key string, found map[string]bool) {
	switch v := in.(type) {
	case []any:
		for _, e := range v {
			gather(e, key, found)
		}
	case map[string]any:
		if value, ok := v["value"].(map[string]any); ok && v["key"] == key {
			if s, ok := value["stringValue"].(string); ok {
				found[s] = true
			}
			return
		}
		for _, e := range v {
			gather(e, key, found)
		}
	}
}
