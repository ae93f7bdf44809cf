package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// WebSocket reads the frames of one direction of a connection that switched to
// WebSocket (RFC 6455), with permessage-deflate (RFC 7692) where the two ends
// agreed on it. It reads a copy of what passes: it answers nothing, and where
// the bytes break the protocol it reads no further while they pass on.
type WebSocket struct {
	fromClient bool // its frames are masked, the server's are not
	limit      int
	inflater   *inflater // nil without permessage-deflate

	head [maxFrameHead]byte
	have int // bytes of head that have come

	// The frame under way.
	inFrame bool
	final   bool // the last of its message
	opcode  Opcode
	left    uint64  // bytes of payload that have not come
	mask    [4]byte // turned to what comes next
	control []byte  // payload of a control frame

	// The message under way.
	message  Opcode // zero between messages
	deflated bool
	lent     []byte // the payload, where it needs no copy
	data     []byte // the payload, up to limit
	over     bool

	closed bool
	err    error
}

// Opcode says what a WebSocket message is; the values are those of RFC 6455.
type Opcode uint8

// The opcodes of what WebSocket.Feed gives.
const (
	TextMessage   Opcode = 1
	BinaryMessage Opcode = 2
	CloseMessage  Opcode = 8
)

const continuation Opcode = 0

// WebSocketMessage is one whole message, however it was cut into frames, or
// the close of its direction.
type WebSocketMessage struct {
	Opcode   Opcode
	Data     []byte // of a close: the reason. Lent until the callback returns
	Oversize bool   // the message was longer than is inspected, and Data holds only its beginning
	Code     int    // of a close: its status code, 1005 when it states none
}

const (
	maxFrameHead = 14
	maxControl   = 125  // bytes of payload of a control frame
	noCloseCode  = 1005 // RFC 6455 7.1.5
)

// NewWebSocket makes a reader of what one end sent after the response that
// switched protocols. extensions is that response's Sec-WebSocket-Extensions,
// its lines joined by commas. At most limit bytes of a message are inspected;
// 0 is 8 MiB.
func NewWebSocket(extensions string, fromClient bool, limit int) *WebSocket {
	if limit <= 0 {
		limit = defaultFrameLimit
	}
	w := &WebSocket{fromClient: fromClient, limit: limit}
	for extension := range strings.SplitSeq(extensions, ",") {
		name, parameters, _ := strings.Cut(extension, ";")
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "":
		case name == "permessage-deflate" && w.inflater == nil:
			w.inflater, w.err = newInflater(parameters, fromClient, limit)
		default:
			w.err = fmt.Errorf("read WebSocket: its extension %.100q is not one that weir reads", name)
		}
	}
	return w
}

// Feed takes the next bytes and gives the messages that they complete, and a
// close. Pings and pongs are passed over, as is what follows a close. An error
// is final: each later Feed gives it again and reads nothing.
func (w *WebSocket) Feed(p []byte, each func(WebSocketMessage)) error {
	for ended := true; ended && w.err == nil && !w.closed; {
		p, ended, _ = w.Frame(p, each)
	}
	return w.err
}

// Frame is Feed for one frame at most. It gives what of p follows the frame,
// and whether that has ended; nothing follows a close or an error.
func (w *WebSocket) Frame(p []byte, each func(WebSocketMessage)) (rest []byte, ended bool, err error) {
	if w.err != nil || w.closed {
		return nil, false, w.err
	}
	if !w.inFrame {
		if p = w.readHead(p); !w.inFrame {
			if w.err != nil {
				w.Close()
			}
			return nil, false, w.err
		}
	}
	n := int(min(uint64(len(p)), w.left))
	w.left -= uint64(n)
	w.payload(p[:n])
	if w.left == 0 && w.err == nil {
		w.inFrame = false
		w.endFrame(each)
		ended = true
	}
	if w.err != nil {
		w.Close()
	}
	return p[n:], ended, w.err
}

// Control says whether the last frame whose head has come is a control frame: a
// ping, a pong or a close. Such a frame may stand between those of a message.
func (w *WebSocket) Control() bool { return w.opcode&8 != 0 }

// Close frees what decompressing holds. Call it when the connection has ended,
// however it did; more calls do nothing.
func (w *WebSocket) Close() {
	w.closed = true
	if w.inflater != nil {
		w.inflater.close()
	}
}

// Partial says that a message has begun and not ended.
func (w *WebSocket) Partial() bool { return w.message != 0 || w.inFrame || w.have > 0 }

// readHead takes the next frame's head and gives what follows it. The frame is
// under way when the whole head has come.
func (w *WebSocket) readHead(p []byte) []byte {
	for need := 2; ; {
		if w.have >= 2 {
			need = frameHead(w.head[1])
		}
		n := copy(w.head[min(w.have, need):need], p)
		w.have += n
		p = p[n:]
		if w.have >= 2 { // what is no frame may have no more bytes
			if w.err = w.misread(); w.err != nil {
				return p
			}
		}
		if w.have < need {
			return p
		}
		if w.have >= frameHead(w.head[1]) {
			break
		}
	}
	w.have = 0
	w.inFrame = true
	w.err = w.beginFrame()
	return p
}

