package sim

import (
	"net/http"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"weir/proxy/wire"
)

// threadsHeld is how many conversations are held; the oldest make room.
const threadsHeld = 1000

// threads are the conversations that the endpoint holds for clients that send
// only what is new in them: Anthropic's message threads, which its SDKs' tool
// runners use unless they are told not to. The zero threads holds none.
type threads struct {
	mu    sync.Mutex
	held  map[string]*conversation // by the id of the response to go on from
	order []string                 // of those ids, the oldest first
}

// conversation is what a thread knows. It is never changed.
type conversation struct {
	system   string
	tools    []wire.Tool
	messages []wire.Message
}

func (t *threads) get(id string) *conversation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[id]
}

// hold keeps a conversation under the id of its latest response, and forgets
// it under the one before: a response can be gone on from once.
func (t *threads) hold(previous, id string, c *conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[string]*conversation{}
	}
	if i := slices.Index(t.order, previous); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
		delete(t.held, previous)
	}
	if len(t.order) == threadsHeld {
		delete(t.held, t.order[0])
		t.order = t.order[1:]
	}
	t.held[id] = c
	t.order = append(t.order, id)
}

// thread is one request's place in a held conversation.
type thread struct {
	previous string      // response that it goes on from; empty when it begins the thread
	reply    []wire.Part // what has been answered so far
}

// threadNotFound is the answer from which clients know to send the whole
// conversation again.
const threadNotFound = `{"type":"error","error":{"type":"not_found_error","message":"no usable thread was found for previous_message_id","details":{"error_code":"thread_not_found"}}}`

// joinThread completes a request that goes on from a held conversation; false
// when there is none, and that has been answered.
func (x *exchange) joinThread(body []byte) bool {
	if x.route.API != wire.Messages {
		return true
	}
	asked := gjson.GetBytes(body, "thread")
	switch asked.Get("type").Str {
	case "create":
		x.thread = &thread{}
	case "continue":
		x.thread = &thread{previous: asked.Get("previous_message_id").Str}
		held := x.s.threads.get(x.thread.previous)
		if held == nil {
			x.whole(http.StatusNotFound, []byte(threadNotFound))
			return false
		}
		x.req.System, x.req.Tools = held.system, held.tools
		x.req.Messages = append(slices.Clip(held.messages), x.req.Messages...)
	}
	return true
}

// hear takes a piece of the answer.
func (t *thread) hear(kind wire.Kind, id, name, text string) {
	if t == nil {
		return
	}
	if n := len(t.reply); n == 0 || t.reply[n-1].Kind != kind {
		t.reply = append(t.reply, wire.Part{Kind: kind})
	}
	p := &t.reply[len(t.reply)-1]
	if kind != wire.KindTool {
		p.Text += text
		return
	}
	if id != "" {
		p.ID, p.Name = id, name
	}
	p.Arguments += text
}

// keepThread holds the conversation, when a thread is asked for, with the whole
// answer, for the request that goes on from it.
func (x *exchange) keepThread() {
	if x.thread == nil {
		return
	}
	said := append(slices.Clip(x.req.Messages), wire.Message{Role: wire.Assistant, Parts: x.thread.reply})
	x.s.threads.hold(x.thread.previous, x.rec.ID, &conversation{x.req.System, x.req.Tools, said})
}
