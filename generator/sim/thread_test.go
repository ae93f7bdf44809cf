package sim

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/proxy/wire"
)

// inThread sends one request of a message thread and gives status and body.
func inThread(t *testing.T, e *endpoint, stream bool, thread, messages, more string) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","max_tokens":100,"stream":%v,"thread":%s,"messages":[%s]%s}`, stream, thread, messages, more)
	resp, err := http.Post(e.URL+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

func TestThreadGoesOnFromItsAnswer(t *testing.T) {
	const tools = `,"system":"Be brief.","tools":[{"name":"look","input_schema":{"type":"object"}}]`
	const prompt = `{"role":"user","content":"[[tool look {\"at\":1}]] [[say seen]]"}`
	const result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"42"}]}`
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			e := serve(t, Config{Script: true, Seed: 3})
			if status, body := inThread(t, e, stream, `{"type":"create"}`, prompt, tools); status != 200 || !strings.Contains(body, "tool_use") {
				t.Fatalf("create: %d %s", status, body)
			}
			first := e.record(t)
			goOn := fmt.Sprintf(`{"type":"continue","previous_message_id":%q}`, first.ID)
			status, body := inThread(t, e, stream, goOn, result, "")
			if status != 200 || !strings.Contains(body, "seen") {
				t.Fatalf("continue: %d %s, want the script's text", status, body)
			}
			// What stands before is counted, although it was not sent again.
			whole := `,"system":"Be brief.","tools":[{"name":"look","input_schema":{"type":"object"}}]`
			call := `{"role":"assistant","content":[{"type":"tool_use","id":"call_` + first.ID + `","name":"look","input":{"at":1}}]}`
			_, replayed := inThread(t, e, false, `{"type":"create"}`, prompt+","+call+","+result, whole)
			if got, want := inputTokens(body), inputTokens(replayed); got != want {
				t.Errorf("%d input tokens, %d when all is sent again", got, want)
			}
			// A response can be gone on from once.
			status, body = inThread(t, e, stream, goOn, result, "")
			if status != 404 || gjson.Get(body, "error.details.error_code").Str != "thread_not_found" {
				t.Errorf("continued twice: %d %s, want thread_not_found", status, body)
			}
		})
	}
}

// inputTokens sums the prompt's figures of an answer or its first event.
func inputTokens(body string) (n int64) {
	if _, data, streamed := strings.Cut(body, "data: "); streamed {
		body = gjson.Get(data[:strings.Index(data, "\n")], "message").Raw
	}
	for _, name := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
		n += gjson.Get(body, "usage."+name).Int()
	}
	return n
}

func TestThreadIsKeptWhenGoingOnFails(t *testing.T) {
	e := serve(t, Config{Script: true})
	inThread(t, e, true, `{"type":"create"}`, `{"role":"user","content":"[[say a]]"}`, "")
	goOn := fmt.Sprintf(`{"type":"continue","previous_message_id":%q}`, e.record(t).ID)
	for _, want := range []int{500, 200} {
		if status, body := inThread(t, e, true, goOn, `{"role":"user","content":"[[fault 500 1]]"}`, ""); status != want {
			t.Errorf("status %d, want %d: %s", status, want, body)
		}
	}
}

func TestOldestThreadMakesRoom(t *testing.T) {
	var held threads
	for i := range threadsHeld + 1 {
		held.hold("", fmt.Sprint(i), &conversation{system: fmt.Sprint(i)})
	}
	if held.get("0") != nil || held.get("1") == nil || held.get(fmt.Sprint(threadsHeld)) == nil {
		t.Error("want all but the oldest")
	}
	held.hold("1", "next", &conversation{messages: []wire.Message{{}}})
	if held.get("1") != nil || held.get("2") == nil || held.get("next") == nil || len(held.order) != len(held.held) {
		t.Error("going on from a response must take its place")
	}
}
