package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/proxy/wire"
)

// A step is one call: what it sends, when, how it ends and where it belongs.
type step struct {
	sentence string
	at       time.Duration // of its arrival
	takes    time.Duration // 0: a second; below 0: it does not end
	client   string
	caller   string
	op       wire.Operation // "": chat
	api      wire.API       // "": by the client
	header   []string       // "name: value"
	head     wire.Head      // TurnCount, MessageCount and ToolCount follow from says where they are 0
	says     string
	prewarm  bool
	session  string // X-Weir-Session
	turn     int    // X-Weir-Turn
	fails    bool
	response string
	answers  string // what the answer says that weir saw; empty: nobody saw it
	tag      string
	want     Place
}

var ofPlace = cmpopts.IgnoreUnexported(Place{})

// apis are what the clients speak.
var apis = map[string]wire.API{
	"claude-code": wire.Messages, "anthropic-node": wire.Messages, "codex": wire.Responses, "opencode": wire.Chat,
	"gemini-cli": wire.Gemini, "openai-node": wire.Chat, "openai-python": wire.Responses, "ai-sdk": wire.Chat,
}

func (s *step) request() *Request {
	shape, head := shapeOf(s.says, s.head)
	r := &Request{
		Client: s.client, Caller: s.caller, API: s.api, Operation: s.op, Header: http.Header{}, Head: &head, Shape: shape,
		Arrived: s.at, Prewarm: s.prewarm, Session: s.session, Turn: s.turn, Tag: s.tag,
	}
	if r.API == "" {
		r.API = apis[s.client]
	}
	if r.Operation == "" {
		r.Operation = wire.OpChat
	}
	for _, line := range s.header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// shapeOf makes a request's shape of lines: "tool NAME", "system TEXT",
// "user TEXT", "think TEXT", "assistant TEXT", "call TEXT", "result TEXT", and
// "+ TEXT", which is one more text in the user's message before it.
func shapeOf(says string, head wire.Head) (shape wire.Shape, _ wire.Head) {
	turns, messages, tools := 0, 0, 0
	add := func(role wire.Role, kind wire.Kind, text string) {
		size := len(text)
		if text == "LONG" {
			size = 50_000
		}
		shape.Blocks = append(shape.Blocks, wire.Block{Role: role, Kind: kind, Bytes: size, Hash: xxhash.Sum64String(text)})
	}
	for line := range strings.Lines(says) {
		line = strings.TrimSpace(line)
		what, text, _ := strings.Cut(line, " ")
		switch what {
		case "":
			continue
		case "tool":
			add(wire.Definition, 0, text)
			tools++
			continue
		case "system":
			add(wire.System, wire.KindText, text)
			continue
		case "user":
			add(wire.User, wire.KindText, text)
			turns++
		case "+":
			add(wire.User, wire.KindText, text)
			continue
		case "think":
			add(wire.Assistant, wire.KindReasoning, text)
			continue
		case "assistant":
			shape.Blocks = append(shape.Blocks, spoken(text))
		case "call":
			add(wire.Assistant, wire.KindTool, text)
		case "result":
			add(wire.ToolRole, wire.KindToolResult, text)
		default:
			panic(line)
		}
		messages++
	}
	if head.TurnCount == 0 {
		head.TurnCount = turns
	}
	if head.MessageCount == 0 {
		head.MessageCount = messages
	}
	if head.ToolCount == 0 {
		head.ToolCount = tools
	}
	return shape, head
}

// spoken is the block of a text that the assistant said.
func spoken(text string) wire.Block {
	shape, err := wire.ReadShape(wire.Chat, fmt.Appendf(nil, `{"messages":[{"role":"assistant","content":%q}]}`, text))
	if err != nil {
		panic(err)
	}
	return shape.Blocks[0]
}

// hears has a place's reply hear an answer, in two pieces.
func hears(p *Place, answer string) {
	reply := p.Reply()
	if reply == nil || answer == "" {
		return
	}
	half := len(answer) / 2
	for _, words := range []string{answer[:half], answer[half:]} {
		reply.Event(&wire.Event{Text: []byte(words)})
	}
}

// play places the calls of steps in the order of their arrival, and ends each
// when it is over. It gives what was found.
func play(t *testing.T, tracker *Tracker, steps []step) []Place {
	t.Helper()
	type running struct {
		step  *step
		place Place
	}
	var open []running
	endBefore := func(at time.Duration) {
		for {
			next, end := -1, at
			for i, r := range open {
				if e := r.step.at + r.step.takes; e <= end {
					next, end = i, e
				}
			}
			if next < 0 {
				return
			}
			r := open[next]
			hears(&r.place, r.step.answers)
			tracker.Ended(r.place, r.step.response, end, !r.step.fails)
			open = append(open[:next], open[next+1:]...)
		}
	}
	places := make([]Place, len(steps))
	for i := range steps {
		s := &steps[i]
		if s.takes == 0 {
			s.takes = time.Second
		}
		endBefore(s.at)
		places[i] = tracker.Place(s.request())
		if s.takes > 0 {
			open = append(open, running{s, places[i]})
		}
	}
	return places
}

// names replaces weir's own names of sessions by A, B, C in the order of their
// appearance, and says what does not look like one.
func names(t *testing.T, places []Place) {
	t.Helper()
	letters := map[string]string{}
	for i := range places {
		p := &places[i]
		if p.From != fromConversation && (p.From != fromResponse || !strings.HasPrefix(p.Session, "conv-")) {
			continue
		}
		if len(p.Session) != len("conv-0123456789ab") || !strings.HasPrefix(p.Session, "conv-") {
			t.Errorf("%q is no name of a conversation", p.Session)
		}
		if letters[p.Session] == "" {
			letters[p.Session] = string(rune('A' + len(letters)))
		}
		p.Session = letters[p.Session]
	}
}

func check(t *testing.T, steps []step) {
	t.Helper()
	places := play(t, new(Tracker), steps)
	names(t, places)
	for i, s := range steps {
		if diff := cmp.Diff(s.want, places[i], ofPlace); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.sentence, diff)
		}
	}
}
