package wire

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// streamOf is a stream of n pieces of text, as the dialect's Writer writes it.
func streamOf(api API, n int) []byte {
	w := NewWriter(For(api), "id-1", "model-x", Usage{Input: N(9)}, WriterOptions{Framing: SSE, Usage: true})
	b := w.Open(nil)
	for i := range n {
		b = w.Text(b, fmt.Sprintf("第%d piece of text", i))
	}
	return w.Close(b, "stop", Usage{Input: N(9), Output: N(40)})
}

func parseOne(t testing.TB, api API, event, data string) Event {
	t.Helper()
	var ev Event
	if err := For(api).ParseEvent(&ev, Frame{Event: []byte(event), Data: []byte(data)}); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return ev
}

// What each event of a real stream says: its output, and the rest of it.
func TestEventsSayWhatTheyHold(t *testing.T) {
	for _, row := range []struct {
		name  string
		api   API
		data  string
		kinds Kind
		want  string // see show
	}{
		// Chat completions and their kin.
		{"role-only chunk is no token", Chat, `{"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, 0, "id=c1 model=m"},
		{"content in parts, as Mistral's thinking models send it", Chat, `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},{"type":"text","text":"a\n"},{"type":"text","text":"b"},{"type":"text","text":"c"}]}}]}`, KindText | KindReasoning, "text=a\nbc reasoning=hm"},
		{"content null is no token", Chat, `{"choices":[{"delta":{"content":null}}]}`, 0, ""},
		{"delta null is no token", Chat, `{"choices":[{"delta":null}]}`, 0, ""},
		{"choices null is no token", Chat, `{"choices":null}`, 0, ""},
		{"text is a token", Chat, `{"choices":[{"delta":{"content":"你"}}]}`, KindText, "text=你"},
		{"escapes are undone", Chat, `{"choices":[{"delta":{"content":"a\n\"\u4f60\ud83c\udf0a"}}]}`, KindText, "text=a\n\"你🌊"},
		{"reasoning_content is a token", Chat, `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, KindReasoning, "reasoning=hm"},
		{"reasoning is a token", Chat, `{"choices":[{"delta":{"reasoning":"hm"}}]}`, KindReasoning, "reasoning=hm"},
		{"reasoning under both names counts once", Chat, `{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`, KindReasoning, "reasoning=hm"},
		{"reasoning empty beside text", Chat, `{"choices":[{"delta":{"reasoning_content":"","content":"a"}}]}`, KindText, "text=a"},
		{"refusal is a token", Chat, `{"choices":[{"delta":{"refusal":"no"}}]}`, KindRefusal, "refusal=no"},
		{"tool_calls null", Chat, `{"choices":[{"delta":{"tool_calls":null,"content":"a"}}]}`, KindText, "text=a"},
		{"tool name is a token", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"grep","arguments":""}}]}}]}`, KindTool, "tool[0]=t1:grep:"},
		{"tool arguments are a token", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"a\""}}]}}]}`, KindTool, `tool[1]=::{"a"`},
		{"tool index missing", Chat, `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"grep"}}]}}]}`, KindTool, "tool[-1]=:grep:"},
		{"tool index of a wrong type", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":"0","function":{"name":"grep"}}]}}]}`, KindTool, "tool[-1]=:grep:"},
		{"tool without a function", Chat, `{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`, 0, "tool[0]=::"},
		{"finish reason", Chat, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, 0, "finish=stop"},
		{"usage with empty choices", Chat, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}`, 0, "in=3 read=2 out=4 think=1"},
		{"usage in a chunk with choices", Chat, `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, KindText, "text=a finish=stop in=3 out=4"},
		{"usage null", Chat, `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, KindText, "text=a"},
		{"usage details null", Chat, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0,"prompt_tokens_details":null,"completion_tokens_details":null}}`, 0, "in=3 out=0"},
		{"done", Chat, `[DONE]`, 0, "terminal"},
		{"error inside a 200", Chat, `{"error":{"message":"boom","type":"server_error","code":"x"}}`, 0, "error=server_error/x/boom"},
		{"error as a string", Chat, `{"error":"boom"}`, 0, "error=//boom"},
		{"tier and fingerprint", Chat, `{"service_tier":"flex","system_fingerprint":"fp","choices":[]}`, 0, "tier=flex fp=fp"},
		{"legacy text", Completions, `{"choices":[{"text":"a","finish_reason":null}]}`, KindText, "text=a"},
		{"legacy text empty", Completions, `{"choices":[{"text":"","finish_reason":"length"}]}`, 0, "finish=length"},
		{"legacy done", Completions, `[DONE]`, 0, "terminal"},

		// Responses.
		{"created is no token", Responses, `{"type":"response.created","response":{"id":"r1","model":"m","usage":null}}`, 0, "id=r1 model=m"},
		{"in_progress is no token", Responses, `{"type":"response.in_progress","response":{"id":"r1"}}`, 0, "id=r1"},
		{"message item is no token", Responses, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`, 0, ""},
		{"function item names its tool", Responses, `{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"t1","name":"grep","arguments":""}}`, KindTool, "tool[2]=t1:grep:"},
		{"text delta", Responses, `{"type":"response.output_text.delta","delta":"a"}`, KindText, "text=a"},
		{"text delta empty", Responses, `{"type":"response.output_text.delta","delta":""}`, 0, ""},
		{"text done repeats and is no token", Responses, `{"type":"response.output_text.done","text":"a"}`, 0, ""},
		{"summary delta", Responses, `{"type":"response.reasoning_summary_text.delta","delta":"a"}`, KindReasoning, "reasoning=a"},
		{"reasoning delta", Responses, `{"type":"response.reasoning_text.delta","delta":"a"}`, KindReasoning, "reasoning=a"},
		{"refusal delta", Responses, `{"type":"response.refusal.delta","delta":"no"}`, KindRefusal, "refusal=no"},
		{"arguments delta", Responses, `{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}`, KindTool, "tool[2]=::{}"},
		{"a shell command is a tool's", Responses, `{"type":"response.shell_call_command.delta","output_index":1,"delta":"ls"}`, KindTool, "tool[1]=::ls"},
		{"custom tool's input", Responses, `{"type":"response.custom_tool_call_input.delta","output_index":1,"delta":"ls"}`, KindTool, "tool[1]=::ls"},
		{"arguments delta empty", Responses, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":""}`, 0, ""},
		{"a search under way is no token", Responses, `{"type":"response.web_search_call.searching","output_index":0}`, 0, ""},
		{"[DONE] after Responses is nothing", Responses, `[DONE]`, 0, ""},
		{"completed", Responses, `{"type":"response.completed","response":{"id":"r1","status":"completed","usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":2}}}}`, 0, "id=r1 finish=completed in=3 read=2 out=4 terminal"},
		{"incomplete", Responses, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, 0, "finish=max_output_tokens terminal"},
		{"failed", Responses, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"boom"}}}`, 0, "finish=failed terminal error=/server_error/boom"},
		{"error event", Responses, `{"type":"error","code":"rate_limit_exceeded","message":"slow"}`, 0, "error=/rate_limit_exceeded/slow"},
		{"an event of the future", Responses, `{"type":"response.hologram.begun"}`, 0, "unknown"},

		// Messages.
		{"message_start", Messages, `{"type":"message_start","message":{"id":"m1","model":"c","usage":{"input_tokens":3,"cache_read_input_tokens":20,"cache_creation_input_tokens":100,"output_tokens":1}}}`, 0, "id=m1 model=c in=123 read=20 write=100 out=1"},
		{"ping", Messages, `{"type":"ping"}`, 0, ""},
		{"text block begins empty", Messages, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, 0, ""},
		{"thinking block begins empty", Messages, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, 0, ""},
		{"tool block has a name", Messages, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"grep","input":{}}}`, KindTool, "tool[1]=t1:grep:"},
		{"text delta of messages", Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, KindText, "text=a"},
		{"thinking delta", Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}`, KindReasoning, "reasoning=a"},
		{"signature is no token", Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"xyz"}}`, 0, ""},
		{"arguments empty", Messages, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`, 0, ""},
		{"arguments", Messages, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, KindTool, "tool[1]=::{}"},
		{"message_delta", Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}`, 0, "finish=end_turn out=15"},
		{"message_stop", Messages, `{"type":"message_stop"}`, 0, "terminal"},
		{"overloaded in the stream", Messages, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 0, "error=overloaded_error//Overloaded"},
		{"[DONE] after Messages is nothing", Messages, `[DONE]`, 0, ""},
		{"usage null in message_delta", Messages, `{"type":"message_delta","delta":{"stop_reason":null},"usage":null}`, 0, ""},
		{"a server's tool names itself", Messages, `{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`, KindTool, "tool[1]=s1:web_search:"},
		{"what a server's tool found is no token", Messages, `{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}}`, 0, ""},
		{"an event of Anthropic's future", Messages, `{"type":"hologram"}`, 0, "unknown"},

		// Gemini.
		{"gemini text", Gemini, `{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]}}],"usageMetadata":{"promptTokenCount":3},"modelVersion":"g","responseId":"i"}`, KindText, "id=i model=g text=ab in=3"},
		{"gemini thought", Gemini, `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`, KindReasoning, "reasoning=hm"},
		{"gemini call", Gemini, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"grep","args":{"a":1}}}]}}]}`, KindTool, `tool[-1]=:grep:{"a":1}`},
		{"gemini end", Gemini, `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":5,"cachedContentTokenCount":2}}`, 0, "finish=STOP in=3 read=2 out=9 think=5 terminal"},
		{"gemini code to run", Gemini, `{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1+1"}}]}}]}`, KindTool, "tool[-1]=::1+1"},
		{"gemini as Code Assist wraps it", Gemini, `{"response":{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"g"}}`, KindText, "model=g text=a"},
		{"[DONE] after Gemini is nothing", Gemini, `[DONE]`, 0, ""},
		{"gemini blocked prompt", Gemini, `{"promptFeedback":{"blockReason":"SAFETY"}}`, 0, "finish=SAFETY terminal"},
		{"gemini error", Gemini, `{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`, 0, "error=RESOURCE_EXHAUSTED//slow"},
	} {
		ev := parseOne(t, row.api, "", row.data)
		if ev.Output() != row.kinds || show(&ev) != row.want {
			t.Errorf("%s: kinds %b, says %q; want %b, %q", row.name, ev.Output(), show(&ev), row.kinds, row.want)
		}
	}
}

