package client

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/proxy/wire"
)

func conversation(session string, turn int, think time.Duration, who string) Place {
	return Place{Session: session, From: "conversation", Turn: turn, Purpose: Main, Think: think, ThinkFor: who}
}

func TestSDKsAreMain(t *testing.T) {
	check(t, []step{
		{sentence: "a small call without tools", client: "openai-node", says: "system name it\nuser fix it", want: conversation("A", 1, 0, "")},
		{sentence: "its next turn", at: 3 * s1, client: "openai-node", says: "system other\nuser fix it\nassistant done\nuser test it", want: conversation("A", 2, 2*s1, "user")},
		{sentence: "another SDK with the same words", at: 3 * s1, client: "anthropic-node", says: "user fix it\nassistant done\nuser test it", want: conversation("B", 2, 0, "")},
		{sentence: "one token of a long prompt is a judgement", at: 4 * s1, client: "openai-python", head: wire.Head{MaxTokens: wire.N(1)}, says: "user is this text, which is not short, a good one or a bad one?",
			want: conversation("C", 1, 0, "")},
		{sentence: "one token of nothing is a probe, and no session", at: 4 * s1, client: "openai-python", head: wire.Head{MaxTokens: wire.N(1)}, says: "user hi", want: Place{Purpose: Probe}},
		{sentence: "embeddings", at: 5 * s1, client: "openai-python", op: wire.OpEmbeddings, says: "user fix it", want: Place{Purpose: Embeddings}},
		{sentence: "a program of no name, without tools", at: 5 * s1, says: "user of nobody", want: conversation("D", 1, 0, "")},
		{sentence: "no body that could be read", at: 5 * s1, client: "openai-python", want: Place{Purpose: Main}},
		{sentence: "tokens of a conversation that is known", at: 5 * s1, client: "openai-node", op: wire.OpCountTokens, says: "user fix it\nassistant done\nuser test it\nassistant ok\nuser more",
			want: Place{Session: "A", From: "conversation", Turn: 2, Purpose: CountTokens}},
		{sentence: "tokens of one that is not", at: 5 * s1, client: "openai-node", op: wire.OpCountTokens, says: "user else", want: Place{Purpose: CountTokens}},
		{sentence: "and counting did not make it known", at: 6 * s1, client: "openai-node", says: "user else", want: conversation("E", 1, 0, "")},
		{sentence: "an unknown program in a session with tools", at: 6 * s1, client: "mine", header: []string{"x-session-id: m1"}, says: "tool a\nuser x", want: Place{Session: "m1", From: "header", Turn: 1, Purpose: Main}},
		{sentence: "asks for a title", at: 6 * s1, client: "mine", header: []string{"x-session-id: m1"}, says: "user x", want: Place{Session: "m1", From: "header", Turn: 1, Purpose: Title}},
		{sentence: "an SDK does not", at: 6 * s1, client: "openai-node", header: []string{"x-session-id: m1"}, says: "user y", want: Place{Session: "m1", From: "header", Turn: 2, Purpose: Main}},
		{sentence: "weir's own generator neither", at: 6 * s1, client: "weir", session: "w", turn: 3, head: wire.Head{MaxTokens: wire.N(1)}, says: "user hi", want: Place{Session: "w", From: "weir", Turn: 3, Purpose: Main}},
	})
}

