package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/flate"
)

// frame makes one frame; first is its first byte. A client's is masked.
func frame(first byte, fromClient bool, payload []byte) []byte {
	b := []byte{first}
	var masked byte
	if fromClient {
		masked = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, masked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(n))
	}
	if !fromClient {
		return append(b, payload...)
	}
	mask := [4]byte{0x37, 0xfa, 0x21, 0x3d}
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i&3])
	}
	return b
}

func text(s string) WebSocketMessage { return WebSocketMessage{Opcode: TextMessage, Data: []byte(s)} }

// The examples of RFC 6455 5.7 and RFC 7692 7.2.3, and what else is allowed.
func TestWebSocketExamplesOfTheRFCs(t *testing.T) {
	deflate, noTakeover := "permessage-deflate", "Permessage-Deflate; server_no_context_takeover; client_max_window_bits=10"
	for _, row := range []struct {
		name       string
		extensions string
		fromClient bool
		bytes      string
		want       []WebSocketMessage
	}{
		{"unmasked", "", false, "\x81\x05Hello", []WebSocketMessage{text("Hello")}},
		{"masked", "", true, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", []WebSocketMessage{text("Hello")}},
		{"in pieces, with a ping between them", "", false, "\x01\x03Hel\x89\x04ping\x80\x02lo", []WebSocketMessage{text("Hello")}},
		{"a pong that nobody asked for", "", false, "\x8a\x00\x81\x02ok", []WebSocketMessage{text("ok")}},
		{"empty messages and pieces", "", false, "\x81\x00\x01\x00\x00\x00\x80\x00\x82\x01b", []WebSocketMessage{text(""), text(""), {Opcode: BinaryMessage, Data: []byte("b")}}},
		{"a close without a status", "", false, "\x88\x00", []WebSocketMessage{{Opcode: CloseMessage, Code: 1005, Data: []byte{}}}},
		{"a close amid a message, and bytes after it", "", false, "\x01\x03Hel\x88\x05\x03\xe9bye\xff\xff\xff", []WebSocketMessage{{Opcode: CloseMessage, Code: 1001, Data: []byte("bye")}}},
		{"lengths that are longer than they need be", "", false, "\x81\x7e\x00\x02ok\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x02ok", []WebSocketMessage{text("ok"), text("ok")}},

		{"compressed", deflate, false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", []WebSocketMessage{text("Hello")}},
		{"compressed, in pieces", deflate, false, "\x41\x03\xf2\x48\xcd\x89\x00\x80\x04\xc9\xc9\x07\x00", []WebSocketMessage{text("Hello")}},
		{"referring to the message before", deflate, false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\xc1\x05\xf2\x00\x11\x00\x00", []WebSocketMessage{text("Hello"), text("Hello")}},
		{"referring to it over one that is not compressed", deflate, false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\x81\x01x\xc1\x05\xf2\x00\x11\x00\x00", []WebSocketMessage{text("Hello"), text("x"), text("Hello")}},
		{"the other end's promise not to refer", "permessage-deflate; client_no_context_takeover", false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\xc1\x05\xf2\x00\x11\x00\x00", []WebSocketMessage{text("Hello"), text("Hello")}},
		{"each message alone", noTakeover, false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", []WebSocketMessage{text("Hello"), text("Hello")}},
		{"a block without compression", deflate, false, "\xc1\x0b\x00\x05\x00\xfa\xffHello\x00", []WebSocketMessage{text("Hello")}},
		{"two blocks", deflate, false, "\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", []WebSocketMessage{text("Hello")}},
		{"a last block, and a message that refers to it", deflate, false, "\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00\xc1\x05\xf2\x00\x11\x00\x00", []WebSocketMessage{text("Hello"), text("Hello")}},
		{"a last block of a message alone", noTakeover, false, "\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", []WebSocketMessage{text("Hello"), text("Hello")}},
		{"empty", deflate, false, "\xc1\x01\x00\xc1\x01\x00\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", []WebSocketMessage{text(""), text(""), text("Hello")}},
	} {
		for step := 1; step <= len(row.bytes); step++ {
			got, err := readWebSocket(NewWebSocket(row.extensions, row.fromClient, 0), []byte(row.bytes), step)
			if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
				t.Errorf("%s, %d bytes at a time: %v\n%s", row.name, step, err, diff)
				break
			}
		}
	}
}

// What breaks the protocol is an error once what came before it has been given,
// and nothing is read after it.
func TestWebSocketReadsNothingAfterAViolation(t *testing.T) {
	for _, row := range []struct {
		name       string
		extensions string
		fromClient bool
		bytes      string
		want       string
	}{
		{"RSV1 without an extension", "", false, "\xc1\x02ok", "reserved bit"},
		{"RSV2", "permessage-deflate", false, "\xa1\x02ok", "reserved bit"},
		{"RSV3", "permessage-deflate", false, "\x91\x02ok", "reserved bit"},
		{"RSV1 on a later piece", "permessage-deflate", false, "\x01\x01o\xc0\x01k", "reserved bit"},
		{"RSV1 on a ping", "permessage-deflate", false, "\xc9\x00", "reserved bit"},
		{"opcode 3", "", false, "\x83\x00", "reserved opcode 3"},
		{"opcode 11", "", false, "\x8b\x00", "reserved opcode 11"},
		{"a server that masks", "", false, "\x81\x82\x00\x00\x00\x00ok", "masked"},
		{"a client that does not", "", true, "\x81\x02ok", "masked"},
		{"a continuation of nothing", "", false, "\x80\x02ok", "continues no message"},
		{"a message in another", "", false, "\x01\x02ok\x81\x02ok", "within another"},
		{"a ping in pieces", "", false, "\x09\x00", "control frame"},
		{"a long ping", "", false, "\x89\x7e\x00\x7e", "control frame"},
		{"a length of 64 bits", "", false, "\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "63 bits"},
		{"half a status", "", false, "\x88\x01\x03", "half a status"},
		{"what is not deflate", "permessage-deflate", false, "\xc1\x03\xff\xff\xff", "decompress"},
		{"a reference to a message that promised to stand alone", "permessage-deflate; server_no_context_takeover", false, "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\xc1\x05\xf2\x00\x11\x00\x00", "decompress"},
		{"an extension that nobody knows", "x-shout", false, "", "x-shout"},
		{"one beside deflate", "permessage-deflate, x-shout", false, "", "x-shout"},
		{"a parameter that nobody knows", "permessage-deflate; loud=1", false, "", "loud"},
	} {
		before := text("before")
		want := []WebSocketMessage{before}
		b := append(frame(0x81, row.fromClient, before.Data), row.bytes...)
		switch {
		case row.bytes == "":
			want = nil
		case strings.Contains(row.name, "promised"):
			want = append(want, text("Hello"))
		}
		b = append(b, frame(0x81, row.fromClient, []byte("after"))...)
		for _, step := range []int{1, 3, len(b)} {
			w := NewWebSocket(row.extensions, row.fromClient, 0)
			got, err := readWebSocket(w, b, step)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s, %d bytes at a time: error %v, want one of %q", row.name, step, err, row.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %d bytes at a time:\n%s", row.name, step, diff)
			}
			again := w.Feed(b, func(m WebSocketMessage) { t.Errorf("%s: a message after the error: %q", row.name, m.Data) })
			if again == nil || again.Error() != err.Error() {
				t.Errorf("%s: a later Feed says %v, want %v again", row.name, again, err)
			}
		}
	}
}

// deflated compresses messages as one stream, so that each refers to those
// before it, and frames them.
func deflated(t testing.TB, fromClient bool, messages ...[]byte) (frames [][]byte) {
	t.Helper()
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		b.Reset()
		_, _ = z.Write(m)
		_ = z.Flush()
		frames = append(frames, frame(0xc1, fromClient, bytes.TrimSuffix(b.Bytes(), deflateTail)))
	}
	return frames
}

// A message that is longer than is inspected passes without being held, and
// those after it are heard although they refer to it.
func TestWebSocketPassesOverWhatIsTooLong(t *testing.T) {
	const limit = 100
	long := []byte(strings.Repeat("all the king's horses ", 40_000))
	short := []byte("the king's horses and all the king's men")
	bomb := make([]byte, maxInflated-1)
	for _, row := range []struct {
		name       string
		extensions string
		fromClient bool
		frames     [][]byte
		long       []byte
	}{
		{"plain from the server", "", false, [][]byte{frame(0x81, false, long), frame(0x81, false, short)}, long},
		{"plain from the client", "", true, [][]byte{frame(0x81, true, long), frame(0x81, true, short)}, long},
		{"in pieces", "", true, [][]byte{frame(0x01, true, long[:70]), frame(0, true, long[70:500]), frame(0x80, true, long[500:]), frame(0x81, true, short)}, long},
		{"compressed", "permessage-deflate", false, deflated(t, false, long, short), long},
		{"compressed from the client", "permessage-deflate", true, deflated(t, true, long, short), long},
		{"much out of little", "permessage-deflate", false, deflated(t, false, bomb, short), bomb},
	} {
		want := []WebSocketMessage{{Opcode: TextMessage, Data: row.long[:limit], Oversize: true}, {Opcode: TextMessage, Data: short}}
		all := bytes.Join(row.frames, nil)
		for _, step := range []int{999, len(all)} {
			w := NewWebSocket(row.extensions, row.fromClient, limit)
			got, err := readWebSocket(w, all, step)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, %d bytes at a time: %v\n%s", row.name, step, err, diff)
			}
			held := cap(w.data)
			if w.inflater != nil {
				held = cap(w.inflater.out) + cap(w.inflater.window)
				if row.fromClient { // what is fed at once is unmasked at once
					held += max(cap(w.data)-2*step, 0)
				}
			}
			if held > 4*deflateWindow {
				t.Errorf("%s: %d bytes are held for messages of which %d may be", row.name, held, limit)
			}
		}
	}
}

// What stands for too much ends the reading, not the process.
func TestWebSocketGivesUpAtABomb(t *testing.T) {
	frames := deflated(t, false, make([]byte, maxInflated+1), []byte("after"))
	got, err := readWebSocket(NewWebSocket("permessage-deflate", false, 0), bytes.Join(frames, nil), 1000)
	if len(got) != 0 || err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("%d messages and the error %v, want none and one of 64 MiB", len(got), err)
	}
}

func TestWebSocketPartial(t *testing.T) {
	b := "\x01\x02he\x89\x01p\x80\x03llo"
	w := NewWebSocket("", false, 0)
	for i := range len(b) {
		if got, want := w.Partial(), i > 0; got != want {
			t.Errorf("after %d bytes: partial is %v, want %v", i, got, want)
		}
		if err := w.Feed([]byte{b[i]}, func(WebSocketMessage) {}); err != nil {
			t.Fatal(err)
		}
	}
	if w.Partial() {
		t.Error("partial after the whole message")
	}
}

func FuzzWebSocket(f *testing.F) {
	for _, fromClient := range []bool{false, true} {
		f.Add(bytes.Join(deflated(f, fromClient, []byte(`{"type":"response.created"}`), []byte(`{"type":"response.completed"}`)), nil), fromClient, true, false, uint16(7))
		f.Add(bytes.Join([][]byte{frame(1, fromClient, []byte("he")), frame(0x89, fromClient, nil), frame(0x80, fromClient, []byte("llo")), frame(0x88, fromClient, []byte("\x03\xe8bye"))}, nil), fromClient, false, false, uint16(1))
	}
	f.Add([]byte("\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00\xc1\x05\xf2\x00\x11\x00\x00"), false, true, true, uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, fromClient, deflate, alone bool, step uint16) {
		extensions := ""
		if deflate {
			extensions = "permessage-deflate"
			if alone {
				extensions += "; client_no_context_takeover; server_no_context_takeover"
			}
		}
		const limit = 1000
		whole, wholeErr := readWebSocket(NewWebSocket(extensions, fromClient, limit), b, len(b))
		pieces, piecesErr := readWebSocket(NewWebSocket(extensions, fromClient, limit), b, int(step)+1)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("%d bytes at a time gives other messages:\n%s", int(step)+1, diff)
		}
		if (wholeErr == nil) != (piecesErr == nil) {
			t.Errorf("the error is %v, and %d bytes at a time %v", wholeErr, int(step)+1, piecesErr)
		}
		for _, m := range whole {
			if len(m.Data) > limit || m.Oversize && len(m.Data) != limit {
				t.Errorf("a message of %d bytes, oversize %v", len(m.Data), m.Oversize)
			}
		}
	})
}