// show writes what an event says, but its type.
func show(ev *Event) string {
	var s string
	add := func(name, value string) {
		if value != "" {
			if s != "" {
				s += " "
			}
			s += name + value
		}
	}
	n := func(name string, c Count) {
		if c.Known {
			add(name, fmt.Sprint(c.N))
		}
	}
	add("id=", string(ev.ID))
	add("model=", string(ev.Model))
	add("text=", string(ev.Text))
	add("reasoning=", string(ev.Reasoning))
	add("refusal=", string(ev.Refusal))
	for _, d := range ev.Tools {
		add(fmt.Sprintf("tool[%d]=", d.Index), fmt.Sprintf("%s:%s:%s", d.ID, d.Name, d.Arguments))
	}
	add("finish=", string(ev.Finish))
	n("in=", ev.Usage.Input)
	n("read=", ev.Usage.CacheRead)
	n("write=", ev.Usage.CacheWrite)
	n("out=", ev.Usage.Output)
	n("think=", ev.Usage.Reasoning)
	if ev.Terminal {
		add("terminal", " ")
		s = s[:len(s)-1]
	}
	if ev.Err != nil {
		add("error=", ev.Err.Type+"/"+ev.Err.Code+"/"+ev.Err.Message)
	}
	add("tier=", string(ev.ServiceTier))
	add("fp=", string(ev.SystemFingerprint))
	if ev.Unknown {
		add("unknown", " ")
		s = s[:len(s)-1]
	}
	return s
}

