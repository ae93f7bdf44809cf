package wire

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// Reply takes down what an answer says, as hashes by which the answer is known
// again in a later request that repeats it. Its zero value has heard nothing.
// It is fed the events of a stream, or the whole answer, and keeps no words.
type Reply struct {
	text    xxhash.Digest
	pending []byte // at the text's end so far
	hears   bool   // text has begun
	over    bool   // the first text has ended; what comes behind it is another block
	call    uint64
}

// Said is what a reply has said: hashes of its first text, of that text without
// the white space at its end, and of the id of its first call of a tool. Each is
// 0 where there was none.
type Said struct {
	Text, Trimmed, Call uint64
}

// Event takes the next event of a stream.
func (r *Reply) Event(ev *Event) {
	if len(ev.Text) > 0 && !r.over {
		r.add(ev.Text)
		if len(ev.Tools) == 0 {
			return
		}
	}
	switch {
	case len(ev.Tools) > 0:
		r.over = r.hears
		if id := ev.Tools[0].ID; r.call == 0 && len(id) > 0 {
			r.call = xxhash.Sum64(id)
		}
	case r.hears && !r.over:
		r.over = endsBlock(ev.Type)
	}
}

// endsBlock says whether an event ends one of several texts of an answer.
func endsBlock(kind []byte) bool {
	switch string(kind) {
	case "content_block_stop", "response.content_part.done", "response.output_item.done":
		return true
	}
	return false
}

// Answer takes an answer that was not streamed.
func (r *Reply) Answer(a *Answer) {
	for _, p := range a.Parts {
		switch p.Kind {
		case KindText:
			if !r.over && p.Text != "" {
				r.add([]byte(p.Text))
				r.over = true
			}
		case KindTool:
			if r.call == 0 && p.ID != "" {
				r.call = xxhash.Sum64String(p.ID)
			}
		}
	}
}

func (r *Reply) add(words []byte) {
	if !r.hears {
		r.text.Reset()
		r.hears = true
	}
	if n := len(trimRight(words)); n > 0 {
		if len(r.pending) > 0 {
			_, _ = r.text.Write(r.pending)
			r.pending = r.pending[:0]
		}
		_, _ = r.text.Write(words[:n])
		words = words[n:]
	}
	r.pending = append(r.pending, words...)
}

func trimRight(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] > ' ' { // as most do
		return b
	}
	return bytes.TrimRight(b, " \t\r\n")
}

// Said gives what the reply has said, once it is whole.
func (r *Reply) Said() Said {
	said := Said{Call: r.call}
	if r.hears {
		said.Trimmed = textHash(r.text.Sum64())
		_, _ = r.text.Write(r.pending)
		r.pending = nil
		said.Text = textHash(r.text.Sum64())
	}
	return said
}

// textHash is the hash of a block that holds a text of the assistant's.
func textHash(words uint64) uint64 {
	var room [64]byte
	return xxhash.Sum64(identity(room[:0], Assistant, KindText, "", words))
}

// Repeats compares what was said with the blocks of a request that stand behind
// the question: known is false where they have nothing in common that could be
// compared.
func (s Said) Repeats(blocks []Block) (same, known bool) {
	text, call := false, false
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Role != Assistant:
			return false, known
		case b.Kind == KindText && s.Text != 0 && !text:
			if b.Hash == s.Text || b.Hash == s.Trimmed {
				return true, true
			}
			text, known = true, true
		case b.Kind == KindTool && s.Call != 0 && b.Call != 0 && !call:
			if b.Call == s.Call {
				return true, true
			}
			call, known = true, true
		}
	}
	return false, known
}
