package wire

import "bytes"

// EventReader reads the events of one stream, one after the other, as
// Format.ParseEvent would. Most events of a stream are the one before with
// other words in one string; of such an event only that string is read, which
// halves what it costs to meter a stream. A reader is made for one stream, and
// is not used again.
type EventReader struct {
	Format Format
	Event  Event // as last read; Read overwrites it

	memory []byte // an event's name and data that Event was read from
	name   []byte
	before []byte // its data up to the words
	after  []byte // and from there on
	words  *[]byte
	vain   int // events kept in a row that no other was like
}

// Only events of some length are kept, since every open stream holds one, and
// none once a stream has shown that its events differ in more than words.
const (
	keptEvent = 1 << 10
	mostVain  = 4
)

// Read reads f into Event, whose strings alias f and the reader's memory until
// the next Read. Its error is ParseEvent's.
func (r *EventReader) Read(f Frame) error {
	if r.words != nil {
		if words := r.alike(f); words != nil {
			*r.words = words
			r.vain = 0
			return nil
		}
		r.words = nil
	}
	if err := r.Format.ParseEvent(&r.Event, f); err != nil {
		return err
	}
	r.keep(f)
	return nil
}

// alike gives the words of an event that is the kept one but for them. They
// hold nothing that could end a string, so all around them means what it meant.
func (r *EventReader) alike(f Frame) []byte {
	words := len(f.Data) - len(r.before) - len(r.after)
	if words <= 0 || f.Oversize || !bytes.Equal(f.Event, r.name) || !bytes.HasPrefix(f.Data, r.before) || !bytes.HasSuffix(f.Data, r.after) {
		return nil
	}
	middle := f.Data[len(r.before) : len(r.before)+words : len(r.before)+words]
	for _, ch := range middle {
		if ch == '"' || ch == '\\' {
			return nil
		}
	}
	return middle
}

// keep keeps the event just read, if it holds one piece of words, for the next
// one to be compared with.
func (r *EventReader) keep(f Frame) {
	if r.vain == mostVain || len(f.Event)+len(f.Data) > keptEvent {
		return
	}
	words := &r.Event.Text
	if len(*words) == 0 {
		words = &r.Event.Reasoning
	}
	if at := offset(f.Data, *words); at < 0 || f.Data[at-1] != '"' {
		return
	}
	r.vain++
	r.memory = append(append(r.memory[:0], f.Event...), f.Data...)
	r.name = r.memory[:len(f.Event)]
	data := r.memory[len(f.Event):]
	if r.Format.ParseEvent(&r.Event, Frame{Event: r.name, Data: data}) != nil {
		return
	}
	at := offset(data, *words)
	r.before, r.after, r.words = data[:at], data[at+len(*words):], words
}

// offset is where in a document a part of it begins; negative when the part is
// empty or was put together elsewhere.
func offset(doc, part []byte) int {
	at := cap(doc) - cap(part)
	if len(part) == 0 || at <= 0 || at >= len(doc) || &doc[at] != &part[0] {
		return -1
	}
	return at
}