func TestSessionsAreFoundInOrder(t *testing.T) {
	header := []string{"x-claude-code-session-id: head"}
	all := wire.Head{User: "user_a_session_body", PromptCacheKey: "cache", PreviousResponse: "r1"}
	of := func(session, from string, turn int) Place {
		return Place{Session: session, From: from, Turn: turn, Purpose: Main}
	}
	check(t, []step{
		{sentence: "a first response", client: "openai-python", says: "user a", response: "r1", want: conversation("A", 1, 0, "")},
		{sentence: "weir's header wins", at: 2 * s1, client: "openai-python", session: "weir", turn: 9, header: header, head: all, says: "user b", want: of("weir", "weir", 9)},
		{sentence: "then the client's", at: 2 * s1, client: "openai-python", header: header, head: all, says: "user b", want: of("head", "header", 0)},
		{sentence: "then its metadata", at: 2 * s1, client: "openai-python", head: all, says: "user b", want: of("body", "body", 0)},
		{sentence: "then the response", at: 2 * s1, client: "openai-python", head: wire.Head{PromptCacheKey: "cache", PreviousResponse: "r1"}, says: "user b",
			response: "r2", want: Place{Session: "A", From: "response", Turn: 2, Purpose: Main, Think: s1, ThinkFor: "user"}},
		{sentence: "which leads on", at: 4 * s1, client: "openai-python", head: wire.Head{PreviousResponse: "r2"}, says: "result c",
			want: Place{Session: "A", From: "response", Turn: 2, Purpose: Main, Think: s1, ThinkFor: "tools"}},
		{sentence: "another caller's response of that id is none", at: 5 * s1, client: "openai-python", caller: "else", head: wire.Head{PreviousResponse: "r1"}, says: "user b",
			want: conversation("B", 0, 0, "")},
		{sentence: "then the cache key", at: 5 * s1, client: "openai-python", head: wire.Head{PromptCacheKey: "cache", PreviousResponse: "r7"}, says: "user b", want: of("cache", "body", 0)},
	})
}