var sameEvent = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Event{})}

// again writes an event and reads what was written.
func again(t testing.TB, api API, ev *Event) Event {
	t.Helper()
	b := For(api).AppendEvent(nil, ev)
	var got Event
	n := 0
	s := NewSplitter(SSE, 0)
	s.Feed(b, func(f Frame) {
		n++
		if err := For(api).ParseEvent(&got, f); err != nil {
			t.Fatalf("%s: %v\n%s", api, err, b)
		}
	})
	if n != 1 {
		t.Fatalf("%s: one event was written as %d frames: %q", api, n, b)
	}
	return got
}

func TestEventSurvivesWritingAndReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		for _, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
			ev := someEvent(rng, api, func() []byte { return oddWords[rng.IntN(len(oddWords))] })
			if diff := cmp.Diff(ev, again(t, api, &ev), sameEvent); diff != "" {
				t.Fatalf("%s: written as %s\n%s", api, For(api).AppendEvent(nil, &ev), diff)
			}
		}
	}
}

// oddWords are what streams have broken at.
var oddWords = [][]byte{[]byte("a"), []byte("你好"), []byte("\"q\"\n\t\\"), []byte("🌊 x"), []byte("</script>"), []byte("\x01"), []byte("\xff\xe4"), []byte("\r\n\ndata: x")}

