package wire

import "strings"

// Route is what a request line says about a call.
type Route struct {
	API       API       // empty where the path belongs to no dialect that weir reads
	Operation Operation // OpOther where the path is unknown
	Model     string    // from the path (Gemini); else empty
	Stream    bool      // the path itself asks for a stream (Gemini)
}

// Find reads a request's method and path: any prefix before a dialect's own
// path is accepted ("/api/v1/messages", "/openai/deployments/x/chat/completions").
func Find(method, path string) Route {
	path = strings.TrimRight(path, "/")
	if i := strings.LastIndex(path, "/models/"); i >= 0 {
		if name, verb, ok := strings.Cut(path[i+len("/models/"):], ":"); ok {
			return geminiRoute(method, name, verb)
		}
		return Route{Operation: operationOf(method == "GET" || method == "HEAD", OpModels)}
	}
	post := method == "POST"
	for _, known := range paths {
		if path == known.suffix[1:] || strings.HasSuffix(path, known.suffix) {
			if known.operation == OpModels {
				return Route{Operation: operationOf(method == "GET" || method == "HEAD", OpModels)}
			}
			if !post {
				return Route{API: known.api, Operation: OpOther}
			}
			return Route{API: known.api, Operation: known.operation}
		}
	}
	return Route{Operation: OpOther}
}

func operationOf(ok bool, o Operation) Operation {
	if ok {
		return o
	}
	return OpOther
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

func geminiRoute(method, model, verb string) Route {
	r := Route{API: Gemini, Operation: OpOther, Model: model}
	if method != "POST" {
		return r
	}
	switch verb {
	case "generateContent":
		r.Operation = OpGenerateContent
	case "streamGenerateContent":
		r.Operation, r.Stream = OpGenerateContent, true
	case "countTokens":
		r.Operation = OpCountTokens
	case "embedContent", "batchEmbedContents", "asyncBatchEmbedContent":
		r.Operation = OpEmbeddings
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
