package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpstreamFlags(t *testing.T) {
	type want struct {
		Name, URL, Prefix      string
		Models, Hosts, KeyEnvs []string
	}
	for _, c := range []struct {
		sentence string
		flags    []string
		want     []want
	}{
		{"a URL alone is named by its host", []string{"https://api.anthropic.com"}, []want{{"api.anthropic.com", "https://api.anthropic.com", "", nil, nil, nil}}},
		{"a base path stays", []string{"https://host/api"}, []want{{"host", "https://host/api", "", nil, nil, nil}}},
		{"named, by model and by path", []string{"openai=https://api.openai.com,models=gpt-*|o3", "local=http://127.0.0.1:8000,prefix=/local/"},
			[]want{{"openai", "https://api.openai.com", "", []string{"gpt-*", "o3"}, nil, nil}, {"local", "http://127.0.0.1:8000", "/local", nil, nil, nil}}},
		{"with keys of weir's own, in the place of other hosts", []string{"http://host,key-env=A|B,key-env=C,hosts=*.Example.com|api.test"},
			[]want{{"host", "http://host", "", nil, []string{"*.example.com", "api.test"}, []string{"A", "B", "C"}}}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			all, err := parseUpstreams(c.flags)
			if err != nil {
				t.Fatal(err)
			}
			var got []want
			for _, u := range all {
				got = append(got, want{u.Name, u.URL.String(), u.Prefix, u.Models, u.Hosts, u.KeyEnvs})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadUpstreamFlagsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"api.openai.com", "not a URL"},
		{"localhost:8000", "want http:// or https://"},
		{"ftp://host", "want http:// or https://"},
		{"https://", "the host is missing"},
		{"https://user:secret@host", "let the client send its key"},
		{"https://host?key=secret", "a query or fragment"},
		{"https://host,prefix=local", "begins with /"},
		{"https://host,models=[", `"[" is no pattern`},
		{"https://host,models=a|", `"" is no pattern`},
		{"https://host,hosts=[", `"[" is no pattern`},
		{"https://host,model=x", `"model=x" is not known`},
	} {
		_, err := parseUpstreams([]string{c.flag})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--upstream %s: %v, want an error with %q", c.flag, err, c.want)
		}
		if exitCode(err) != exitUsage {
			t.Errorf("--upstream %s: exit code %d, want %d", c.flag, exitCode(err), exitUsage)
		}
	}
	if _, err := parseUpstreams([]string{"http://a:1", "http://b:2"}); err == nil || !strings.Contains(err.Error(), "all requests would go to a") {
		t.Errorf("two upstreams for everything: %v", err)
	}
	if _, err := parseUpstreams([]string{"http://a:1", "http://a:2"}); err == nil || !strings.Contains(err.Error(), "name it as NAME=URL") {
		t.Errorf("two upstreams of one host: %v, want a request for names", err)
	}
}
