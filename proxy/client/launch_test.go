package client

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const proxied = "http://127.0.0.1:9/s/fix/r/7f3a"

// fresh are the variables that every launch sets where none stood.
func fresh(more ...string) []string {
	return append([]string{
		"ANTHROPIC_BASE_URL=" + proxied, "OPENAI_BASE_URL=" + proxied + "/v1", "GOOGLE_GEMINI_BASE_URL=" + proxied,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}, more...)
}

func TestEachClientIsLaunchedTheWayItUnderstands(t *testing.T) {
	const key = "OPENAI_API_KEY=sk-1"
	provider := []string{
		"-c", "model_provider=weir",
		"-c", `model_providers.weir={name="weir",base_url="` + proxied + `/v1",env_key="OPENAI_API_KEY",wire_api="responses",supports_websockets=false}`,
	}
	builtIn := []string{"-c", `openai_base_url="` + proxied + `/v1"`}
	join := func(parts ...[]string) []string { return slices.Concat(parts...) }
	opencode := fresh()
	opencode[0] += "/v1"
	for _, row := range []struct {
		sentence           string
		command, env       []string
		wantArgs, wantVars []string
	}{
		{"Claude Code is told of hints", []string{"claude", "-p", "hi"}, nil,
			[]string{"claude", "-p", "hi"}, fresh("CLAUDE_CODE_GATEWAY_HINT_HEADERS=1")},
		{"the user's word on hints stands", []string{"/opt/bin/claude"}, []string{"CLAUDE_CODE_GATEWAY_HINT_HEADERS=0"},
			[]string{"/opt/bin/claude"}, fresh("CLAUDE_CODE_GATEWAY_HINT_HEADERS=0")},
		{"Claude Code by its package", []string{"npx", "-y", "@anthropic-ai/claude-code@2.1.332", "-p", "hi"}, nil,
			[]string{"npx", "-y", "@anthropic-ai/claude-code@2.1.332", "-p", "hi"}, fresh("CLAUDE_CODE_GATEWAY_HINT_HEADERS=1")},
		{"Codex with a key → a provider, before its own words", []string{"codex", "exec", "-c", "a=b", "hi"}, []string{key},
			join([]string{"codex"}, provider, []string{"exec", "-c", "a=b", "hi"}), fresh(key)},
		{"Codex without a key → its built-in provider", []string{"codex"}, nil, join([]string{"codex"}, builtIn), fresh()},
		{"an empty key is none", []string{"codex"}, []string{"OPENAI_API_KEY="}, join([]string{"codex"}, builtIn), fresh("OPENAI_API_KEY=")},
		{"Codex by its package", []string{"npx", "--package", "x", "@openai/codex", "exec"}, []string{key},
			join([]string{"npx", "--package", "x", "@openai/codex"}, provider, []string{"exec"}), fresh(key)},
		{"Codex by its script", []string{"node", "--no-warnings", "/lib/codex/bin/codex.js", "exec"}, []string{key},
			join([]string{"node", "--no-warnings", "/lib/codex/bin/codex.js"}, provider, []string{"exec"}), fresh(key)},
		{"opencode wants the version in both", []string{"opencode", "run"}, nil, []string{"opencode", "run"}, opencode},
		{"Gemini CLI", []string{"gemini"}, []string{"GEMINI_API_KEY=k"}, []string{"gemini"}, fresh("GEMINI_API_KEY=k")},
		{"a program of one's own", []string{"python", "agent.py", "codex"}, nil, []string{"python", "agent.py", "codex"}, fresh()},
		{"npx of something else", []string{"npx", "tsx", "codex"}, nil, []string{"npx", "tsx", "codex"}, fresh()},
		{"a runner with nothing to run", []string{"npx", "-p"}, nil, []string{"npx", "-p"}, fresh()},
		{"the old variable is set where it stands", []string{"aider"}, []string{"OPENAI_API_BASE=http://old/v1", "PATH=/bin"},
			[]string{"aider"}, fresh("OPENAI_API_BASE="+proxied+"/v1", "PATH=/bin")},
		{"one's own base URLs give way", []string{"python"}, []string{"ANTHROPIC_BASE_URL=http://gateway", "ANTHROPIC_BASE_URL=http://later"},
			[]string{"python"}, fresh()},
	} {
		command, env := slices.Clone(row.command), slices.Clone(row.env)
		args, got, _ := Launch(At(proxied, row.command), row.command, row.env)
		slices.Sort(got)
		slices.Sort(row.wantVars)
		if diff := cmp.Diff(row.wantArgs, args); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", row.sentence, diff)
		}
		if diff := cmp.Diff(row.wantVars, got); diff != "" {
			t.Errorf("%s: variables (-want +got):\n%s", row.sentence, diff)
		}
		if !slices.Equal(command, row.command) || !slices.Equal(env, row.env) {
			t.Errorf("%s: what was given was changed to %q, %q", row.sentence, row.command, row.env)
		}
	}
}

