package wire

import "errors"

// Shape is a request without its words: what it is made of, in order, and a
// hash of each part by which the same part is known again.
type Shape struct {
	Blocks []Block
}

// Block is one part of a request: a tool's definition, a piece of the system
// prompt, or a part of a message.
type Block struct {
	Role  Role   // who speaks; System and Tools have roles of their own
	Kind  Kind   // 0 for the definition of a tool
	Name  string // of the tool that is defined, called, or has answered
	Bytes int    // of its text, arguments or raw form
	// Hash tells what the block says, not how it is spelled: a string and an
	// array of one text are the same, and cache marks, ids of calls and the
	// order of keys do not count.
	Hash uint64
}

// The roles of blocks that are no messages.
const (
	System     Role = "system"
	Definition Role = "definition" // of a tool
)

// ReadShape reads the shape of a request body. A body that breaks off gives
// what stood before the break, and an error.
func ReadShape(api API, body []byte) (Shape, error) {
	return Shape{}, errors.New("not built")
}
