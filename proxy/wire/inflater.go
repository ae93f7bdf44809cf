package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/klauspost/compress/flate"
)

// inflater undoes permessage-deflate on one direction of a WebSocket. As
// Decoder does, it turns a decompressor that pulls into one that is fed by
// means of a coroutine: so messages of any length pass through little memory,
// and the decompressor keeps its own window from message to message.
type inflater struct {
	takeover bool // a message may refer to those before it
	limit    int

	next func() (struct{}, bool) // nil until the first message
	stop func()

	in   []byte // fed, not yet read
	ends bool   // the message ends with in

	out    []byte // the message under way, up to limit
	size   int    // its bytes so far
	over   bool   // out lacks its end
	window []byte // its last bytes and those of the messages before it
	err    error
}

const (
	deflateWindow = 32 << 10

	// maxInflated is how long a compressed message may become. What is longer
	// than the limit is decompressed all the same, since later messages refer
	// to it; and of a thousand bytes a bomb makes a million.
	maxInflated = 64 << 20
)

// newInflater reads the parameters that the two ends agreed on. Windows smaller
// than deflate's own need no care.
func newInflater(parameters string, fromClient bool, limit int) (*inflater, error) {
	f := &inflater{takeover: true, limit: limit}
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, _, _ := strings.Cut(parameter, "=")
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "client_max_window_bits", "server_max_window_bits":
		case "client_no_context_takeover":
			f.takeover = f.takeover && !fromClient
		case "server_no_context_takeover":
			f.takeover = f.takeover && fromClient
		default:
			return nil, fmt.Errorf("read WebSocket: permessage-deflate has the parameter %.100q, which is unknown", name)
		}
	}
	return f, nil
}

// write takes the next bytes of a message.
func (f *inflater) write(p []byte) error {
	if f.next == nil && f.err == nil {
		f.next, f.stop = iter.Pull(f.run)
	}
	if f.err == nil && (len(p) > 0 || f.ends) {
		f.in = p
		f.next()
	}
	return f.err
}

// deflateTail ends each message, and is not sent.
var deflateTail = []byte{0, 0, 0xff, 0xff}

// end gives the message, whose last bytes have been written.
func (f *inflater) end() (data []byte, over bool, err error) {
	f.ends = true
	err = f.write(deflateTail)
	data, over = f.out, f.over
	f.ends, f.out, f.size, f.over = false, f.out[:0], 0, false
	return data, over, err
}

func (f *inflater) close() {
	if f.stop != nil {
		f.stop()
	}
	if f.err == nil {
		f.err = errStopped
	}
}

var errMessageEnds = errors.New("the message has ended")

// inflaterSource is what the decompressor reads: it gives the coroutine up when
// nothing is left.
type inflaterSource struct {
	f     *inflater
	yield func(struct{}) bool
}

func (s inflaterSource) Read(p []byte) (int, error) {
	for len(s.f.in) == 0 {
		if s.f.ends && !s.f.takeover {
			s.f.ends = false
			return 0, errMessageEnds
		}
		if !s.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, s.f.in)
	s.f.in = s.f.in[n:]
	return n, nil
}

// run decompresses until an error or close. A message that is its stream's last
// block is followed by a new stream with the same window.
func (f *inflater) run(yield func(struct{}) bool) {
	in := bufio.NewReader(inflaterSource{f, yield})
	r := flate.NewReader(in)
	buf := make([]byte, 8<<10)
	for f.err == nil {
		n, err := r.Read(buf)
		f.keep(buf[:n])
		switch {
		case err == nil:
			continue
		case errors.Is(err, errMessageEnds):
			f.window = f.window[:0]
		case !errors.Is(err, io.EOF):
			f.err = fmt.Errorf("read WebSocket: decompress a message: %w", err)
		}
		if err := r.(flate.Resetter).Reset(in, f.window); err != nil && f.err == nil {
			f.err = fmt.Errorf("read WebSocket: decompress a message: %w", err)
		}
	}
}

// keep takes down what was decompressed.
func (f *inflater) keep(p []byte) {
	if f.size += len(p); f.size > maxInflated && f.err == nil {
		f.err = fmt.Errorf("read WebSocket: a compressed message stands for more than %d MiB", maxInflated>>20)
	}
	if len(f.window)+len(p) > 2*deflateWindow {
		f.window = f.window[:copy(f.window, f.window[len(f.window)-deflateWindow:])]
	}
	f.window = append(f.window, p...)
	if room := f.limit - len(f.out); len(p) > room {
		p, f.over = p[:room], true
	}
	f.out = append(f.out, p...)
}
