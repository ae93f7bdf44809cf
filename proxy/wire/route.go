package wire

import "strings"

// Route is what a request line says about a call.
type Route struct {
	API       API       // empty where the path belongs to no dialect that weir reads
	Operation Operation // OpOther where the path is unknown
	Model     string    // from the path (Google's); else empty
	Stream    bool      // the path itself asks for a stream (Google's)
}

// Find reads a request's method and path: any prefix before a dialect's own
// path is accepted ("/api/v1/messages", "/v1/v1/messages",
// "/openai/deployments/x/chat/completions"), and none is needed.
func Find(method, path string) Route {
	path = strings.TrimRight(path, "/")
	post, get := method == "POST", method == "GET" || method == "HEAD"
	if strings.Contains(path, "/threads/") { // OpenAI's assistants, which have messages too
		return Route{Operation: OpOther}
	}
	for _, known := range paths {
		if path != known.suffix[1:] && !strings.HasSuffix(path, known.suffix) {
			continue
		}
		if known.operation == OpModels && get || known.operation != OpModels && post {
			return Route{API: known.api, Operation: known.operation}
		}
		return Route{API: known.api, Operation: OpOther}
	}
	if i := strings.LastIndexByte(path, ':'); i > strings.LastIndexByte(path, '/') && post {
		return verbRoute(path[:i], path[i+1:])
	}
	if get && (strings.HasPrefix(path, "models/") || strings.Contains(path, "/models/")) {
		return Route{Operation: OpModels}
	}
	return Route{Operation: OpOther}
}

// paths are the ends of request paths, longer ones first where one ends in
// another.
var paths = []struct {
	suffix    string
	api       API
	operation Operation
}{
	{"/chat/completions", Chat, OpChat},
	{"/completions", Completions, OpTextCompletion},
	{"/responses/input_tokens", Responses, OpCountTokens},
	{"/responses", Responses, OpChat},
	{"/messages/count_tokens", Messages, OpCountTokens},
	{"/messages", Messages, OpChat},
	{"/embeddings", "", OpEmbeddings},
	{"/models", "", OpModels},
}

// verbRoute reads a path of Google's: a model, a colon and what it shall do.
// Vertex serves Claude that way too, in Anthropic's dialect.
func verbRoute(path, verb string) Route {
	path = "/" + path // it may lack its own
	publisher, model, ok := strings.Cut(path, "/models/")
	if !ok {
		_, model, _ = strings.Cut(path, "/tunedModels/") // Code Assist has the model in the body
	}
	r := Route{API: Gemini, Operation: OpOther, Model: model}
	switch verb {
	case "generateContent":
		r.Operation = OpGenerateContent
	case "streamGenerateContent":
		r.Operation, r.Stream = OpGenerateContent, true
	case "countTokens":
		r.Operation = OpCountTokens
	case "embedContent", "batchEmbedContents", "asyncBatchEmbedContent":
		r.Operation = OpEmbeddings
	case "rawPredict", "streamRawPredict":
		if !strings.HasSuffix(publisher, "/publishers/anthropic") {
			return Route{Operation: OpOther}
		}
		if model == "count-tokens" {
			return Route{API: Messages, Operation: OpCountTokens}
		}
		return Route{API: Messages, Operation: OpChat, Model: model, Stream: verb == "streamRawPredict"}
	default:
		if !ok {
			return Route{Operation: OpOther}
		}
	}
	return r
}

// For gives the Format of a dialect; nil for one that does not exist.
func For(api API) Format {
	switch api {
	case Chat:
		return chat{}
	case Completions:
		return completions{}
	case Responses:
		return responses{}
	case Messages:
		return messages{}
	case Gemini:
		return gemini{}
	}
	return nil
}
