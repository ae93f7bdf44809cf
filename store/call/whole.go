package call

import (
	"strings"

	"weir/proxy/wire"
)

// whole is what a Meter remembers of an answer that was not streamed.
type whole struct {
	seen      bool // a body came
	oversize  bool // it was longer than is inspected
	malformed bool // it lacks what the API promises
	page      bool // it is a web page
	failed    bool // it is an error
}

// answer reads the whole body.
func (m *Meter) answer(f wire.Frame) {
	m.whole.seen = true
	if f.Oversize {
		m.whole.oversize = true
		return
	}
	if e, ok := m.format.ParseError(f.Data); ok {
		m.fail(&e)
		m.call.ErrorBody = storable(string(f.Data[:min(len(f.Data), captureLimit)]), bodyLimit)
	}
	var a wire.Answer
	if err := m.format.ParseAnswer(&a, f.Data); err != nil {
		m.whole.malformed = true
		m.whole.page = len(f.Data) > 0 && f.Data[0] == '<'
		return
	}
	m.whole.malformed = a.Malformed
	c := m.call
	keepName(&c.ResponseID, []byte(a.ID))
	keepName(&c.ServedModel, []byte(a.Model))
	keepName(&c.Finish, []byte(a.Finish))
	keepName(&c.ServiceTier, []byte(a.ServiceTier))
	keepName(&c.SystemFingerprint, []byte(a.SystemFingerprint))
	c.Usage.Merge(a.Usage)
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case wire.KindText, wire.KindRefusal:
			m.stream.textBytes += int64(len(p.Text))
		case wire.KindTool:
			m.stream.textBytes += int64(len(p.Name) + len(p.Arguments))
		}
	}
	if m.OnAnswer != nil {
		m.OnAnswer(&a)
	}
}

// capture keeps the beginning of an error body. It takes a little more than is
// stored, so that a key across the border is redacted whole.
type capture struct{ body []byte }

const (
	bodyLimit    = 64 << 10
	captureLimit = bodyLimit + 4<<10
)

func (b *capture) add(p []byte) {
	room := captureLimit - len(b.body)
	b.body = append(b.body, p[:min(len(p), room)]...)
}

// closeErrorBody reads the body of an error response.
func (m *Meter) closeErrorBody() {
	if m.errorBody == nil || len(m.errorBody.body) == 0 {
		return
	}
	body := m.errorBody.body
	m.call.ErrorBody = storable(string(body), bodyLimit)
	f := m.format
	if f == nil {
		f = wire.For(wire.Chat) // error bodies are read whatever their dialect
	}
	if e, ok := f.ParseError(body); ok {
		m.keepError(&e)
	}
	if m.call.ErrorMessage == "" {
		line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		m.call.ErrorMessage = storable(strings.TrimSpace(line), 200)
	}
}
