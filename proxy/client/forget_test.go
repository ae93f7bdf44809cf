package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func TestSessionsAreForgotten(t *testing.T) {
	named := func(id string, at time.Duration, turns int) *Request {
		s := step{client: "openai-node", header: []string{"x-session-id: " + id}, at: at, head: wire.Head{TurnCount: turns}}
		return s.request()
	}
	t.Run("the least recently used first", func(t *testing.T) {
		tracker := &Tracker{MaxSessions: 3}
		for i, id := range []string{"a", "b", "c", "a", "d"} { // d takes the room of b
			tracker.Ended(tracker.Place(named(id, time.Duration(i)*s1, 7)), "", time.Duration(i)*s1, true)
		}
		got := map[string]int{}
		for _, id := range []string{"a", "c", "d"} {
			got[id] = tracker.Place(named(id, 9*s1, 1)).Turn // what is remembered does not go back
		}
		got["b"] = tracker.Place(named("b", 10*s1, 1)).Turn
		if diff := cmp.Diff(map[string]int{"a": 7, "b": 1, "c": 7, "d": 7}, got); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	})
	t.Run("after an hour of silence", func(t *testing.T) {
		tracker := new(Tracker)
		tracker.Ended(tracker.Place(named("a", 0, 7)), "", s1, true)
		if got := tracker.Place(named("a", time.Hour+s1, 1)).Turn; got != 7 {
			t.Errorf("an hour after its end it is turn %d, want 7", got)
		}
		if got := tracker.Place(named("a", 2*time.Hour+2*s1, 1)).Turn; got != 1 {
			t.Errorf("more than an hour later it is turn %d, want 1", got)
		}
	})
	t.Run("or sooner", func(t *testing.T) {
		tracker := &Tracker{Idle: time.Minute}
		tracker.Ended(tracker.Place(named("a", 0, 7)), "", s1, true)
		if got := tracker.Place(named("a", time.Minute+2*s1, 1)).Turn; got != 1 {
			t.Errorf("it is turn %d, want 1", got)
		}
	})
	t.Run("and a call of theirs may end after that, or twice, or never", func(t *testing.T) {
		tracker := &Tracker{MaxSessions: 1}
		old := tracker.Place(named("a", 0, 1))
		tracker.Place(named("b", s1, 1))
		tracker.Ended(old, "r1", 2*s1, true)
		tracker.Ended(old, "r1", 3*s1, true)
		tracker.Ended(Place{}, "r2", 3*s1, true)
		if p := tracker.Place((&step{client: "openai-node", at: 4 * s1, head: wire.Head{PreviousResponse: "r1"}, says: "user x"}).request()); p.From != fromConversation {
			t.Errorf("a response of a forgotten session leads to %q by %q", p.Session, p.From)
		}
	})
	t.Run("and nothing is taken for theirs", func(t *testing.T) {
		tracker := &Tracker{MaxSessions: 1}
		routing := step{client: "gemini-cli", head: wire.Head{OutputType: "json"}, says: "user hi"}
		old := tracker.Place(routing.request())
		tracker.Place(named("b", s1, 1))
		main := step{client: "gemini-cli", at: 2 * s1, says: "tool a\nuser hi"}
		if p := tracker.Place(main.request()); old.Purpose != Routing || p.Session == old.Session || p.From != fromConversation {
			t.Errorf("%q by %q behind %q, which is forgotten", p.Session, p.From, old.Session)
		}
	})
	t.Run("with all that was kept of them", func(t *testing.T) {
		tracker := &Tracker{MaxSessions: 5}
		for i := range 3000 {
			s := step{client: "openai-node", at: time.Duration(i) * s1, fails: i%5 == 0, says: fmt.Sprint("user hi\nassistant oh\nuser ", i%2)}
			switch i % 4 {
			case 0:
				s.header = []string{"x-session-id: a", fmt.Sprint("x-claude-code-agent-id: ", i)}
			case 1:
				s.header = []string{"x-session-id: a"}
			case 2:
				s.header = []string{fmt.Sprint("x-session-id: ", i)}
			}
			tracker.Ended(tracker.Place(s.request()), fmt.Sprint("r", i), s.at+ms, !s.fails)
		}
		kept := 0
		for e := tracker.used.Front(); e != nil; e = e.Next() {
			s := e.Value.(*session)
			kept += len(s.calls)
			if len(s.calls) > callsKept || len(s.agents) > agentsKept {
				t.Errorf("session %s keeps %d calls and %d agents", s.id, len(s.calls), len(s.agents))
			}
		}
		found := 0
		for _, c := range tracker.calls {
			for length := 1; c != nil; c, length = c.older, length+1 {
				found++
				if c.session.forgotten || length > sameKept {
					t.Fatalf("a call is found as number %d of its hash; session forgotten: %v", length, c.session.forgotten)
				}
			}
		}
		if len(tracker.sessions) != 5 || found > kept || len(tracker.responses) > kept || len(tracker.latest) > 5 {
			t.Errorf("%d sessions, %d calls kept, %d found, %d responses, %d callers", len(tracker.sessions), kept, found, len(tracker.responses), len(tracker.latest))
		}
	})
}
