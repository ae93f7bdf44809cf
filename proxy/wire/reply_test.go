package wire

import "testing"

// An answer that was streamed is known again in the request that repeats it, as
// each dialect's clients write it, and no other is taken for it.
func TestReplyIsKnownAgain(t *testing.T) {
	for _, api := range []API{Chat, Responses, Messages, Gemini} {
		var reply Reply
		ev := &Event{}
		split := NewSplitter(SSE, 0)
		split.Feed(writeStream(api, SSE), func(f Frame) {
			if err := For(api).ParseEvent(ev, f); err != nil {
				t.Fatal(err)
			}
			reply.Event(ev)
		})
		said := reply.Said()
		behind := func(parts ...Part) []Block {
			body, err := For(api).AppendRequest(nil, &Request{Head: Head{Model: "m"}, Messages: []Message{{User, []Part{{Kind: KindText, Text: "q"}}}, {Assistant, parts}}})
			if err != nil {
				t.Fatal(err)
			}
			shape, err := ReadShape(api, body)
			if err != nil {
				t.Fatal(err)
			}
			return shape.Blocks[1:]
		}
		text := Part{Kind: KindText, Text: "你好,\n\"world\" 🌊"}
		call := Part{Kind: KindTool, ID: "call_1", Name: "grep", Arguments: `{"q":"a"}`}
		otherText, otherCall := text, call
		otherText.Text, otherCall.ID = "hello", "call_9"
		for _, row := range []struct {
			sentence    string
			blocks      []Block
			same, known bool
		}{
			{"all of it", behind(text, call), true, true},
			{"the text alone", behind(text), true, true},
			{"another text", behind(otherText), false, true},
			{"nothing", nil, false, false},
			{"the call alone", behind(call), true, true},
			{"another call", behind(otherCall), false, true},
		} {
			if same, known := said.Repeats(row.blocks); same != row.same || known != row.known {
				t.Errorf("%s: %s: same %v, known %v; want %v, %v", api, row.sentence, same, known, row.same, row.known)
			}
		}
	}
}

func TestReplyOfAWholeAnswer(t *testing.T) {
	var whole, streamed Reply
	whole.Answer(&Answer{Parts: []Part{{Kind: KindReasoning, Text: "hm"}, {Kind: KindText, Text: "a b \n"}, {Kind: KindTool, ID: "c"}, {Kind: KindText, Text: "more"}}})
	for _, ev := range []Event{{Text: []byte("a ")}, {Text: []byte("b")}, {Text: []byte(" \n")}, {Type: []byte("content_block_stop")}, {Text: []byte("more")}, {Tools: []ToolDelta{{ID: []byte("c")}}}} {
		streamed.Event(&ev)
	}
	var trimmed Reply
	trimmed.Event(&Event{Text: []byte("a b")})
	w, s, cut := whole.Said(), streamed.Said(), trimmed.Said()
	if w != s || w.Trimmed != cut.Text || w.Text == w.Trimmed || w.Call == 0 || cut.Call != 0 {
		t.Errorf("whole %v, streamed %v, trimmed %v", w, s, cut)
	}
	if nothing := new(Reply).Said(); nothing != (Said{}) {
		t.Errorf("nothing said %v", nothing)
	}
}
