package wire

// Frame is one event of a stream before it is understood. Its slices are valid
// until the splitter is fed again.
type Frame struct {
	Event    []byte // the SSE event field; empty when there was none
	Data     []byte // the SSE data lines, joined by \n; or one JSON value
	Oversize bool   // Data was longer than the splitter inspects and holds only its beginning
}