func TestConversations(t *testing.T) {
	retry := conversation("A", 1, 0, "")
	retry.Retry = true
	for _, row := range []struct {
		sentence string
		steps    []step
	}{
		{"the same after a good answer is a new conversation", []step{
			{says: "user hi", want: conversation("A", 1, 0, "")},
			{at: time.Hour / 2, says: "user hi", want: conversation("B", 1, 0, "")},
		}},
		{"the same after a failure is a retry, and its own retry too", []step{
			{says: "user hi", fails: true, want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user hi", fails: true, want: retry},
			{at: 4 * s1, says: "user hi", want: retry},
			{at: 6 * s1, says: "user hi", want: conversation("B", 1, 0, "")},
		}},
		{"the same long after a failure is not", []step{
			{says: "user hi", fails: true, want: conversation("A", 1, 0, "")},
			{at: 12 * time.Minute, says: "user hi", want: conversation("B", 1, 0, "")},
		}},
		{"the same beside one that has not ended is another conversation", []step{
			{says: "user hi", takes: -1, want: conversation("A", 1, 0, "")},
			{at: s1, says: "user hi", want: conversation("B", 1, 0, "")},
		}},
		{"two that failed are each tried again", []step{
			{says: "user hi", fails: true, want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", fails: true, want: conversation("B", 1, 0, "")},
			{at: 3 * s1, says: "user hi", want: Place{Session: "B", From: "conversation", Turn: 1, Purpose: Main, Retry: true}},
			{at: 3 * s1, says: "user hi", want: retry},
		}},
		{"another system prompt and other tools are the same conversation", []step{
			{says: "tool a\nsystem monday\nuser hi", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "tool b\nsystem tuesday\nuser hi\nassistant oh\nuser x", want: conversation("A", 2, s1, "user")},
		}},
		{"another first message is not", []step{
			{says: "user hi", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user hello\nassistant oh\nuser x", want: conversation("B", 2, 0, "")},
		}},
		{"nor is the same text of another speaker", []step{
			{says: "user hi\nassistant oh\nuser x", want: conversation("A", 2, 0, "")},
			{at: 2 * s1, says: "user hi\ncall a\nresult x\nassistant y\nuser z", want: conversation("B", 2, 0, "")},
		}},
		{"a branch stays in the session it leaves, and is its latest turn", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user a\nassistant b\nuser c\nassistant d\nuser e", want: conversation("A", 3, s1, "user")},
			{at: 6 * s1, says: "user a\nassistant b\nuser otherwise", want: conversation("A", 4, s1, "user")},
			{at: 8 * s1, says: "user a\nassistant b\nuser otherwise\nassistant d2\nuser e2", want: conversation("A", 5, s1, "user")},
		}},
		{"one more answer to the same question is the same turn, and nobody thought", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, 0, "")},
		}},
		{"calls beside each other have no think time", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, takes: 5 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, s1, "user")},
			{at: 3 * s1, says: "user a\nassistant b\nuser d", want: conversation("A", 3, 0, "")},
			{at: 9 * s1, says: "user a\nassistant b\nuser d\nassistant e\nuser f", want: conversation("A", 4, 2*s1, "user")},
		}},
		{"a conversation goes on in the one that waits for it", []step{
			{says: "user hi", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", want: conversation("B", 1, 0, "")},
			{at: 2 * ms, takes: -1, says: "user hi", want: conversation("C", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant b\nuser x", want: conversation("B", 2, 999*ms, "user")},
			{at: 3 * s1, says: "user hi\nassistant a\nuser y", want: conversation("A", 2, 2*s1, "user")},
		}},
		{"calls that weir did not see count as turns", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 5 * s1, says: "user a\nassistant b\nuser c\nassistant d\nuser e", want: conversation("A", 3, 4*s1, "user")},
		}},
		{"what the user added to a question that failed is a turn", []step{
			{says: "user a", fails: true, want: conversation("A", 1, 0, "")},
			{at: 5 * s1, says: "user a\nuser b", want: conversation("A", 2, 4*s1, "user")},
		}},
		{"a reminder in the same message is not", []step{
			{says: "user a", fails: true, want: conversation("A", 1, 0, "")},
			{at: 5 * s1, says: "user a\n+ <reminder>", want: conversation("A", 1, 4*s1, "user")},
		}},
		{"an answer that was cut is gone on with: a retry", []step{
			{says: "user a", fails: true, want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant half", want: retry},
			{at: 5 * s1, says: "user a\nassistant half and all\nuser b", want: conversation("A", 2, 2*s1, "user")},
		}},
		{"callers are kept apart", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, caller: "other", says: "user a\nassistant b\nuser c", want: conversation("B", 2, 0, "")},
		}},
		{"reasoning alone says nothing", []step{
			{says: "think a", want: Place{Purpose: Main}},
		}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			for i := range row.steps {
				row.steps[i].sentence, row.steps[i].client = fmt.Sprint("call ", i+1), "ai-sdk"
			}
			check(t, row.steps)
		})
	}
}

func TestRequestsOfNothing(t *testing.T) {
	tracker := new(Tracker)
	if diff := cmp.Diff(Place{Purpose: Other}, tracker.Place(&Request{}), ofPlace); diff != "" {
		t.Errorf("nothing at all (-want +got):\n%s", diff)
	}
	r := &Request{Operation: wire.OpChat, Session: "s", Arrived: s1}
	if diff := cmp.Diff(Place{Session: "s", From: "weir", Turn: 1, Purpose: Main}, tracker.Place(r), ofPlace); diff != "" {
		t.Errorf("a session and no more (-want +got):\n%s", diff)
	}
}

