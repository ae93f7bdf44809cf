package wire

import (
	"math"
	"strings"
)

// OperationNamed is the operation that other programs mean by a name, as the
// conventions have it or as their instrumentation writes it; false where it is
// none that a model answers, as an agent's or a tool's.
func OperationNamed(name string) (op Operation, ok bool) {
	op, ok = namedOperations[strings.NewReplacer("_", "", ".", "", "-", "", " ", "", "/", "").Replace(strings.ToLower(name))]
	return op, ok
}

var namedOperations = map[string]Operation{
	"chat": OpChat, "chatcompletion": OpChat, "chatcompletions": OpChat, "chatcompletionscreate": OpChat,
	"response": OpChat, "responses": OpChat, "responsescreate": OpChat, "message": OpChat, "messages": OpChat, "messagescreate": OpChat,
	"completion": OpTextCompletion, "completions": OpTextCompletion, "textcompletion": OpTextCompletion, "textcompletions": OpTextCompletion,
	"generate": OpGenerateContent, "generatecontent": OpGenerateContent, "streamgeneratecontent": OpGenerateContent, "generatecontentstream": OpGenerateContent, "textgeneration": OpTextCompletion,
	"embedding": OpEmbeddings, "embeddings": OpEmbeddings, "embed": OpEmbeddings, "embedcontent": OpEmbeddings,
}

// Told is usage in the normal form, as another program told it of a call to
// provider. Where the cache's tokens do not fit into the input, or those of
// reasoning into the output, they were counted beside it: for a provider that
// counts so they are added to it, else none of them is known. Nor is a count
// below 0 or above 2^31. sound says that all of them could be.
func (u Usage) Told(provider string) (told Usage, sound bool) {
	sound = true
	for _, n := range []*Count{&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning} {
		if n.N < 0 || n.N > math.MaxInt32 {
			*n, sound = Count{}, false
		}
	}
	if cached := u.CacheRead.N + u.CacheWrite.N; u.Input.Known && cached > u.Input.N {
		if providerHas(provider, "anthropic", "bedrock") {
			u.Input.N += cached
		} else {
			u.Input, u.CacheRead, u.CacheWrite, sound = Count{}, Count{}, Count{}, false
		}
	}
	if u.Output.Known && u.Reasoning.N > u.Output.N {
		if providerHas(provider, "gemini", "google", "vertex", "gcp", "xai", "x_ai") {
			u.Output.N += u.Reasoning.N
		} else {
			u.Output, u.Reasoning, sound = Count{}, Count{}, false
		}
	}
	return u, sound
}

func providerHas(name string, parts ...string) bool {
	name = strings.ToLower(name)
	for _, part := range parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