// A small event as a server sends hundreds of them a second.
func BenchmarkWebSocket(b *testing.B) {
	event := []byte(`{"type":"response.output_text.delta","sequence_number":17,"item_id":"msg_0","output_index":0,"content_index":0,"delta":" weir"}`)
	compressed := deflated(b, false, event, event, event)[2] // the state in which it has been said before
	for _, row := range []struct {
		name       string
		extensions string
		first      [][]byte
		frame      []byte
		client     bool
	}{
		{"plain", "", nil, frame(0x81, false, event), false},
		{"masked", "", nil, frame(0x81, true, event), true},
		{"deflate", "permessage-deflate", deflated(b, false, event, event), compressed, false},
		{"deflate-alone", "permessage-deflate; server_no_context_takeover", nil, deflated(b, false, event)[0], false},
	} {
		b.Run(row.name, func(b *testing.B) {
			w := NewWebSocket(row.extensions, row.client, 0)
			defer w.Close()
			n := 0
			each := func(m WebSocketMessage) { n += len(m.Data) }
			for _, f := range row.first {
				_ = w.Feed(f, each)
			}
			n = 0
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Feed(row.frame, each); err != nil {
					b.Fatal(err)
				}
			}
			if n != b.N*len(event) {
				b.Fatalf("%d bytes were heard, want %d", n, b.N*len(event))
			}
		})
	}
}
