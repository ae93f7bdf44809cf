package call

import (
	"errors"
	"strings"
	"syscall"
)

// What this machine can run out of, as ErrorType has it.
const (
	openFiles  = "open_files"
	localPorts = "local_ports"
)

// exhausted is what this machine ran out of when it met an error; empty: nothing.
func exhausted(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return localPorts
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return openFiles
	}
	return ""
}

// Exhausted is what this machine ran out of, so that the call failed, whether the
// generator or a weir on its way met it: "open files" or "local ports"; empty
// for every other call.
func (c *Call) Exhausted() string {
	if c.ErrorType == openFiles || c.ErrorType == localPorts {
		return strings.ReplaceAll(c.ErrorType, "_", " ")
	}
	return ""
}

// ExhaustedBy is what Exhausted says of a call that ends with an error, and what
// to do about it, to be told to its caller.
func ExhaustedBy(err error) (kind, next string) {
	kind = exhausted(err)
	return kind, moreOf[kind]
}

var moreOf = map[string]string{
	openFiles:  "Raise the limit (ulimit -n) and start weir again, or send less at once.",
	localPorts: "Send less at once, or keep connections open: each new one takes a local port for a minute.",
}

// ranOut explains a call that this machine had nothing left for.
func (c *Call) ranOut() (advice, bool) {
	what := c.Exhausted()
	return advice{"This machine ran out of " + what + ", so weir could not connect to " + c.endpoint() + ": the endpoint never saw the request.", moreOf[c.ErrorType]}, what != ""
}