func TestTurnsOfNamedSessionsWithoutAShape(t *testing.T) {
	header := []string{"x-session-id: s"}
	of := func(turn int) Place { return Place{Session: "s", From: "header", Turn: turn, Purpose: Main} }
	steps := []step{
		{sentence: "resumed", head: wire.Head{TurnCount: 4}, want: of(4)},
		{sentence: "tools", at: 2 * s1, head: wire.Head{TurnCount: 4}, want: of(4)},
		{sentence: "the user", at: 4 * s1, head: wire.Head{TurnCount: 5}, want: of(5)},
		{sentence: "a shorter history does not go back", at: 6 * s1, head: wire.Head{TurnCount: 1}, want: of(5)},
		{sentence: "and goes on from there", at: 8 * s1, head: wire.Head{TurnCount: 2}, want: of(6)},
		{sentence: "weir's header wins", at: 10 * s1, turn: 12, head: wire.Head{TurnCount: 3}, want: of(12)},
		{sentence: "for what follows too", at: 12 * s1, head: wire.Head{TurnCount: 4}, want: of(13)},
		{sentence: "what is new beside a response, of the user", at: 14 * s1, head: wire.Head{PreviousResponse: "r", TurnCount: 1}, want: of(14)},
		{sentence: "and of tools", at: 16 * s1, head: wire.Head{PreviousResponse: "r2"}, want: of(14)},
	}
	for i := range steps {
		steps[i].client, steps[i].header = "openai-node", header
	}
	check(t, steps)
}

func TestRewrittenHistoryDoesNotGoBack(t *testing.T) {
	header := []string{"x-claude-code-session-id: s"}
	of := func(turn int, who string) Place {
		return Place{Session: "s", From: "header", Turn: turn, Purpose: Main, Think: s1, ThinkFor: who}
	}
	steps := []step{
		{sentence: "third turn", says: "tool a\nuser a\nassistant b\nuser c\nassistant d\nuser e", want: Place{Session: "s", From: "header", Turn: 3, Purpose: Main}},
		{sentence: "results behind another history", at: 2 * s1, says: "tool a\nuser summary\ncall x\nresult y", want: of(3, "tools")},
		{sentence: "a question behind another history", at: 4 * s1, says: "tool a\nuser summary2\nassistant z\nuser f", want: of(4, "user")},
		{sentence: "results with a reminder, of the user's role, behind another", at: 6 * s1, says: "tool a\nuser summary3\ncall x\nresult y\n+ <reminder>", want: of(4, "tools")},
	}
	for i := range steps {
		steps[i].client, steps[i].header = "claude-code", header
	}
	check(t, steps)
}

// talker is one real conversation, which goes on by itself.
type talker struct {
	client, caller, opening string
	says                    strings.Builder
	calls, turn             int
	at                      time.Duration // of its next call
	sessions                []string
}

func (w *talker) next(r *rand.Rand) step {
	switch {
	case w.calls == 0:
		w.says.WriteString("user " + w.opening)
		w.turn = 1
	case r.IntN(2) == 0:
		fmt.Fprintf(&w.says, "\nthink %x\ncall %x\nresult %x", r.Uint64(), r.Uint64(), r.IntN(3))
	default:
		fmt.Fprintf(&w.says, "\nassistant %x\nuser go on", r.Uint64())
		w.turn++
	}
	w.calls++
	// Reasoning is dropped when it pleases the client.
	says := w.says.String()
	if r.IntN(2) == 0 {
		var kept []string
		for _, line := range strings.Split(says, "\n") {
			if !strings.HasPrefix(line, "think ") {
				kept = append(kept, line)
			}
		}
		says = strings.Join(kept, "\n")
	}
	return step{client: w.client, caller: w.caller, says: fmt.Sprintf("system %d\n%s", r.IntN(3), says), at: w.at}
}