// someEvent makes an event that its dialect can say, of words that are not
// empty.
func someEvent(rng *rand.Rand, api API, word func() []byte) Event {
	usage := func() Usage {
		u := Usage{Input: N(rng.Int64N(1000) + 200), Output: N(rng.Int64N(1000) + 100)}
		if rng.IntN(2) == 0 {
			u.CacheRead = N(rng.Int64N(100))
		}
		if rng.IntN(2) == 0 {
			u.Reasoning = N(rng.Int64N(100))
		}
		if api == Messages {
			u.CacheRead, u.CacheWrite = N(rng.Int64N(100)), N(rng.Int64N(100))
			u.Fresh = N(u.Input.N - u.CacheRead.N - u.CacheWrite.N)
		}
		return u
	}
	failure := &Error{Type: "overloaded_error", Message: string(word())}
	switch api {
	case Responses:
		switch rng.IntN(6) {
		case 0:
			return Event{Type: []byte("response.output_text.delta"), Text: word()}
		case 1:
			return Event{Type: []byte("response.reasoning_text.delta"), Reasoning: word()}
		case 2:
			return Event{Type: []byte("response.output_item.added"), Tools: []ToolDelta{{Index: rng.IntN(3), ID: word(), Name: word()}}}
		case 3:
			return Event{Type: []byte("response.function_call_arguments.delta"), Tools: []ToolDelta{{Index: rng.IntN(3), Arguments: word()}}}
		case 4:
			failure.Status = []int{0, 400, 429, 500}[rng.IntN(4)]
			return Event{Type: []byte("error"), StreamID: word(), Err: failure}
		}
		return Event{Type: []byte("response.completed"), StreamID: word(), ID: word(), Model: word(), Finish: []byte("completed"), Terminal: true, Usage: usage()}
	case Messages:
		switch rng.IntN(7) {
		case 0:
			return Event{Type: []byte("message_start"), ID: word(), Model: word(), Usage: usage()}
		case 1:
			return Event{Type: []byte("content_block_delta"), Text: word()}
		case 2:
			return Event{Type: []byte("content_block_delta"), Reasoning: word()}
		case 3:
			return Event{Type: []byte("content_block_start"), Tools: []ToolDelta{{Index: rng.IntN(3), ID: word(), Name: word()}}}
		case 4:
			return Event{Type: []byte("error"), Err: failure}
		case 5:
			return Event{Type: []byte("message_stop"), Terminal: true}
		}
		return Event{Type: []byte("message_delta"), Finish: word(), Usage: usage()}
	}
	ev := Event{ID: word(), Model: word()}
	switch rng.IntN(6) {
	case 0:
		ev.Finish, ev.Terminal = word(), api == Gemini
	case 1:
		ev.Usage = usage()
	case 2:
		ev = Event{Err: &Error{Type: "server_error", Code: "c", Message: string(word())}}
		if api == Gemini {
			ev.Err = &Error{Status: 503, Type: "UNAVAILABLE", Message: string(word())}
		}
	case 3:
		if api == Completions {
			ev.Text = word()
			break
		}
		ev.Tools = []ToolDelta{{Index: rng.IntN(3), ID: word(), Name: word(), Arguments: word()}}
		if api == Gemini {
			ev.Tools[0].Index, ev.Tools[0].Arguments = -1, []byte(`{"a":1}`)
		}
	case 4:
		if api != Completions {
			ev.Reasoning = word()
		}
		ev.Text = word()
	default:
		ev.Text = word()
	}
	return ev
}

