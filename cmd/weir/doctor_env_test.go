package main

import (
	"io"
	"log"
	"net"
	"net/url"
	"strings"
	"testing"
)

var noLog = log.New(io.Discard, "", 0)

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestDoctorOnTheEnvironment(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	weir, nobody := "http://"+l.Addr().String(), "http://"+dead.Addr().String()
	const ant, oat, proj, goog = "sk-ant-api03-0123456789abcdef", "sk-ant-oat01-0123456789abcdef", "sk-proj-0123456789abcdef", "AIzaSy0123456789abcdef"
	for _, row := range []struct {
		sentence string
		vars     map[string]string
		args     []string
		code     int
		says     []string
	}{
		{"nothing is set", nil, nil, 0, []string{"– keys", "✓ nothing is wrong"}},
		{"all is well", map[string]string{"ANTHROPIC_BASE_URL": weir + "/s/x", "ANTHROPIC_API_KEY": ant, "OPENAI_API_KEY": proj, "GEMINI_API_KEY": goog}, nil, 0,
			[]string{"✓ ANTHROPIC_BASE_URL  " + weir + "/s/x", "✓ ANTHROPIC_API_KEY   set, 29 characters", "✓ OPENAI_API_KEY ", "✓ GEMINI_API_KEY "}},
		{"weir is not there", map[string]string{"OPENAI_BASE_URL": nobody + "/v1"}, nil, 1, []string{"✗ OPENAI_BASE_URL", "Nothing listens at " + dead.Addr().String(), "→ Start weir there: weir proxy --listen"}},
		{"a base URL without its scheme", map[string]string{"OPENAI_BASE_URL": "api.openai.com/v1"}, nil, 1, []string{"It is not a URL."}},
		{"a base URL with white space", map[string]string{"OPENAI_BASE_URL": "https://api.openai.com/v1 "}, nil, 1, []string{"white space"}},
		{"a base URL with a query, which may be secret", map[string]string{"ANTHROPIC_BASE_URL": "https://gw.example/?token=s3cr3t"}, nil, 1, []string{"✗ ANTHROPIC_BASE_URL  https://gw.example/\n", "A query in a base URL"}},
		{"a base URL that is an endpoint", map[string]string{"OPENAI_BASE_URL": "https://gw.example/v1/chat/completions"}, nil, 1, []string{"Take /chat/completions off its end."}},
		{"OpenAI without the version", map[string]string{"OPENAI_BASE_URL": "https://api.openai.com"}, nil, 1, []string{"End it with /v1."}},
		{"a gateway without the version", map[string]string{"OPENAI_BASE_URL": "https://gw.example/openai"}, nil, 0, []string{"! OPENAI_BASE_URL"}},
		{"Anthropic with the version", map[string]string{"ANTHROPIC_BASE_URL": "https://api.anthropic.com/v1/"}, nil, 0, []string{"! ANTHROPIC_BASE_URL", "Take /v1 off its end"}},

		{"empty", map[string]string{"OPENAI_API_KEY": ""}, nil, 0, []string{"set, but empty"}},
		{"a line break", map[string]string{"OPENAI_API_KEY": proj + "\n"}, nil, 1, []string{"ends in a line break"}},
		{"white space", map[string]string{"OPENAI_API_KEY": " " + proj}, nil, 1, []string{"white space before or behind"}},
		{"quotes", map[string]string{"OPENAI_API_KEY": `"` + proj + `"`}, nil, 1, []string{"quotes around it"}},
		{"Bearer", map[string]string{"OPENAI_API_KEY": "Bearer " + proj}, nil, 1, []string{`begins with "Bearer"`}},
		{"two lines", map[string]string{"OPENAI_API_KEY": proj + "\n" + proj + "x"}, nil, 1, []string{"line break inside"}},
		{"a typographer's dash", map[string]string{"OPENAI_API_KEY": "sk–proj–0123456789"}, nil, 1, []string{"characters that no key has"}},
		{"a placeholder", map[string]string{"OPENAI_API_KEY": "your-api-key-here"}, nil, 1, []string{"a placeholder"}},
		{"Anthropic's key in OpenAI's variable", map[string]string{"OPENAI_API_KEY": ant}, nil, 1, []string{"It is a key of Anthropic, which OpenAI refuses."}},
		{"where the base URL is Anthropic's it is right", map[string]string{"OPENAI_API_KEY": ant, "OPENAI_BASE_URL": "https://api.anthropic.com/v1"}, nil, 0, []string{"✓ OPENAI_API_KEY"}},
		{"where it is weir's, weir decides", map[string]string{"OPENAI_API_KEY": ant, "OPENAI_BASE_URL": weir + "/v1"}, nil, 0, []string{"! OPENAI_API_KEY", "sends it on to Anthropic"}},
		{"a login's token for a key", map[string]string{"ANTHROPIC_API_KEY": oat}, nil, 1, []string{"CLAUDE_CODE_OAUTH_TOKEN"}},
		{"a key for a login's token", map[string]string{"ANTHROPIC_AUTH_TOKEN": ant}, nil, 0, []string{"! ANTHROPIC_AUTH_TOKEN", "Put it into ANTHROPIC_API_KEY."}},
		{"both", map[string]string{"ANTHROPIC_API_KEY": ant, "ANTHROPIC_AUTH_TOKEN": oat}, nil, 0, []string{"! ANTHROPIC_API_KEY", "Claude Code sends both"}},
		{"a variable that is not set", nil, []string{"--key-env", "MY_KEY"}, 1, []string{"✗ MY_KEY", "not set"}},
		{"weir's own key", map[string]string{"WEIR_API_KEY": "'k'"}, nil, 1, []string{"✗ WEIR_API_KEY", "quotes"}},

		{"a proxy, and weir is not exempt", map[string]string{"HTTPS_PROXY": "http://user:s3cr3t@proxy.example:3128"}, nil, 0, []string{"✓ HTTPS_PROXY  http://proxy.example:3128\n", "! NO_PROXY", "→ export NO_PROXY=127.0.0.1,localhost\n"}},
		{"the same, and tools ask for weir", map[string]string{"http_proxy": "proxy.example:3128", "no_proxy": "intern.example", "OPENAI_BASE_URL": weir + "/v1"}, nil, 1,
			[]string{"✓ http_proxy", "✗ no_proxy", "→ export NO_PROXY=127.0.0.1,localhost,intern.example"}},
		{"weir is exempt", map[string]string{"HTTP_PROXY": "http://proxy.example:3128", "NO_PROXY": "localhost, 127.0.0.0/8"}, nil, 0, []string{"✓ NO_PROXY"}},
		{"a loop", map[string]string{"ALL_PROXY": weir, "NO_PROXY": "*", "OPENAI_BASE_URL": weir + "/v1"}, []string{"--dry-run", "--api", "chat", "--timeout", "1ms", "--proxy", weir}, 1, []string{"! ALL_PROXY", "way to weir"}},
		{"weir as a proxy", map[string]string{"HTTPS_PROXY": "http://127.0.0.1:8484", "NO_PROXY": "*"}, nil, 0, []string{"! HTTPS_PROXY", "points at weir itself"}},
		{"no proxy's URL", map[string]string{"HTTPS_PROXY": "http://"}, nil, 1, []string{"✗ HTTPS_PROXY", "not the URL of a proxy"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := consult(t, row.vars, row.args...)
			got.want(t, row.code, row.says...)
			for _, secret := range []string{"s3cr3t", ant[3:], proj[3:], goog} {
				if v := got.out + got.err; strings.Contains(v, secret) {
					t.Errorf("it shows %q:\n%s", secret, v)
				}
			}
		})
	}
}
