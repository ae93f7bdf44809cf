package client

import (
	"net/http"

	"github.com/tidwall/gjson"

	"weir/proxy/wire"
)

// said is what a call says of itself. Each field may be unsaid, which is empty.
type said struct {
	session, from string
	agent         string // the client's id of the agent that calls
	parent        string // of that agent: an agent, a thread or a session
	turn          string // the client's own id of the user's turn
	class         string // what the client calls the request's purpose
	subagent      bool
}

// listen reads what a request says of its session.
func listen(r *Request, head *wire.Head) said {
	h := r.Header
	s := said{
		agent:    h.Get("X-Claude-Code-Agent-Id"),
		parent:   h.Get("X-Claude-Code-Parent-Agent-Id"),
		turn:     h.Get("X-Claude-Code-Prompt-Id"),
		class:    h.Get("X-Claude-Code-Request-Class"),
		subagent: h.Get("X-Claude-Code-Agent-Id") != "",
	}
	s.session, s.from = Session(h, head)
	if parent := h.Get("X-Parent-Session-Id"); parent != "" { // opencode: the agent has a session of its own
		s.parent, s.subagent = parent, true
	}
	s.codex(h)
	if r.Session != "" {
		s.session, s.from = r.Session, fromWeir
	}
	return s
}

// codex reads the headers of Codex. An agent of its has the session of the one
// that started it and a thread of its own; the first thread of a session is
// named as the session is.
func (s *said) codex(h http.Header) {
	parent, kind := h.Get("X-Codex-Parent-Thread-Id"), h.Get("X-Openai-Subagent")
	if parent != "" || kind != "" {
		s.parent, s.subagent = parent, true
	}
	if thread := h.Get("Thread-Id"); thread != "" && s.session != "" && thread != s.session {
		s.agent = thread
	}
	switch kind {
	case "compact":
		s.class = classCompaction
	case "memory_consolidation":
		s.class = classMemory
	}
	metadata := h.Get("X-Codex-Turn-Metadata")
	if metadata == "" || !gjson.Valid(metadata) {
		return
	}
	if turn := gjson.Get(metadata, "turn_id").Str; turn != "" {
		s.turn = turn
	}
	if class := gjson.Get(metadata, "request_kind").Str; class != "" {
		s.class = class
	}
}

// The classes of requests that clients name: Claude Code in a header, Codex in
// the metadata of a turn.
const (
	classMain       = "main"
	classSubagent   = "subagent"
	classCompaction = "compaction"
	classPrewarm    = "prewarm"
	classMemory     = "memory"
)

// codexMetadata are the headers of Codex that a frame of its WebSocket has as
// fields of client_metadata.
var codexMetadata = []struct{ field, header string }{
	{"session_id", "Session-Id"},
	{"thread_id", "Thread-Id"},
	{"x-codex-parent-thread-id", "X-Codex-Parent-Thread-Id"},
	{"x-openai-subagent", "X-Openai-Subagent"},
	{"x-codex-turn-metadata", "X-Codex-Turn-Metadata"},
}

// FrameHeader gives the headers that a response.create frame of a WebSocket
// would have as a request of its own: those of the upgrade, but what holds for
// one turn from the frame. prewarm says that the frame asks for no answer.
func FrameHeader(upgrade http.Header, frame []byte) (h http.Header, prewarm bool) {
	h = upgrade.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Del("X-Codex-Turn-Metadata") // of the turn that opened the socket
	metadata := gjson.GetBytes(frame, "client_metadata")
	for _, m := range codexMetadata {
		if v := metadata.Get(m.field); v.Type == gjson.String && v.Str != "" {
			h.Set(m.header, v.Str)
		}
	}
	return h, gjson.GetBytes(frame, "generate").Type == gjson.False
}
