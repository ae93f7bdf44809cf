package wire

// Route is what a request line says about a call.
type Route struct {
	API       API       // empty where the path belongs to no dialect that weir reads
	Operation Operation // OpOther where the path is unknown
	Model     string    // from the path (Gemini); else empty
	Stream    bool      // the path itself asks for a stream (Gemini)
}

// Find reads a request's method and path: any prefix before a dialect's own
// path is accepted ("/api/v1/messages", "/openai/deployments/x/chat/completions").
func Find(method, path string) Route { panic("wire: being written") }

// For gives the Format of a dialect; nil for one that does not exist.
func For(api API) Format { panic("wire: being written") }