// frameHead is the size of a frame's head, by its second byte.
func frameHead(b byte) int {
	size := 2
	switch b & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if b&0x80 != 0 {
		size += 4
	}
	return size
}

// misread says what is wrong with a head's first two bytes.
func (w *WebSocket) misread() error {
	opcode, compressed, masked := Opcode(w.head[0]&0x0f), w.head[0]&0x40 != 0, w.head[1]&0x80 != 0
	control := opcode&8 != 0
	switch {
	case w.head[0]&0x30 != 0 || compressed && (w.inflater == nil || control || opcode == continuation):
		return errors.New("read WebSocket: a frame has a reserved bit set that nobody agreed on")
	case control && opcode > 10 || !control && opcode > BinaryMessage:
		return fmt.Errorf("read WebSocket: a frame has the reserved opcode %d", opcode)
	case masked != w.fromClient:
		return errors.New("read WebSocket: a client's frames must be masked and a server's must not")
	}
	return nil
}

// beginFrame reads the rest of the head that has come and refuses what the protocol does.
func (w *WebSocket) beginFrame() error {
	first, second := w.head[0], w.head[1]
	at := 2
	switch w.left = uint64(second & 0x7f); w.left {
	case 126:
		w.left, at = uint64(binary.BigEndian.Uint16(w.head[at:])), 4
	case 127:
		w.left, at = binary.BigEndian.Uint64(w.head[at:]), 10
	}
	copy(w.mask[:], w.head[at:])
	w.final, w.opcode = first&0x80 != 0, Opcode(first&0x0f)
	compressed := first&0x40 != 0
	control := w.opcode&8 != 0

	switch {
	case w.left > 1<<63-1:
		return errors.New("read WebSocket: a frame's length has more than 63 bits")
	case control && (!w.final || w.left > maxControl):
		return fmt.Errorf("read WebSocket: a control frame is longer than %d bytes or in pieces", maxControl)
	case control:
		w.control = w.control[:0]
	case w.opcode == continuation && w.message == 0:
		return errors.New("read WebSocket: a frame continues no message")
	case w.opcode != continuation && w.message != 0:
		return errors.New("read WebSocket: a message begins within another")
	case w.opcode != continuation:
		w.message, w.deflated = w.opcode, compressed
		w.lent, w.data, w.over = nil, w.data[:0], false
	}
	return nil
}

// payload takes the next bytes of the frame under way.
func (w *WebSocket) payload(p []byte) {
	switch {
	case w.opcode&8 != 0:
		w.control = w.unmasked(w.control, p, maxControl)
	case w.deflated:
		if w.fromClient {
			w.data = w.unmasked(w.data[:0], p, len(p))
			p = w.data
		}
		w.err = w.inflater.write(p)
	case !w.fromClient && w.left == 0 && w.final && w.opcode != continuation && len(w.data) == 0:
		w.over = len(p) > w.limit
		w.lent = p[:min(len(p), w.limit)]
	default:
		w.over = w.over || len(p) > w.limit-len(w.data)
		w.data = w.unmasked(w.data, p, w.limit-len(w.data))
	}
}

// unmasked appends up to room bytes of p to dst without their mask, and turns
// the mask to what follows p.
func (w *WebSocket) unmasked(dst, p []byte, room int) []byte {
	from := len(dst)
	dst = append(dst, p[:min(len(p), room)]...)
	if !w.fromClient {
		return dst
	}
	b, mask := dst[from:], w.mask
	word := uint64(binary.LittleEndian.Uint32(mask[:]))
	word |= word << 32
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
	}
	for i := range b {
		b[i] ^= mask[i&3]
	}
	for i := range w.mask {
		w.mask[i] = mask[(i+len(p))&3]
	}
	return dst
}

// endFrame gives what the frame that has ended completes.
func (w *WebSocket) endFrame(each func(WebSocketMessage)) {
	switch {
	case w.opcode == CloseMessage:
		m := WebSocketMessage{Opcode: CloseMessage, Code: noCloseCode}
		switch len(w.control) {
		case 0:
		case 1:
			w.err = errors.New("read WebSocket: a close has half a status code")
			return
		default:
			m.Code, m.Data = int(binary.BigEndian.Uint16(w.control)), w.control[2:]
		}
		w.Close()
		each(m)
	case w.opcode&8 == 0 && w.final:
		m := WebSocketMessage{Opcode: w.message, Data: w.data, Oversize: w.over}
		w.message = 0
		switch {
		case w.deflated:
			if m.Data, m.Oversize, w.err = w.inflater.end(); w.err != nil {
				return
			}
		case w.lent != nil:
			m.Data = w.lent
		}
		each(m)
		w.lent = nil
	}
}
