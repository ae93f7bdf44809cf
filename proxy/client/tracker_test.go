package client

import (
	"fmt"
	"strings"
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
		{sentence: "one token under a system prompt too", at: 4 * s1, client: "openai-python", head: wire.Head{MaxTokens: wire.N(1)}, says: "system yes or no?\nuser sky",
			want: conversation("D", 1, 0, "")},
		{sentence: "one token of nothing is a probe, and no session", at: 4 * s1, client: "openai-python", head: wire.Head{MaxTokens: wire.N(1)}, says: "user hi", want: Place{Purpose: Probe}},
		{sentence: "embeddings", at: 5 * s1, client: "openai-python", op: wire.OpEmbeddings, says: "user fix it", want: Place{Purpose: Embeddings}},
		{sentence: "a program of no name, without tools", at: 5 * s1, says: "user of nobody", want: conversation("E", 1, 0, "")},
		{sentence: "no body that could be read", at: 5 * s1, client: "openai-python", want: Place{Purpose: Main}},
		{sentence: "tokens of a conversation that is known", at: 5 * s1, client: "openai-node", op: wire.OpCountTokens, says: "user fix it\nassistant done\nuser test it\nassistant ok\nuser more",
			want: Place{Session: "A", From: "conversation", Turn: 2, Purpose: CountTokens}},
		{sentence: "tokens of one that is not", at: 5 * s1, client: "openai-node", op: wire.OpCountTokens, says: "user else", want: Place{Purpose: CountTokens}},
		{sentence: "and counting did not make it known", at: 6 * s1, client: "openai-node", says: "user else", want: conversation("F", 1, 0, "")},
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
		{sentence: "then the conversation: a cache key is none", at: 5 * s1, client: "openai-python", head: wire.Head{PromptCacheKey: "cache", PreviousResponse: "r7"}, says: "user b", want: conversation("C", 0, 0, "")},
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
			{says: "user hi\nuser oh", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant oh\nuser x", want: conversation("B", 2, 0, "")},
		}},
		{"a branch stays in the session it leaves, and is its latest turn", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user a\nassistant b\nuser c\nassistant d\nuser e", want: conversation("A", 3, s1, "user")},
			{at: 6 * s1, says: "user a\nassistant b\nuser otherwise", want: conversation("A", 4, s1, "user")},
			{at: 8 * s1, says: "user a\nassistant b\nuser otherwise\nassistant d2\nuser e2", want: conversation("A", 5, s1, "user")},
		}},
		{"tools of an older branch are of its turn, and its next turn is the session's next", []step{
			{says: "user a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant b\nuser c", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user a\ncall d\nresult e", want: conversation("A", 1, s1, "tools")},
			{at: 6 * s1, says: "user a\ncall d\nresult e\nassistant f\nuser g", want: conversation("A", 3, s1, "user")},
		}},
		{"what begins as another conversation did goes on where that is open", []step{
			{says: "user a\nassistant b\nuser c", want: conversation("A", 2, 0, "")},
			{at: 2 * s1, says: "user a", want: conversation("B", 1, 0, "")},
			{at: 4 * s1, says: "user a\nassistant b\nuser c", want: conversation("B", 2, s1, "user")},
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
		{"a conversation goes on in one that waits for it, and where two do nobody knows who thought", []step{
			{says: "user hi", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", want: conversation("B", 1, 0, "")},
			{at: 2 * ms, takes: -1, says: "user hi", want: conversation("C", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant b\nuser x", want: conversation("B", 2, 0, "")},
			{at: 3 * s1, says: "user hi\nassistant a\nuser y", want: conversation("A", 2, 0, "")},
		}},
		{"a conversation goes on in the one whose answer it repeats", []step{
			{says: "user hi", answers: "a", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", answers: "b", want: conversation("B", 1, 0, "")},
			{at: 2 * ms, says: "user hi", answers: "c \n", want: conversation("C", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant a\nuser x", want: conversation("A", 2, s1, "user")},
			{at: 3 * s1, says: "user hi\nassistant c\nuser x", want: conversation("C", 2, 1998*ms, "user")},
			{at: 4 * s1, says: "user hi\nassistant b\nuser x", want: conversation("B", 2, 2999*ms, "user")},
		}},
		{"and if that one went on before, it branches off there", []step{
			{says: "user hi", answers: "a", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", answers: "b", want: conversation("B", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant a\nuser x", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user hi\nassistant a\nuser y", want: conversation("A", 3, s1, "user")},
		}},
		{"an answer that nobody gave is the client's way to spell it, where only one conversation has begun so", []step{
			{says: "user hi", answers: "a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant else\nuser x", want: conversation("A", 2, s1, "user")},
		}},
		{"of several equal beginnings it is of another conversation", []step{
			{says: "user hi", answers: "a", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", answers: "b", want: conversation("B", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant else\nuser x", want: conversation("C", 2, 0, "")},
		}},
		{"and so it is of a conversation that went on with what it was answered", []step{
			{says: "user hi", answers: "a", want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant a\nuser x", want: conversation("A", 2, s1, "user")},
			{at: 4 * s1, says: "user hi\nassistant else\nuser y", want: conversation("B", 2, 0, "")},
		}},
		{"unless a part of it is known: then an answer was rewritten", []step{
			{says: "user hi\nassistant oh\nuser a", answers: "b", want: conversation("A", 2, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant oh\nuser a\nassistant else\nuser x", want: conversation("A", 3, s1, "user")},
		}},
		{"equal answers are told apart by the tag", []step{
			{says: "user hi", tag: "one", answers: "a", want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", tag: "two", answers: "a", want: conversation("B", 1, 0, "")},
			{at: 2 * s1, says: "user hi\nassistant a\nuser x", tag: "one", want: conversation("A", 2, s1, "user")},
			{at: 3 * s1, says: "user hi\nassistant a\nuser x", tag: "two", want: conversation("B", 2, 1999*ms, "user")},
		}},
		{"of what failed, what has the same tag is tried again", []step{
			{says: "user hi", tag: "one", fails: true, want: conversation("A", 1, 0, "")},
			{at: ms, says: "user hi", tag: "two", fails: true, want: conversation("B", 1, 0, "")},
			{at: 2 * s1, says: "user hi", tag: "one", want: retry},
		}},
		{"a cache key that many share makes no session of them", []step{
			{says: "user a", head: wire.Head{PromptCacheKey: "app"}, want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user b", head: wire.Head{PromptCacheKey: "app"}, want: conversation("B", 1, 0, "")},
			{at: 4 * s1, says: "user a\nassistant x\nuser c", head: wire.Head{PromptCacheKey: "app"}, want: conversation("A", 2, 3*s1, "user")},
			{at: 6 * s1, says: "user b\nassistant x\nuser c", head: wire.Head{PromptCacheKey: "app"}, want: conversation("B", 2, 3*s1, "user")},
		}},
		{"but two keys keep equal conversations apart", []step{
			{says: "user a", head: wire.Head{PromptCacheKey: "one"}, want: conversation("A", 1, 0, "")},
			{at: ms, says: "user a", head: wire.Head{PromptCacheKey: "two"}, want: conversation("B", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant x\nuser c", head: wire.Head{PromptCacheKey: "one"}, want: conversation("A", 2, s1, "user")},
		}},
		{"and a cache key of two callers is two", []step{
			{says: "user a", caller: "one", head: wire.Head{PromptCacheKey: "app"}, want: conversation("A", 1, 0, "")},
			{at: 2 * s1, says: "user a\nassistant x\nuser c", caller: "two", head: wire.Head{PromptCacheKey: "app"}, want: conversation("B", 2, 0, "")},
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

func TestACallThatEndsTwiceHidesNoOther(t *testing.T) {
	tracker := new(Tracker)
	call := func(says string, at time.Duration) Place {
		return tracker.Place((&step{client: "ai-sdk", at: at, says: says}).request())
	}
	first := call("user a", 0)
	tracker.Ended(first, "", s1, true)
	tracker.Ended(first, "", s1, true)
	call("user a\nassistant b\nuser c", 2*s1)
	if p := call("user a\nassistant b\nuser d", 3*s1); p.Think != 0 {
		t.Errorf("a call beside another one has a think time of %v", p.Think)
	}
}

func TestAConversationMayBeNamed(t *testing.T) {
	tracker := new(Tracker)
	call := func(session, says string, at time.Duration, turn int) Place {
		p := tracker.Place((&step{client: "ai-sdk", session: session, at: at, says: says, turn: turn}).request())
		tracker.Ended(p, "", at+s1, true)
		return p
	}
	a := call("", "user hi", 0, 0)
	call("", "user hi\nassistant b\nuser c", 2*s1, 0)
	call("", "user hi", 4*s1, 50) // another conversation, which waits for its next turn
	got := call(a.Session, "user hi\nassistant d\nuser e", 6*s1, 0)
	if diff := cmp.Diff(Place{Session: a.Session, From: "weir", Turn: 3, Purpose: Main, Think: 3 * s1, ThinkFor: "user"}, got, ofPlace); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
