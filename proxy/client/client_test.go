package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func TestClientsAreKnownByWhatTheySend(t *testing.T) {
	for agent, want := range map[string][2]string{
		"claude-cli/2.1.332 (external, cli)":                 {"claude-code", "2.1.332"},
		"codex_exec/0.171.0 (Debian 12.0.0; x86_64) unknown": {"codex", "0.171.0"},
		"codex_cli_rs/0.171.0":                               {"codex", "0.171.0"},
		"opencode/1.18.33 ai-sdk/provider-utils/3":           {"opencode", "1.18.33"},
		"GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64)":       {"gemini-cli", "0.61.0"},
		"OpenAI/JS 7.59.0":                                   {"openai-node", "7.59.0"},
		"OpenAI/Python 2.1.0":                                {"openai-python", "2.1.0"},
		"AsyncOpenAI/Python 2.1.0":                           {"openai-python", "2.1.0"},
		"Anthropic/JS 1.14.0":                                {"anthropic-node", "1.14.0"},
		"ai/7.0.173 ai-sdk/openai/4.0.118":                   {"ai-sdk", "7.0.173"},
		"ai-sdk/openai-compatible/1.0.0 runtime/node.js/24":  {"ai-sdk", "1.0.0"},
		"curl/8.5.0":        {"curl", "8.5.0"},
		"Mozilla/5.0 (X11)": {"mozilla", "5.0"},
		"":                  {"", ""},
	} {
		name, version := Identify(http.Header{"User-Agent": {agent}})
		if diff := cmp.Diff(want, [2]string{name, version}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", agent, diff)
		}
	}
	if name, version := Identify(http.Header{}); name != "" || version != "" {
		t.Errorf("nobody is %q %q", name, version)
	}
}

func TestSessionIsWhatTheClientSaysItIs(t *testing.T) {
	for _, row := range []struct {
		sentence string
		header   map[string]string
		head     wire.Head
		want     string
		from     string
	}{
		{"Claude Code's header", map[string]string{"X-Claude-Code-Session-Id": "c1"}, wire.Head{User: `{"session_id":"c1"}`}, "c1", "header"},
		{"Claude Code's metadata where a gateway took the header", nil, wire.Head{User: `{"device_id":"d","session_id":"c2"}`}, "c2", "body"},
		{"its older form of metadata", nil, wire.Head{User: "user_abc_account__session_c3"}, "c3", "body"},
		{"Codex's header, not its cache key", map[string]string{"session-id": "s1"}, wire.Head{PromptCacheKey: "k"}, "s1", "header"},
		{"opencode's header", map[string]string{"x-session-id": "ses_1"}, wire.Head{}, "ses_1", "header"},
		{"a cache key is no session", nil, wire.Head{PromptCacheKey: "k"}, "", ""},
		{"a user is no session", nil, wire.Head{User: "alice"}, "", ""},
		{"nor is JSON of another kind", nil, wire.Head{User: `{"session_id":7}`}, "", ""},
		{"nor broken JSON", nil, wire.Head{User: `{"session_id":`}, "", ""},
		{"nothing said, nothing invented", nil, wire.Head{}, "", ""},
	} {
		h := http.Header{}
		for k, v := range row.header {
			h.Set(k, v)
		}
		if id, from := Session(h, &row.head); id != row.want || from != row.from {
			t.Errorf("%s: %q from %q, want %q from %q", row.sentence, id, from, row.want, row.from)
		}
	}
}

func TestEachClientIsPointedAtItsOwnBase(t *testing.T) {
	const base = "http://127.0.0.1:8484/s/refactor"
	with := map[string]bool{"Claude Code": false, "Codex": true, "opencode": true, "Cline": true, "OpenAI SDKs": true, "Anthropic SDKs": false, "Gemini CLI": false}
	for _, lines := range Point(base) {
		v1, known := with[lines.Client]
		if !known || len(lines.Text) == 0 {
			t.Errorf("%q is not expected, or has no lines", lines.Client)
		}
		delete(with, lines.Client)
		for _, text := range lines.Text {
			if !strings.Contains(text, base) || v1 != strings.Contains(text, base+"/v1") {
				t.Errorf("%s: %s: with /v1 %v expected", lines.Client, text, v1)
			}
		}
	}
	if len(with) > 0 {
		t.Errorf("nothing points %v at weir", with)
	}
}
