// Package agents runs real coding agents and SDKs through weir and holds what
// weir has recorded against what they did. Its tests need the clients: run.sh
// installs them and runs the tests.
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

// source is this folder.
var source, _ = filepath.Abs(".")

const (
	scenario = "agents"
	words    = "The weir holds the stream, 堰。"
)

func TestClients(t *testing.T) {
	byFolder(t, func(t *testing.T, a agent) { t.Run(a.name, a.test) })
}

// byFolder tests the agents of each folder below the folder's name, by which
// run.sh names them.
func byFolder(t *testing.T, test func(t *testing.T, a agent)) {
	if os.Getenv("AGENTS") == "" {
		t.Skip("no clients are installed: run examples/agents/run.sh")
	}
	var folders []string
	for _, a := range agents {
		if !slices.Contains(folders, a.folder) {
			folders = append(folders, a.folder)
		}
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			for _, a := range agents {
				if a.folder == folder {
					test(t, a)
				}
			}
		})
	}
}

func (a *agent) test(t *testing.T) {
	t.Parallel()
	t.Run("says the same through weir", a.testText)
	t.Run("runs a tool", a.testTool)
	t.Run("is refused", a.testKey)
	t.Run("tries again after 500", func(t *testing.T) { a.testRetry(t, "500", call.ServerError) })
	t.Run("tries again after 429", func(t *testing.T) { a.testRetry(t, "429", call.RateLimited) })
	t.Run("is killed", a.testKilled)
}

// Where an endpoint has no WebSocket, Codex would ask 7 times for one, unless it
// is answered as weir does.
func TestClientsWithoutWebSocket(t *testing.T) {
	byFolder(t, func(t *testing.T, a agent) {
		if a.name != "codex-websocket" {
			return
		}
		t.Run(a.name, func(t *testing.T) {
			e := newEndpoint(t)
			e.deaf = true
			w := newWeir(t, e.url)
			got := a.run(t, place{base: w.url + "/s/" + scenario, key: rightKey, prompt: "Speak. [[say " + words + "]]"}, nil)
			if got.failed || !strings.Contains(got.out, words) {
				t.Errorf("it got no answer: %v", got)
			}
			all := w.calls(t)
			a.check(t, e, all, call.OK)
			upgrades := 0
			for _, c := range all {
				if c.Purpose == call.PurposeConnection {
					upgrades++
				}
			}
			if upgrades != 1 {
				t.Errorf("it asked for a WebSocket %d times, want once", upgrades)
			}
		})
	})
}

// testText lets the client have an answer, once from the endpoint itself and
// once through weir.
func (a *agent) testText(t *testing.T) {
	prompt := "Speak. [[say " + words + "]]"
	plain := newEndpoint(t)
	direct := a.run(t, place{base: plain.url, key: rightKey, prompt: prompt}, nil)
	e := newEndpoint(t)
	w := newWeir(t, e.url)
	through := a.run(t, place{base: w.url + "/s/" + scenario, key: rightKey, prompt: prompt}, nil)
	if direct.failed || !strings.Contains(direct.out, words) {
		t.Errorf("without weir %v", direct)
	}
	if diff := cmp.Diff(direct.out, through.out); diff != "" {
		t.Errorf("through weir it says something else (-without +through):\n%s\n%v", diff, through)
	}
	a.check(t, e, w.calls(t), call.OK)

	// The same requests once more, for the bytes of the answers.
	one, other := newEndpoint(t), newEndpoint(t)
	w = newWeir(t, other.url)
	for _, r := range plain.asked {
		if r.header.Get("Upgrade") != "" {
			continue // its answers come over a connection of its own
		}
		if diff := cmp.Diff(r.send(t, one.url), r.send(t, w.url+"/s/"+scenario)); diff != "" {
			t.Errorf("the answer to %s %s differs (-without +through):\n%s", r.method, r.target, diff)
		}
	}
}

// testTool lets the client run a tool and send the result back.
func (a *agent) testTool(t *testing.T) {
	e := newEndpoint(t)
	w := newWeir(t, e.url)
	got := a.run(t, place{base: w.url + "/s/" + scenario, key: rightKey, prompt: a.toolPrompt()}, nil)
	wantToolResult(t, got)
	calls := a.check(t, e, w.calls(t), call.OK, call.OK)
	if len(calls) == 2 && (!calls[0].FirstTool.Reached() || calls[1].FirstTool.Reached()) {
		t.Errorf("first tool call at %v and %v, want one in the first call only", calls[0].FirstTool, calls[1].FirstTool)
	}
}

// toolPrompt lets the client run a tool, and then hear what it has sent back of
// that.
func (a *agent) toolPrompt() string { return "Do it. " + a.tool + " [[say The tool said {result}]]" }

func wantToolResult(t *testing.T, got ended) {
	t.Helper()
	_, result, answered := strings.Cut(got.out, "The tool said")
	if got.failed || !answered || !strings.Contains(result, "RAN") {
		t.Errorf("the endpoint did not hear what the tool said: %v", got)
	}
}

// testKey gives the client a key that the endpoint does not know.
func (a *agent) testKey(t *testing.T) {
	e := newEndpoint(t)
	w := newWeir(t, e.url)
	got := a.run(t, place{base: w.url + "/s/" + scenario, key: "sk-wrong-0123456789", prompt: "Speak. [[say " + words + "]]"}, nil)
	if strings.Contains(got.out, words) {
		t.Errorf("it got an answer: %v", got)
	}
	calls := generating(w.calls(t))
	if len(calls) == 0 {
		t.Fatalf("no call: %v", got)
	}
	for _, c := range calls {
		if c.Outcome != call.Auth || c.Status != 401 || c.FirstToken.Reached() || c.NoFirstToken != call.AbsentHTTPError {
			t.Errorf("call %v with first token %v (%q), want auth", c, c.FirstToken, c.NoFirstToken)
		}
	}
	a.checkNames(t, calls)
}

// testRetry lets the first request fail: the client sends it again.
func (a *agent) testRetry(t *testing.T, fault string, want call.Outcome) {
	e := newEndpoint(t)
	w := newWeir(t, e.url)
	got := a.run(t, place{base: w.url + "/s/" + scenario, key: rightKey, prompt: "Speak. [[fault " + fault + " 1]] [[say " + words + "]]"}, nil)
	if got.failed || !strings.Contains(got.out, words) {
		t.Errorf("it gave up: %v", got)
	}
	a.check(t, e, w.calls(t), want, call.OK)
}

// testKilled kills the client when it has the first half of an answer whose
// second half would come much later.
func (a *agent) testKilled(t *testing.T) {
	e := newEndpoint(t)
	e.plain = true
	w := newWeir(t, e.url)
	url, seen := relay(t, strings.TrimPrefix(w.url, "http://"), "Reservoirs")
	a.run(t, place{base: url + "/s/" + scenario, key: rightKey, prompt: "Speak. [[fault stall:10m]] [[say Reservoirs hold " + strings.Repeat("much water, ", 20) + "]]"}, seen)
	calls := generating(w.calls(t))
	if len(calls) != 1 || calls[0].Outcome != call.ClientGone {
		t.Fatalf("calls %v, want one that its client left", calls)
	}
	c := calls[0]
	if !c.FirstToken.Reached() || !c.Done.Reached() || c.Done < c.FirstToken.Received {
		t.Errorf("first token %v, done %v", c.FirstToken, c.Done)
	}
	a.checkNames(t, calls)
}
