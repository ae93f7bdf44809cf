package client

import "weir/proxy/wire"

// What a client makes a call for. All but the first two are side calls: they
// are no part of the session's talk, begin no turn and have no think time.
const (
	Main        = "main"
	Subagent    = "subagent"     // an agent that another one started
	Title       = "title"        // a name for the session
	Summary     = "summary"      // of what was done, for the user or for later sessions
	Compaction  = "compaction"   // a shorter history to go on with
	Probe       = "probe"        // whether the key still has quota
	CountTokens = "count_tokens" // nothing is generated
	Prewarm     = "prewarm"      // a connection and a cache made ready
	Routing     = "routing"      // which model shall answer
	Embeddings  = "embeddings"
	Models      = "models"
	Other       = "other" // a path that weir does not know, or a side call of another kind
)

// talks says whether calls of the purpose make up a session's talk.
func talks(purpose string) bool { return purpose == Main || purpose == Subagent }

const (
	smallPrompt = 4 << 10 // bytes; opencode's title and Gemini's routing have 2 to 3.5 KB with all their JSON
	tinyPrompt  = 32      // bytes: "quota", "hi"
)

// sdks are programs that speak for anyone, so that nothing follows from what
// the program's other calls are like.
var sdks = map[string]bool{
	"openai-node": true, "openai-python": true, "anthropic-node": true, "anthropic-python": true,
	"google-genai": true, "ai-sdk": true,
}

// purpose says what a call is made for. tools says that its session's talk has
// tools. What a client says goes before what its requests look like, and what
// looks like nothing in particular is the main talk.
func purpose(r *Request, head *wire.Head, s *said, tools bool) string {
	switch {
	case r.Prewarm || s.class == classPrewarm:
		return Prewarm
	case s.class == classCompaction:
		return Compaction
	case s.class == classMemory:
		return Summary
	case r.Operation == wire.OpCountTokens:
		return CountTokens
	case r.Operation == wire.OpEmbeddings:
		return Embeddings
	case r.Operation == wire.OpModels:
		return Models
	case !r.Operation.Generates():
		return Other
	case s.subagent || s.class == classSubagent:
		return Subagent
	case r.Client == "weir" || s.class == classMain:
		return Main
	}
	size := measure(r.Shape, head)
	if head.MaxTokens.Known && head.MaxTokens.N <= 1 && !size.tools && !size.history && size.system == 0 && size.talk <= tinyPrompt {
		return Probe
	}
	if size.tools || sdks[r.Client] {
		return Main
	}
	return withoutTools(r, head, size, tools)
}

// withoutTools judges a call that has none, of a program whose talk has some.
func withoutTools(r *Request, head *wire.Head, size size, tools bool) string {
	small := size.system <= smallPrompt && size.talk <= smallPrompt
	switch r.Client {
	case "gemini-cli":
		switch {
		case !head.Stream && head.OutputType == "json" && small:
			return Routing
		case !head.Stream && head.OutputType == "json":
			return Other
		case !head.Stream && size.history:
			return Compaction
		}
		return Main
	case "opencode":
		switch {
		case size.history:
			return Compaction
		case size.system <= smallPrompt: // and what the user wrote, however long
			return Title
		}
		return Main
	case "claude-code":
		switch {
		case small && !size.history:
			return Title
		case tools && size.history:
			return Summary
		case tools:
			return Other
		}
		return Main
	}
	if tools && small && !size.history {
		return Title
	}
	return Main
}

// size is how large a request is without its definitions of tools.
type size struct {
	system, talk int // bytes
	tools        bool
	history      bool // an assistant has spoken
}

// measure takes what is known: without a shape there are no bytes, and a
// history is seen by the number of messages.
func measure(shape wire.Shape, head *wire.Head) size {
	z := size{tools: head.ToolCount > 0, history: len(shape.Blocks) == 0 && head.MessageCount > 2}
	for i := range shape.Blocks {
		switch b := &shape.Blocks[i]; b.Role {
		case wire.Definition:
			z.tools = true
		case wire.System:
			z.system += b.Bytes
		default:
			z.talk += b.Bytes
			z.history = z.history || b.Role == wire.Assistant
		}
	}
	return z
}