// Whatever order calls of many conversations come in, each conversation is one
// session. Those that begin with the same words under the same name cannot be
// told apart before they have an answer: from there on they are.
func TestInterleavedConversationsAreSeparated(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		var talkers []*talker
		for range 24 {
			talkers = append(talkers, &talker{
				client: []string{"openai-node", "ai-sdk"}[r.IntN(2)], caller: fmt.Sprint("caller ", r.IntN(3)),
				opening: fmt.Sprint("opening ", r.IntN(4)), at: time.Duration(r.IntN(1000)) * ms,
			})
		}
		tracker := new(Tracker)
		now := time.Duration(0)
		for range 300 {
			w := talkers[0]
			for _, other := range talkers {
				if other.at < w.at {
					w = other
				}
			}
			now = w.at
			s := w.next(r)
			p := tracker.Place(s.request())
			tracker.Ended(p, "", now+ms, true)
			w.sessions = append(w.sessions, p.Session)
			w.at += time.Duration(2+r.IntN(2000)) * ms
			if p.Turn != w.turn || p.Retry {
				t.Fatalf("seed %d: turn %d, retry %v; want turn %d", seed, p.Turn, p.Retry, w.turn)
			}
		}
		alike := map[string]int{}
		for _, w := range talkers {
			alike[w.client+w.caller+w.opening]++
		}
		owner := map[string]*talker{}
		for _, w := range talkers {
			own := w.sessions
			if alike[w.client+w.caller+w.opening] > 1 && len(own) > 0 {
				own = own[1:]
			}
			for _, session := range own {
				if session != own[0] {
					t.Fatalf("seed %d: one conversation is in the sessions %s and %s", seed, own[0], session)
				}
				if other := owner[session]; other != nil && other != w {
					t.Fatalf("seed %d: two conversations are in session %s", seed, session)
				}
				owner[session] = w
			}
		}
	}
}

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
	t.Run("with all that was kept of them", func(t *testing.T) {
		tracker := &Tracker{MaxSessions: 5}
		for i := range 3000 {
			s := step{client: "openai-node", at: time.Duration(i) * s1, fails: i%5 == 0, says: fmt.Sprint("user hi\nassistant oh\nuser ", i%3)}
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

func TestTrackerIsSafeForConcurrentUse(t *testing.T) {
	tracker := &Tracker{MaxSessions: 20}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			w := &talker{client: "ai-sdk", caller: fmt.Sprint(i), opening: "hi"}
			var first string
			for range 100 {
				s := w.next(r)
				p := tracker.Place(s.request())
				tracker.Ended(p, fmt.Sprint("r", i), w.at+ms, true)
				if first == "" {
					first = p.Session
				}
				if p.Session != first || p.Turn != w.turn {
					t.Errorf("caller %d: session %s turn %d, want %s %d", i, p.Session, p.Turn, first, w.turn)
					return
				}
				w.at += s1
			}
		})
	}
	all.Wait()
}

// BenchmarkPlace places requests of 400 blocks beside 4,096 other sessions:
// one that goes on from calls before, and one that nobody has seen, which is
// looked for at each of its blocks.
func BenchmarkPlace(b *testing.B) {
	var says strings.Builder
	says.WriteString("system s\nuser start")
	for i := range 199 {
		fmt.Fprintf(&says, "\ncall %d\nresult %d", i, i)
	}
	full := func(opening string) *Tracker {
		t := new(Tracker)
		for i := range defaultSessions {
			s := step{client: "ai-sdk", says: fmt.Sprint(opening, i)}
			t.Ended(t.Place(s.request()), "", ms, true)
		}
		return t
	}
	b.Run("known", func(b *testing.B) {
		t := full("user x")
		s := step{client: "ai-sdk", says: says.String()}
		r := s.request()
		grown := *r
		grown.Shape.Blocks = append(append([]wire.Block{}, r.Shape.Blocks...), r.Shape.Blocks[2], r.Shape.Blocks[3])
		t.Ended(t.Place(r), "", s1, true)
		b.ReportAllocs()
		for i := uint64(1); b.Loop(); i++ {
			grown.Shape.Blocks[len(grown.Shape.Blocks)-1].Hash = i
			t.Ended(t.Place(&grown), "", s1, true)
		}
	})
	b.Run("unknown", func(b *testing.B) {
		t := full("user x")
		s := step{client: "ai-sdk", says: says.String()}
		r := s.request()
		b.ReportAllocs()
		for i := uint64(1); b.Loop(); i++ {
			r.Shape.Blocks[1].Hash = i
			t.Ended(t.Place(r), "", s1, true)
		}
	})
}
