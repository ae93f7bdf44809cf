package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"weir/store/call"
)

// talk is one request of a client, and what weir must find of it.
type talk struct {
	sentence, path, header, body string

	session string // like an earlier one by its number, "=1"; "+" a new one; else its name
	from    string
	turn    int
	purpose string
	think   string
}

func talks(t *testing.T, agent string, all []talk) {
	t.Helper()
	n := 0
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"resp_%d","type":"message","content":[{"type":"text","text":"a"}],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"output":[],"status":"completed","stop_reason":"end_turn"}`, n)
	})
	s := start(t, up, nil)
	var calls []*call.Call
	for i, row := range all {
		req, _ := http.NewRequest("POST", s.url+row.path, strings.NewReader(row.body))
		req.Header.Set("User-Agent", agent)
		if name, value, ok := strings.Cut(row.header, ": "); ok {
			req.Header.Set(name, value)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		c := s.call(t, i+1)
		calls = append(calls, c)
		want := row.session
		var like int
		switch _, err := fmt.Sscanf(row.session, "=%d", &like); {
		case err == nil:
			want = calls[like-1].Session
		case row.session == "+":
			want = c.Session
			for _, before := range calls[:i] {
				if before.Session == c.Session {
					t.Errorf("%s: the session is that of an earlier call", row.sentence)
				}
			}
			if c.Session == "" {
				t.Errorf("%s: no session", row.sentence)
			}
		}
		if c.Session != want || c.SessionFrom != row.from || c.Turn != row.turn || c.Purpose != row.purpose || c.ThinkFor != row.think || (c.Think > 0) != (row.think != "") {
			t.Errorf("%s: session %q by %q, turn %d, for %q, %v for %q; want %+v", row.sentence, c.Session, c.SessionFrom, c.Turn, c.Purpose, c.Think, c.ThinkFor, row)
		}
	}
}

// Claude Code writes its earlier turns anew: marks of the cache move, and lists
// of one text become strings.
func TestTurnsOfClaudeCodeAreOneSession(t *testing.T) {
	const header = "X-Claude-Code-Session-Id: c-1"
	tools := `"tools":[{"name":"Bash","input_schema":{"type":"object"}}]`
	talks(t, "claude-cli/2.1.332 (external, cli)", []talk{
		{"the first turn", "/v1/messages?beta=true", header, `{"model":"m","max_tokens":9,` + tools + `,"messages":[{"role":"user","content":[{"type":"text","text":"list","cache_control":{"type":"ephemeral"}}]}]}`,
			"c-1", "header", 1, "main", ""},
		{"its tool loop", "/v1/messages?beta=true", header, `{"model":"m","max_tokens":9,` + tools + `,"messages":[{"role":"user","content":"list"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}]}`,
			"c-1", "header", 1, "main", "tools"},
		{"the user again", "/v1/messages?beta=true", header, `{"model":"m","max_tokens":9,` + tools + `,"messages":[{"role":"user","content":"list"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},{"role":"assistant","content":"done"},{"role":"user","content":"more"}]}`,
			"c-1", "header", 2, "main", "user"},
		{"tokens are counted", "/v1/messages/count_tokens", header, `{"model":"m","messages":[{"role":"user","content":"list"}]}`,
			"c-1", "header", 2, "count_tokens", ""},
	})
}

func TestConversationThatNothingNamesIsFoundByItself(t *testing.T) {
	const path = "/v1/chat/completions"
	talks(t, "OpenAI/JS 7.59.0", []talk{
		{"a beginning", path, "", `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"q1"}]}`,
			"+", "conversation", 1, "main", ""},
		{"another beginning", path, "", `{"model":"m","messages":[{"role":"user","content":"other"}]}`,
			"+", "conversation", 1, "main", ""},
		{"the first goes on, spelled another way", path, "", `{"messages":[{"content":"s","role":"system"},{"role":"user","content":[{"type":"text","text":"q\u0031"}]},{"role":"assistant","content":"a"},{"role":"user","content":"q2"}],"model":"m"}`,
			"=1", "conversation", 2, "main", "user"},
		{"what weir's own header says wins", path, "X-Weir-Session: mine", `{"model":"m","messages":[{"role":"user","content":"q1"}]}`,
			"mine", "weir", 1, "main", ""},
	})
}

func TestPreviousResponseNamesTheSession(t *testing.T) {
	talks(t, "OpenAI/JS 7.59.0", []talk{
		{"a response", "/v1/responses", "", `{"model":"m","input":"q1"}`, "+", "conversation", 1, "main", ""},
		{"that goes on", "/v1/responses", "", `{"model":"m","input":"q2","previous_response_id":"resp_1"}`, "=1", "response", 2, "main", "user"},
		{"and on, with a tool", "/v1/responses", "", `{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}],"previous_response_id":"resp_2"}`, "=1", "response", 2, "main", "tools"},
	})
}

// Two conversations may begin with the same words. The answers that weir saw
// pass, whose words the clients repeat, tell which is which.
func TestEqualOpeningsAreToldApartByTheirAnswers(t *testing.T) {
	const path = "/v1/chat/completions"
	n := 0
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n++
		w.Header().Set("Content-Type", "text/event-stream")
		for _, words := range []string{"answer ", strconv.Itoa(n), "\n"} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", words)
		}
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	s := start(t, up, nil)
	var got []*call.Call
	ask := func(messages string) {
		resp, err := s.client.Post(s.url+path, "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}`+messages+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		got = append(got, s.call(t, len(got)+1))
	}
	goesOn := func(answer string) {
		ask(`,{"role":"assistant","content":"` + answer + `"},{"role":"user","content":"go on"}`)
	}
	ask("")
	ask("")
	goesOn("answer 1")
	goesOn("answer 2\\n")
	goesOn("of nobody")
	if got[2].Session != got[0].Session || got[3].Session != got[1].Session || got[0].Session == got[1].Session {
		t.Errorf("sessions %s and %s go on in %s and %s", got[0].Session, got[1].Session, got[2].Session, got[3].Session)
	}
	if got[2].Turn != 2 || got[2].Think <= 0 || got[3].Turn != 2 || got[3].Think <= 0 {
		t.Errorf("turns %d and %d after %v and %v", got[2].Turn, got[3].Turn, got[2].Think, got[3].Think)
	}
	if alien := got[4]; alien.Session == got[0].Session || alien.Session == got[1].Session || alien.Think != 0 {
		t.Errorf("what goes on from an answer that nobody gave is in %s of %s and %s, %v after", alien.Session, got[0].Session, got[1].Session, alien.Think)
	}
}

// Whichever of weir's own keys is sent, a conversation is its client's.
func TestConversationOverSeveralHeldKeysIsOne(t *testing.T) {
	up := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
	})
	s := start(t, up, func(p *Proxy) {
		p.Upstreams[0].Keys = []Secret{NewSecret("first"), NewSecret("second")}
		p.Fingerprint = func(key string) string { return key }
	})
	var got []*call.Call
	for i, body := range []string{`{"role":"user","content":"q"}`, `{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}`} {
		resp, err := s.client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[`+body+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got = append(got, s.call(t, i+1))
	}
	if got[0].KeyFingerprint == got[1].KeyFingerprint || got[0].Session != got[1].Session {
		t.Errorf("sent with the keys %s and %s, in the sessions %s and %s", got[0].KeyFingerprint, got[1].KeyFingerprint, got[0].Session, got[1].Session)
	}
}
