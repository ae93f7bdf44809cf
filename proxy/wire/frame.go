package wire

// Frame is one event of a stream before it is understood. Its slices are valid
// until the splitter is fed again.
type Frame struct {
	Event    []byte // the SSE event field; empty when there was none
	Data     []byte // the SSE data lines, joined by \n; or one JSON value
	Oversize bool   // Data was longer than the splitter inspects and holds only its beginning
}

// Framing is how a body is cut into frames.
type Framing uint8

// The framings.
const (
	Whole     Framing = iota // one JSON document
	SSE                      // text/event-stream
	JSONArray                // Gemini's stream without alt=sse: one array, an element a frame
)

// FramingOf reads a response's Content-Type. stream says that the request
// asked for a stream: JSON is then taken for an array of frames if it starts
// like one.
func FramingOf(contentType string, stream bool) Framing { panic("wire: being written") }

// Splitter cuts a body into frames, whatever the split of the bytes it is fed.
type Splitter struct{}

// NewSplitter makes a splitter that inspects at most limit bytes of one frame;
// longer frames are passed with their beginning and marked Oversize. A limit of
// 0 is 8 MiB.
func NewSplitter(f Framing, limit int) *Splitter { panic("wire: being written") }

// Feed takes the next bytes and yields the frames that they complete.
func (s *Splitter) Feed(p []byte, yield func(Frame)) { panic("wire: being written") }

// Close ends the body. A Whole body is yielded here; an SSE event without its
// blank line is not an event and is dropped, which Partial tells.
func (s *Splitter) Close(yield func(Frame)) { panic("wire: being written") }

// Partial says that bytes of an unfinished frame are held.
func (s *Splitter) Partial() bool { panic("wire: being written") }

// Decoder undoes a Content-Encoding on a copy of a body, as far as the bytes
// that have come allow: what the sender flushed is visible at once.
type Decoder struct{}

// NewDecoder makes a decoder for a Content-Encoding header: gzip, deflate, br,
// zstd, or several of them. It is nil for identity and empty. An unknown coding
// is an error.
func NewDecoder(contentEncoding string) (*Decoder, error) { panic("wire: being written") }

// Decode takes the next encoded bytes and gives what they decode to; the slice
// holds until the next call. After an error the decoder gives nothing more.
func (d *Decoder) Decode(p []byte) ([]byte, error) { panic("wire: being written") }

// Close frees the decoder; it may be called at any point and more than once.
func (d *Decoder) Close() { panic("wire: being written") }

// Writer writes one streamed answer as its dialect does it: the events that
// open and close a stream around the generated ones. Each method appends the
// frames to dst and returns it.
type Writer struct{}

// WriterOptions shape what a Writer writes beside the generated output.
type WriterOptions struct {
	Framing Framing // SSE, or JSONArray for Gemini
	Usage   bool    // report usage where the dialect reports it in streams
}

// NewWriter makes a writer of one answer with the id and model given. input is
// the usage of the prompt, which Anthropic's first event states.
func NewWriter(f Format, id, model string, input Usage, o WriterOptions) *Writer {
	panic("wire: being written")
}

// Open writes what comes before the first token.
func (w *Writer) Open(dst []byte) []byte { panic("wire: being written") }

// Text, Reasoning and Tool write a piece of generated output. The first piece
// of a tool call has an id and a name, later ones only arguments; a new id
// begins a new call.
func (w *Writer) Text(dst []byte, text string) []byte      { panic("wire: being written") }
func (w *Writer) Reasoning(dst []byte, text string) []byte { panic("wire: being written") }
func (w *Writer) Tool(dst []byte, id, name, arguments string) []byte {
	panic("wire: being written")
}

// Ping writes what keeps a stream alive in the dialect: an event or a comment.
func (w *Writer) Ping(dst []byte) []byte { panic("wire: being written") }

// Error writes an error event, after which the stream ends.
func (w *Writer) Error(dst []byte, e *Error) []byte { panic("wire: being written") }

// Close writes the finish reason, usage and all that ends the stream. finish
// is "stop", "length" or "tool": the dialect's own word is written for it.
func (w *Writer) Close(dst []byte, finish string, u Usage) []byte { panic("wire: being written") }
