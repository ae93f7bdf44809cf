package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func TestARunInThePathIsReadAndTakenOff(t *testing.T) {
	type seen struct{ Scenario, From, Run, Arrived string }
	var arrived string
	up := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { arrived = r.RequestURI })
	at, err := url.Parse(up)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		sentence, path, header string
		want                   seen
	}{
		{"scenario and run", "/s/fix/r/7f3a/v1/messages?beta=true", "", seen{"fix", "path", "7f3a", "/v1/messages?beta=true"}},
		{"a run alone", "/r/7f3a/v1/messages", "", seen{"untagged", "default", "7f3a", "/v1/messages"}},
		{"the header's run → before the path's", "/s/fix/r/7f3a/v1/messages", "r1", seen{"fix", "path", "r1", "/v1/messages"}},
		{"before an upstream's prefix", "/s/fix/r/7f3a/local/v1/messages", "", seen{"fix", "path", "7f3a", "/v1/messages"}},
		{"behind an upstream's prefix", "/local/s/fix/r/7f3a/v1/messages", "", seen{"fix", "path", "7f3a", "/v1/messages"}},
		{"a run alone behind a prefix", "/local/r/7f3a/v1/messages", "", seen{"untagged", "default", "7f3a", "/v1/messages"}},
		{"the other way round", "/r/7f3a/s/fix/v1/messages", "", seen{"fix", "path", "7f3a", "/v1/messages"}},
		{"no id of a run → the upstream's path", "/r/a%20b/v1/messages", "", seen{"untagged", "default", "", "/r/a%20b/v1/messages"}},
		{"nor is one that is too long", "/r/" + strings.Repeat("a", 65) + "/messages", "", seen{"untagged", "default", "", "/r/" + strings.Repeat("a", 65) + "/messages"}},
		{"an empty run → the upstream's path", "/s/fix/r//v1/messages", "", seen{"fix", "path", "", "/r//v1/messages"}},
		{"nothing behind the run", "/s/fix/r/7f3a", "", seen{"fix", "path", "7f3a", "/"}},
	} {
		s := start(t, up, func(p *Proxy) {
			p.Upstreams = []Upstream{{Name: "up", URL: at}, {Name: "local", URL: at, Prefix: "/local"}}
		})
		req, err := http.NewRequest("POST", s.url+row.path, strings.NewReader(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		if row.header != "" {
			req.Header.Set(headerRun, row.header)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c := s.call(t, 1)
		if diff := cmp.Diff(row.want, seen{c.Scenario, c.ScenarioFrom, c.Run, arrived}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.sentence, diff)
		}
	}
}

func TestAVerbatimUpstreamMendsNoPath(t *testing.T) {
	for _, row := range []struct{ base, path, want string }{
		{"/v1beta/openai/", "/chat/completions", "/v1beta/openai/chat/completions"},
		{"/backend-api/codex", "/responses", "/backend-api/codex/responses"},
		{"/anthropic", "/v1/messages", "/anthropic/v1/messages"},
		{"", "/v1/v1/messages", "/v1/v1/messages"},
	} {
		u := Upstream{URL: &url.URL{Scheme: "http", Host: "h", Path: row.base}, Verbatim: true}
		if got, note := u.target(row.path, wire.Find("POST", row.path)); got != row.want || note != "" {
			t.Errorf("%s + %s = %s (%s), want %s", row.base, row.path, got, note, row.want)
		}
	}
}

func TestTagSwitchesTheDefaultOfAServingProxy(t *testing.T) {
	up := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, up, func(p *Proxy) { p.Scenario = "At First" })
	call := func(n int) string {
		resp, err := s.post(t, t.Context(), wire.Messages)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c := s.call(t, n)
		return c.Scenario + " by " + c.ScenarioFrom
	}
	var got []string
	got = append(got, call(1), s.Tag("Fix Bug"), s.Tagged(), call(2), s.Tag(" "), s.Tagged(), call(3), s.Tag("x"))
	want := []string{"at-first by default", "at-first", "fix-bug", "fix-bug by default", "fix-bug", "untagged", "short_chat by automatic", "untagged"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTagsFromManySidesAreHandedOnOnce(t *testing.T) {
	p := Proxy{Scenario: "first"}
	olds := make(chan string, 100)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { olds <- p.Tag(fmt.Sprint("tag-", i)) })
	}
	all.Wait()
	close(olds)
	seen := map[string]bool{p.Tagged(): true}
	for old := range olds {
		if seen[old] {
			t.Errorf("%q was replaced twice", old)
		}
		seen[old] = true
	}
	if !seen["first"] {
		t.Error("nobody was told of the scenario at the beginning")
	}
}