func TestCodexOpensWebSocketsWhereTheyAreTaken(t *testing.T) {
	way := At(proxied, []string{"codex"})
	way.WebSocket = true
	args, _, _ := Launch(way, []string{"codex"}, []string{"OPENAI_API_KEY=k"})
	if last := args[len(args)-1]; !strings.HasSuffix(last, ",supports_websockets=true}") {
		t.Errorf("got %q", args)
	}
}

func TestNoProxyKeepsWhatStandsThere(t *testing.T) {
	for _, row := range []struct {
		sentence     string
		env          []string
		upper, lower string
	}{
		{"nothing stood", nil, "127.0.0.1,localhost,10.0.0.7", "127.0.0.1,localhost,10.0.0.7"},
		{"upper stood → both", []string{"NO_PROXY=corp, .lan"}, "corp,.lan,127.0.0.1,localhost,10.0.0.7", "corp,.lan,127.0.0.1,localhost,10.0.0.7"},
		{"lower stood → both", []string{"no_proxy=localhost"}, "localhost,127.0.0.1,10.0.0.7", "localhost,127.0.0.1,10.0.0.7"},
		{"each its own", []string{"NO_PROXY=a", "no_proxy=b"}, "a,127.0.0.1,localhost,10.0.0.7", "b,127.0.0.1,localhost,10.0.0.7"},
		{"everything already", []string{"NO_PROXY=*"}, "*", "*"},
	} {
		_, env, _ := Launch(At("http://10.0.0.7:1/s/x", []string{"python"}), []string{"python"}, row.env)
		if diff := cmp.Diff([]string{row.upper, row.lower}, []string{value(env, "NO_PROXY"), value(env, "no_proxy")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
	}
}

func TestAFamilyWithoutABaseIsLeftAlone(t *testing.T) {
	args, env, _ := Launch(Way{Base: map[Family]string{Anthropic: "http://127.0.0.1:9"}}, []string{"codex"}, []string{"OPENAI_BASE_URL=http://mine"})
	if value(env, "OPENAI_BASE_URL") != "http://mine" || value(env, "ANTHROPIC_BASE_URL") != "http://127.0.0.1:9" || len(args) != 1 {
		t.Errorf("args %q, env %q", args, env)
	}
}

func TestWhatGoesPastIsSaid(t *testing.T) {
	for _, row := range []struct {
		command, variable, want string
	}{
		{"claude", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_USE_BEDROCK is set"},
		{"claude", "CLAUDE_CODE_USE_BEDROCK=0", ""},
		{"gemini", "GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_GENAI_USE_VERTEXAI is set"},
		{"gemini", "X=y", "GEMINI_API_KEY is not set"},
		{"gemini", "GEMINI_API_KEY=k", "--door forward wants no setting"},
		{"cline", "X=y", "cline auth openai-compatible -k KEY -m MODEL -b " + proxied + "/v1"},
		{"python", "CLAUDE_CODE_USE_BEDROCK=1", ""},
	} {
		_, _, notes := Launch(At(proxied, []string{row.command}), []string{row.command}, []string{row.variable})
		if got := strings.Join(notes, "\n"); row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s with %s: said %q, want %q", row.command, row.variable, got, row.want)
		}
	}
}

func TestEndpointsAreTheUsersOwnOrTheProviders(t *testing.T) {
	home := t.TempDir()
	withFile := func(text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "auth.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "CODEX_HOME=" + dir
	}
	platform := Endpoint{Codex, "https://api.openai.com/v1", "", "/v1", false}
	chatGPT := Endpoint{Codex, "https://chatgpt.com/backend-api/codex", "", "", true}
	for _, row := range []struct {
		sentence string
		command  string
		env      []string
		want     Endpoint
	}{
		{"Anthropic's", "claude", nil, Endpoint{Anthropic, "https://api.anthropic.com", "", "", false}},
		{"for a client that wants the version", "opencode", nil, Endpoint{Anthropic, "https://api.anthropic.com", "", "/v1", false}},
		{"OpenAI's", "python", nil, Endpoint{OpenAI, "https://api.openai.com/v1", "", "/v1", false}},
		{"Google's", "gemini", nil, Endpoint{Gemini, "https://generativelanguage.googleapis.com", "", "", false}},
		{"the user's, as it is", "python", []string{"OPENAI_BASE_URL=https://gw/openai/"}, Endpoint{OpenAI, "https://gw/openai", "OPENAI_BASE_URL", "", true}},
		{"by the older name", "aider", []string{"OPENAI_API_BASE=https://gw/v1"}, Endpoint{OpenAI, "https://gw/v1", "OPENAI_API_BASE", "", true}},
		{"an empty variable is none", "gemini", []string{"GOOGLE_GEMINI_BASE_URL="}, Endpoint{Gemini, "https://generativelanguage.googleapis.com", "", "", false}},
		{"Codex with a key, whatever OPENAI_BASE_URL says", "codex", []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=https://gw"}, platform},
		{"Codex that keeps a key", "codex", []string{withFile(`{"OPENAI_API_KEY":"k"}`)}, platform},
		{"Codex with a login", "codex", []string{withFile(`{"OPENAI_API_KEY":null,"tokens":{}}`)}, chatGPT},
		{"Codex that keeps nothing in a file", "codex", []string{"HOME=" + home}, chatGPT},
	} {
		var got Endpoint
		for _, e := range Endpoints([]string{row.command}, row.env) {
			if e.Family == row.want.Family {
				got = e
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
	}
}

func TestWhatACommandSpeaks(t *testing.T) {
	for command, want := range map[string][]Family{
		"claude": {Anthropic}, "codex": {Codex}, "opencode": {Anthropic, OpenAI}, "gemini": {Gemini}, "cline": nil,
		"python": {Anthropic, OpenAI, Gemini},
	} {
		if diff := cmp.Diff(want, Speaks([]string{command})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
	if !ProvidersOwn("api.openai.com") || !ProvidersOwn("chatgpt.com") || ProvidersOwn("gateway.example") {
		t.Error("a provider's host is not known as such, or another is")
	}
}

func TestLaunchThroughTheProxySetsNoBaseURL(t *testing.T) {
	way := Way{Proxy: "http://s%2Ffix:x@127.0.0.1:9", CAFile: "/ca/ca.pem", Bundle: "/ca/ca-bundle.pem"}
	env := []string{"ANTHROPIC_BASE_URL=https://gateway", "HTTPS_PROXY=http://old:3128", "NODE_EXTRA_CA_CERTS=/corp.pem", "NO_PROXY=intern"}
	args, got, notes := Launch(way, []string{"claude", "-p", "hi"}, env)
	want := []string{
		"ANTHROPIC_BASE_URL=https://gateway", "NO_PROXY=intern,127.0.0.1,localhost", "no_proxy=intern,127.0.0.1,localhost",
		"CLAUDE_CODE_GATEWAY_HINT_HEADERS=1", "HTTPS_PROXY=" + way.Proxy, "https_proxy=" + way.Proxy, "NODE_USE_ENV_PROXY=1",
		"NODE_EXTRA_CA_CERTS=/ca/ca.pem", "CODEX_CA_CERTIFICATE=/ca/ca.pem", "SSL_CERT_FILE=/ca/ca-bundle.pem",
		"REQUESTS_CA_BUNDLE=/ca/ca-bundle.pem", "CURL_CA_BUNDLE=/ca/ca-bundle.pem",
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"claude", "-p", "hi"}, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "/corp.pem") {
		t.Errorf("the user's own certificates are lost without a word: %q", notes)
	}
	way.Beside = "/ca/beside.pem"
	if _, got, notes := Launch(way, []string{"claude"}, env); len(notes) != 0 || !slices.Contains(got, "NODE_EXTRA_CA_CERTS=/ca/beside.pem") {
		t.Errorf("the user's own certificates are not beside weir's: %q, %q", got, notes)
	}
	for _, command := range []string{"codex", "gemini", "cline"} {
		args, _, notes := Launch(way, []string{command}, nil)
		if len(args) != 1 || len(notes) != 0 {
			t.Errorf("%s: %q with the notes %q", command, args, notes)
		}
	}
}