// An event says the same once it was written and read, whatever its words.
func FuzzEventSurvives(f *testing.F) {
	for i, w := range oddWords {
		f.Add(w, uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, word []byte, seed uint64, kind uint8) {
		if len(word) == 0 {
			return
		}
		api := []API{Chat, Completions, Responses, Messages, Gemini}[kind%5]
		ev := someEvent(rand.New(rand.NewPCG(seed, 0)), api, func() []byte { return word })
		if diff := cmp.Diff(ev, again(t, api, &ev), sameEvent); diff != "" {
			t.Fatalf("%s: written as %s\n%s", api, For(api).AppendEvent(nil, &ev), diff)
		}
	})
}

// Any bytes are read without a panic, twice the same with one Event or two,
// and what was understood can be written.
func FuzzParseEvent(f *testing.F) {
	for i, api := range []API{Chat, Completions, Responses, Messages, Gemini} {
		s := NewSplitter(SSE, 0)
		s.Feed(streamOf(api, 2), func(fr Frame) { f.Add(string(fr.Event), append([]byte(nil), fr.Data...), uint8(i)) })
	}
	f.Add("", []byte(`{"choices":[{"delta":{"tool_calls":[null]}}]}`), uint8(0))
	f.Fuzz(func(t *testing.T, event string, data []byte, kind uint8) {
		api := []API{Chat, Completions, Responses, Messages, Gemini}[kind%5]
		var first, second Event
		fr := Frame{Event: []byte(event), Data: data}
		err1 := For(api).ParseEvent(&first, fr)
		err2 := For(api).ParseEvent(&second, fr)
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("%v, then %v", err1, err2)
		}
		if diff := cmp.Diff(first, second, sameEvent); diff != "" {
			t.Fatal(diff)
		}
		if err := For(api).ParseEvent(&second, fr); err == nil {
			if diff := cmp.Diff(first, second, sameEvent); diff != "" {
				t.Fatalf("an event that is used again says something else:\n%s", diff)
			}
			For(api).AppendEvent(nil, &second)
		}
		For(api).ParseError(data)
	})
}

func TestUpdatesReplaceAndNeverAdd(t *testing.T) {
	for _, row := range []struct {
		name         string
		first, later string
		want         Usage
	}{
		{"only output → the input stays", `{"input_tokens":3,"cache_read_input_tokens":20,"cache_creation_input_tokens":100,"output_tokens":1}`, `{"output_tokens":15}`,
			Usage{Fresh: N(3), Input: N(123), CacheRead: N(20), CacheWrite: N(100), Output: N(15)}},
		{"all again → the later ones", `{"input_tokens":3,"cache_read_input_tokens":20,"cache_creation_input_tokens":100,"output_tokens":1}`, `{"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":0,"output_tokens":15}`,
			Usage{Fresh: N(5), Input: N(25), CacheRead: N(20), CacheWrite: N(0), Output: N(15)}},
		{"one part of the input → the sum follows", `{"input_tokens":3,"cache_read_input_tokens":20,"output_tokens":1}`, `{"input_tokens":7,"output_tokens":2}`,
			Usage{Fresh: N(7), Input: N(27), CacheRead: N(20), Output: N(2)}},
	} {
		u, _ := anthropicUsage(&cursor{b: []byte(row.first)})
		later, _ := anthropicUsage(&cursor{b: []byte(row.later)})
		u.Merge(later)
		if diff := cmp.Diff(row.want, u); diff != "" {
			t.Errorf("%s:\n%s", row.name, diff)
		}
	}
}
